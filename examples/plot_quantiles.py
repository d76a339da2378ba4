"""
Many quantiles from one release
===============================

``private_quantiles`` releases noisy cumulative counts once. Any number of quantiles are read from
them at no further cost.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line

from skdpnoise import PrivacyGuarantee
from skdpnoise.queries import private_quantiles

# %%
# Waiting times of 2,000 made-up people; they are public to be at most two hours.

rng = np.random.default_rng(0)
waits = rng.lognormal(3.0, 0.7, 2_000)
shares = np.linspace(0.02, 0.98, 49)

# %%
# The staircase of the records themselves is drawn for comparison: it is not private.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, epsilon in zip(axes, (0.3, 1.0), strict=True):
    found = private_quantiles(waits, shares, PrivacyGuarantee(epsilon, 1e-6), bounds=(0, 120))
    ax.plot(np.quantile(waits, shares), shares, label="exact", **line("public", linewidth=3))
    ax.plot(found.values[:, 0], shares, label="private", **line("inid", linewidth=2))
    median = found.values[24, 0]
    ax.annotate(
        f"private median: {median:.1f} minutes",
        (median, 0.5),
        (30, -20),
        textcoords="offset points",
        arrowprops={"arrowstyle": "->"},
    )
    ax.set(title=f"ε = {epsilon:g}, δ = 1e-6", xlabel="wait in minutes", xlim=(0, 90))
    ax.grid(alpha=0.25)
axes[0].set_ylabel("share of the people who wait no longer")
axes[0].legend(loc="lower right")
plt.show()
