"""
Logistic regression: a border with noise
========================================

Each line is where one private fit says that both classes are equally probable.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS, line
from sklearn.linear_model import LogisticRegression

from skdpnoise import DPLogisticRegression

N_FITS = 15
rng = np.random.default_rng(0)
n = 5_000
X = rng.normal(size=(n, 2))
y = rng.random(n) < 1 / (1 + np.exp(-X @ [2.0, 1.0]))

# %%
# The same records at three values of ε. The smaller ε is, the more the borders differ. With real
# data one of these lines is all that is published.


def border(ax, model, **style):
    """Draw where a model says one half."""
    x = np.array([-3.5, 3.5])
    return ax.plot(x, -(model.intercept_[0] + model.coef_[0, 0] * x) / model.coef_[0, 1], **style)


figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharey=True)
public = LogisticRegression().fit(X, y)
for ax, epsilon in zip(axes, (0.1, 0.3, 1.0), strict=True):
    for label, colour in ((True, METHODS["third"]["color"]), (False, "#56B4E9")):
        some = X[:600][y[:600] == label]
        ax.plot(*some.T, ".", color=colour, markersize=3, alpha=0.6)
    scores = []
    for _ in range(N_FITS):
        model = DPLogisticRegression(epsilon, feature_bounds=(-4, 4), classes=[False, True]).fit(
            X, y
        )
        scores.append(model.score(X, y))
        border(ax, model, color=METHODS["inid"]["color"], alpha=0.6, linewidth=1)
    border(ax, public, **line("public", linewidth=2.5))
    ax.set_title(f"ε = {epsilon:g}: accuracy {min(scores):.3f} to {max(scores):.3f}")
    ax.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), xlabel="first column")
axes[0].set_ylabel("second column")
axes[0].plot([], [], color=METHODS["inid"]["color"], label=f"{N_FITS} private fits, δ = 1e-6")
axes[0].plot([], [], label=f"scikit-learn, accuracy {public.score(X, y):.3f}", **line("public"))
axes[0].plot([], [], ".", color=METHODS["third"]["color"], label="yes")
axes[0].plot([], [], ".", color="#56B4E9", label="no")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
