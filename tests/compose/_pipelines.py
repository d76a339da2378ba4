"""A table, a pipeline and a notebook for the tests of pipelines with one guarantee."""

import numpy as np

from skdpnoise import DPLogisticCD, DPPipeline, DPStandardScaler

rng = np.random.default_rng(0)
X = rng.normal([5.0, -100.0, 0.0], [2.0, 30.0, 1.0], size=(2000, 3))
Y = (X[:, 0] > 5.0).astype(int)
PEOPLE = np.repeat(np.arange(1000), 2)


def two_steps(**settings):
    """Return a private scaler and a private classifier."""
    return [("scale", DPStandardScaler(**settings)), ("model", DPLogisticCD(**settings))]


def private_pipeline(**settings):
    """Return both under one guarantee."""
    return DPPipeline(two_steps(), **settings)


class Notebook:
    """Keeps what it is charged."""

    def __init__(self):
        self.charges = []

    def charge(self, label, cost, **facts):
        self.charges.append({"label": label, "cost": cost, **facts})
