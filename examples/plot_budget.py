"""
What a fit spends its budget on
===============================

A private fit reads more than the model: the scale of the target, and the locations and scales of
the columns. Public bounds save most of that.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import DPCoordinateDescentRegressor
from skdpnoise.plotting import AllocationDisplay

# %%
# The same records, without bounds and with public ones.

rng = np.random.default_rng(0)
age, income = rng.uniform(18, 90, 20_000), rng.lognormal(10.5, 0.5, 20_000)
X = np.column_stack([age, income])
y = 90 + 0.6 * age - 2e-4 * income + rng.normal(0, 5, 20_000)
bounds = {"feature_bounds": ([18, 0], [90, 200_000]), "target_bounds": (40, 200)}

# %%
# Each line is one kind of release: how many vectors of what length. On the left is the scale of
# its noise, on the right its share of the budget.

figure = plt.figure(figsize=(11, 6.4), layout="constrained")
for panel, (name, public) in zip(
    figure.subfigures(2, 1, height_ratios=(3, 1.6)),
    {"No bounds": {}, "Public bounds": bounds}.items(),
    strict=True,
):
    model = DPCoordinateDescentRegressor(epsilon=1.0, **public).fit(X, y)
    axes = panel.subplots(1, 2)
    AllocationDisplay.from_estimator(
        model, ax=axes, name=f"{name}, ε = 1, R² = {model.score(X, y):.2f}"
    )
plt.show()
