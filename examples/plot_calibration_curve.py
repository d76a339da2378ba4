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
# A private model of 20,000 records, and as many test records that it was not fitted to.

rng = np.random.default_rng(0)
n = 40_000
X = np.clip(rng.normal(size=(n, 2)), -4, 4)
y = (rng.random(n) < 1 / (1 + np.exp(-X @ [1.0, 1.5]))).astype(int)
X, X_test, y, y_test = X[: n // 2], X[n // 2 :], y[: n // 2], y[n // 2 :]
model = DPLogisticRegression(1.0, feature_bounds=(-4, 4), classes=[0, 1]).fit(X, y)

# %%
# The model is a little too sure of itself: clipped gradients count less those records that it
# gets wrong. On the right are the same predictions with doubled log-odds: too sure of themselves.
# Each curve is one release, and each costs ε = 0.2. Bars are 1.96 standard errors of the noise.

figure, axes = plt.subplots(1, 2, figsize=(10, 5.3), layout="constrained")
score = model.decision_function(X_test)
for ax, factor, name in zip(axes, (1, 2), ("The model", "Twice its log-odds"), strict=True):
    PrivateCalibrationDisplay.from_predictions(
        y_test, 1 / (1 + np.exp(-factor * score)), PrivacyGuarantee(0.2), ax=ax, name=name
    )
plt.show()
