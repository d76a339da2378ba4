"""
Choosing a noise
================

Four noises with the same guarantee, for one released number and for thirty.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.plotting import PrivacyLossDisplay
from skdpnoise.sensitivity import SensitivityProfile

FAMILIES = ("gaussian", "laplace", "staircase", "subbotin")
target = PrivacyGuarantee(epsilon=1.0, delta=1e-6)

# %%
# On the left are the densities. On a logarithmic axis the slope is the privacy that a small
# change costs: the same everywhere for Laplace noise, more in the tails for Gaussian noise, which
# makes tails rare in return. On the right is what the noises disclose.
#
# All of them meet the target. For one number Laplace noise does it with a third of the Gaussian's
# standard deviation. With thirty numbers, whose costs add, the curves come close together, and
# Gaussian noise is the smaller one. Calibration fits the shape of Subbotin noise: near Laplace
# for one number, near Gaussian for many.

figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
for n_numbers, (left, right) in zip((1, 30), axes, strict=True):
    profile = SensitivityProfile(np.ones(n_numbers))
    mechanisms = {name: calibrate(f"iid_{name}", profile, target) for name in FAMILIES}
    display = PrivacyLossDisplay.from_mechanisms(mechanisms, target=target, ax=right)
    reach = 4.0 * max(mechanism.standard_deviation[0] for mechanism in mechanisms.values())
    x = np.linspace(-reach, reach, 2001)
    for (name, mechanism), curve in zip(mechanisms.items(), display.lines_, strict=True):
        curve.set(**line(name))
        scale, deviation = mechanism.scale[0], mechanism.standard_deviation[0]
        density = np.exp(mechanism.family.logpdf(x / scale)) / scale
        left.plot(x, density, label=f"{name}, {deviation:.3g}", **line(name))
    left.set(yscale="log", xlim=(-reach, reach), xlabel="noise, in units of the sensitivity")
    left.set_ylabel("density")
    left.set_title(
        "Noise on one number" if n_numbers == 1 else f"Noise on each of {n_numbers} numbers"
    )
    low, high = left.get_ylim()
    left.set_ylim(max(low, 1e-4 / reach), 40.0 * high)  # room for the legend
    left.grid(alpha=0.25)
    left.legend(title="standard deviation", loc="upper right", ncols=2)
    right.legend(loc="lower left")
    right.set_title("What it discloses" + (f", {n_numbers} times" if n_numbers > 1 else ""))
plt.show()
