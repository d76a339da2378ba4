"""Second moments under attack: thousands of fits, and an exact replay of a fit on a neighbour.

The method is that of ``test_audit.py`` and ``test_neighbours.py``: a bound on epsilon from many
runs, which exceeds the true one with probability at most FALSE_ALARM = 1e-9 over the choice of the
seeds, and the replay of a transcript, in which the noise makes up for the difference of the data,
so that what it had to make up for is what must have been paid for.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks._remembered import remembered
from skdpnoise import DPCoordinateDescentRegressor, DPLassoPath
from skdpnoise.data.groups import Groups
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.linear_model.solvers.moments import MomentsRelease
from skdpnoise.mechanisms.matrices import SymmetricMatrixMechanism
from tests._audit import audit
from tests._cases import every_pair, quick
from tests._replay import two_runs
from tests.contracts._register import Entry, each

# On each of the two data sets: of what is to be caught, and of others.
RUNS, FEW = 800, 400
BOUNDS = {"feature_bounds": (-2.0, 2.0), "target_bounds": (-2.0, 2.0)}
ADJACENCIES = ["replace_one", "add_remove"]
pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

# In a small ball every row lies on the sphere: one record can use all that is paid for.
BALL = {"row_norm": 0.5, "fit_intercept": False, **BOUNDS}
GAUSSIAN = {"epsilon": 1.0, "delta": 0.2, "noise": "inid_gaussian", **BALL}
LAPLACE = {"epsilon": 1.5, "delta": 0.0, "noise": "inid_laplace", **BALL}
# One penalty, of ridge: what is audited is the release, and solving takes most of the time.
CHEAP = {"alphas": 1, "l1_ratio": 0.0}
AUDITED = {
    "gaussian, replace one": DPLassoPath(**GAUSSIAN, **CHEAP),
    "pure laplace, add or remove": DPLassoPath(**LAPLACE, **CHEAP, adjacency="add_remove"),
    "pure, whatever is best": DPLassoPath(**{**LAPLACE, "noise": "auto"}, **CHEAP),
}


def neighbours(model, n_samples=80):
    """Points on two axes, whose directions no scaling moves, and one far on a diagonal more; or
    one far on the first axis is replaced by one far on the second."""
    X = np.tile([[-1.0], [1.0], [0.0], [0.0]], (n_samples // 4, 1))
    y = np.tile([0.0, 0.0, -1.0, 1.0], n_samples // 4)

    def with_record(x, target):
        return np.vstack([X, [[x]]]), np.append(y, target)

    if model.adjacency == "add_remove":
        return (X, y), with_record(1e3, 1e3)
    return with_record(1e3, 0.0), with_record(0.0, 1e3)


def released(model, X, y, **groups):
    """Fit; return what all numbers that the model holds are functions of, as one vector."""
    # Of the moments a model holds those of the limits that were chosen from all.
    noisy, chosen = [np.zeros((0, 0))], MomentsRelease.chosen
    with patch.object(
        MomentsRelease, "chosen", lambda one, values: (noisy.append(values), chosen(one, values))[1]
    ):
        features, _, center, scale = model.fit(X, y, **groups)._standardised
    moments = noisy[-1][np.tril_indices(len(noisy[-1]))]  # what is beyond limits comes last
    return np.concatenate([features.center, features.scale, [center, scale], moments])


def stacked(sides):
    """Return the vectors of both sides as tables; a fit without a target holds fewer numbers."""
    sides = list(sides)
    longest = max(len(vector) for side in sides for vector in side)
    return [
        np.array([[*np.pad(vector, (0, longest - len(vector))), len(vector)] for vector in side])
        for side in sides
    ]


def runs(model, n_runs=RUNS):
    """All that is released by many fits on each of two neighbouring data sets."""
    with remembered():
        return stacked(
            [released(model.set_params(random_state=2 * run + side), X, y) for run in range(n_runs)]
            for side, (X, y) in enumerate(neighbours(model))
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", AUDITED)
def test_hundreds_of_fits_on_neighbours_do_not_refute_the_guarantee(name):
    model = AUDITED[name]
    assert audit(*runs(model, FEW), model.delta) <= model.epsilon


@pytest.mark.slow
def test_a_third_of_the_noise_on_the_second_moments_is_caught(monkeypatch):
    model = AUDITED["gaussian, replace one"]
    sample = SymmetricMatrixMechanism.sample
    monkeypatch.setattr(
        SymmetricMatrixMechanism, "sample", lambda self, words: sample(self, words) // 3
    )
    assert audit(*runs(model), model.delta) > 1.5 * model.epsilon


# Groups: a person owns six rows, of which three are kept


def owners(model, side):
    """Other people's rows, one each, and the six rows of the person in whom neighbours differ.

    There are so many that no noisy matrix needs repair, which would hide some of the change.
    """
    (X, y), (X_other, y_other) = neighbours(model, 800)
    if model.adjacency == "add_remove":
        first, rows = (X, y), 6 * side
        last = X_other[-1:], y_other[-1:]
    else:
        first, rows = (X[:-1], y[:-1]), 6
        last = ((X, y), (X_other, y_other))[side]
        last = last[0][-1:], last[1][-1:]
    data = [
        np.concatenate([a, np.repeat(b, rows, axis=0)]) for a, b in zip(first, last, strict=True)
    ]
    return (*data, np.append(np.arange(len(first[0])), np.full(rows, -1)))


def grouped_runs(model, n_runs=RUNS):
    """All that is released by many fits on each of two data sets that differ in one person."""
    found = []
    with remembered():
        for side in (0, 1):
            X, y, people = owners(model, side)
            seeds = (2 * run + side for run in range(n_runs))
            found.append(
                [released(model.set_params(random_state=s), X, y, groups=people) for s in seeds]
            )
    return stacked(found)


GROUPED = {
    "gaussian, replace one": DPLassoPath(**GAUSSIAN, **CHEAP),
    "gaussian, add or remove": DPLassoPath(**GAUSSIAN, **CHEAP, adjacency="add_remove"),
    "pure laplace, add or remove": DPLassoPath(**LAPLACE, **CHEAP, adjacency="add_remove"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPED)
def test_hundreds_of_fits_on_neighbouring_groups_do_not_refute_the_guarantee(name):
    model = clone(GROUPED[name]).set_params(rows_per_group=3)
    assert audit(*grouped_runs(model, FEW), model.delta) <= model.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in GROUPED if "gaussian" in name],
)
def test_rows_of_a_group_that_are_not_bounded_are_caught(monkeypatch, name):
    monkeypatch.setattr(Groups, "kept", lambda self, words: self)
    model = clone(GROUPED[name]).set_params(rows_per_group=2)
    assert audit(*grouped_runs(model), model.delta) > 1.2 * model.epsilon


# The replay


# Each with the share of what is paid for that one record can use at least.
FITS = {
    "gaussian": ({"noise": "inid_gaussian", "delta": 1e-3}, 0.3),
    "gaussian, the same on the triangle": ({"noise": "iid_gaussian", "delta": 0.1}, 0.3),
    "gaussian, no intercept": ({"noise": "inid_gaussian", "delta": 1e-3, **BALL}, 0.99),
    "pure": ({"noise": "inid_laplace", "delta": 0.0}, 0.3),
    "pure, no intercept": ({"noise": "iid_laplace", "delta": 0.0, **BALL}, 0.3),
}
GRAMS = [
    Entry(DPCoordinateDescentRegressor, "numbers", {"solver": "gram"}),
    Entry(DPLassoPath, "numbers"),
]


@quick("DPLassoPath-add_remove-gaussian, the same on the triangle")
@every_pair
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@each(GRAMS)
def test_a_whole_fit_releases_no_more_than_is_paid_for_and_nothing_else(entry, adjacency, name):
    own, least = FITS[name]
    settings = {"epsilon": 20.0, "adjacency": adjacency, **BOUNDS, **own}
    rng, largest = np.random.default_rng(1), 0.0
    far = [[1e100, 0.0], [0.0, 1e100], [-1e100, 1e100], [0.0, 0.0]]
    for seed in range(12):
        n = 60 + seed % 2
        X = rng.normal(size=(n, 2)) * rng.choice([0.01, 1.0, 1e6], size=(n, 1))
        y = rng.normal(size=n)
        X_other, y_other = X.copy(), y.copy()
        if seed % 3:  # outside all bounds, along another axis
            X[-1], X_other[-1] = far[seed % 4], far[(seed + 1) % 4]
            y[-1], y_other[-1] = (0.0, 0.0) if seed % 4 < 2 else (1e100, -1e100)
        else:
            X_other[-1], y_other[-1] = rng.normal(size=2), -y[0]
        if adjacency == "add_remove":
            X_other, y_other = X_other[:-1], y_other[:-1]

        def fit(X, y, seed=seed):
            return entry.estimator(**settings, random_state=seed).fit(X, y)

        runs = two_runs(fit, (X, y), (X_other, y_other), seed)
        assert isinstance(runs.moved[-1].mechanism, SymmetricMatrixMechanism)
        assert all(one.share <= TOLERANCE for one in runs.moved)
        largest = max(largest, runs.moved[-1].share)
        epsilon, delta = settings["epsilon"], settings["delta"]
        assert total_moved(runs.moved).delta(epsilon * TOLERANCE) <= delta * TOLERANCE
        assert runs.first.privacy_.total.delta(epsilon) <= delta
        runs.check_same()
    assert largest >= least
