"""
A histogram with error bars
===========================

A record is in one bin, so that it moves at most two counts. The noise does not grow with the
number of bins, and its size is public.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS

from skdpnoise import PrivacyGuarantee
from skdpnoise.queries import private_histogram

# %%
# Ages of 2,000 made-up people, in public bins of five years.

rng = np.random.default_rng(0)
age = np.clip(rng.normal(45, 16, 2_000), 18, 100)
bins = np.arange(15, 106, 5)
exact = np.histogram(age, bins)[0]

# %%
# ``standard_error`` is that of the noise. The bars are 1.96 standard errors on either side.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
middle = 0.5 * (bins[1:] + bins[:-1])
for ax, epsilon in zip(axes, (0.1, 1.0), strict=True):
    found = private_histogram(age, PrivacyGuarantee(epsilon), bins=bins)
    ax.bar(middle, exact, width=4.6, color="0.85", label="exact count, not released")
    ax.errorbar(
        middle,
        found.value,
        1.96 * found.standard_error,
        fmt="o",
        color=METHODS["inid"]["color"],
        capsize=3,
        label="released count ± 1.96 standard errors",
    )
    ax.set(title=f"ε = {epsilon:g}, δ = 0", xlabel="age in years")
    ax.axhline(0, color="k", linewidth=0.8)
axes[0].set_ylabel("people in a bin of five years")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
