"""
A ROC curve of private test records
===================================

A ROC curve tells of the records that it is made of. ``private_roc_curve`` releases it with noise,
and says how large the noise is.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line
from sklearn.metrics import roc_auc_score, roc_curve

from skdpnoise import DPLogisticRegression, PrivacyGuarantee
from skdpnoise.plotting import PrivateRocCurveDisplay

# %%
# A private model, and test records that it was not fitted to.

rng = np.random.default_rng(0)
X = np.clip(rng.normal(size=(22_000, 3)), -4, 4)
y = (X[:, 0] + X[:, 1] + 1.5 * rng.normal(size=len(X)) > 0.8).astype(int)
model = DPLogisticRegression(1.0, feature_bounds=(-4, 4), classes=[0, 1]).fit(
    X[:20_000], y[:20_000]
)
X_test, y_test = X[20_000:], y[20_000:]

# %%
# The band is 1.96 standard errors of the noise in both rates. What another sample of test records
# would have given is not in it. The exact curve is drawn for comparison only: it is not private.

figure, axes = plt.subplots(1, 2, figsize=(10, 5.5), layout="constrained")
chance = model.predict_proba(X_test)[:, 1]
exact = roc_curve(y_test, chance)
for ax, epsilon in zip(axes, (0.2, 1.0), strict=True):
    name = f"ε = {epsilon:g}, {len(y_test):,} test records"
    PrivateRocCurveDisplay.from_estimator(
        model, X_test, y_test, PrivacyGuarantee(epsilon), ax=ax, name=name
    )
    label = f"exact, AUC = {roc_auc_score(y_test, chance):.3f}"
    ax.plot(exact[0], exact[1], label=label, **line("iid"))
    ax.legend(loc="lower right")
plt.show()
