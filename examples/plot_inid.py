"""
I.n.i.d. noise in one picture
=============================

Two numbers are released. One record can move the first by 1 and the second by 0.1. Each dot is
one noise that could be added to the pair.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

moves = SensitivityProfile([1.0, 0.1])
guarantee = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
RULES = {
    "iid": "i.i.d.: the same noise on both",
    "spr": "s.p.r.: as the sensitivities",
    "inid": "i.n.i.d.: the least total error",
}

# %%
# The guarantee is the same in all three panels. I.i.d. noise is as large as the more sensitive
# number needs. So the second number gets noise that it does not need. Noise in proportion to the
# sensitivities saves that, but the first number pays for it. I.n.i.d. noise (independent, but not
# identically distributed) has the least total error: the second number gets a small noise for a
# small part of the budget.

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharex=True, sharey=True)
for ax, (rule, name) in zip(axes, RULES.items(), strict=True):
    mechanism = calibrate(f"{rule}_gaussian", moves, guarantee)
    noise = np.array([mechanism.release([0.0, 0.0]) for _ in range(500)])
    ax.plot(*noise.T, ".", markersize=4, alpha=0.5, color=METHODS[rule]["color"])
    first, second = mechanism.standard_deviation
    error = np.sqrt(mechanism.mean_squared_error)
    text = f"standard deviations {first:.2f} and {second:.2f}\n"
    text += f"root of the total squared error {error:.2f}"
    ax.text(0, -18.5, text, ha="center", bbox={"color": "white", "alpha": 0.8, "pad": 1})
    ax.set(title=name, xlabel="noise on the first number", xlim=(-20, 20), ylim=(-20, 20))
    ax.set_aspect("equal")
    ax.grid(alpha=0.25)
axes[0].set_ylabel("noise on the second number")
plt.show()
