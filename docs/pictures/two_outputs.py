"""A published count for two neighbouring data sets: two densities, and their ratio.

Run as `python docs/pictures/two_outputs.py docs/images/two_outputs.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shown import save_or_show

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

GUARANTEE = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
COUNT = 100  # of the first data set; the second has one more
NOISES = {
    "laplace": ("Laplace noise, δ = 0", {"color": "#CC79A7", "linestyle": "-"}),
    "gaussian": ("normal noise, δ = 1e-6", {"color": "#000000", "linestyle": "--"}),
}


def draw():
    """Draw both panels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    one = SensitivityProfile([1.0])
    laplace = calibrate("iid_laplace", one, GUARANTEE)
    x = np.linspace(COUNT - 6, COUNT + 7, 1301)
    for count, colour, dashes, name in (
        (COUNT, "#0072B2", "-", "D: 100 people said yes"),
        (COUNT + 1, "#E69F00", "--", "D′: 101 people said yes"),
    ):
        look = {"color": colour, "linestyle": dashes, "linewidth": 2}
        left.plot(x, np.exp(_log_density(laplace, x - count)), label=name, **look)
        left.fill_between(x, np.exp(_log_density(laplace, x - count)), alpha=0.15, color=colour)
    left.set(xlabel="published number (people)", ylabel="density (per person)", ylim=(0, 0.68))
    left.set(title="The published number, Laplace noise, ε = 1", xlim=(x[0], x[-1]))
    left.legend(loc="upper left")

    x = np.linspace(COUNT - 24, COUNT + 25, 1961)
    right.axhspan(np.exp(-1), np.exp(1), color="#999999", alpha=0.25, linewidth=0)
    for family, (name, look) in NOISES.items():
        mechanism = calibrate(f"iid_{family}", one, GUARANTEE)
        loss = _log_density(mechanism, x - COUNT - 1) - _log_density(mechanism, x - COUNT)
        right.plot(x, np.exp(loss), label=name, linewidth=2, **look)
    right.text(COUNT + 24, 0.42, "between e⁻¹ and e¹", ha="right", va="bottom")
    right.set(yscale="log", ylim=(0.2, 8), xlim=(x[0], x[-1]))
    right.set_yticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
    right.minorticks_off()
    right.set(xlabel="published number (people)", ylabel="density with D′ / density with D")
    right.set_title("How many times more likely with D′")
    right.legend(loc="upper left")
    for ax in (left, right):
        ax.grid(alpha=0.25)
    return figure


def _log_density(mechanism, noise):
    """Return the logarithm of the density of the noise of a mechanism for one number."""
    scale = mechanism.scale[0]
    return mechanism.family.logpdf(noise / scale) - np.log(scale)


if __name__ == "__main__":
    save_or_show(draw())
