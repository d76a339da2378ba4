"""Neighbours by force, from one sum to a whole fit: what one record can do is what is paid for."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD
from skdpnoise.ledger import Account, BudgetExceededError
from skdpnoise.linear_model import PrivacyWarning
from skdpnoise.mechanisms import AdditiveMechanism, _unbounded, calibrate, private_location_scale
from skdpnoise.noises import get_noise
from skdpnoise.privacy import PrivacyGuarantee, PureLoss
from skdpnoise.sampling import SeededWords
from skdpnoise.sensitivity import SensitivityProfile, paired_histogram
from skdpnoise.solvers import coordinate_descent
from tests._audit import Transcript

EXTREME = np.array([0.0, -0.0, 1e-300, 1e-30, -1.0, 1.0, 3e4, -1e18, 1e100, -1e100])

pytestmark = pytest.mark.filterwarnings(f"ignore::{PrivacyWarning.__module__}.PrivacyWarning")


def records(rng, n, p):
    """Records of every size, some of them extreme."""
    values = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4, size=p)
    extreme = rng.random((n, p)) < 0.1
    values[extreme] = rng.choice(EXTREME, extreme.sum())
    return values


# One pass of the solver


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_one_record_moves_a_sum_by_at_most_the_stated_number_of_quanta(loss, adjacency):
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(1500):
        p, clip = 3, float(rng.lognormal(0.0, 2.0))
        quantum = clip * 2.0 ** -rng.uniform(4.0, 30.0)
        bound = round(clip / quantum) * (2 if adjacency == "replace_one" else 1)
        X, X_neighbour = np.repeat([records(rng, 9, p)], 2, axis=0)
        y = rng.choice([-1.0, 1.0], 9) if loss == "logistic" else records(rng, 9, 1)[:, 0]
        y_neighbour = y.copy()
        X_neighbour[-1], y_neighbour[-1] = records(rng, 1, p)[0], -y[-1]
        if adjacency == "add_remove":
            X_neighbour, y_neighbour = X_neighbour[:-1], y_neighbour[:-1]
        j, theta = int(rng.integers(p)), rng.normal(size=p) * rng.choice([0.0, 0.1, 10.0])
        sums = []
        for A, b in ((X, y), (X_neighbour, y_neighbour)):
            with Transcript().recording() as transcript:
                start = {"coef_init": theta, "order": np.array([[j]]), "center": 0.1, "scale": 1.3}
                settings = {"loss": loss, "n_passes": 1, "step": 1.0, "limit": 3.0}
                next(coordinate_descent(A, b, clip=clip, quantum=quantum, **settings, **start))
            sums.append(int(transcript.integers[-1][0]))
        change = abs(sums[0] - sums[1])
        assert change <= bound
        largest = max(largest, change / bound)
    assert largest >= 0.99


# A whole fit: with the released numbers held fixed, what must the noise make up for?

BOX = (-1.0, 1.0)
SETTINGS = [
    {"noise": "inid_gaussian", "delta": 1e-3},
    {"noise": "inid_gaussian", "delta": 1e-3, "bounds": True, "budget_growth": 1.0, "n_passes": 1},
    {"noise": "iid_laplace", "delta": 0.0},
    {"noise": "spr_laplace", "delta": 0.0, "bounds": True, "n_passes": 3, "clip": 0.05},
    {"noise": "auto", "delta": 1e-6, "fit_intercept": False, "alpha": 0.1},
]


def make(estimator, adjacency, settings, **more):
    settings = {"epsilon": 8.0, "adjacency": adjacency, **settings, **more}
    if settings.pop("bounds", False):
        settings["feature_bounds"] = BOX
        if estimator is DPCoordinateDescentRegressor:
            settings["target_bounds"] = BOX
    elif adjacency == "add_remove":  # the matching is random: see its own test
        settings["feature_bounds"] = ([-1.0, -1.0], [1.0, 1.0])
        if estimator is DPCoordinateDescentRegressor:
            settings["target_bounds"] = BOX
    return estimator(**settings)


def two_fits(rng, model, n=24):
    """Fit to two neighbours, the second with the released numbers of the first."""
    X, y = records(rng, n, 2), records(rng, n, 1)[:, 0]
    if isinstance(model, DPLogisticCD):
        y = np.arange(n) % 3
    X_other, y_other = X.copy(), y.copy()
    X_other[-1], y_other[-1] = records(rng, 1, 2)[0], y[0]
    if rng.random() < 0.5:  # the worst: outside all bounds, to the other side
        X[-1], X_other[-1] = 1e100, 1e100
        if isinstance(model, DPLogisticCD):
            y[-1], y_other[-1] = 0, 2
        else:
            y[-1], y_other[-1] = -1e100, 1e100
    if model.adjacency == "add_remove":
        X_other, y_other = X_other[:-1], y_other[:-1]
    with Transcript().recording() as here:
        first = model.fit(X, y)
        kept = dict(vars(first))
    with Transcript(replay=here).recording() as there:
        second = model.fit(X_other, y_other)
    return kept, vars(second), there


@pytest.mark.parametrize("estimator", [DPCoordinateDescentRegressor, DPLogisticCD])
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: s["noise"] + str(len(s)))
def test_whole_fits_to_neighbours_cost_no_more_than_the_guarantee(estimator, adjacency, settings):
    rng, largest = np.random.default_rng(1), 0.0
    for seed in range(25):
        model = make(estimator, adjacency, settings, random_state=seed)
        first, second, transcript = two_fits(rng, model)
        mechanisms, order = transcript.mechanisms, transcript.mechanisms[-1].family.norm_order
        guarantee = first["privacy_"].guarantee
        paid = mechanisms[-1].family.resource(guarantee)
        cost = np.linalg.norm(transcript.shifts(), order)
        assert cost <= paid
        descent = np.linalg.norm(transcript.shifts("descent"), order)
        if transcript.has_descent:
            assert descent <= mechanisms[-1].resource
            largest = max(largest, descent / mechanisms[-1].resource)
        # What is released determines the model, down to the last bit, and all later scales.
        assert released_text(first) == released_text(second)
    assert largest >= 0.99


def released_text(attributes):
    """All that a fit leaves behind, exactly: arrays as bytes."""

    def exact(value):
        if isinstance(value, np.ndarray):
            return value.tobytes()
        if isinstance(value, tuple):
            return tuple(map(exact, value))
        if hasattr(value, "center"):
            return exact((value.center, value.scale, value.used))
        return repr(value)

    return {
        name: exact(value)
        for name, value in attributes.items()
        if name.endswith("_") or name == "_standardised"
    }
