"""Compositions are audited like single estimators: what is sound passes, what is unpaid is seen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer
from sklearn.random_projection import GaussianRandomProjection

from benchmarks._remembered import remembered
from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPStandardScaler,
    PrivacyLedger,
)
from skdpnoise.compose import register_private
from skdpnoise.inspection import audit
from skdpnoise.inspection.auditing._neighbours import Neighbours
from skdpnoise.inspection.auditing._replay import replay
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, TruncatedNegativeBinomial
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import SensitivityProfile
from tests._cases import each_value, quick

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
BOUNDED = {"feature_bounds": (-3.0, 3.0)}
MODEL = DPLogisticCD(classes=[0, 1], n_passes=1)
CLAIM = {"epsilon": 1.0, "delta": 1e-3, "adjacency": "replace_one"}
FAR = (np.vstack([X[:-1], [[2.9, -2.9]]]), np.append(Y[:-1], 1 - Y[-1]))


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), remembered():
        warnings.simplefilter("ignore")
        yield


def same_for_both(steps):
    """Steps of a pipeline, each with the same neighbours."""
    return lambda adjacency: DPPipeline(
        [(name, adjacent(step, adjacency)) for name, step in steps], adjacency=adjacency
    )


def adjacent(step, adjacency):
    step = clone(step)
    names = [name for name in step.get_params() if name.rpartition("__")[2] == "adjacency"]
    return step.set_params(**dict.fromkeys(names, adjacency))


SCALER = DPStandardScaler(**BOUNDED)
COMPOSITIONS = {
    "transformer before a model": [("s", SCALER), ("m", MODEL)],
    "model of a scaled target": [
        (
            "m",
            TransformedTargetRegressor(
                DPCoordinateDescentRegressor(n_passes=1, solver="gradient", **BOUNDED),
                transformer=DPStandardScaler(**BOUNDED),
                check_inverse=False,
            ),
        )
    ],
    "private and public columns": [
        ("c", ColumnTransformer([("s", SCALER, [0]), ("b", Binarizer(), [1])])),
        ("m", MODEL),
    ],
    "union": [
        ("u", FeatureUnion([("s", SCALER), ("b", DPMinMaxScaler(**BOUNDED))])),
        ("m", MODEL),
    ],
    "random projection": [("p", GaussianRandomProjection(n_components=1)), ("m", MODEL)],
    "random features": [("p", RBFSampler(gamma=1.0, n_components=2)), ("s", DPStandardScaler())],
}


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_replays_find_nothing_against_compositions_that_are_sound(name, adjacency):
    model = same_for_both(COMPOSITIONS[name])(adjacency)
    target = X[:, 0] if "target" in name else Y
    report = audit(model, X, target, method="replay", random_state=0)
    assert report.passed, report
    (result,) = report.results
    assert 0.0 < result.epsilon <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_a_black_box_finds_nothing_against_compositions_that_are_sound(name):
    model = same_for_both(COMPOSITIONS[name])("replace_one")
    target = X[:, 0] if "target" in name else Y
    other = (FAR[0], np.append(target[:-1], 0.0))
    settings = {"method": "black_box", "n_fits": 20, "random_state": 0}
    assert audit(model, X, target, neighbours=other, **settings).passed


def projecting_search():
    """A search of which the grid holds what draws public coins."""
    grid = {"p": [GaussianRandomProjection(n_components=2), RBFSampler(gamma=1.0, n_components=2)]}
    pipeline = Pipeline([("p", "passthrough"), ("m", clone(MODEL))])
    return DPGridSearchCV(pipeline, grid, strategy="noisy_max")


@quick("None")
@pytest.mark.parametrize("backend", ["threading", "loky", None])
def test_replays_of_searches_are_the_same_wherever_joblib_is_told_to_run(backend):
    search = projecting_search()
    given = {} if backend is None else {"backend": backend}
    with parallel_config(n_jobs=2, **given):
        report = audit(search, X, Y, neighbours=FAR, method="replay", random_state=0)
    assert report.passed, report
    assert report == audit(search, X, Y, neighbours=FAR, method="replay", random_state=0)


# What the audit leaves alone


class InsideOut(BaseEstimator):
    """Fits something that holds a ledger, which no parameter tells."""

    ledger_of_a_class = None

    def fit(self, X, y):
        self.model_ = DPLogisticCD(classes=[0, 1], ledger=type(self).ledger_of_a_class).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def in_a_grid(ledger):
    held = DPLogisticCD(classes=[0, 1], ledger=ledger)
    return GridSearchCV(Pipeline([("m", clone(MODEL))]), {"m": [held]}, cv=2)


def in_a_class(ledger):
    InsideOut.ledger_of_a_class = ledger
    return InsideOut()


@each_value(1)
@pytest.mark.usefixtures("the_same_words")
@pytest.mark.slow
@pytest.mark.parametrize("hold", [in_a_grid, in_a_class])
@pytest.mark.parametrize("method", ["replay", "black_box"])
def test_an_audit_charges_no_ledger_wherever_it_is_held(hold, method, monkeypatch):
    monkeypatch.setattr(InsideOut, "ledger_of_a_class", None)
    ledger = PrivacyLedger("wages", 1.5, 1e-3, "memory")
    settings = {"neighbours": FAR, "method": method, "n_fits": 20, "n_jobs": 2, **CLAIM}
    with parallel_config(backend="threading"):
        audit(hold(ledger), X, Y, **settings)
    assert ledger.total().n_charges == 0
    DPStandardScaler(**BOUNDED, ledger=ledger).fit(X)
    assert ledger.total().n_charges == 1


@quick("replay")
@pytest.mark.parametrize("method", ["replay", "black_box", "one_run"])
def test_an_audit_leaves_the_data_as_they_are_though_steps_work_in_place(method):
    class Scaled(DPStandardScaler):
        """Changes its target too."""

        def fit(self, X, y=None):
            if y is not None:
                y += 1.0
            return super().fit(X)

    pipeline = Pipeline(
        [
            ("s", Scaled(**BOUNDED, copy=False, adjacency="add_remove")),
            ("t", DPStandardScaler(**BOUNDED, copy=False, adjacency="add_remove")),
        ]
    )
    table, target = X.copy(), X[:, 0].copy()
    claim = {"epsilon": 2.0, "delta": 1e-3, "adjacency": "add_remove"}
    settings = {"method": method, "n_fits": 20, "n_canaries": 10, **claim}
    if method == "black_box":  # as pilot fits for all pairs of neighbours take long
        settings["neighbours"] = (X[:-1], X[:-1, 0])
    audit(pipeline, table, target, score=lambda model, X, *rest: X[:, 0], **settings)
    assert np.array_equal(table, X)
    assert np.array_equal(target, X[:, 0])


# What is a finding, and what is none


class Refusing(DPStandardScaler):
    """Refuses some tables, in the same words."""

    def fit(self, X, y=None):
        if np.max(X) > 4.0:
            raise ValueError("A value is large.")
        return super().fit(X)


def test_an_error_that_both_neighbours_raise_is_no_finding_and_one_that_only_one_raises_is():
    large, larger = (np.vstack([X, [[size, 0.0]]]) for size in (5.0, 6.0))
    pairs = [
        Neighbours("both", (large, None), (larger, None)),
        Neighbours("neither", (X, None), (*FAR[:1], None)),
        Neighbours("one", (np.vstack([X, X[:1]]), None), (large, None)),
    ]

    def result(chosen):
        claim, seeds = PrivacyGuarantee(1.0, 1e-6), np.random.SeedSequence(0)
        return replay(Refusing(**BOUNDED), chosen, claim, seeds, 1, lambda count: None)

    assert result(pairs[:2]).passed
    (problem,) = (text for text in result(pairs).problems if "error" in text)
    assert "one of the fits raises an error that the other does not (one)" in problem


@each_value(1)
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "table", [100.0 * X.astype(np.float16), 1e37 * X.astype(np.float32), (10 * X).astype(np.int8)]
)
def test_neighbours_that_are_tried_fit_into_the_numbers_of_the_table(table, adjacency):
    seen = []

    class Looking(DPStandardScaler):
        def fit(self, X, y=None):
            seen.append(X)
            return super().fit(X)

    assert audit(Looking(adjacency=adjacency), table, method="replay").passed
    assert all(one.dtype == table.dtype and not np.isinf(one).any() for one in seen)


def uncharged_release(X):
    """A number of which one record moves two."""
    mechanism = calibrate("iid_gaussian", SensitivityProfile([2.0]), GaussianLoss(0.5))
    return mechanism.release(np.array([np.sign(X[:, 0]).sum()]), random_words())


@register_private
class Leaking(DPLogisticCD):
    """Releases a number that nobody charged for."""

    def fit(self, X, y, groups=None):
        super().fit(X, y, groups)
        self.extra_ = uncharged_release(X)
        return self


class LeakingSearch(DPGridSearchCV):
    """Releases a number beside what a search does."""

    def fit(self, X, y, groups=None):
        super().fit(X, y, groups)
        self.extra_ = uncharged_release(X)
        return self


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["noisy_max", "repeated"])
def test_replays_see_what_is_released_without_a_charge_within_a_search(strategy):
    grid = {"alpha": [0.0, 0.1]}
    short = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)
    how = {"strategy": strategy, "repetitions": short}
    sound = DPGridSearchCV(clone(MODEL), grid, **how)
    settings = {"neighbours": FAR, "method": "replay", "n_replays": 3, "random_state": 0}
    assert audit(sound, X, Y, **settings).passed
    leaking = Leaking(classes=[0, 1], n_passes=1)
    for search in (
        DPGridSearchCV(leaking, grid, **how),
        LeakingSearch(clone(MODEL), grid, **how),
    ):
        report = audit(search, X, Y, **settings)
        assert "an uncharged AdditiveMechanism released something" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_replays_know_everything_that_a_search_asks_by_itself(adjacency):
    inner = DPCoordinateDescentRegressor(solver="gradient", n_passes=1, adjacency=adjacency)
    for strategy in ("noisy_max", "repeated"):
        search = DPGridSearchCV(
            inner, {"alpha": [0.0, 0.1]}, strategy=strategy, adjacency=adjacency
        )
        other = (FAR[0], X[:, 0]) if adjacency == "replace_one" else (X[:-1], X[:-1, 0])
        report = audit(search, X, X[:, 0], neighbours=other, method="replay", random_state=0)
        assert report.passed, report
