"""
Three displays of one mechanism
===============================

``NoiseDisplay``, ``AllocationDisplay`` and ``PrivacyLossDisplay`` draw a mechanism: its noise,
what each number costs, and what all of them disclose.
"""

import matplotlib.pyplot as plt

from skdpnoise import PrivacyGuarantee
from skdpnoise.mechanisms import calibrate
from skdpnoise.plotting import AllocationDisplay, NoiseDisplay, PrivacyLossDisplay
from skdpnoise.sensitivity import SensitivityProfile

# %%
# Four numbers, of which one record moves the first by 8, and the others by less.

target = PrivacyGuarantee(epsilon=1.0, delta=1e-6)
mechanism = calibrate("inid_laplace", SensitivityProfile([8.0, 4.0, 2.0, 1.0]), target)
print(mechanism.explain())

# %%
# Displays follow scikit-learn: ``from_mechanism`` computes and draws, ``ax=`` takes axes of
# yours, and ``figure_`` and ``ax_`` hold what was drawn.

figure, axes = plt.subplot_mosaic(
    [["density", "allocation", "loss"], ["size", "allocation", "loss"]],
    figsize=(12, 7),
    width_ratios=(1.6, 1, 1),
    layout="constrained",
)
NoiseDisplay.from_mechanism(mechanism, ax=[axes["density"], axes["size"]], name="The noise")
AllocationDisplay.from_mechanism(mechanism, ax=axes["allocation"], name="Its allocation")
PrivacyLossDisplay.from_mechanism(mechanism, target=target, ax=axes["loss"])
axes["loss"].set_title("What it discloses")
plt.show()
