"""
People with several rows
========================

A guarantee for rows is weaker for people who own many rows. With ``groups=`` the unit is the
person: ``rows_per_group`` rows of each are used.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _style import line, look

from skdpnoise import DPLogisticRegression, PrivacyWarning
from skdpnoise.privacy import GaussianLoss, gdp_mu

# %%
# 2,000 made-up people with ten visits each. The visits of a person resemble each other.

rng = np.random.default_rng(0)
person = np.repeat(np.arange(2_000), 10)
X = np.clip(rng.normal(size=(20_000, 3)) + rng.normal(size=(2_000, 3))[person], -6, 6)
y = X[:, 0] - X[:, 1] + 2 * rng.normal(size=20_000) > 0
public = {"feature_bounds": (-6, 6), "classes": [False, True]}

# %%
# Left: a fit without groups protects a row with ε = 0.1. What it promises a person with k rows
# grows with k. Right: accuracy of fits that protect people with ε = 0.1. More rows of each person
# are more data, and more noise: this guarantee does not depend on their number. A fit that finds
# little says so, which is no news beside the picture.

warnings.simplefilter("ignore", PrivacyWarning)
KEPT = [1, 2, 3, 5, 10]
EPSILON = 0.1
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
rows = np.arange(1, 11)
row = GaussianLoss(gdp_mu(EPSILON, 1e-6))
left.plot(
    rows, [row.for_group(int(k)).epsilon(1e-6) for k in rows], label="a fit for rows", **look("iid")
)
left.axhline(EPSILON, label="a fit for people", **line("inid", linewidth=2))
left.set(xlabel="rows of a person", ylabel="ε for that person, δ = 1e-6", xticks=rows)
left.set_title("What a person is promised")
left.legend()

scores = []
for m in KEPT:
    model = DPLogisticRegression(EPSILON, rows_per_group=m, **public)
    scores.append([model.fit(X, y, groups=person).score(X, y) for _ in range(7)])
low, middle, high = np.quantile(scores, [0.0, 0.5, 1.0], axis=1)
right.plot(KEPT, middle, label="fits for people, ε = 0.1: median and range of 7", **look("inid"))
right.fill_between(KEPT, low, high, alpha=0.15, linewidth=0, color=look("inid")["color"])
for_rows = np.median(
    [DPLogisticRegression(EPSILON, **public).fit(X, y).score(X, y) for _ in range(7)]
)
right.axhline(for_rows, label="a fit for rows, ε = 0.1 for a row", **line("iid"))
right.axhline(max(y.mean(), 1 - y.mean()), label="always the larger class", **line("baseline"))
right.set(xlabel="rows_per_group: rows kept of each person", ylabel="accuracy", xticks=KEPT)
right.set_title("What it costs")
right.grid(alpha=0.25)
figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=3)
plt.show()
