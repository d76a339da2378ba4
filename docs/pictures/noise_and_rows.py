"""The noise of a private mean falls faster with the number of rows than its sampling error.

Run as `python docs/pictures/noise_and_rows.py docs/images/noise_and_rows.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shown import save_or_show

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

LOW, HIGH = 18.0, 90.0  # public bounds, in years
EPSILONS = {1.0: "o", 0.1: "s", 0.01: "^"}  # with a mark for each


def draw():
    """Draw the errors of a mean over the number of rows."""
    figure, ax = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
    n = np.logspace(1, 6, 11)
    width = HIGH - LOW
    for epsilon, marker in EPSILONS.items():
        # Under replace-one a row moves the sum by the width of the bounds at most.
        mechanism = calibrate("iid_laplace", SensitivityProfile([width]), PrivacyGuarantee(epsilon))
        noise = mechanism.standard_deviation[0] / n
        ax.plot(n, noise, "-", color="#0072B2", marker=marker, label=f"noise, ε = {epsilon:g}")
    sampling = width / np.sqrt(12.0 * n)  # the deviation of evenly spread values, over √n
    ax.plot(n, sampling, ":", color="#000000", linewidth=2.5, label="sampling error, no privacy")
    ax.set(xscale="log", yscale="log", xlim=(n[0], n[-1]), ylim=(1e-4, 1e4))
    ax.set(xlabel="number of rows", ylabel="standard error of the mean (years)")
    ax.set_title("A private mean of ages between 18 and 90")
    ax.grid(alpha=0.25)
    ax.legend(loc="upper right")
    return figure


if __name__ == "__main__":
    save_or_show(draw())
