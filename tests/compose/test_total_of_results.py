"""Whatever states what it cost is counted in a total, and what cannot be counted is refused."""

from __future__ import annotations

import datetime
import io
import pickle
import weakref
from collections import deque
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdpnoise.metrics
import skdpnoise.queries
from skdpnoise import (
    DPGridSearchCV,
    DPLogisticCD,
    DPPipeline,
    DPStandardScaler,
    PrivacyGuarantee,
    PrivacyLedger,
    total_guarantee,
)
from skdpnoise.base.costs import carries_loss, hides
from skdpnoise.compose import UnpaidStepError
from skdpnoise.metrics import PrivateScore, private_accuracy_score
from skdpnoise.model_selection import dp_cross_validate
from skdpnoise.privacy import GaussianLoss, PureLoss
from skdpnoise.queries import Moments, noisy_histogram, private_argmax, private_mean
from tests._cases import each_value, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),
]

X = np.random.default_rng(0).uniform(0.0, 1.0, size=(400, 2))
COLUMN = X[:, 0].copy()
Y = (COLUMN > 0.5).astype(int)
CHANCE = np.column_stack([1.0 - COLUMN, COLUMN])
LAPLACE = {"noise": "iid_laplace"}  # "auto" compares all families, which takes a while
Q, M = skdpnoise.queries, skdpnoise.metrics
PURE, APPROXIMATE = PrivacyGuarantee(0.5), PrivacyGuarantee(0.5, 1e-6)


class Book:
    """A ledger that keeps the losses themselves."""

    dataset = "rows"

    def __init__(self):
        self.costs, self.stated = [], []

    def charge(self, label, cost, *, guarantee=None, **facts):
        self.costs.append(cost)
        self.stated += [] if guarantee is None else [guarantee]

    def __deepcopy__(self, memo):
        return self

    def __sklearn_clone__(self):
        return self


QUERIES = {
    "private_count": lambda g, **k: Q.private_count(COLUMN > 0.5, g, **LAPLACE, **k),
    "private_sum": lambda g, **k: Q.private_sum(X, 0.0, 1.0, g, **LAPLACE, **k),
    "private_mean": lambda g, **k: private_mean(X, 0.0, 1.0, g, **LAPLACE, **k),
    "private_histogram": lambda g, **k: Q.private_histogram(
        ["a", "b"] * 9, g, categories=["a", "b"], **LAPLACE, **k
    ),
    "private_moments": lambda g, **k: Q.private_moments(X, g, **k),
    "private_quantiles": lambda g, **k: Q.private_quantiles(X, [0.5], g, **k),
    "private_location_scale": lambda g, **k: Q.private_location_scale(X, g, **k),
    "private_categories": lambda g, **k: Q.private_categories(["a", "b"] * 90, APPROXIMATE, **k),
}
GAPS = np.where(COLUMN > 0.9, np.nan, COLUMN)
SKIPPING = {
    "private_count": lambda g, **k: Q.private_count(GAPS, g, missing="skip", **k),
    "private_sum": lambda g, **k: Q.private_sum(GAPS, 0.0, 1.0, g, missing="skip", **k),
    "private_mean": lambda g, **k: private_mean(GAPS, 0.0, 1.0, g, missing="skip", **k),
    "private_quantiles": lambda g, **k: Q.private_quantiles(GAPS, [0.5], g, missing=True, **k),
}
BARE = {"noisy_histogram", "private_norm_quantile", "private_argmax"}  # numbers and mechanisms
BOUNDS = {"target_bounds": (0.0, 1.0)}
SCORES = {
    "private_accuracy_score": lambda g, **k: private_accuracy_score(Y, Y, g, **k),
    "private_balanced_accuracy_score": lambda g, **k: M.private_balanced_accuracy_score(
        Y, Y, g, labels=[0, 1], **k
    ),
    "private_confusion_matrix": lambda g, **k: M.private_confusion_matrix(
        Y, Y, g, labels=[0, 1], **k
    ),
    "private_log_loss": lambda g, **k: M.private_log_loss(Y, CHANCE, g, labels=[0, 1], **k),
    "private_mean_absolute_error": lambda g, **k: M.private_mean_absolute_error(
        COLUMN, COLUMN, g, **BOUNDS, **k
    ),
    "private_root_mean_squared_error": lambda g, **k: M.private_root_mean_squared_error(
        COLUMN, COLUMN, g, **BOUNDS, **k
    ),
    "private_r2_score": lambda g, **k: M.private_r2_score(COLUMN, COLUMN, g, **BOUNDS, **k),
    "private_roc_auc_score": lambda g, **k: M.private_roc_auc_score(Y, COLUMN, g, **k),
    "private_roc_curve": lambda g, **k: M.private_roc_curve(Y, COLUMN, g, **k),
    "private_calibration_curve": lambda g, **k: M.private_calibration_curve(Y, COLUMN, g, **k),
}


def test_every_query_and_score_is_here():
    for module, known in ((Q, {*QUERIES, *BARE}), (M, set(SCORES))):
        assert known == {n for n in module.__all__ if n.startswith(("private_", "noisy_"))}


def model(**parameters):
    return DPLogisticCD(feature_bounds=(0.0, 1.0), n_passes=1, classes=[0, 1], **parameters)


def _pipeline(guarantee, ledger):
    steps = [("scale", DPStandardScaler(feature_bounds=(0.0, 1.0))), ("model", model())]
    terms = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "ledger": ledger}
    return DPPipeline(steps, **terms).fit(X, Y)


def _search(guarantee, ledger):
    terms = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "ledger": ledger}
    return DPGridSearchCV(model(), {"alpha": [0.0, 0.1]}, **terms).fit(X, Y)


def _cross_validation(guarantee, ledger):
    terms = {"epsilon": guarantee.epsilon, "delta": guarantee.delta, "ledger": ledger}
    return dp_cross_validate(model(), X, Y, cv=3, return_estimator=True, **terms)


def _model(guarantee, ledger):
    return model(epsilon=guarantee.epsilon, delta=guarantee.delta, ledger=ledger).fit(X, Y)


FITS = {
    "model": _model,
    "report": lambda g, ledger: _model(g, ledger).privacy_,
    "total": lambda g, ledger: total_guarantee(_model(g, ledger)),
    "pipeline": _pipeline,
    "search": _search,
    "cross-validation": _cross_validation,
}
RESULTS = {**QUERIES, **SCORES, **FITS}


def never_less(total, book):
    """Check that a total is no less, anywhere, than what a ledger was charged."""
    assert book.costs
    charged = reduce(add, book.costs)
    for epsilon in (0.0, 0.1, 0.25, 0.4, 0.5, 1.0, 2.0, 5.0):
        assert total.loss.delta(epsilon) >= charged.delta(epsilon) * (1.0 - 1e-9) - 1e-15


@quick("search", "private_mean", "private_histogram", "report", "private_accuracy_score")
@each_value(1)
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("guarantee", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_a_result_counts_what_a_ledger_was_charged_for_it(name, guarantee):
    book = Book()
    total = total_guarantee(RESULTS[name](guarantee, ledger=book))
    never_less(total, book)
    assert (total.basic.epsilon, total.basic.delta) == book.stated[0]
    assert len(book.stated) == len(total.steps) == 1


def test_a_total_says_that_a_seed_was_set_and_what_a_partial_function_holds():
    seeded = private_mean(COLUMN, 0.0, 1.0, PURE, random_state=0)
    assert str(total_guarantee(seeded)).startswith("NOT PRIVATE")
    assert not str(total_guarantee(private_mean(COLUMN, 0.0, 1.0, PURE))).startswith("NOT PRIVATE")
    for held in (partial(print, seeded), partial(print, sep=seeded), partial(seeded.__str__)):
        assert carries_loss(held)
    assert not carries_loss(partial(print, 1.0))


@each_value(1)
@pytest.mark.parametrize("name", SKIPPING)
@pytest.mark.parametrize("guarantee", [PURE, APPROXIMATE], ids=["pure", "approximate"])
def test_what_leaves_out_missing_values_is_counted_too(name, guarantee):
    book = Book()
    total = total_guarantee(SKIPPING[name](guarantee, ledger=book))
    never_less(total, book)
    assert (total.basic.epsilon, total.basic.delta) == book.stated[0]


@quick("private_sum", "private_mean", "private_histogram", "gaussian", "private_accuracy_score")
@each_value(1)
@pytest.mark.parametrize("name", [*QUERIES, *SCORES])
@pytest.mark.parametrize("loss", [PureLoss(0.5), GaussianLoss(0.3)], ids=["pure", "gaussian"])
def test_so_does_what_was_asked_for_by_a_loss(name, loss):
    if name == "private_categories":
        pytest.skip("it takes guarantees only")
    book = Book()
    terms = {"adjacency": "add_remove"}
    if name == "private_location_scale":
        terms["n_samples"] = 400.0
    try:
        result = RESULTS[name](loss, ledger=book, **terms)
    except ValueError:  # Laplace noise for a Gaussian loss
        assert isinstance(loss, GaussianLoss)
        assert not book.costs
        return
    total = total_guarantee(result)
    never_less(total, book)
    assert total.steps[0][1].guarantee.adjacency == "add_remove"


@dataclass
class Drawn:
    """Somebody's display, which holds what it drew."""

    curve: Any


@pytest.mark.slow
def test_all_of_them_count_in_lists_in_tuples_and_in_dicts_however_deep():
    book = Book()
    made = {name: one(APPROXIMATE, ledger=book) for name, one in RESULTS.items()}
    listed = [list(made.values())[:9], {"rest": (list(made.values())[9:],)}]
    flat = total_guarantee(*made.values())
    for nested in (total_guarantee(listed), total_guarantee(*listed), total_guarantee(made)):
        assert len(nested.steps) == len(made)
        assert nested.basic.epsilon == pytest.approx(0.5 * len(made))
        assert nested.epsilon == pytest.approx(flat.epsilon)
    never_less(flat, book)


def test_vouching_for_what_carries_a_loss_takes_nothing_away():
    score = private_accuracy_score(Y, Y, PrivacyGuarantee(5.0))
    folds = dp_cross_validate(model(), X, Y, epsilon=8.0, delta=0.0, cv=2)
    fitted = model(epsilon=1.0, delta=0.0).fit(X, Y)
    plain = total_guarantee(fitted, score, folds)
    vouched = total_guarantee(fitted, score, folds, public=["1", "2", "3"])
    assert plain.epsilon == vouched.epsilon == 14.0
    assert vouched.declared == ()


class Renamed(DPLogisticCD):
    """Of a class that nobody has registered."""


SPENT = {
    "mechanism": lambda: noisy_histogram([5, 9], PURE)[1],
    "choice": lambda: private_argmax([9.0, 4.0], PURE)[1],
    "loss": lambda: PureLoss(5.0),
    "guarantee": lambda: PrivacyGuarantee(5.0),
    "ledger": lambda: PrivacyLedger("rows", 1.0, 1e-6, storage="memory"),
    "ledger's total": lambda: PrivacyLedger("rows", 1.0, 1e-6, storage="memory").total(),
    "display": lambda: Drawn(RESULTS["private_roc_curve"](PURE)),
    "array of scores": lambda: np.array([private_accuracy_score(Y, Y, PURE)], dtype=object),
    "unknown class": lambda: Renamed(feature_bounds=(0, 1), n_passes=1, classes=[0, 1]).fit(X, Y),
    "no neighbours": lambda: Moments(*[np.zeros(1)] * 4, 3.0, privacy=PureLoss(5.0)),
}


@quick("choice", "display", "mechanism", "no neighbours", "ledger")
@pytest.mark.parametrize("name", SPENT)
def test_what_carries_a_loss_and_cannot_be_counted_is_refused_also_if_somebody_vouches(name):
    fitted, spent = model().fit(X, Y), SPENT[name]()
    for public in ((), ("2",)):
        with pytest.raises(UnpaidStepError, match=rf"'2' \({type(spent).__name__}\)") as refusal:
            total_guarantee(fitted, spent, public=public)
        assert "list its name in 'public'" not in str(refusal.value)


def test_who_vouches_for_a_plain_number_is_believed_and_the_report_says_so():
    fitted = model(delta=0.0).fit(X, Y)
    for number in (0.7, Q.private_norm_quantile(COLUMN, 0.9, PURE), np.ones(3)):
        with pytest.raises(UnpaidStepError, match=r"'2' \(.*does not say what it cost") as refusal:
            total_guarantee(fitted, number)
        assert "'public'" not in str(refusal.value)  # which would take what a query cost away
    total = total_guarantee(fitted, 0.7, public=["2"])
    assert (total.epsilon, total.declared) == (1.0, ("2",))
    assert not any(map(carries_loss, (0.7, "text", X, [1, (2,)], {"a": None}, PrivateScore)))


def test_a_total_within_a_total_keeps_what_was_declared():
    total = total_guarantee(model().fit(X, Y), 0.7, public=["2"])
    again = total_guarantee(total, private_mean(COLUMN, 0.0, 1.0, PURE))
    assert again.declared == ("1__2",)
    assert [name for name, _ in again.steps] == ["1__1", "2"]


def test_a_model_of_a_cross_validation_that_was_fitted_again_counts_beside_it():
    folds = _cross_validation(APPROXIMATE, None)
    folds.estimator[0].set_params(epsilon=2.0).fit(X, Y)
    total = total_guarantee(folds)
    assert [report.guarantee.epsilon for _, report in total.steps] == [0.5, 2.0]


def test_records_that_come_and_go_and_records_that_are_replaced_do_not_add():
    with pytest.raises(ValueError, match="one adjacency"):
        total_guarantee(
            private_mean(COLUMN, 0.0, 1.0, PURE),
            private_mean(COLUMN, 0.0, 1.0, PrivacyGuarantee(0.5, adjacency="add_remove")),
        )


def test_collections_of_every_kind_are_counted():
    first, second = model(delta=0.0).fit(X, Y), model(delta=0.0).fit(X, Y)
    expected = total_guarantee(first, second).epsilon
    for some in ({"m": second}.values(), iter([second]), deque([second]), map(copy, [second])):
        assert total_guarantee(first, some).epsilon == expected
        assert total_guarantee(first, {"m": second}.values()).epsilon == expected


FITTED = model(delta=0.0, random_state=0).fit(X, Y)


class Slots:
    """Somebody's object without a dictionary."""

    __slots__ = ("__weakref__", "kept")

    def __init__(self, kept):
        self.kept = kept


class Inner(Slots):
    __slots__ = ("also",)

    def __init__(self, kept):
        super().__init__(None)
        self.also = kept


class OfClass:
    """A class of which all objects hold a fitted model."""

    kept = FITTED


class Calls:
    """A method of it names a fitted model."""

    def predict(self, rows):
        return FITTED.predict(rows)


def by_name(rows):
    return FITTED.predict(rows)


def by_default(rows, kept=FITTED):
    return kept.predict(rows)


def by_name_within(rows):
    return [(lambda: FITTED.predict(row))() for row in rows]


@lru_cache
def kept_answers(rows):
    return rows


def answers(kept):
    yield kept


def with_attributes(kept):
    frame = pd.DataFrame({"a": [1.0]})
    frame.attrs["kept"] = kept
    return frame


def nested(kept):
    for _ in range(20):
        kept = [kept]
    return kept


HIDING = {
    "slots": Slots,
    "slots of a subclass": Inner,
    "dict": lambda kept: Drawn({"a": (1, kept)}),
    "key": lambda kept: Drawn({(kept, 1): 1}),
    "set": lambda kept: Drawn(frozenset([kept])),
    "list in lists": lambda kept: Drawn(nested(kept)),
    "class": lambda kept: OfClass(),
    "the class itself": lambda kept: OfClass,
    "method of a class": lambda kept: Calls(),
    "bound method": lambda kept: kept.predict,
    "bound method of a list": lambda kept: [kept].append,
    "closure": lambda kept: lambda rows: kept.predict(rows),
    "global name": lambda kept: by_name,
    "global name in a function within": lambda kept: by_name_within,
    "default": lambda kept: by_default,
    "partial": lambda kept: partial(kept.predict, X),
    "transformer": lambda kept: FunctionTransformer(by_name),
    "array of objects": lambda kept: Drawn(np.array([[kept, 1]], dtype=object)),
    "frame": lambda kept: pd.DataFrame({"a": pd.Series([kept], dtype=object)}),
    "attributes of a frame": with_attributes,
    "column": lambda kept: pl.DataFrame({"a": pl.Series([kept], dtype=pl.Object)}),
    "weak reference": weakref.ref,
    "weak proxy": lambda kept: Drawn(weakref.proxy(kept)),
    "weak dict": lambda kept: Drawn(weakref.WeakValueDictionary({1: kept})),
    "bytes": pickle.dumps,
    "bytes in a list": lambda kept: Drawn([bytearray(pickle.dumps(kept))]),
    "bytes in an array": lambda kept: np.array([pickle.dumps(kept)]),
    "bytes in a frame": lambda kept: pd.DataFrame({"a": [pickle.dumps(kept)]}),
    "bytes of polars": lambda kept: pl.DataFrame({"a": [pickle.dumps(kept)]}),
    "bytes of Arrow": lambda kept: pa.table({"a": [pickle.dumps(kept)]}),
    "buffer": lambda kept: io.BytesIO(pickle.dumps(kept)),
    "generator": lambda kept: Drawn(answers(kept)),
    "cache": lambda kept: kept_answers,
}


@pytest.mark.parametrize("name", HIDING)
def test_nobody_vouches_for_what_hides_a_model(name):
    hidden = HIDING[name](FITTED)
    match = rf"'2' \({type(hidden).__name__}\)|'2__\d+' \(bytes\)"  # whose lines are listed
    with pytest.raises(UnpaidStepError, match=match) as refusal:
        total_guarantee(FITTED, hidden, public=["2"])
    assert "list its name in 'public'" not in str(refusal.value)


def logarithms(rows):
    return np.log1p(rows)


TABLE = pd.DataFrame({"a": ["x", None], "b": pd.to_datetime(["2020-01-01"] * 2), "c": [1, 2]})
PLAIN = {
    "numbers": [0.5, np.float64(1.0), 2, True, None, Decimal(1), 1j],
    "array": X,
    "records": np.zeros(2, dtype=[("a", "f8")]),
    "dates": [datetime.date(2020, 1, 1), pd.Timestamp("2020-01-01"), pd.NaT],
    "frame": TABLE.assign(d=TABLE["a"].astype("category"), e=TABLE["c"].astype("Int64")),
    "polars": pl.DataFrame({"a": ["x"], "b": [1.5]}),
    "Arrow": pa.table({"a": ["x"]}),
    "function": logarithms,
    "ufunc": np.log1p,
    "object": Slots({"a": range(3)}),
    "sparse": csr_array(np.eye(3)),
    "generators": [np.random.default_rng(0), np.random.RandomState(0)],
    "scaler": StandardScaler().fit(X),
    "steps": make_pipeline(StandardScaler(), FunctionTransformer(logarithms)).fit(X),
}


@pytest.mark.parametrize("name", PLAIN)
def test_who_vouches_for_plain_values_and_for_what_holds_them_is_believed(name):
    held = Drawn(PLAIN[name])
    assert (carries_loss(held), hides(held)) == (False, None)
    assert total_guarantee(FITTED, held, public=["2"]).declared == ("2",)
