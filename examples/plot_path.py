"""
The path of the coefficients over the passes
============================================

Every iterate of a private descent has been charged for, so ``coef_path_`` costs nothing more to
show. Each pass adds noise, and ``coef_`` is the mean of the last fifth. The data are generated:
twelve columns of standard deviation one, of which four matter. Lines are private coefficients;
marks on the right are those of scikit-learn's Lasso with the same penalty.

The clip is set wide. The default is narrower, which predicts better at a small epsilon, but clipped
gradients are those of a more robust loss, against which the same penalty shrinks more.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso

from skdpnoise import DPCoordinateDescentRegressor

# A seed, so that the picture can be drawn again: never with private data.
warnings.filterwarnings("ignore", "NOT PRIVATE")
EPSILONS = (0.2, 1.0)
ALPHA = 0.1
rng = np.random.default_rng(0)
truth = np.array([1.0, -0.7, 0.4, 0.2] + [0.0] * 8)
X = rng.normal(size=(20_000, truth.size))
y = X @ truth + rng.normal(size=len(X))
lasso = Lasso(alpha=ALPHA * y.std()).fit(X, y)  # the private model also standardises the target

figure, axes = plt.subplots(
    1, len(EPSILONS), figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True
)
for ax, epsilon in zip(axes, EPSILONS, strict=True):
    model = DPCoordinateDescentRegressor(
        epsilon, alpha=ALPHA, l1_ratio=1.0, clip=3.0, random_state=0
    ).fit(X, y)
    passes = np.arange(1, model.n_passes_ + 1)
    end = passes[-1] + 1.5
    for j, path in enumerate(model.coef_path_.T):
        color = f"C{j}" if truth[j] else "0.7"
        ax.plot(passes, path, color=color, zorder=2 if truth[j] else 1)
        ax.plot(end, lasso.coef_[j], "x", color=color)
    last = -(-model.n_passes_ // 5)
    ax.axvspan(passes[-last], passes[-1], color="0.9", zorder=0)
    ax.set(title=f"ε = {epsilon:g}", xlabel="pass", xticks=np.arange(0, end, 5))
    print(f"epsilon {epsilon}: largest difference {np.abs(model.coef_ - lasso.coef_).max():.3f}")
axes[0].set_ylabel("coefficient")
axes[1].plot([], [], color="0.7", label="columns that do not matter")
axes[1].plot([], [], "kx", label="Lasso without privacy")
axes[1].fill_between([], [], color="0.9", label="passes averaged for coef_")
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
