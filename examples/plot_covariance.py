"""
A private covariance matrix
===========================

``DPCovariance`` releases the second moments of rows about a private centre. Ellipses show what
the noise does to them.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS, line
from sklearn.covariance import EmpiricalCovariance

from skdpnoise import DPCovariance

N_FITS = 10


def ellipse(model):
    """Return points two standard deviations from the centre."""
    angle = np.linspace(0, 2 * np.pi, 181)
    values, vectors = np.linalg.eigh(model.covariance_)
    circle = np.array([np.cos(angle), np.sin(angle)])
    return model.location_[:, np.newaxis] + 2 * vectors @ (np.sqrt(values)[:, np.newaxis] * circle)


# %%
# Height and weight of 3,000 made-up people. No bounds are given: centre and radius are found
# privately, within ε. Each thin ellipse is one private fit; with real data only one of them is
# published.
#
# At ε = 0.3 the noise asks for a smaller radius. Rows beyond it are shrunk, so that the variances
# come out too small.

rng = np.random.default_rng(0)
height = rng.normal(170, 9, 3_000)
X = np.column_stack([height, 0.9 * (height - 100) + rng.normal(0, 9, height.size)])
public = EmpiricalCovariance().fit(X)

figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharey=True)
for ax, epsilon in zip(axes, (0.3, 1.0, 3.0), strict=True):
    ax.plot(*X[:800].T, ".", color="0.75", markersize=3)
    for _ in range(N_FITS):
        ax.plot(*ellipse(DPCovariance(epsilon).fit(X)), color=METHODS["inid"]["color"], linewidth=1)
    ax.plot(*ellipse(public), **line("public", linewidth=2.5))
    ax.set(title=f"ε = {epsilon:g}, δ = 1e-6", xlabel="height (cm)")
    ax.set(xlim=(135, 205), ylim=(20, 110))
axes[0].set_ylabel("weight (kg)")
axes[0].plot([], [], color=METHODS["inid"]["color"], label=f"{N_FITS} private fits")
axes[0].plot([], [], label="without privacy", **line("public", linewidth=2.5))
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
