"""The same noise on six sums, and noise of its own on each: one guarantee, less total error.

Run as `python docs/pictures/inid_noise.py docs/images/inid_noise.png`.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shown import save_or_show

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.sensitivity import SensitivityProfile

GUARANTEE = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
# Hours per week, at most: what a record that is replaced moves each sum by.
BOUNDS = {"paid work": 60, "care": 30, "housework": 10, "sport": 5, "reading": 2, "voluntary": 1}
RULES = (
    ("iid", "The same noise on all (i.i.d.)", {"color": "#D55E00", "hatch": "//"}),
    ("inid", "Noise of its own for each (i.n.i.d.)", {"color": "#0072B2"}),
)


def draw():
    """Draw both panels."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
    profile = SensitivityProfile(list(BOUNDS.values()))
    place = np.arange(len(BOUNDS))
    for ax, (rule, title, look) in zip(axes, RULES, strict=True):
        mechanism = calibrate(f"{rule}_gaussian", profile, GUARANTEE)
        look = {"edgecolor": "white", "label": "standard deviation of the noise"} | look
        bars = ax.bar(place, mechanism.standard_deviation, 0.7, **look)
        ax.bar_label(bars, fmt="%.0f", padding=2)
        limits = {"marker": "D", "linestyle": "none", "markeredgecolor": "white"}
        label = "the most that one record moves the sum"
        ax.plot(place, profile.per_coordinate, color="#000000", label=label, **limits)
        total = mechanism.expected_error()
        ax.set_title(f"{title}\ntotal squared error {total:,.0f} hours²")
        ax.set_xticks(place, [f"{name}\n≤ {most} h" for name, most in BOUNDS.items()], fontsize=9)
        ax.set_ylim(0, 460)
        ax.grid(axis="y", alpha=0.25)
        ax.set_axisbelow(True)
        ax.legend(loc="upper right")
    axes[0].set_ylabel("hours")
    figure.supxlabel("sum of weekly hours, and the public bound on each answer", fontsize=10)
    return figure


if __name__ == "__main__":
    save_or_show(draw())
