"""Private moments on neighbouring data: thousands of fits, and one fit replayed.

The audit is that of ``test_audit``: an attack by one who knows all records but one, whose lower
bound on epsilon exceeds the truth with probability at most FALSE_ALARM = 1e-9. The replay holds
every released number fixed and checks that what the noise has to make up for is paid for, and that
nothing else depends on the data.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._remembered import remembered
from skdpnoise.decomposition import DPPCA
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.mechanisms import SymmetricMatrixMechanism
from skdpnoise.mechanisms.vectors import VectorMechanism
from tests._audit import audit
from tests._cases import every_pair, quick
from tests._replay import two_runs
from tests.contracts._register import MATRICES, each

RUNS = 400  # on each of the two data sets

# Thousands of fits

ALL = {"n_components": None}
FITS = {
    "gaussian, replace one, nothing public": (
        DPPCA(**ALL, epsilon=1.0, delta=0.2, noise="inid_gaussian"),
        200,
    ),
    "gaussian, replace one, public norm": (
        DPPCA(**ALL, epsilon=1.0, delta=0.2, noise="inid_gaussian", center=False, row_norm=1.0),
        40,
    ),
    "pure, add or remove, public bounds": (
        DPPCA(**ALL, epsilon=1.5, delta=0.0, adjacency="add_remove", feature_bounds=(-1.0, 1.0)),
        80,
    ),
    "pure laplace, replace one, public norm": (
        DPPCA(**ALL, epsilon=1.5, delta=0.0, noise="inid_laplace", center=False, row_norm=1.0),
        40,
    ),
}


def neighbours(model, n_samples):
    """Rows about the origin; and one record more, or another one, outside of all bounds."""
    X = np.tile([[-0.5, 0.2], [0.5, -0.2]], (n_samples // 2, 1))
    if model.adjacency == "add_remove":
        return X, np.vstack([X, [[1e3, 0.0]]])
    X, other = X.copy(), X.copy()
    X[0], other[0] = [1e3, 0.0], [0.0, 1e3]
    return X, other


def released(model):
    """All that a fitted model holds, as the entries of the matrix that it decomposed, and more."""
    matrix = (model.components_.T * model.explained_variance_) @ model.components_
    radius = np.log2(model.row_norm_)
    return np.concatenate([matrix[np.triu_indices(2)], model.mean_, [radius, model.n_samples_]])


def runs(model, n_samples, n_runs=RUNS):
    """All that is released by many fits on each of two neighbouring data sets."""
    with remembered():
        return [
            np.array(
                [
                    released(model.set_params(random_state=2 * run + side).fit(X))
                    for run in range(n_runs)
                ]
            )
            for side, X in enumerate(neighbours(model, n_samples))
        ]


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_hundreds_of_fits_on_neighbours_do_not_refute_the_guarantee(name):
    model, n_samples = FITS[name]
    assert audit(*runs(model, n_samples), model.delta) <= model.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian, replace one, public norm"])
def test_half_the_noise_on_the_second_moments_is_caught(monkeypatch, name):
    sample = SymmetricMatrixMechanism.sample
    monkeypatch.setattr(
        SymmetricMatrixMechanism, "sample", lambda self, words: sample(self, words) // 2
    )
    model, n_samples = FITS[name]
    assert audit(*runs(model, n_samples, 800), model.delta) > model.epsilon


@pytest.mark.slow
def test_a_mean_without_noise_is_caught(monkeypatch):
    sample = VectorMechanism.sample
    monkeypatch.setattr(VectorMechanism, "sample", lambda self, words: 0 * sample(self, words))
    model, n_samples = FITS["gaussian, replace one, nothing public"]
    assert audit(*runs(model, n_samples, 200), model.delta) > model.epsilon


# One fit, replayed


SETTINGS = {
    "gaussian": {"noise": "inid_gaussian"},
    "pure": {"delta": 0.0, "noise": "wishart"},
    "bounds": {"feature_bounds": (-1.0, [2.0, 1.0, 0.3]), "noise": "inid_gaussian"},
    "not centred": {"row_norm": 1.0, "noise": "iid_gaussian"},
}
EXTREME = np.array([0.0, -0.0, 1e-30, -1.0, 1.0, 3e4, -1e18, 1e100, -1e100])


@quick("DPCovariance-add_remove-pure")
@every_pair
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@each(MATRICES)
def test_a_whole_fit_releases_no_more_than_is_paid_for_and_nothing_else(entry, adjacency, name):
    settings = {"epsilon": 5.0, "adjacency": adjacency, **SETTINGS[name]}
    if name == "not centred":
        settings |= entry.uncentred
    rng, largest = np.random.default_rng(0), {}
    for seed in range(12):
        X = rng.normal([0.0, 0.3, 0.1], [1.0, 0.3, 0.2], size=(60, 3))
        X[rng.random(X.shape) < 0.05] = rng.choice(EXTREME)
        other = X.copy()
        X[-1], other[-1] = rng.choice(EXTREME, 3), rng.choice(EXTREME, 3)
        if seed % 3 == 0:
            X[-1], other[-1] = [1e50, 0.0, 0.0], [0.0, 1e50, 0.0]
        if adjacency == "add_remove":
            other = other[:-1]

        def fit(rows, seed=seed):
            return entry.estimator(**settings, random_state=seed).fit(rows)

        runs = two_runs(fit, (X,), (other,), seed)
        for one in runs.moved:
            assert one.share <= TOLERANCE
            largest[one.label] = max(largest.get(one.label, 0.0), one.share)
        assert total_moved(runs.moved).delta(5.0 * TOLERANCE) <= runs.first.delta * TOLERANCE
        runs.check_same()
    assert largest["second moments"] > 0.9
    if "mean" in largest:
        assert largest["mean"] > 0.9
