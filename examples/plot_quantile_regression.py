"""
Quantile regression: what to be prepared for
============================================

A mean says what to expect; a quantile says what to be prepared for. ``DPQuantileRegressor`` fits
a linear model of one quantile.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line

from skdpnoise import DPQuantileRegressor, total_guarantee

# %%
# The more patients are waiting, the longer a wait is, and the more waits differ.

rng = np.random.default_rng(0)
patients = rng.integers(5, 60, size=10_000).astype(float)[:, np.newaxis]
waits = patients[:, 0] / 2 + rng.exponential(0.3 * patients[:, 0])

# %%
# Three quantiles are three fits, and each costs its ε. The budget here is that of one fit at ε =
# 1, divided by three.

models = {
    q: DPQuantileRegressor(1 / 3, delta=1e-6 / 3, quantile=q, feature_bounds=(0, 60)).fit(
        patients, waits
    )
    for q in (0.5, 0.75, 0.9)
}
figure, ax = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
jitter = rng.uniform(-0.4, 0.4, size=2000)
ax.plot(patients[:2000, 0] + jitter, waits[:2000], ".", color="0.75", markersize=3, zorder=0)
ends = np.array([[5.0], [59.0]])
for (q, model), name in zip(models.items(), ("inid", "third", "second"), strict=True):
    below = np.mean(waits <= model.predict(patients))
    label = f"quantile {q:g}: {below:.1%} of the waits are below"
    ax.plot(ends, model.predict(ends), label=label, **line(name, linewidth=2.5))
ax.set(xlabel="patients before you", ylabel="wait in minutes", ylim=(0, 120))
ax.legend(loc="upper left")
ax.set_title("Three private quantiles, ε = 1 together")
plt.show()

# %%
# What the three fits promise together, by tight composition:

print(total_guarantee(*models.values()))
