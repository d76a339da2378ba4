"""What is charged for is delivered: every refusal comes before the ledger is charged."""

import itertools

import numpy as np
import pytest

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPLassoPath,
    DPLogisticCD,
    DPPoissonRegressor,
)
from skdpnoise.kernels import SQUARED
from skdpnoise.linear_model._tuned import COORDINATE, choose_defaults
from tests._cases import each_value, quick

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")
TARGETS = {
    DPCoordinateDescentRegressor: np.abs,
    DPLogisticCD: np.signbit,
    DPPoissonRegressor: np.abs,
}
CLASSES = list(TARGETS)
KINDS = list(itertools.product(CLASSES, (0.0, 1e-6), ("replace_one", "add_remove")))


class Counter:
    """A ledger that counts charges."""

    def __init__(self):
        self.n_charges = 0

    def charge(self, label, cost, **facts):
        self.n_charges += 1


def _fit(Estimator, n_samples, **settings):
    """Fit; return the message of a refusal, which must have come before the charge."""
    X = np.random.default_rng(n_samples).normal(size=(n_samples, 3))
    y = TARGETS.get(Estimator, np.abs)(X[:, 0])
    ledger = Counter()
    try:
        model = Estimator(random_state=0, ledger=ledger, **settings).fit(X, y)
    except ValueError as refusal:
        assert not ledger.n_charges, (settings, n_samples, refusal)
        return str(refusal)
    assert ledger.n_charges == 1 and np.isfinite(model.predict(X)).all()
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("Estimator, delta, adjacency", KINDS)
def test_a_growth_is_refused_by_the_most_passes_that_auto_can_make(Estimator, delta, adjacency):
    common = {"delta": delta, "adjacency": adjacency, "feature_bounds": (-5.0, 5.0)}
    for n_samples, epsilon in ((30, 0.1), (3000, 3.0), (30, 1e4)):
        for growth in (1.3, 1.995, 2.5, 6.0, 1e5):
            settings = {"epsilon": epsilon, "budget_growth": growth, **common}
            message = _fit(Estimator, n_samples, **settings)
            assert bool(message) == (growth > 1.996), settings
            if message:
                assert "'budget_growth'" in message and "use at most 1.9952" in message
        # Few passes bear what many do not, and what is advised is accepted.
        for growth, n_passes in ((6.0, 4), (1.9952, 20), (999999.999, 1), (1.4125, 40)):
            settings = {"epsilon": epsilon, "budget_growth": growth, "n_passes": n_passes}
            assert not _fit(Estimator, n_samples, **settings, **common)


@pytest.mark.parametrize(
    ("Estimator", "solver"),
    [(DPCoordinateDescentRegressor, "gradient"), (DPLogisticCD, "coordinate")],
)
@pytest.mark.parametrize("epsilon", [1.0, 1e4])
def test_many_passes_are_made_with_integers_that_fit(Estimator, solver, epsilon):
    settings = {"solver": solver, "feature_bounds": (-5.0, 5.0)}
    assert not _fit(Estimator, 100, epsilon=epsilon, n_passes=300, **settings)


def test_the_most_passes_of_auto_are_as_many_as_are_said():
    passes = [choose_defaults(level, SQUARED).n_passes for level in (1e-30, 1e-3, 0.02, 1e3)]
    most = COORDINATE.most_passes
    assert passes[:2] == [most] * 2 and 1 <= passes[3] < passes[2] < most


@quick("DPPoissonRegressor-0.0-replace_one-iid_staircase")
@each_value(1)
@pytest.mark.parametrize("noise", ["iid_staircase", "inid_staircase", "inid_laplace"])
@pytest.mark.parametrize("Estimator, delta, adjacency", KINDS)
def test_every_epsilon_is_borne_or_refused_before_the_charge(Estimator, delta, adjacency, noise):
    for epsilon, bounds in itertools.product((2e-8, 1e-6, 1e-2, 70.0, 1e8), (None, (-3.0, 3.0))):
        settings = {"epsilon": epsilon, "noise": noise, "feature_bounds": bounds}
        message = _fit(Estimator, 100, delta=delta, adjacency=adjacency, **settings)
        if epsilon > 1e-5 or noise == "inid_laplace":
            assert not message
        if message:
            assert "too small" in message and "larger epsilon" in message


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("Estimator", [DPCoordinateDescentRegressor, DPLassoPath])
@pytest.mark.parametrize("width", [2e-290, 1e-285, 1e-250, 1.0, 1e100])
def test_targets_within_bounds_of_any_width_are_fitted(Estimator, width):
    for epsilon, delta in itertools.product((1.0, 100.0, 1e8), (0.0, 1e-6)):
        bounds = {"target_bounds": (0.0, width), "feature_bounds": (0.0, width)}
        assert not _fit(Estimator, 50, epsilon=epsilon, delta=delta, **bounds)
