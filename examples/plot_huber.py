"""
Outliers: Huber's loss
======================

A few targets are far out. Least squares follows them; Huber's loss pulls a far record no more
than one at its threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line
from sklearn.linear_model import LinearRegression

from skdpnoise import DPCoordinateDescentRegressor, DPHuberRegressor

# %%
# Hours of work by years of schooling. About a tenth of the records, all with long schooling, were
# typed wrongly.

rng = np.random.default_rng(0)
n = 12_000
school = rng.uniform(4.0, 20.0, n)
hours = 20.0 + 1.0 * school + rng.normal(0, 3, n)
typed = (rng.random(n) < 0.25) & (school > 14.0)
hours[typed] += rng.uniform(60.0, 120.0, typed.sum())
X = school[:, np.newaxis]

# %%
# A private model of least squares has a threshold already: it clips the residual of each record.
# It lies between the two.

figure, ax = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
ax.plot(school[::20], hours[::20], ".", color="0.7", markersize=3, zorder=0)
ends = np.array([[4.0], [20.0]])
bounds = {"feature_bounds": (0, 25), "target_bounds": (0, 168)}
for model, name, label in (
    (DPHuberRegressor(1.0, **bounds), "inid", "DPHuberRegressor, ε = 1"),
    (DPCoordinateDescentRegressor(1.0, **bounds), "second", "DPCoordinateDescentRegressor, ε = 1"),
    (LinearRegression(), "public", "LinearRegression, without privacy"),
):
    ax.plot(ends, model.fit(X, hours).predict(ends), label=label, **line(name, linewidth=2.5))
ax.plot(ends, 20.0 + ends, label="the line of the other records", **line("baseline", linewidth=2.5))
ax.set(xlabel="years of schooling", ylabel="hours of work in a week")
ax.legend(loc="upper left")
plt.show()
