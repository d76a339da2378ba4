"""
Scores with standard errors
===========================

Each private score comes with the standard error of its noise. Intervals of 1.96 standard errors
cover the exact score in about 95 % of all releases.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS
from sklearn import metrics

from skdpnoise import DPLogisticRegression, PrivacyGuarantee
from skdpnoise.metrics import (
    private_accuracy_score,
    private_balanced_accuracy_score,
    private_log_loss,
    private_roc_auc_score,
)

N_RELEASES = 40

# %%
# One model, and 2,000 test records that it was not fitted to.

rng = np.random.default_rng(0)
X = np.clip(rng.normal(size=(12_000, 3)), -4, 4)
y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 1.0).astype(int)
model = DPLogisticRegression(1.0, feature_bounds=(-4, 4), classes=[0, 1]).fit(
    X[:10_000], y[:10_000]
)
truth, labels = y[10_000:], model.predict(X[10_000:])
proba = model.predict_proba(X[10_000:])

# %%
# Forty releases of each score, to see how they vary. With real data one release is made, and paid
# for.

SCORES = {
    "accuracy": (private_accuracy_score, metrics.accuracy_score, labels),
    "balanced accuracy": (
        partial(private_balanced_accuracy_score, labels=[0, 1]),
        metrics.balanced_accuracy_score,
        labels,
    ),
    "area under the ROC curve": (private_roc_auc_score, metrics.roc_auc_score, proba[:, 1]),
    "log loss": (partial(private_log_loss, labels=[0, 1]), metrics.log_loss, proba),
}
guarantee = PrivacyGuarantee(epsilon=0.5)
figure, axes = plt.subplots(1, 4, figsize=(12, 4.6), layout="constrained", sharey=True)
for ax, (name, (private, public, predictions)) in zip(axes, SCORES.items(), strict=True):
    exact = public(truth, predictions)
    covered = 0
    for place in range(N_RELEASES):
        score = private(truth, predictions, guarantee)
        inside = abs(float(score) - exact) <= 1.96 * score.standard_error
        covered += inside
        style = METHODS["inid" if inside else "iid"]
        bar = {"color": style["color"], "marker": style["marker"], "markersize": 4}
        ax.errorbar(float(score), place, xerr=1.96 * score.standard_error, **bar)
    ax.axvline(exact, color="k", linestyle=":", linewidth=1.5)
    ax.set(title=f"{name}\n{covered} of {N_RELEASES} intervals cover it", xlabel="score", yticks=[])
    ax.locator_params(axis="x", nbins=4)
axes[0].set_ylabel("releases, ε = 0.5 each")
axes[0].plot([], [], "k:", label="exact score, not released")
axes[0].plot([], [], "o-", color=METHODS["inid"]["color"], label="interval covers it")
axes[0].plot([], [], "s-", color=METHODS["iid"]["color"], label="interval does not")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
