"""Queries of rows in parts: the same bits as of all rows, the same refusals, one charge."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skdpnoise.data import scan_batches
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.queries import (
    private_categories,
    private_count,
    private_histogram,
    private_location_scale,
    private_mean,
    private_moments,
    private_norm_quantile,
    private_quantiles,
    private_sum,
)
from tests._cases import each_value
from tests._same_bits import COUNTS, WAYS, by_way, in_parts, source_of

N = 900
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(5.0, 2.0, N), "b": RNG.exponential(3.0, N)})
MIXED = FRAME.assign(
    n=RNG.integers(0, 4, N), word=RNG.choice(["x", "y", "z"], N), mask=RNG.random(N) < 0.3
)
MIXED["some"] = MIXED["n"].where(RNG.random(N) < 0.999)  # whole numbers in most of the parts

BOUNDS = {"low": -1.0, "high": 9.0}
SEED = {"random_state": 0}
NUMBERS = {
    "private_sum": lambda X, g: private_sum(X, guarantee=g, **BOUNDS, **SEED),
    "private_mean": lambda X, g: private_mean(X, guarantee=g, **BOUNDS, **SEED),
    "private_location_scale": lambda X, g: private_location_scale(X, g, n_samples=N, **SEED),
    "private_quantiles": lambda X, g: private_quantiles(X, [0.1, 0.5], g, **SEED),
    "private_moments": lambda X, g: private_moments(X, g, **SEED),
}
COLUMNS = {
    "private_count": (["mask"], lambda y, g: private_count(y, g, **SEED)),
    "private_sum": (["a", "n"], lambda y, g: private_sum(y, guarantee=g, **BOUNDS, **SEED)),
    "private_mean": (["a"], lambda y, g: private_mean(y, guarantee=g, **BOUNDS, **SEED)),
    "bins": (["a", "n"], lambda y, g: private_histogram(y, g, bins=[0, 2, 5], **SEED)),
    "categories": (
        ["word", "some"],
        lambda y, g: private_histogram(y, g, categories=["x", "y", 2], **SEED),
    ),
    "private_categories": (
        ["word", "n", "some", "mask"],
        lambda y, g: private_categories(y, g, **SEED),
    ),
    "private_quantiles": (
        ["some", "b"],
        lambda y, g: private_quantiles(y, [0.5], g, missing=True, **SEED),
    ),
    "private_norm_quantile": (
        ["b"],
        lambda y, g: private_norm_quantile(y, 0.9, g, n_samples=N, **SEED),
    ),
}
RELATIONS = ["replace_one", "add_remove"]
CASES = [(name, column) for name, (columns, _) in COLUMNS.items() for column in columns]


def numbers(found):
    """Return all that a query found, as text that shows every bit."""
    if isinstance(found, float):
        return repr(found)
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    fields.pop("mechanism", None)
    return repr({name: _listed(value) for name, value in fields.items()})


def _listed(value):
    if isinstance(value, tuple):
        return [_listed(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NUMBERS)
def test_tables_in_parts_give_the_same_bits(name, relation, tmp_path):
    guarantee, ask = PrivacyGuarantee(1.0, 1e-6, adjacency=relation), NUMBERS[name]
    expected = numbers(ask(FRAME.to_numpy(), guarantee))
    sources = [in_parts(FRAME, n_parts) for n_parts in COUNTS]
    sources += [in_parts(FRAME.to_numpy(), 3), *(by_way(way, FRAME, tmp_path) for way in WAYS)]
    for source in sources:
        assert numbers(ask(source, guarantee)) == expected


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("name", "column"), CASES)
def test_columns_in_parts_give_the_same_bits(name, column, relation, tmp_path):
    guarantee, (_, ask) = PrivacyGuarantee(1.0, 1e-6, adjacency=relation), COLUMNS[name]
    expected = numbers(ask(MIXED[column], guarantee))
    tables = [in_parts(MIXED, n_parts) for n_parts in COUNTS]
    tables += [by_way(way, MIXED, tmp_path) for way in ("parquet", "dask frame")]
    for table in tables:
        assert numbers(ask(table[column], guarantee)) == expected


@pytest.mark.slow
def test_categories_of_several_columns_come_from_one_release():
    guarantee, columns = PrivacyGuarantee(1.0, 1e-6), ["word", "n", "some"]
    expected = private_categories(MIXED[columns], guarantee, **SEED)
    assert [len(one) for one in expected.categories] == [3, 4, 4]
    for n_parts in COUNTS:
        found = private_categories(in_parts(MIXED, n_parts)[columns], guarantee, **SEED)
        assert numbers(found) == numbers(expected)


def test_values_can_be_made_from_columns():
    guarantee, rows = PrivacyGuarantee(1.0, 1e-6), in_parts(MIXED, 7)
    found = private_count(rows["a"].map(_above_five), guarantee, **SEED)
    assert found.value == private_count(MIXED["a"] > 5.0, guarantee, **SEED).value
    norms = rows[["a", "b"]].map(_norms)
    radius = private_norm_quantile(norms, 0.5, guarantee, **SEED)
    assert radius == private_norm_quantile(_norms(MIXED[["a", "b"]]), 0.5, guarantee, **SEED)


def _above_five(values):
    return values > 5.0


def _norms(rows):
    return np.linalg.norm(rows.to_numpy(), axis=1)


EMPTY = {
    "private_count": (bool, lambda y, g: private_count(y, g, **SEED)),
    "private_sum": (float, lambda y, g: private_sum(y, guarantee=g, **BOUNDS, **SEED)),
    "private_mean": (float, lambda y, g: private_mean(y, guarantee=g, **BOUNDS, **SEED)),
    "bins": (float, lambda y, g: private_histogram(y, g, bins=[0, 2, 5], **SEED)),
    "categories": (object, lambda y, g: private_histogram(y, g, categories=["x"], **SEED)),
    "private_categories": (object, lambda y, g: private_categories(y, g, **SEED)),
}


@pytest.mark.parametrize("name", EMPTY)
def test_of_no_rows_is_asked_what_is_asked_of_an_empty_array(name):
    kind, ask = EMPTY[name]
    nothing = pd.DataFrame({"y": np.zeros(0, dtype=kind)})
    rows = scan_batches([lambda: [nothing], lambda: [nothing]])
    guarantee = PrivacyGuarantee(1.0, 1e-6, adjacency="add_remove")
    expected = numbers(ask(nothing["y"], guarantee))
    assert numbers(ask(rows["y"], guarantee)) == expected


def test_parts_without_rows_change_nothing():
    parts = [FRAME[:0], FRAME[:300], FRAME[300:300], FRAME[300:]]
    guarantee = PrivacyGuarantee(1.0, 1e-6)
    for name, ask in NUMBERS.items():
        assert numbers(ask(source_of(parts), guarantee)) == numbers(ask(FRAME, guarantee)), name
    labels = source_of([MIXED[:0], MIXED[:300], MIXED[300:]])["word"]
    expected = numbers(private_categories(MIXED["word"], guarantee, **SEED))
    assert numbers(private_categories(labels, guarantee, **SEED)) == expected


class Book:
    """Writes charges down."""

    def __init__(self):
        self.lines = []

    def charge(self, label, cost, **facts):
        self.lines.append(label)


def spoiled(column, value):
    """Return a column whose last value is another one."""
    found = MIXED[[column]].copy()
    found.iloc[-1, 0] = value
    return found


PURE = PrivacyGuarantee(0.5)
REFUSED = {
    "private_count": (MIXED[["n"]], lambda y, **k: private_count(y, PURE, **k)),
    "private_sum": (spoiled("a", np.nan), lambda y, **k: private_sum(y, 0.0, 1.0, PURE, **k)),
    "private_mean": (spoiled("a", np.inf), lambda y, **k: private_mean(y, 0.0, 1.0, PURE, **k)),
    "text": (MIXED[["word"]], lambda y, **k: private_mean(y, 0.0, 1.0, PURE, **k)),
    "private_histogram": (
        spoiled("a", np.nan),
        lambda y, **k: private_histogram(y, PURE, bins=[0, 1], **k),
    ),
    "private_quantiles": (
        spoiled("b", np.nan),
        lambda y, **k: private_quantiles(y, 0.5, PURE, **k),
    ),
    "private_moments": (spoiled("b", np.nan), lambda y, **k: private_moments(y, PURE, **k)),
    "private_location_scale": (
        MIXED[["a"]],
        lambda y, **k: private_location_scale(y, PURE, **k),
    ),
    "private_norm_quantile": (
        spoiled("b", -7.25),
        lambda y, **k: private_norm_quantile(y, 0.5, PURE, **k),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_of_all_rows_is_refused_of_parts_and_not_charged(name):
    frame, ask = REFUSED[name]
    (column,), book = frame.columns, Book()
    with pytest.raises((TypeError, ValueError)) as whole:
        ask(frame[column])
    with pytest.raises(type(whole.value)) as found:
        ask(in_parts(frame, 7)[column], ledger=book)
    assert book.lines == []
    assert str(found.value).split("Got")[0] == str(whole.value).split("Got")[0]
    assert "7" not in str(found.value)
    assert found.value.__context__ is None
    assert found.value.__cause__ is None


def test_parts_with_other_columns_are_refused():
    uneven = source_of([FRAME[:300], FRAME[300:]]).map(_wider_at_the_end, 2)
    for ask in (*NUMBERS.values(), lambda X, g: private_categories(X, g)):
        with pytest.raises(ValueError, match="same columns in all partitions"):
            ask(uneven, PrivacyGuarantee(1.0, 1e-6))


def _wider_at_the_end(rows):
    return rows.assign(c=1.0) if rows.index[0] >= 300 else rows


@pytest.mark.usefixtures("the_same_words")
def test_a_ledger_is_charged_once_and_before_the_second_pass():
    passes = []

    def read(part):
        passes.append(list(book.lines))
        return [part]

    parts = [FRAME[:400], FRAME[400:]]
    for name, ask in {
        "private_sum": lambda X, k: private_sum(X, guarantee=PURE, **BOUNDS, ledger=k),
        "private_quantiles": lambda X, k: private_quantiles(X, [0.5], PURE, ledger=k),
        "private_moments": lambda X, k: private_moments(X, PURE, ledger=k),
    }.items():
        book = Book()
        source = scan_batches([partial(read, part) for part in parts])
        passes.clear()
        ask(source, book)
        assert book.lines == [name]
        assert passes[:2] == [[], []]  # the first look, at both
        assert len(passes) > 2
        assert all(lines == [name] for lines in passes[2:])
