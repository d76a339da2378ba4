"""
Counts: visits to a doctor by age
=================================

``DPPoissonRegressor`` models the logarithm of the mean of a count, so that predictions are
positive.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS, line
from sklearn.linear_model import PoissonRegressor

from skdpnoise import DPPoissonRegressor

# %%
# Made-up visits that grow with age and double with a chronic illness. A questionnaire allows at
# most 50 visits: that bound is public.

rng = np.random.default_rng(0)
n = 10_000
age, chronic = rng.uniform(20.0, 80.0, n), rng.integers(2, size=n)
X = np.column_stack([age, chronic])
visits = rng.poisson(np.exp(0.02 * age + 0.7 * chronic - 0.5))
bounds = {"feature_bounds": ([20, 0], [80, 1]), "target_bounds": (0, 50)}

# %%
# Each thin line is one private fit. Dots are means of the records by age, without privacy.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
ages = np.linspace(20, 80, 61)
public = PoissonRegressor(alpha=0.0).fit(X, visits)
edges = np.linspace(20, 80, 13)
for ax, epsilon in zip(axes, (0.3, 1.0), strict=True):
    fits = [DPPoissonRegressor(epsilon, **bounds).fit(X, visits) for _ in range(10)]
    for illness, name in ((0, "inid"), (1, "iid")):
        rows = np.column_stack([ages, np.full(ages.size, illness)])
        for model in fits:
            ax.plot(ages, model.predict(rows), alpha=0.5, linewidth=1, color=METHODS[name]["color"])
        ax.plot(ages, public.predict(rows), **line("public", linewidth=2.5))
        of = chronic == illness
        counts, sums = (np.histogram(age[of], edges, weights=w)[0] for w in (None, visits[of]))
        marker = METHODS[name]["marker"]
        ax.plot(0.5 * (edges[1:] + edges[:-1]), sums / counts, marker, color="k", markersize=4)
    ax.set(title=f"ε = {epsilon:g}, δ = 1e-6, {n:,} people", xlabel="age in years")
    ax.grid(alpha=0.25)
axes[0].set_ylabel("visits in a year")
ax = axes[0]
ax.plot([], [], color=METHODS["iid"]["color"], label="private fits, with a chronic illness")
ax.plot([], [], color=METHODS["inid"]["color"], label="private fits, without")
ax.plot([], [], label="scikit-learn", **line("public", linewidth=2.5))
ax.plot([], [], "k.", label="means of the records")
figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
