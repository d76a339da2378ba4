"""
Choosing a noise
================

Four noises with the same guarantee, for one released number and for thirty. On the left are their
densities. On a logarithmic axis the slope is the privacy that a small change costs: the same
everywhere for Laplace noise, more in the tails for Gaussian noise, which makes tails rare in
return. On the right is what they disclose. They all meet the target, and for one number Laplace
noise does it with a third of the Gaussian's standard deviation. With thirty numbers, whose costs
add, their curves come close together, and Gaussian noise is the smaller one. Calibration fits the
shape of Subbotin noise: near Laplace for one number, near Gaussian for many.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.plotting import PrivacyLossDisplay
from skdpnoise.sensitivity import SensitivityProfile

FAMILIES = ("gaussian", "laplace", "staircase", "subbotin")
target = PrivacyGuarantee(epsilon=1.0, delta=1e-6)

figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
for n_coordinates, (left, right) in zip((1, 30), axes, strict=True):
    profile = SensitivityProfile(np.ones(n_coordinates))
    mechanisms = {name: calibrate(f"iid_{name}", profile, target) for name in FAMILIES}
    display = PrivacyLossDisplay.from_mechanisms(mechanisms, target=target, ax=right)
    reach = 4.0 * max(mechanism.standard_deviation[0] for mechanism in mechanisms.values())
    x = np.linspace(-reach, reach, 2001)
    for (name, mechanism), line in zip(mechanisms.items(), display.lines_, strict=True):
        scale, deviation = mechanism.scale[0], mechanism.standard_deviation[0]
        density = np.exp(mechanism.family.logpdf(x / scale)) / scale
        style = {"color": line.get_color(), "linestyle": line.get_linestyle()}
        left.plot(x, density, label=f"{name}, {deviation:.3g}", **style)
        print(f"{n_coordinates:3} {name:10} standard deviation {deviation:8.4g}")
    numbers = "1 number" if n_coordinates == 1 else f"each of {n_coordinates} numbers"
    left.set(yscale="log", xlim=(-reach, reach), xlabel="noise, in units of the sensitivity")
    left.set(ylabel="density", title=f"Noise on {numbers}")
    low, high = left.get_ylim()
    left.set_ylim(max(low, 1e-4 / reach), 40.0 * high)  # room for the legend
    left.grid(alpha=0.25)
    left.legend(title="standard deviation", loc="upper right", ncols=2)
    right.set_title("What it discloses" + (f", {n_coordinates} times" if n_coordinates > 1 else ""))
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
