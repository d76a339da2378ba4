"""What cannot be fitted is refused: before the charge, clearly, and by no word of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import make_pipeline

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPGridSearchCV,
    DPLogisticCD,
    DPStandardScaler,
)
from skdpnoise._utils.parameters import check_size
from tests._cases import quick
from tests.contracts._bad_data import (
    GOOD,
    NAME,
    SECRET,
    SHOWN,
    TAKEN,
    extremes,
    groups,
    tables,
    targets,
)
from tests.contracts._bad_parameters import bad_parameters
from tests.contracts._register import (
    ENTRIES,
    PRIVATE,
    TARGETS,
    Entry,
    Forbidden,
    each,
    every_estimator,
    said,
    state,
    ways,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

CLEAR = (ValueError, TypeError, MemoryError)


def faults(fit: Callable[[], Any], estimator: Any, *words: str) -> list[str]:
    """Return what is wrong with how a fit is refused: nothing, if all is well."""
    before, found = state(estimator), []
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            fit()
    except CLEAR as error:
        text = said(error)
        found += [f"shows {value!r}: {text}" for value in SHOWN if value in text]
        found += [f"does not say {word!r}: {text}" for word in words if word not in str(error)]
        if len(str(error)) < 15:
            found.append(f"says too little: {text}")
        if getattr(error, "__notes__", []) or error.__cause__ or error.__context__:
            found.append(f"carries more than itself: {text}")
    except Exception as error:  # of a kind that says nothing to a user
        found.append(f"raises {type(error).__name__}: {error}")
    else:
        return ["is not refused"]
    found += [
        f"shows {value!r} in a warning" for value in SHOWN for one in heard if value in str(one)
    ]
    if state(estimator) != before:
        found.append(f"changes the estimator: {before} to {state(estimator)}")
    return found


def refused(entry: Entry, cases: dict[str, tuple[Any, ...]], *words: str) -> int:
    """Fit an estimator to every case; return how many there were."""
    estimator = entry.estimator(**({"ledger": Forbidden()} if entry.spends else {}))
    found = {
        name: wrong
        for name, data in cases.items()
        if (wrong := faults(lambda data=data: estimator.fit(*data), estimator, *words))
    }
    assert found == {}
    return len(cases)


def bad_tables(entry: Entry) -> dict[str, Any]:
    """Return tables that an estimator cannot be fitted to."""
    # One row can be clipped, but nothing else can be learned from it.
    left_out = TAKEN[entry.reads] if entry.spends else ("one row",)
    return {name: X for name, X in tables().items() if name not in left_out}


@quick("DPCoordinateDescentRegressor gram")
@every_estimator
def test_tables_that_cannot_be_fitted_are_refused_before_the_charge(entry):
    y = entry.y(GOOD)
    n_cases = refused(entry, {name: (X, y) for name, X in bad_tables(entry).items()})
    if entry.refuses_extremes and entry.spends:
        n_cases += refused(entry, {name: (X, y) for name, X in extremes().items()}, "Rescale X")
    assert n_cases >= 60 - len(TAKEN[entry.reads])


@each(ways([entry for entry in ENTRIES if entry.target]))
def test_targets_that_cannot_be_learned_are_refused_before_the_charge(entry):
    assert refused(entry, {name: (GOOD, y) for name, y in targets(entry.target).items()}) >= 40


@each(ways(PRIVATE))
def test_groups_that_cannot_be_read_are_refused_before_the_charge(entry):
    cases = {name: (GOOD, entry.y(GOOD), codes) for name, codes in groups().items()}
    assert refused(entry, cases, "groups") >= 15


@quick("BoundsClipper (-1.0, 1.0)")
@every_estimator
def test_bad_parameters_are_refused_before_the_charge_and_named(entry):
    y, n_cases, found = entry.y(GOOD), 0, {}
    for name, parameters in bad_parameters(entry):
        n_cases += 1
        ledger = {"ledger": Forbidden()} if entry.spends else {}
        estimator = entry.estimator(**{**ledger, **parameters})
        words = [] if name == "random_state" else [f"'{name}'"]
        wrong = faults(lambda estimator=estimator: estimator.fit(GOOD, y), estimator, *words)
        if wrong:
            found[f"{n_cases}: {str(parameters)[:80]}"] = wrong
    assert found == {}
    assert n_cases >= (60 if entry.spends else 20)


@quick(
    "DPRandomizedSearchCV DPPoissonRegressor",
    "DPLogisticCD 2",
    "DPStandardScaler",
    "DPTableVectorizer",
)
@each(ways(ENTRIES))
def test_a_refused_fit_leaves_an_earlier_one_as_it_was(entry):
    X = GOOD - GOOD.mean(axis=0)
    estimator = entry.estimator().fit(X, entry.y(X))
    for name, bad in list(bad_tables(entry).items())[::8]:
        assert faults(lambda bad=bad: estimator.fit(bad, entry.y(X)), estimator) == [], name
    assert faults(lambda: estimator.fit(X[:, :2], np.full(3, NAME)), estimator) == [] or not (
        entry.target
    )


@pytest.mark.slow
@each(ways(ENTRIES))
def test_methods_of_a_fitted_estimator_quote_neither_training_data_nor_what_they_get(entry):
    X, y = GOOD[:, [1, 0, 2]], entry.y(GOOD)
    # Of these rows labels are rare: the kind of a column is that of the categories that are known.
    labels = entry.reads == "labels"
    known = {"categories": [np.sort(column) for column in X.T]} if labels else {}
    estimator = entry.estimator(**known).fit(X, y)
    found = {}
    for method in ("predict", "transform", "inverse_transform", "mahalanobis", "score"):
        if not hasattr(estimator, method):
            continue
        for name, bad in tables().items():
            if name in ("no rows", "one row") or name.startswith("frame: names"):
                continue  # may be predicted, or is none of the method's business
            if entry.reads_sparse and name in ("sparse", "sparse array"):
                continue
            call = getattr(estimator, method)
            given = (bad, entry.y(GOOD)) if method == "score" else (bad,)
            wrong = faults(lambda call=call, given=given: call(*given), estimator)
            if name in TAKEN[entry.reads] and method == "transform":
                wrong = [one for one in wrong if one != "is not refused"]
            if wrong:
                found[f"{method} of {name}"] = wrong
    assert found == {}


@each(ways([entry for entry in ENTRIES if entry.target]))
def test_scores_do_not_quote_targets(entry):
    X = GOOD - GOOD.mean(axis=0)
    estimator = entry.estimator().fit(X, entry.y(X))
    n_refused = 0
    for name, y in targets(entry.target).items():
        found = faults(lambda y=y: estimator.score(X, y), estimator)
        assert found in ([], ["is not refused"]), name  # some can be compared with predictions
        n_refused += not found
    assert n_refused >= 20
    assert estimator.score(X, entry.y(X), sample_weight=None) <= 1.0
    found = faults(lambda: estimator.score(X, entry.y(X), [NAME] * len(X)), estimator)
    assert found == []


QUOTED = TransformedTargetRegressor(DPCoordinateDescentRegressor(), check_inverse=False)


@quick("accuracy")
@pytest.mark.parametrize(
    ("search", "kind"),
    [
        (DPGridSearchCV(DPLogisticCD(n_passes=1), {}, scoring="accuracy"), "labels"),
        (DPGridSearchCV(DPLogisticCD(n_passes=1), {}, scoring="neg_log_loss"), "labels"),
        (DPGridSearchCV(DPCoordinateDescentRegressor(), {}, scoring="r2"), "numbers"),
        (DPGridSearchCV(QUOTED, {}), "numbers"),
    ],
    ids=["accuracy", "neg_log_loss", "r2", "another target"],
)
def test_scores_by_scikit_learn_do_not_quote_targets(search, kind):
    X = GOOD - GOOD.mean(axis=0)
    estimator = search.fit(X, TARGETS[kind].of(X[:, 0]))
    for name, y in targets(kind).items():
        found = faults(lambda y=y: estimator.score(X, y), estimator)
        assert found in ([], ["is not refused"]), name


@quick(
    "DPGridSearchCV DPLogisticCD",
    "DPTableVectorizer",
    "DPLogisticCD 2",
    "DPSimpleImputer",
    "DPPipeline",
)
@each(ways(ENTRIES))
def test_no_weights_are_accepted_everywhere(entry):
    X = GOOD - GOOD.mean(axis=0)
    y = entry.y(X)
    entry.estimator().fit(X, y, sample_weight=None)
    if hasattr(entry.estimator(), "transform"):
        entry.estimator().fit_transform(X, y, sample_weight=None)
    if hasattr(entry.make, "score"):
        entry.estimator().fit(X, y).score(X, y, sample_weight=None)
    step = entry.make.__name__.lower()
    pipeline = make_pipeline(clone(entry.estimator()))
    pipeline.fit(X, y, **{f"{step}__sample_weight": None})
    ledger = {"ledger": Forbidden()} if entry.spends else {}
    for weights in (np.ones(len(X)), 1.0, [], NAME):
        estimator = entry.estimator(**ledger)
        fit = {"sample_weight": weights}
        assert faults(lambda e=estimator, fit=fit: e.fit(X, y, **fit), estimator) == []
        assert faults(lambda e=estimator: e.fit(X, y, weights=None), estimator, "weights") == []


def test_members_of_a_vote_whose_labels_are_encoded_are_told_so():
    labels = np.where(GOOD[:, 0] > 0.0, "yes", "no")
    member = DPLogisticCD(classes=["no", "yes"], ledger=Forbidden())
    vote = VotingClassifier([("one", member)])
    with pytest.raises(ValueError, match=r"'classes'.*VotingClassifier.*encoded as 0, 1"):
        vote.fit(GOOD, labels)


def test_more_classes_or_columns_than_memory_bears_are_refused_before_the_charge(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 1000)  # a machine of one megabyte
    X, y = np.random.default_rng(0).normal(size=(2000, 2)), np.arange(2000) % 1000
    for estimator, data in (
        (DPLogisticCD(ledger=Forbidden()), (X, y)),
        (DPPCA(ledger=Forbidden()), (np.ones((2, 400)),)),
    ):
        with pytest.raises(MemoryError, match=r"memory for .*, and this machine has"):
            estimator.fit(*data)


def test_more_rows_than_64_bits_bear_are_refused_by_the_product_with_epsilon():
    X = np.ones((2**18, 1), dtype=np.float32)
    with pytest.raises(ValueError, match=r"'epsilon' .* too large for 262144 rows"):
        DPStandardScaler(epsilon=9e7, ledger=Forbidden()).fit(X)
    with pytest.raises(ValueError, match=r"at most 1073741824 rows"):
        check_size(DPStandardScaler(), 2**30 + 1, 1)
    growing = DPLogisticCD(budget_growth=1.99, n_passes=20, ledger=Forbidden())
    with pytest.raises(ValueError, match=r"'budget_growth' .* too far apart for 262144 rows"):
        growing.fit(X, np.arange(2**18) % 2)


def test_the_checks_see_what_they_look_for():
    class Careless:
        def fit(self, X, y):
            try:
                float(NAME)
            except ValueError as error:
                raise ValueError(f"bad value {SECRET}") from error

        def fit_and_keep(self):
            self.seen = 1
            raise ValueError("a text that is long enough")

        def fail(self):
            raise KeyError("a text that is long enough")

    estimator = Careless()
    shown = faults(lambda: estimator.fit(0, 0), estimator, "'X'")
    assert len(shown) == 4
    assert faults(estimator.fit_and_keep, estimator) != []
    assert "KeyError" in faults(estimator.fail, estimator)[0]
    assert faults(lambda: None, estimator) == ["is not refused"]
    assert len(PRIVATE) >= 11
    assert isinstance(tables()["a series"], pd.Series)
