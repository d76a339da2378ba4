"""
Linear regression: what noise does to coefficients
==================================================

A private fit draws fresh noise each time. Repeated fits show how much of it reaches the
coefficients. With real data each fit costs its ε: repeat fits of made-up data only, as here.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import look
from sklearn.linear_model import LinearRegression

from skdpnoise import DPCoordinateDescentRegressor

EPSILONS = (0.1, 0.3, 1.0)
N_FITS = 25
COLUMNS = ["age", "income", "lead", "unrelated"]

# %%
# Columns in four units, and a blood pressure that depends on three of them.

rng = np.random.default_rng(0)
n = 20_000
X = np.column_stack(
    [
        rng.uniform(18, 90, n),  # years
        rng.lognormal(10.5, 0.5, n),  # euros a year
        rng.gamma(2.0, 1e-5, n),  # grams per litre of blood
        rng.normal(size=n),
    ]
)
y = 90 + X[:, :3] @ [0.6, -2e-4, 4e5] + rng.normal(0, 5, n)
spread = X.std(axis=0)  # to show all coefficients on one axis
public = LinearRegression().fit(X / spread, y)

# %%
# No bounds are given, and the columns are not scaled beforehand: the fit does that itself, within
# its ε.

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
place = np.arange(len(COLUMNS))
names = ("third", "second", "inid")
for shift, (epsilon, name) in enumerate(zip(EPSILONS, names, strict=True)):
    fits = [DPCoordinateDescentRegressor(epsilon).fit(X, y).coef_ for _ in range(N_FITS)]
    low, middle, high = np.quantile(np.array(fits) * spread, [0.05, 0.5, 0.95], axis=0)
    style = look(name, linestyle="none", capsize=4, label=f"private, ε = {epsilon:g}")
    ax.errorbar(place + 0.2 * (shift - 1), middle, [middle - low, high - middle], **style)
ax.plot(place + 0.4, public.coef_, label="scikit-learn", **look("public", linestyle="none"))
ax.axhline(0, color="0.8", linewidth=1, zorder=0)
ax.set_xticks(place + 0.1, COLUMNS)
ax.set_ylabel("change of the pressure (mmHg)\nper standard deviation of the column")
ax.set_title(f"Median, and 5 % to 95 %, of {N_FITS} private fits of {n:,} rows")
ax.legend()
plt.show()
