"""
Principal components of digits
==============================

The first components of 1,797 images of 8 × 8 pixels: without privacy, and at two values of ε.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from skdpnoise import DPPCA

N_COMPONENTS = 6
X, _ = load_digits(return_X_y=True)

# %%
# Pixels are from 0 to 16: these bounds are public. A component has no sign, so each private one
# is turned to agree with the ordinary one of the same number.
#
# Components whose variances are close to each other may change places or mix. What counts is how
# much variance all of them capture: it stands on the left, as a share of what the ordinary ones
# capture.

ordinary = PCA(N_COMPONENTS).fit(X)
captured = ordinary.explained_variance_.sum()
covariance = np.cov(X.T)
rows = {"without\nprivacy": ordinary.components_}
for epsilon in (5.0, 1.0):
    private = DPPCA(N_COMPONENTS, epsilon=epsilon, feature_bounds=(0, 16)).fit(X).components_
    share = np.trace(private @ covariance @ private.T) / captured
    signs = np.sign(np.sum(private * ordinary.components_, axis=1, keepdims=True))
    rows[f"ε = {epsilon:g},\n{share:.0%} of the\nvariance"] = private * signs

figure, axes = plt.subplots(
    len(rows), N_COMPONENTS, figsize=(9, 4.8), layout="constrained", squeeze=False
)
for line, (name, components) in zip(axes, rows.items(), strict=True):
    first = name.startswith("without")
    line[0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=10)
    for number, (ax, component) in enumerate(zip(line, components, strict=True), start=1):
        image = ax.imshow(component.reshape(8, 8), cmap="PuOr", vmin=-0.4, vmax=0.4)
        ax.set(xticks=[], yticks=[])
        if first:
            ax.set_title(f"component {number}", fontsize="medium")
figure.colorbar(image, ax=axes, label="weight of the pixel", shrink=0.8)
plt.show()
