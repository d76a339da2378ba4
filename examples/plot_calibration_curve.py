"""
Are probabilities right?
========================

A calibration curve says how often records are positive that a model gives a probability of p.
This one is released with noise, from private test records.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import DPLogisticRegression, PrivacyGuarantee
from skdpnoise.plotting import PrivateCalibrationDisplay

# %%
# Two models with the same records: one of all columns, one that lacks the square on which the
# truth depends.

rng = np.random.default_rng(0)
n = 40_000
X = np.clip(rng.normal(size=(n, 2)), -3, 3)
X = np.column_stack([X, X[:, 0] ** 2])
y = (rng.random(n) < 1 / (1 + np.exp(-(X @ [0.5, 1.0, 1.5] - 1.5)))).astype(int)
X, X_test, y, y_test = X[: n // 2], X[n // 2 :], y[: n // 2], y[n // 2 :]

# %%
# Each curve is one release, and each costs ε = 0.5. Bars are 1.96 standard errors of the noise.

figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, columns, name in zip(axes, (3, 2), ("with the square", "without the square"), strict=True):
    bounds = ([-3, -3, 0][:columns], [3, 3, 9][:columns])
    model = DPLogisticRegression(1.0, feature_bounds=bounds, classes=[0, 1])
    model.fit(X[:, :columns], y)
    PrivateCalibrationDisplay.from_estimator(
        model,
        X_test[:, :columns],
        y_test,
        PrivacyGuarantee(0.5),
        ax=ax,
        name=f"Model {name}, ε = 0.5 for the curve",
    )
plt.show()
