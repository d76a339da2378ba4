"""
Claimed beside found: an audit
==============================

A guarantee is a proof, and programs have faults. ``audit`` looks for evidence against the claim
of any estimator with an ε.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator

from skdpnoise import DPCoordinateDescentRegressor, DPStandardScaler
from skdpnoise.inspection import audit
from skdpnoise.plotting import AuditDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, size=(60, 2))  # public or made-up records: the report is not private
y = np.clip(X[:, 0] + 0.3 * rng.normal(size=60), -2, 2)

# %%
# An estimator with a common fault: values are clipped to [-3, 3], but the noise is made for
# values between -1 and 1. It claims ε = 1, and really has three times as much.


class FaultyMean(BaseEstimator):
    """The mean of clipped values, with too little noise."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y=None):
        values = np.nan_to_num(np.clip(X[:, 0], -3.0, 3.0))  # a missing value counts as 0
        scale = 2.0 / (len(values) * self.epsilon)  # should be 6.0 / ...
        self.mean_ = values.mean() + np.random.default_rng().laplace(scale=scale)
        return self


# %%
# Estimators of this library are replayed: the same released numbers, on a neighbouring data set.
# Of other estimators thousands of fits are compared. What is found is a lower bound of the true
# ε. An audit that finds nothing proves nothing.

bounds = {"feature_bounds": (-1, 1), "target_bounds": (-2, 2)}
AUDITED = {
    "DPStandardScaler,\nreplayed": (
        DPStandardScaler(1.0, feature_bounds=(-1, 1)),
        {"method": "replay"},
    ),
    "DPCoordinateDescentRegressor,\nreplayed": (
        DPCoordinateDescentRegressor(1.0, solver="gram", **bounds),
        {"method": "replay"},
    ),
    "FaultyMean,\n2,000 fits on each of two tables": (
        FaultyMean(1.0),
        {"method": "black_box", "n_fits": 2000, "adjacency": "replace_one"},
    ),
}
reports = {name: audit(model, X, y, **options) for name, (model, options) in AUDITED.items()}
results = [report.results[0] for report in reports.values()]
AuditDisplay(
    names=list(reports),
    found=[np.nan if result.epsilon is None else result.epsilon for result in results],
    claimed=[1.0] * len(results),
    most=[getattr(result, "most_epsilon", np.nan) for result in results],
    passed=[result.passed for result in results],
    name="Three estimators that claim ε = 1",
).plot()
plt.show()

# %%
# The report of the faulty one:

print(list(reports.values())[-1])
