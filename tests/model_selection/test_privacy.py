"""What a search shows beside its result, does to its surroundings, and owns up to."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPMinMaxScaler,
    DPRandomizedSearchCV,
    DPStandardScaler,
    PrivacyLedger,
    PrivacyWarning,
)
from skdpnoise._utils.silence import silence
from skdpnoise.compose import total_guarantee
from skdpnoise.inspection import Transcript
from skdpnoise.metrics.scoring import BITS
from skdpnoise.model_selection import _runs, _splits
from skdpnoise.model_selection._splits import Parts
from tests._cases import each_value, quick
from tests.model_selection._searches import CLASSIFIER, LABELS, SCORE, Drawn, Untouched, X, both

pytestmark = pytest.mark.usefixtures("the_same_words")


REGRESSOR = DPCoordinateDescentRegressor(target_bounds=(-8.0, 8.0), n_passes=1)
UNITS = {"strategy": "noisy_max", "epsilon": 2.0}
PASSES = {"n_passes": [1, 2]}
quiet = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")


def narrow(scaler):
    return scaler(feature_bounds=(0.0, 4.0))


# Compositions that may fit their parts in threads.
INNER = {
    "union": FeatureUnion(
        [("a", narrow(DPStandardScaler)), ("b", narrow(DPMinMaxScaler))], n_jobs=2
    ),
    "columns": ColumnTransformer(
        [("a", narrow(DPStandardScaler), [0]), ("b", narrow(DPMinMaxScaler), [1])],
        n_jobs=2,
        sparse_threshold=0,
    ),
    "union of columns": FeatureUnion(
        [
            ("c", ColumnTransformer([("a", narrow(DPStandardScaler), [0])], n_jobs=2)),
            ("b", narrow(DPMinMaxScaler)),
        ],
        n_jobs=2,
    ),
}


@quick("union of columns")
@quiet
@pytest.mark.parametrize("inner", INNER)
def test_parts_that_would_run_in_threads_know_that_the_search_is_charged(inner):
    usual = 1e-3 * X[:60, :2]
    wild = usual.copy()
    wild[-1] = 1.0  # a thousand scales: the exponential of that is infinite
    scaled = DPStandardScaler(feature_bounds=(-5e-3, 5e-3))
    steps = [("s", scaled), ("f", FunctionTransformer(np.exp)), ("u", INNER[inner])]
    model = Pipeline([*steps, ("m", DPLogisticCD(n_passes=1))])
    search = DPGridSearchCV(model, {"m__alpha": [0.0]}, epsilon=5.0, random_state=0)
    for table in (usual, wild):
        assert search.fit(table, LABELS[:60]).best_score_ <= 1.0


def pathological_targets():
    """Targets that differ in one record."""
    for value in (0.5, 1e99, -1e99, 1e-160, 1e-300):
        yield np.append(SCORE[:59], value)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0), (0.0, 1e-60)])
def test_units_are_bought_in_silence_whatever_one_record_is(bounds, monkeypatch):
    # The last record is among those that tell the units.
    monkeypatch.setattr(_splits, "divide", lambda records, *_: cut(records, 40, 50))
    options = {"target_bounds": bounds, "random_state": 0, **UNITS}
    for y in pathological_targets():
        for search in both(REGRESSOR, {"n_passes": [1]}, **options):
            with np.errstate(all="raise"), warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", PrivacyWarning)
                search.fit(X[:60], y)


def cut(records, *ends):
    """Divide records in their order: the first ones are fitted to, the last tell the units."""
    places = np.searchsorted(ends, np.arange(records.rows.n_rows), side="right")
    return Parts(records.rows.at_places(places, 3), (0,), (1,), (2,))


def charged_for(n_reference, scoring, monkeypatch):
    """Labels of what a search charges for, if so many records tell the units."""
    n_rows = 30 + n_reference
    monkeypatch.setattr(_splits, "divide", lambda records, *_: cut(records, 20, 30))
    estimator = clone(REGRESSOR).set_params(adjacency="add_remove", delta=0.0)
    options = {"adjacency": "add_remove", "delta": 0.0, "scoring": scoring, **UNITS}
    search = DPGridSearchCV(estimator, {"n_passes": [1]}, **options)
    seen = Transcript()
    seen.watch(search.fit, X[:n_rows], SCORE[:n_rows])
    return [label for label, _ in seen.charges]


@quiet
@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_units_are_bought_however_few_records_fall_into_their_part(scoring, monkeypatch):
    found = [charged_for(size, scoring, monkeypatch) for size in (0, 1, 2)]
    assert found[0].count("variance of the target") == 1
    assert all(labels == found[0] for labels in found)


@quick("classes-noisy_max-replace_one")
@each_value(1)
@quiet
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("strategy", ["noisy_max", "repeated"])
@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=["classes", "numbers"])
def test_every_release_of_a_search_is_charged_by_itself_and_by_name(model, strategy, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    model.set_params(n_passes=1)
    options = {"adjacency": adjacency, "strategy": strategy, "delta": 1e-6}
    search = DPGridSearchCV(model, {"fit_intercept": [True, False]}, **options)
    seen = Transcript()
    seen.watch(search.fit, X[:60], (SCORE if hasattr(model, "target_bounds") else LABELS)[:60])
    charged = {}
    for label, what in seen.charges:
        inside = [getattr(what, name) for name in getattr(what, "__dataclass_fields__", ())]
        charged |= {id(one): label for one in (what, *inside)}
    labels = {charged[id(meeting.mechanism)] for meeting in seen.meetings}
    assert "score" in labels
    assert ("choice" in labels) is (strategy == "noisy_max")
    assert ("variance of the target" in labels) is hasattr(model, "target_bounds")


# Searches whose fits are counted one by one.
SPENDING = {
    "noisy max": ({"strategy": "noisy_max", "refit": False}, {"alpha": [0.1, 0.2, 0.3]}),
    "refit": ({"strategy": "noisy_max", "refit": True}, {"alpha": [0.1, 0.2, 0.3]}),
    "refit of two": ({"strategy": "noisy_max", "refit": True}, {"alpha": [0.1, 0.2]}),
    "release": ({"strategy": "release"}, {"alpha": [0.1, 0.2]}),
    "release apart": ({"validation_fraction": 0.2}, {"alpha": [0.1, 0.2]}),
}


@quick("refit of two-0.0")
@each_value(1)
@quiet
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", SPENDING)
def test_each_part_of_the_records_spends_the_total_and_no_more(name, delta, monkeypatch):
    fits, fitted = [], _runs.SearchProblem.fitted

    def noted(problem, priced, rows=None):
        fits.append((problem.parts, priced, problem.parts.train if rows is None else rows))
        return fitted(problem, priced, rows)

    def amount(loss):
        return loss.pure_epsilon if delta == 0.0 else loss.mu**2

    monkeypatch.setattr(_runs.SearchProblem, "fitted", noted)
    options, grid = SPENDING[name]
    model = DPCoordinateDescentRegressor(delta=delta)
    search = DPGridSearchCV(model, grid, delta=delta, epsilon=2.0, random_state=0, **options)
    seen = Transcript()
    seen.watch(search.fit, X, SCORE)
    releases = {"train": 0.0, "validation": 0.0, "reference": 0.0}
    for label, what in seen.charges:
        if label in ("choice", "score") or "of the target" in label:
            part = "reference" if "of the target" in label else "validation"
            releases[part] += amount(what.privacy_loss())
    total = amount(search.privacy_.total)
    parts = fits[0][0]
    for part, spent in releases.items():
        places = getattr(parts, part)
        spent += sum(amount(one.budget) for _, one, used in fits if set(places) & set(used))
        assert spent <= total * (1.0 + 1e-9)
        if part != "reference":  # of which bounds of the units may leave some
            assert spent >= 0.9 * total


@quiet
def test_a_winner_is_fitted_again_as_itself_to_all_records_that_the_search_used(monkeypatch):
    fits, fitted = [], _runs.SearchProblem.fitted

    def noted(problem, priced, rows=None):
        fits.append((problem.parts, priced.estimator, rows))
        return fitted(problem, priced, rows)

    monkeypatch.setattr(_runs.SearchProblem, "fitted", noted)
    grid = {"fit_intercept": [False, True], "alpha": [100.0, 0.01]}
    search = DPGridSearchCV(REGRESSOR, grid, strategy="noisy_max", epsilon=50.0, random_state=0)
    search.fit(X, SCORE)
    parts, winner, rows = fits[-1]
    assert [used is None for *_, used in fits] == [True] * 4 + [False]
    assert search.best_params_["alpha"] == 0.01
    assert search.best_params_.items() <= winner.get_params().items()
    assert parts.n_in(parts.reference) and rows == (*parts.train, *parts.validation)
    assert search.best_estimator_ is winner


SCORES_OF = {
    **SPENDING,
    "auto": ({}, {"n_passes": [1, 2, 3]}),
    "repeated": ({"strategy": "repeated"}, {"n_passes": [1, 2, 3, 4]}),
}


@each_value(1)
@pytest.mark.slow
@quiet
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", SCORES_OF)
def test_the_report_states_the_noise_that_the_score_has(name, adjacency):
    options, grid = SCORES_OF[name]
    model = DPCoordinateDescentRegressor(adjacency=adjacency)
    search = DPGridSearchCV(model, grid, adjacency=adjacency, random_state=0, **options)
    seen = Transcript()
    seen.watch(search.fit, X, SCORE)
    (line,) = search.privacy_.releases
    scores = [what for label, what in seen.charges if label == "score"]
    assert scores
    for one in scores:
        found = one.scale / 2.0**BITS
        assert line.scale == pytest.approx((found.min(), found.max()), rel=1e-12)
        assert line.noise == one.noise
    assert ("fitted again" in line.label) is ("refit" in name or name == "auto")


def test_a_warning_that_is_an_error_comes_when_what_was_paid_for_is_there():
    ledger = PrivacyLedger("a", epsilon=50.0, delta=1e-3, storage="memory")
    for search in both(REGRESSOR, PASSES, strategy="noisy_max", epsilon=0.02, ledger=ledger):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyWarning)
            with pytest.raises(PrivacyWarning, match="predicts one constant") as caught:
                search.fit(X[:60], SCORE[:60])
        assert any("stays spent" in note for note in caught.value.__notes__)
        assert search.predict(X[:2]).shape == (2,)


@quiet
def test_who_fits_the_winner_again_spends_more():
    model = Pipeline([("m", clone(CLASSIFIER).set_params(n_passes=1))])
    for search in both(model, {"m__alpha": [0.0]}, strategy="noisy_max", delta=1e-6):
        search.fit(X, LABELS)
        once = total_guarantee(search, delta=1e-6)
        assert len(once.steps) == 1
        search.best_estimator_.fit(X, LABELS)
        twice = total_guarantee(search, delta=1e-6)
        assert [name for name, _ in twice.steps] == [type(search).__name__, "m"]
        assert twice.epsilon > 1.1 * once.epsilon


@quiet
def test_the_winner_of_a_search_with_a_step_that_is_vouched_for_is_taken_apart():
    steps = ColumnTransformer([("t", FunctionTransformer(np.tanh, validate=True), [0, 1, 2])])
    strange = FunctionTransformer(lambda table: 0.5 * table)
    model = Pipeline([("c", steps), ("h", strange), ("m", CLASSIFIER)])
    search = DPGridSearchCV(model, {"m__alpha": [0.0]}, public=["h"]).fit(X, LABELS)
    assert total_guarantee(search).declared == ("h", "labels of y")


@pytest.mark.slow
@quiet
def test_no_seed_of_any_part_is_written_into_a_ledger():
    ledger = PrivacyLedger("a", epsilon=50.0, delta=1e-3, storage="memory")
    seed = 3906214875  # so long that no time and no token holds it by chance
    seeded = clone(CLASSIFIER).set_params(random_state=seed, n_passes=1)
    grid = {"m": [seeded], "m__alpha": [0.0, 0.1]}
    for search in both(Pipeline([("m", seeded)]), grid, ledger=ledger, random_state=seed):
        search.fit(X[:60], LABELS[:60])
    search = DPGridSearchCV(seeded, {"alpha": [0.0]}, ledger=ledger, random_state=seed)
    search.fit(X[:60], LABELS[:60])
    assert len(ledger.charges()) == 3
    assert str(seed) not in repr([vars(one) for one in ledger.charges()])


# A step that writes into what it is given, and what it is given.
IN_PLACE = {
    "threshold": Binarizer(threshold=0.1, copy=False),
    "rows": Normalizer(copy=False),
    "scaler": DPStandardScaler(feature_bounds=(-1.0, 1.0), copy=False),
}


@quiet
@pytest.mark.parametrize("step", IN_PLACE)
def test_reading_does_not_write_into_the_data(step):
    model = Pipeline([("s", IN_PLACE[step]), ("m", clone(CLASSIFIER))])
    for table in (np.asfortranarray(X), X.copy(), pd.DataFrame(X.copy()), X.tolist()):
        search = DPGridSearchCV(model, {"m__alpha": [0.0]}, epsilon=5.0)
        search.fit(table, LABELS)
        np.testing.assert_array_equal(np.asarray(table), X)


@quiet
def test_reading_does_not_write_into_the_target():
    scaler = DPStandardScaler(feature_bounds=(-4.0, 4.0), copy=False)
    model = TransformedTargetRegressor(clone(REGRESSOR), transformer=scaler, check_inverse=False)
    y = SCORE.copy()
    DPGridSearchCV(model, {"regressor__n_passes": [1, 2]}, **UNITS).fit(X, y)
    np.testing.assert_array_equal(y, SCORE)


@pytest.mark.parametrize("data", [(np.array(3.7), LABELS), (X, np.array(3.7)), (X, 3.7), (3.7, 1)])
def test_a_scalar_is_refused_and_not_quoted(data):
    for search in both(CLASSIFIER, {"alpha": [0.0]}, ledger=Untouched()):
        with pytest.raises((TypeError, ValueError)) as caught:
            search.fit(*data)
        assert "3.7" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


@quick("release")
@quiet
@pytest.mark.parametrize("strategy", ["release", "noisy_max", "repeated"])
def test_a_search_does_not_change_what_other_threads_hear(strategy, monkeypatch):
    callers = []

    class Watched(warnings.catch_warnings):
        def __init__(self, **options):
            callers.append(sys._getframe(1).f_globals["__name__"])
            super().__init__(**options)

    monkeypatch.setattr(warnings, "catch_warnings", Watched)
    estimator = DPCoordinateDescentRegressor(target_bounds=(-8.0, 8.0), solver="gram")
    search = DPGridSearchCV(estimator, {"alpha": [0.0, 0.1]}, strategy=strategy)
    search.fit(X[:60], SCORE[:60])
    assert not [name for name in callers if name.startswith("skdpnoise")]


def test_a_list_of_filters_that_is_restored_after_a_seal_does_not_keep_it():
    kept, before = warnings.filters, list(warnings.filters)
    with silence():
        other = warnings.catch_warnings()  # another thread's, left after the seal
        other.__enter__()
    other.__exit__(None, None, None)
    assert warnings.filters is kept
    assert kept == before


@each_value(1)
@quiet
@pytest.mark.parametrize("strategy", ["auto", "noisy_max", "repeated"])
@pytest.mark.parametrize("budget", [(0.01, 0.0), (0.01, 1e-6), (8.0, 1e-6)])
def test_what_a_user_asks_of_floats_does_not_stop_a_search(strategy, budget):
    options = {"strategy": strategy, "epsilon": budget[0], "delta": budget[1]}
    search = DPRandomizedSearchCV(CLASSIFIER, {"alpha": Drawn(0.0, 0.1)}, n_iter=2, **options)
    with np.errstate(all="raise"):
        search.fit(X[:60], LABELS[:60])
        assert str(search.privacy_)
