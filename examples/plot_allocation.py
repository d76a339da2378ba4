"""
Where the noise goes
====================

Ten numbers are released of which one record moves the first by up to 10 and each further one by a
factor of 0.6 less. All three allocations give the same guarantee. The same noise everywhere (iid)
drowns the small coordinates; noise in proportion to the sensitivity (spr) gives every coordinate
the same relative error; the optimum (inid) lies between, at the square root of the sensitivity for
Gaussian noise and at its cube root for Laplace noise, and has the smallest total error.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

profile = SensitivityProfile(10.0 * 0.6 ** np.arange(10))
guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
coordinate = np.arange(1, profile.n_coordinates + 1)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, family in zip(axes, ("gaussian", "laplace"), strict=True):
    ax.plot(coordinate, profile.per_coordinate, "k.:", label="sensitivity λ of the coordinate")
    for rule, marker in (("iid", "s"), ("spr", "^"), ("inid", "o")):
        mechanism = calibrate(f"{rule}_{family}", profile, guarantee)
        error = np.sqrt(mechanism.mean_squared_error)
        label = f"{rule}: root mean squared error {error:.3g}"
        ax.plot(coordinate, mechanism.standard_deviation, marker + "-", label=label)
        print(f"{mechanism.noise:14} {error:8.4g}")
    ax.set(yscale="log", xlabel="coordinate", xticks=coordinate, ylim=(None, 2500))
    ax.set_title(f"{family.capitalize()} noise, ε = 1, δ = {0 if family == 'laplace' else '1e-6'}")
    ax.legend(loc="upper right")
axes[0].set_ylabel("standard deviation of the noise; sensitivity")
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
