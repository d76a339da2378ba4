"""
A private neural network
========================

Where classes are not separated by a line, a linear model cannot help. ``DPMLPClassifier`` is a
multilayer perceptron, trained on clipped gradients with noise. It needs torch:
``pip install "skdpnoise[torch]"``. Without torch this example shows a picture that was drawn
before.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from _style import show_kept_picture

from skdpnoise import DPLogisticRegression, DPMLPClassifier

# %%
# A ring around a disc. Neighbouring data sets differ in one record more or fewer
# (``adjacency="add_remove"``), the only relation of networks here: the linear model gets the
# same.

rng = np.random.default_rng(0)
n = 20_000
inner = rng.random(n) < 0.5
radius, angle = np.where(inner, 0.6, 1.6) + 0.25 * rng.normal(size=n), rng.uniform(0, 2 * np.pi, n)
X = np.clip(radius * [np.cos(angle), np.sin(angle)], -2.5, 2.5).T
y = np.where(inner, "disc", "ring")
common = {"epsilon": 1.0, "delta": 1e-6, "feature_bounds": (-2.5, 2.5), "classes": ["disc", "ring"]}

# %%
# Both models are fitted to the same records, each for a budget of its own.


def draw(ax, model):
    """Draw what a fitted model says everywhere, and some records."""
    side = np.linspace(-2.5, 2.5, 121)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    chance = model.predict_proba(grid)[:, 1].reshape(121, 121)
    shade = ax.contourf(side, side, chance, levels=np.linspace(0, 1, 11), cmap="PuOr_r")
    for label, marker in (("disc", "o"), ("ring", "x")):
        ax.plot(*X[:400][y[:400] == label].T, marker, color="k", markersize=3, label=label)
    ax.set(xlabel="first column", ylabel="second column", aspect="equal")
    ax.set_title(f"{type(model).__name__}\nε = 1, accuracy {model.score(X, y):.2f}")
    return shade


if find_spec("torch"):
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    linear = DPLogisticRegression(adjacency="add_remove", **common).fit(X, y)
    network = DPMLPClassifier(hidden_layer_sizes=(16,), **common).fit(X, y)
    draw(axes[0], linear)
    figure.colorbar(draw(axes[1], network), ax=axes, label="predicted probability of the ring")
    axes[0].legend(loc="lower right")
    print(network.privacy_)
else:
    show_kept_picture("network")
plt.show()
