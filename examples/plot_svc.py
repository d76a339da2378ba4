"""
Support vectors: only records near the border count
===================================================

The hinge loss is flat for records that are on the right side with room to spare. ``DPLinearSVC``
spends its budget on the others.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _style import epsilon_axis, line, look
from sklearn.svm import LinearSVC

from skdpnoise import DPLinearSVC, DPLogisticRegression, PrivacyWarning

EPSILONS = [0.1, 0.3, 1.0, 3.0]
N_FITS = 9
rng = np.random.default_rng(0)

# %%
# Twenty columns. A tenth of the records have the wrong label, wherever they are.

n = 6_000
X = np.clip(rng.normal(size=(n, 20)), -4, 4)
y = np.where(X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=n) > 0, "ill", "well")
wrong = rng.random(n) < 0.1
y[wrong] = np.where(y[wrong] == "ill", "well", "ill")
X, X_test, y, y_test = X[: n // 2], X[n // 2 :], y[: n // 2], y[n // 2 :]

# %%
# The best possible accuracy is a little below 0.9. ``DPLogisticRegression`` is beside it for
# comparison. A fit at ε = 0.1 that finds little says so, which is no news beside the picture.

warnings.simplefilter("ignore", PrivacyWarning)
figure, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
public = {"feature_bounds": (-4, 4), "classes": ["ill", "well"]}
for label, model, name in (
    ("DPLinearSVC", DPLinearSVC, "inid"),
    ("DPLogisticRegression", DPLogisticRegression, "second"),
):
    rows = [
        [model(epsilon, **public).fit(X, y).score(X_test, y_test) for _ in range(N_FITS)]
        for epsilon in EPSILONS
    ]
    low, middle, high = np.quantile(rows, [0.05, 0.5, 0.95], axis=1)
    ax.plot(EPSILONS, middle, label=label, **look(name))
    ax.fill_between(EPSILONS, low, high, alpha=0.15, linewidth=0, color=look(name)["color"])
ordinary = LinearSVC(C=1.0).fit(X, y).score(X_test, y_test)
ax.axhline(ordinary, label="LinearSVC of scikit-learn", **line("public"))
largest = max(np.mean(y_test == one) for one in ("ill", "well"))
ax.axhline(largest, label="always the larger class", **line("baseline"))
epsilon_axis(ax, EPSILONS, delta=1e-6)
ax.set_ylabel("accuracy on test rows")
ax.set_title(f"Median, and 5 % to 95 %, of {N_FITS} private fits of {len(X):,} rows")
ax.legend(loc="center right")
plt.show()
