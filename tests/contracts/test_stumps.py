"""A new family is one file: boosted stumps are right, and everything that exists takes them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from skdpnoise import DPGridSearchCV, DPPipeline, DPStandardScaler, DPTableVectorizer, PrivacyLedger
from skdpnoise.inspection import audit
from skdpnoise.inspection.auditing._costs import TOLERANCE, total_moved
from skdpnoise.inspection.auditing._fingerprint import fingerprint
from skdpnoise.ledger import BudgetExceededError
from tests._cases import each_value, quick
from tests._replay import two_runs
from tests._same_bits import differing, in_parts, source_of
from tests._storage import every_storage_of_parts
from tests.contracts._register import Forbidden, Notebook
from tests.contracts._stumps import DPBoostedStumps
from tests.contracts.test_planners import reached

pytestmark = pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning")

NAMES = ["a", "b", "c"]
BOUNDS = {"feature_bounds": (-1.0, 1.0), "target_bounds": (-2.0, 2.0)}
every_adjacency = pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])


def stumps(**settings):
    return DPBoostedStumps(**{**BOUNDS, "max_iter": 7, "random_state": 0, **settings})


def records(n, seed=0):
    """Rows of three features, and a target that is a stair of two of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 3))
    steps = np.where(np.abs(X[:, 0]) < 0.5, 1.0, -1.0) + 0.5 * (X[:, 1] > 0.3)
    return X, steps + rng.normal(scale=0.3, size=n)


def framed(n):
    """The records as one table, with people who have three rows."""
    X, y = records(n)
    return pd.DataFrame(X, columns=NAMES).assign(y=y, who=np.arange(n) // 3)


def test_they_learn_what_no_linear_model_does():
    X, y = records(4000)
    X_new, y_new = records(2000, seed=1)
    model = stumps(epsilon=5.0, max_iter=30).fit(X, y)
    assert model.score(X_new, y_new) > LinearRegression().fit(X, y).score(X_new, y_new) + 0.5


# Wherever rows lie


@each_value(1)
@every_storage_of_parts
@every_adjacency
def test_a_fit_is_the_same_wherever_its_rows_lie(stored, adjacency):
    frame, fits = framed(600), []
    for table in (frame, stored(frame)):
        model = stumps(adjacency=adjacency, ledger=Notebook())
        fits.append(model.fit(table[NAMES], table["y"]))
    assert differing(*fits) == []
    assert fits[0].ledger.charges == fits[1].ledger.charges


@pytest.mark.usefixtures("the_same_words")
@every_adjacency
@pytest.mark.parametrize("most", [2, 3])
def test_groups_in_parts_keep_the_rows_that_they_keep_in_memory(adjacency, most):
    frame = framed(600)
    parts = source_of([frame[:150], frame[150:303], frame[303:]])
    fits = [
        stumps(adjacency=adjacency, rows_per_group=most).fit(rows[NAMES], rows["y"], rows["who"])
        for rows in (frame, parts)
    ]
    assert differing(*fits) == []
    assert fits[0].privacy_.rows_per_group == most


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("n_parts", [1, 7])
def test_a_target_of_whole_numbers_in_a_table_of_one_column_is_that_column(n_parts):
    frame = framed(300).assign(y=lambda rows: np.rint(rows["y"]).astype(int))
    parts = in_parts(frame, n_parts)
    first = stumps().fit(frame[NAMES], frame["y"])
    assert differing(first, stumps().fit(parts[NAMES], parts[["y"]])) == []


def test_bounds_by_name_leave_the_same_state_as_bounds_in_order():
    # Of an array that is kept, what it is a view of is kept too, and an audit compares it.
    frame = framed(100)
    ways = ((-1.0, -2.0, -3.0), (1.0, 2.0, 3.0)), {"c": (-3, 3), "a": (-1, 1), "b": (-2, 2)}
    fits = [stumps(feature_bounds=one).fit(frame[NAMES], frame["y"]) for one in ways]
    assert fingerprint(fits[0]._units) == fingerprint(fits[1]._units)


def test_predictions_of_parts_are_those_of_rows_in_memory():
    frame = framed(300)
    model = stumps().fit(frame[NAMES], frame["y"])
    found = model.predict(in_parts(frame, 7)[NAMES])
    assert np.array_equal(np.concatenate(list(found.batches())), model.predict(frame[NAMES]))


# What one record, or one person, can do


# Of the row or the rows in which neighbours differ: as far apart as any, and further.
CHANGED = np.array([[-1e100, 1.0, 1e90], [-1.0, 1e100, 0.3], [1e90, -0.5, -1.0]])
NOISES = {"gaussian": {"noise": "inid_gaussian", "delta": 1e-3}, "pure": {"delta": 0.0}}


@every_adjacency
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_record_or_a_person_moves_each_release_by_no_more_than_is_paid_for(
    adjacency, noise, n_rows
):
    rng, largest = np.random.default_rng(1), 0.0
    for seed in range(8):
        X, y = records(60 + seed, seed)
        X_other, y_other = X.copy(), y.copy()
        y[-n_rows:], y_other[-n_rows:] = -1e100, 1e100
        X[-n_rows:], X_other[-n_rows:] = rng.permutation(CHANGED)[:2]
        if adjacency == "add_remove":
            X_other, y_other = X_other[:-n_rows], y_other[:-n_rows]
        who = np.append(np.arange(len(X) - n_rows), np.full(n_rows, -1))

        def fit(X, y, seed=seed, who=who):
            settings = {"epsilon": 20.0, "adjacency": adjacency, "rows_per_group": n_rows}
            model = stumps(**settings, **NOISES[noise], random_state=seed)
            return model.fit(X, y, groups=None if n_rows == 1 else who[: len(X)])

        runs = two_runs(fit, (X, y), (X_other, y_other), seed)
        runs.check_same()
        assert {one.label for one in runs.moved} == {"gradients"}
        report = runs.first.privacy_
        delta = report.guarantee.delta
        assert total_moved(runs.moved).delta(20.0 * TOLERANCE) <= delta * TOLERANCE
        assert report.total.delta(20.0) <= delta
        largest = max(largest, *(one.share for one in runs.moved))
    assert 0.99 * n_rows < largest <= n_rows * TOLERANCE


@every_adjacency
def test_a_replay_audit_finds_nothing(adjacency):
    X, y = records(80)
    report = audit(stumps(adjacency=adjacency), X, y, method="replay", random_state=0)
    assert report.passed, str(report)


# Plans, ledgers and compositions


@every_adjacency
def test_the_releases_of_the_plan_are_those_of_the_fit(adjacency):
    X, y = records(400)
    model = stumps(adjacency=adjacency, ledger=Forbidden())
    plan = model.plan(400, 3, epsilons=(), n_fits=1)
    report = model.set_params(ledger=None).fit(X, y).privacy_
    assert [stage.release for stage in plan.stages] == list(report.releases)
    assert report.releases[0].n_releases == 7


def test_its_planner_can_reach_no_row():
    assert reached(DPBoostedStumps._plan) == []


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"feature_bounds": None}, "'feature_bounds' parameter"),
        ({"feature_bounds": (-1.0, np.inf)}, "'feature_bounds' .* finite"),
        ({"target_bounds": None}, "'target_bounds' parameter"),
        ({"target_bounds": (1.0, -1.0)}, "'target_bounds' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"max_iter": 10**12}, "Lower max_iter"),
    ],
)
def test_what_is_not_public_or_not_possible_is_refused_before_a_charge(settings, match):
    model = stumps(**settings, ledger=Forbidden())
    with pytest.raises((ValueError, MemoryError), match=match):
        model.fit(*records(100))


def test_a_ledger_is_charged_once_for_the_whole_fit_and_refuses_what_it_does_not_cover():
    ledger = PrivacyLedger("trips", 1.2, 1e-5, storage="memory")
    model = stumps(ledger=ledger).fit(*records(200))
    assert len(ledger.charges()) == 1
    with pytest.raises(BudgetExceededError):
        model.fit(*records(200))
    assert len(ledger.charges()) == 1


def piped(first, **settings):
    bounds = {"feature_bounds": (-3.0, 3.0), "random_state": None}
    return DPPipeline([("first", first), ("model", stumps(**bounds))], random_state=0, **settings)


FIRST = {
    "a scaler": DPStandardScaler(feature_bounds=(-1.0, 1.0)),
    "a table": DPTableVectorizer(dict.fromkeys(NAMES, (-1.0, 1.0))),
}


@quick("a scaler-replace_one")
@every_adjacency
@pytest.mark.parametrize("first", FIRST)
def test_behind_a_step_they_are_the_same_in_parts_and_hold_the_guarantee(first, adjacency):
    frame = framed(400)
    pipeline = piped(clone(FIRST[first]).set_params(adjacency=adjacency), adjacency=adjacency)
    pipeline.set_params(model__adjacency=adjacency)
    fits = [clone(pipeline).fit(table[NAMES], table["y"]) for table in (frame, in_parts(frame, 7))]
    assert fits[0]["model"].stumps_ == fits[1]["model"].stumps_
    assert fits[0].privacy_ == fits[1].privacy_
    assert fits[0].privacy_.total.delta(1.0) <= 1e-6
    found = pipeline.plan(400, NAMES, epsilons=(), n_fits=1)
    assert [stage.release.label for stage in found.stages] == [
        release.label for release in fits[0].privacy_.releases
    ]


@pytest.mark.slow
def test_a_replay_audit_of_a_pipeline_finds_nothing():
    X, y = records(60)
    report = audit(piped(clone(FIRST["a scaler"])), X, y, method="replay", random_state=0)
    assert report.passed, str(report)


@pytest.mark.slow
def test_a_search_chooses_among_them_for_one_guarantee_in_memory_and_in_parts():
    frame = framed(400)
    search = DPGridSearchCV(
        stumps(random_state=None), {"max_iter": [2, 9]}, epsilon=8.0, random_state=0
    )
    fits = [clone(search).fit(table[NAMES], table["y"]) for table in (frame, in_parts(frame, 7))]
    assert fits[0].best_params_ == fits[1].best_params_
    assert fits[0].best_estimator_.stumps_ == fits[1].best_estimator_.stumps_
    assert fits[0].privacy_.total.delta(8.0) <= 1e-6
