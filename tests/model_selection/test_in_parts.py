"""Searches over rows in parts: the same winner and bits as in memory, and one charge."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from skdpnoise import (
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPRandomizedSearchCV,
    DPStandardScaler,
)
from skdpnoise.base.partitioned import without_seeds
from skdpnoise.base.steps import private_parts
from skdpnoise.data import scan_batches
from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.reading import Supervised, read
from skdpnoise.model_selection import _runs, dp_cross_validate
from skdpnoise.model_selection._search import StepColumns
from skdpnoise.model_selection._splits import Coins
from skdpnoise.sampling import SeededWords
from tests._cases import each_value
from tests._same_bits import COUNTS, by_way, in_parts, source_of
from tests.model_selection._searches import Door, Reached, Untouched

pytestmark = pytest.mark.usefixtures("the_same_words")


N = 400
RNG = np.random.default_rng(0)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(RNG.uniform(-1.0, 1.0, (N, 3)), columns=NAMES)
FRAME["y"] = FRAME["a"] + 0.3 * RNG.normal(size=N)
FRAME["label"] = np.where(FRAME["y"] > 0.0, "yes", "no")
FRAME["person"] = np.sort(RNG.integers(0, 120, N))

BOUNDS = {"feature_bounds": (-1.0, 1.0)}
LABELS = DPLogisticCD(**BOUNDS, n_passes=3)
NUMBERS = DPCoordinateDescentRegressor(**BOUNDS)
TWO = Pipeline([("s", DPStandardScaler()), ("m", LABELS)])
NESTED = DPPipeline([("inner", DPPipeline([("s", DPStandardScaler())])), ("m", LABELS)])
SEARCHES = {
    "noisy_max": (DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}), "label"),
    "refit": (DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, refit=True), "label"),
    "repeated": (DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, strategy="repeated"), "label"),
    "release": (DPGridSearchCV(NUMBERS, {"alpha": [0.0, 0.1]}), "y"),
    "apart": (DPGridSearchCV(NUMBERS, {"alpha": [0.0, 0.1]}, validation_fraction=0.3), "y"),
    "random": (DPRandomizedSearchCV(NUMBERS, {"alpha": [0.0, 0.1]}, n_iter=3), "y"),
    "roc_auc": (DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, scoring="roc_auc"), "label"),
    "shares": (DPGridSearchCV(LABELS, {"alpha": [0.1]}, scoring="balanced_accuracy"), "label"),
    "log loss": (DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, scoring="neg_log_loss"), "label"),
    "units": (DPGridSearchCV(NUMBERS, {"n_passes": [1, 2]}), "y"),
    "nested": (DPGridSearchCV(NESTED, {"m__alpha": [0.0, 0.1]}), "label"),
    "pipeline": (DPGridSearchCV(TWO, {"m__alpha": [0.0, 0.1]}), "label"),
}


def asked(name, table, adjacency="replace_one", **options):
    """Return all that a search publishes, as text that shows every bit."""
    search, target = SEARCHES[name]
    search = clone(search).set_params(random_state=1, adjacency=adjacency)
    for part in private_parts(search.estimator):
        part.estimator.adjacency = adjacency
    groups = {"groups": table["person"]} if "rows_per_group" in options else {}
    search.set_params(**options).fit(table[NAMES], table[target], **groups)
    best = search.best_estimator_
    last = best[-1] if isinstance(best, Pipeline) else best
    found = [search.best_params_, search.best_score_, str(search.privacy_)]
    return repr([*found, last.coef_.tolist(), np.asarray(last.intercept_).tolist()])


def by_person(n_parts):
    """Return the frame in parts, with all rows of a person in one."""
    codes = FRAME["person"].to_numpy() * n_parts // 120
    return source_of([FRAME[codes == part] for part in range(n_parts)])


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
def test_parts_give_the_same_search(name):
    expected = asked(name, FRAME)
    for n_parts in (1, 7):
        assert asked(name, in_parts(FRAME, n_parts)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SEARCHES if name != "roc_auc"])
def test_so_they_do_where_the_number_of_records_is_private(name):
    expected = asked(name, FRAME, "add_remove")
    assert asked(name, in_parts(FRAME, 7), "add_remove") == expected


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", ["refit", "release", "shares", "units", "pipeline"])
def test_so_they_do_with_groups(name, adjacency):
    expected = asked(name, FRAME, adjacency, rows_per_group=2)
    for n_parts in (1, 7):
        assert asked(name, by_person(n_parts), adjacency, rows_per_group=2) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisy_max", "release"])
def test_so_do_many_parts_files_and_dask(name, tmp_path):
    expected = asked(name, FRAME)
    tables = [in_parts(FRAME, n_parts) for n_parts in COUNTS]
    tables += [by_way(way, FRAME, tmp_path) for way in ("parquet", "dask frame")]
    for table in tables:
        assert asked(name, table) == expected
    assert asked(name, tables[-2], n_jobs=2) == expected


@pytest.mark.slow
def test_dask_sifts_groups_where_the_chunks_are():
    import dask.dataframe

    cuts = [FRAME[FRAME["person"].between(*ends)] for ends in ((0, 50), (51, 119))]
    whole = [dask.dataframe.from_pandas(cut, npartitions=1, sort=False) for cut in cuts]
    table = dask.dataframe.concat(whole)
    expected = asked("noisy_max", FRAME, rows_per_group=2)
    assert asked("noisy_max", table, rows_per_group=2) == expected


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize(("model", "target"), [(LABELS, "label"), (NUMBERS, "y")])
def test_folds_are_the_same(model, target, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    options = {"cv": 3, "adjacency": adjacency, "random_state": 0}
    whole = dp_cross_validate(model, FRAME[NAMES], FRAME[target], **options)
    rows = in_parts(FRAME, 7)
    found = dp_cross_validate(model, rows[NAMES], rows[target], **options)
    assert found.test_score.tolist() == whole.test_score.tolist()
    assert str(found.privacy) == str(whole.privacy)
    grouped = {"groups": FRAME["person"], "rows_per_group": 2}
    whole = dp_cross_validate(model, FRAME[NAMES], FRAME[target], **options | grouped)
    rows = by_person(7)
    grouped["groups"] = rows["person"]
    found = dp_cross_validate(model, rows[NAMES], rows[target], **options | grouped)
    assert found.test_score.tolist() == whole.test_score.tolist()


def records(table, groups=None, most=1):
    """Return the records that a search reads, with frozen coins for groups."""
    search = DPGridSearchCV(LABELS, {}, rows_per_group=most)
    form = Supervised(StepColumns(), labels=True)
    _, found = read(search, form, groups=groups, X=table[NAMES], y=table["label"])
    return found.kept(SeededWords(5))


def rows_of(part):
    """Return the rows of a part, whole or in parts."""
    tables = part.tables()
    X, y = tables["X"], tables["y"]
    if isinstance(X, pd.DataFrame):
        return X.to_numpy(), np.asarray(y)
    batches = [pd.concat([*one.batches()]) for one in (X, y)]
    return batches[0].to_numpy(), batches[1].to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 1, 3])
def test_every_part_has_the_rows_that_it_has_in_memory_in_their_order(most):
    table = in_parts(FRAME, 7) if most is None else by_person(7)
    groups = (None, None) if most is None else (FRAME["person"], table["person"])
    whole = records(FRAME, groups[0], most or 1)
    spread = records(table, groups[1], most or 1)
    coins = Coins(bytes(32), (0.2, 0.1))
    divided = [one.rows.divided(coins, one.labels) for one in (whole, spread)]
    assert divided[0].sizes == divided[1].sizes
    pairs = [[one.at(*places) for one in divided] for places in ((0,), (1,), (2,), (0, 1))]
    pairs.append([one.rows.undivided().at(0) for one in (whole, spread)])
    for expected, part in pairs:
        assert len(part) == len(expected) == len(part.tables()["X"])
        for found, known in zip(rows_of(part), rows_of(expected), strict=True):
            np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(part.total(_sums), expected.total(_sums))
    assert [len(one.rows.undivided().at()) for one in (whole, spread)] == [0, 0]


def _sums(some):
    X, y = some["X"], some["y"]
    return np.array([np.rint(X.to_numpy() * 1e6).astype(int).sum(), (y == "yes").sum(), len(y)])


def test_what_is_wrong_is_refused_before_the_charge():
    rows, wild = in_parts(FRAME, 5), FRAME.copy()
    search = DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, ledger=Untouched())
    wild.loc[N - 1, "a"] = np.nan
    spoiled = in_parts(wild, 5)
    cases = [
        (rows[NAMES], FRAME["label"], "same parts"),
        (FRAME[NAMES], rows["label"], "same parts"),
        (rows[NAMES], None, "target y is None"),
        (rows[NAMES], rows["y"], "continuous"),
        (rows[NAMES], in_parts(FRAME, 5)["label"], "one source"),
        (spoiled[NAMES], spoiled["label"], "NaN"),
    ]
    for X, y, match in cases:
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            search.fit(X, y)
        assert caught.value.__cause__ is None
    with pytest.raises(ValueError, match="several parts"):
        search.fit(rows[NAMES], rows["label"], groups=rows["person"])
    few = source_of([FRAME[:2], FRAME[2:3]])
    with pytest.raises(ValueError, match="minimum of 4"):
        search.fit(few[NAMES], few["label"])
    with pytest.raises(Reached):
        search.set_params(ledger=Door()).fit(rows[NAMES], rows["label"])


@pytest.mark.slow
@pytest.mark.parametrize("refit", [False, True])
def test_rows_that_change_while_a_search_runs_end_it(refit):
    """Whenever they do: fits, too, look at rows anew."""

    class Notebook:
        def charge(self, label, cost, **facts):
            state["charged"] = True

    def read(part):
        state["passes"] += state["charged"]
        other = state["charged"] and state["passes"] > state["changes"]
        return [part[::-1] if other else part]

    finished = 0
    for changes in (0, 10, 25, 40, 60, 90, 10**9):
        state = {"charged": False, "passes": 0, "changes": changes}
        rows = scan_batches([partial(read, part) for part in (FRAME[:150], FRAME[150:])])
        search = DPGridSearchCV(
            LABELS, {"alpha": [0.0, 0.1]}, refit=refit, strategy="noisy_max", ledger=Notebook()
        )
        try:
            search.fit(rows[NAMES], rows["label"])
        except SpreadError as error:
            assert "changed while they were read" in str(error)
            assert error.__cause__ is error.__context__ is None
            assert not hasattr(search, "best_estimator_")
        else:
            assert state["passes"] <= changes
            finished += 1
    assert 1 <= finished < 6


def test_rows_that_change_before_the_winner_is_fitted_again_end_a_search(monkeypatch):
    """That fit sees the same rows in every pass, and nothing scores it."""
    fits, fitted = [], _runs.SearchProblem.fitted

    def counted(*given):
        fits.append(None)
        return fitted(*given)

    def read(part):
        return [part[::-1] if len(fits) == 3 else part]

    monkeypatch.setattr(_runs.SearchProblem, "fitted", counted)
    rows = scan_batches([partial(read, part) for part in (FRAME[:150], FRAME[150:])])
    search = DPGridSearchCV(LABELS, {"alpha": [0.0, 0.1]}, refit=True, strategy="noisy_max")
    with pytest.raises(SpreadError, match="changed while they were read"):
        search.fit(rows[NAMES], rows["label"])
    assert len(fits) == 3
    assert not hasattr(search, "best_estimator_")


def test_a_part_that_is_lost_in_a_run_ends_the_search_and_makes_no_worst_candidate(monkeypatch):
    fit = _runs.SearchProblem.fitted

    def lost(problem, priced, *rows):
        if priced.estimator.alpha == 0.1:
            raise SpreadError("A part of the rows was lost.")
        return fit(problem, priced, *rows)

    monkeypatch.setattr(_runs.SearchProblem, "fitted", lost)
    rows = in_parts(FRAME, 3)
    for strategy in ("noisy_max", "repeated"):
        search = DPGridSearchCV(LABELS, {"alpha": [0.1]}, strategy=strategy, random_state=0)
        with pytest.raises(SpreadError, match="was lost") as caught:
            search.fit(rows[NAMES], rows["label"])
        assert caught.value.__context__ is None


@pytest.mark.slow
def test_no_seed_goes_where_the_rows_are():
    rows, seen = in_parts(FRAME, 3), []
    search = DPGridSearchCV(TWO, {"m__alpha": [0.0, 0.1]}, random_state=3)
    search.fit(rows[NAMES], rows["label"])
    bare = without_seeds(search.best_estimator_)
    for fitted in (False, True):
        seen += [part.estimator.random_state for part in private_parts(bare, fitted=fitted)]
    assert set(seen) == {None}
    assert search.best_estimator_[-1].random_state is not None


@pytest.mark.slow
def test_a_winner_answers_for_rows_in_parts():
    rows = in_parts(FRAME, 7)
    for name in ("noisy_max", "pipeline", "release"):
        search, target = SEARCHES[name]
        search = clone(search).fit(FRAME[NAMES], FRAME[target])
        methods = ["predict"] + ([] if target == "y" else ["predict_proba", "decision_function"])
        for method in methods:
            found = getattr(search, method)(rows[NAMES])
            expected = getattr(search, method)(FRAME[NAMES])
            assert found.shape == expected.shape
            np.testing.assert_array_equal(np.concatenate([*found.batches()]), expected)
        with pytest.raises(TypeError, match="private score"):
            search.score(rows[NAMES], rows[target])
