"""
Ridge regression: a penalty against noise
=========================================

Private coefficients have noise. A ridge shrinks what is mostly noise, so that a private model
wants a larger penalty than an ordinary one.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line, look
from sklearn.linear_model import Ridge

from skdpnoise import DPRidge

ALPHAS = np.geomspace(1.0, 1e5, 9)
N_FITS = 7

# %%
# Thirty columns that share one factor, so that they are correlated.

rng = np.random.default_rng(0)
n = 10_000
factor = rng.normal(size=(n, 1))
X = np.clip(0.8 * factor + 0.6 * rng.normal(size=(n, 30)), -4, 4)
y = np.clip(X @ rng.normal(0.0, 0.2, 30) + rng.normal(size=n), -8, 8)
X, X_test, y, y_test = X[: n // 2], X[n // 2 :], y[: n // 2], y[n // 2 :]

# %%
# The bounds are public here: what the columns are known to lie in. All fits at one ε get the same
# budget. Choosing the best ``alpha`` from such a picture of private data would cost more:
# ``DPGridSearchCV`` pays for that.

settings = {"feature_bounds": (-4, 4), "target_bounds": (-8, 8), "solver": "gram"}
figure, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
for epsilon, name in ((1.0, "inid"), (0.3, "second")):
    rows = []
    for alpha in ALPHAS:
        model = DPRidge(epsilon, alpha=alpha, **settings)
        rows.append([model.fit(X, y).score(X_test, y_test) for _ in range(N_FITS)])
    low, middle, high = np.quantile(rows, [0.05, 0.5, 0.95], axis=1)
    ax.plot(ALPHAS, middle, label=f"DPRidge, ε = {epsilon:g}", **look(name))
    ax.fill_between(ALPHAS, low, high, alpha=0.15, linewidth=0, color=look(name)["color"])
public = [Ridge(alpha=alpha).fit(X, y).score(X_test, y_test) for alpha in ALPHAS]
ax.plot(ALPHAS, public, label="Ridge of scikit-learn", **line("public"))
ax.axhline(0, label="predicting the mean", **line("baseline"))
ax.set(xscale="log", xlabel="penalty alpha", ylabel="R² on test rows")
ax.set_title(f"Median, and 5 % to 95 %, of {N_FITS} private fits of {len(X):,} rows")
ax.grid(alpha=0.25)
ax.legend()
plt.show()
