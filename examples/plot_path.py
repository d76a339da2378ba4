"""
The path of the coefficients over the passes
============================================

Every iterate of a private descent has been charged for. So ``coef_path_`` costs nothing more to
show.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Lasso

from skdpnoise import DPCoordinateDescentRegressor

EPSILONS = (0.2, 1.0)
ALPHA = 0.1
TRUTH = np.array([1.0, -0.7, 0.4, 0.2] + [0.0] * 8)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1)))

# %%
# The data are generated: twelve columns of standard deviation one, of which four matter. The
# private model also standardises the target, so that scikit-learn's Lasso gets the penalty in
# that unit.

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, TRUTH.size))
y = X @ TRUTH + rng.normal(size=len(X))
lasso = Lasso(alpha=ALPHA * y.std()).fit(X, y)

# %%
# Each pass adds noise. ``coef_`` is the mean of the last fifth of the passes, which are shaded.
# The crosses on the right are the coefficients of scikit-learn's Lasso.
#
# The clip is set wide. The default is narrower, which predicts better at a small ε. But clipped
# gradients are those of a more robust loss, against which the same penalty shrinks more.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
for ax, epsilon in zip(axes, EPSILONS, strict=True):
    model = DPCoordinateDescentRegressor(epsilon, alpha=ALPHA, l1_ratio=1.0, clip=3.0).fit(X, y)
    passes = np.arange(1, model.n_passes_ + 1)
    end = passes[-1]
    for j, path in enumerate(model.coef_path_.T):
        matters = bool(TRUTH[j])
        colour, dash = (COLOURS[j], DASHES[j]) if matters else ("0.75", "-")
        ax.plot(passes, path, color=colour, linestyle=dash, zorder=2 if matters else 1)
        if matters:
            ax.plot(end + 1, lasso.coef_[j], "x", color=colour)
            ax.text(end + 1.8, lasso.coef_[j], f"column {j + 1}", color=colour, va="center")
    ax.axvspan(end - -(-end // 5) + 1, end, color="0.92", zorder=0)
    ax.set(title=f"ε = {epsilon:g}, δ = 1e-6", xlabel="pass over the data")
    ax.set(xlim=(0, end + 6.5), xticks=np.arange(0, end + 1, 5))
    ax.grid(axis="y", alpha=0.25)
axes[0].set_ylabel("coefficient, in units of the target")
axes[1].plot([], [], color="0.75", label="the eight columns that do not matter")
axes[1].plot([], [], "kx", linestyle="none", label="scikit-learn's Lasso, without privacy")
axes[1].fill_between([], [], color="0.92", label="passes averaged for coef_")
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
