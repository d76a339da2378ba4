"""
Every lasso penalty from one private release
============================================

``DPLassoPath`` releases the second moments of the rows once. Every penalty is a function of
these, so that the whole path costs no more than one fit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import lasso_path

from skdpnoise import DPLassoPath

TRUTH = np.array([1.0, -0.7, 0.4, 0.2] + [0.0] * 8)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")

# %%
# Twelve columns of standard deviation one, of which four matter.

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, TRUTH.size))
y = X @ TRUTH + rng.normal(size=len(X))

# %%
# The private path is of a standardised target, and scikit-learn's gets the penalty in that unit.
# Solid lines are the private path, dotted lines are that of scikit-learn's ``lasso_path``.

path = DPLassoPath(epsilon=1.0).fit(X, y)
alphas, public, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=path.alphas_ * y.std())

figure, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
for j, (private, ordinary) in enumerate(zip(path.coefs_, public, strict=True)):
    matters = bool(TRUTH[j])
    style = {"color": COLOURS[j] if matters else "0.7", "zorder": 2 if matters else 1}
    ax.plot(path.alphas_, private, **style)
    ax.plot(alphas / y.std(), ordinary, linestyle=":", **style)
    if matters:
        ax.text(
            path.alphas_[-1] / 1.15,
            private[-1],
            f"column {j + 1}",
            color=style["color"],
            ha="right",
        )
ax.plot([], [], "k-", label="private, ε = 1")
ax.plot([], [], "k:", label="without privacy")
ax.plot([], [], "0.7", label="the eight columns that do not matter")
ax.set(xscale="log", xlabel="penalty alpha", ylabel="coefficient, in units of the target")
ax.set_xlim(path.alphas_[-1] / 4, path.alphas_[0])
ax.grid(alpha=0.25)
figure.legend(loc="outside lower center", ncols=3)
plt.show()

# %%
# ``model(alpha)`` is an ordinary fitted regressor, for any penalty, at no further cost. The
# report has one release of second moments.

model = path.model(0.1)
print(np.flatnonzero(model.coef_))
print(path.privacy_.releases[-1].label, path.privacy_.releases[-1].n_releases)
