"""
Where the noise goes
====================

Ten numbers are released. One record moves the first by up to 10, and each further one by a factor
of 0.6 less. Three rules divide the noise over the ten numbers. All three give the same guarantee.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import look

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

profile = SensitivityProfile(10.0 * 0.6 ** np.arange(10))
guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
RULES = {"iid": "i.i.d.", "spr": "s.p.r.", "inid": "i.n.i.d."}

# %%
# - *i.i.d.*: the same noise everywhere. It drowns the numbers that records hardly move.
# - *s.p.r.*: noise in proportion to the sensitivity. Every number gets the same relative error.
# - *i.n.i.d.*: the least total error. The standard deviation is as the square root of the
#   sensitivity for Gaussian noise, and as its cube root for Laplace noise.
#
# The number beside each rule in the legend is the root of the total squared error.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
coordinate = np.arange(1, profile.n_coordinates + 1)
axes[0].bar(coordinate, profile.per_coordinate, color="0.6")
axes[0].set(title="What one record can move", ylabel="sensitivity λ, in units of the query")
for ax, family in zip(axes[1:], ("gaussian", "laplace"), strict=True):
    for rule, name in RULES.items():
        mechanism = calibrate(f"{rule}_{family}", profile, guarantee)
        label = f"{name}, {np.sqrt(mechanism.mean_squared_error):.3g}"
        ax.plot(coordinate, mechanism.standard_deviation, label=label, **look(rule))
    ax.set(ylabel="standard deviation, in units of the query", ylim=(1, 1000))
    ax.set_title(f"{family.capitalize()} noise, ε = 1, δ = {0 if family == 'laplace' else '1e-6'}")
    ax.legend(title="root of the total squared error", loc="upper right")
for ax in axes:
    ax.set(yscale="log", xlabel="number", xticks=coordinate)
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
plt.show()
