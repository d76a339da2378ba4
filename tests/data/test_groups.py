"""Rows of a group are chosen exactly uniformly, and independently of other groups."""

from __future__ import annotations

import pickle
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdpnoise.data.groups import Groups, choose_rows, group_codes
from skdpnoise.data.table import InMemory
from skdpnoise.sampling import SeededWords
from tests._cases import each_value, quick
from tests._statistics import FALSE_ALARM, uniform_pvalue


def chosen_by(codes, most, words):
    """Choose rows by the next words of a stream."""
    return choose_rows(codes, most, lambda rows: words.take(rows.size))


class Script:
    """Words that are known beforehand, and how many were taken."""

    secure = False

    def __init__(self, *words):
        self.rng, self.taken = list(words), 0

    def take(self, n):
        self.taken += n
        taken, self.rng = self.rng[:n], self.rng[n:]
        assert len(taken) == n
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("most", [1, 2])
def test_all_choices_are_equally_likely_and_independent_between_groups(most):
    # Every order of five distinct words is equally likely.
    codes, drawn = np.array([0, 1, 0, 2, 1, 0, 1]), Counter()
    small = {3}
    words = list(permutations(range(6)))
    for script in words:
        drawn[tuple(chosen_by(codes, most, Script(*script)).tolist())] += Fraction(1, len(words))
    expected = {
        tuple(sorted({*first, *second} | small))
        for first, second in product(combinations([0, 2, 5], most), combinations([1, 4, 6], most))
    }
    assert drawn == {rows: Fraction(1, comb(3, most) ** 2) for rows in expected}


def test_what_is_kept_of_a_group_does_not_depend_on_other_groups():
    alone, codes = Counter(), np.array([0, 0, 0])
    for script in permutations(range(3)):
        alone[tuple(chosen_by(codes, 2, Script(*script)).tolist())] += Fraction(1, 6)
    beside = Counter()
    codes = np.array([0, 0, 0, 1, 1, 1])
    for script in permutations(range(6)):
        rows = chosen_by(codes, 2, Script(*script))
        beside[tuple(rows[rows < 3].tolist())] += Fraction(1, 720)
    assert beside == alone


def test_groups_with_equal_words_draw_again_and_others_do_not():
    codes = np.array([0, 0, 0, 1, 1])
    words = Script(5, 5, 9, 1, 2, 7, 8, 3)
    assert chosen_by(codes, 1, words).tolist() == [2, 3]
    assert words.taken == 5 + 3
    again = Script(5, 5, 9, 1, 2, 7, 7, 3, 2, 3, 4)
    assert chosen_by(codes, 1, again).tolist() == [0, 3]


class TwoBits:
    """Words with so few values that most groups draw several times."""

    secure = False

    def __init__(self, seed):
        self._words = SeededWords(seed)

    def take(self, n):
        return self._words.take(n) >> np.uint64(62)


def test_equal_words_favour_no_row():
    codes = np.repeat(np.arange(30_000), 3)
    chosen = chosen_by(codes, 1, TwoBits(0)) % 3
    assert uniform_pvalue(chosen, 3) > FALSE_ALARM
    # A stable sort of words that tie would favour the first row.
    keys = TwoBits(0).take(codes.size)
    biased = np.lexsort((keys, codes)).reshape(-1, 3)[:, 0] % 3
    assert uniform_pvalue(biased, 3) < FALSE_ALARM


def test_no_word_is_read_where_no_group_is_too_large_and_tables_are_not_copied():
    table, labels = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "c"])
    tables = InMemory({"X": table, "y": labels}, 3)
    for rows in (Groups(tables, 3), Groups.of_labels("fit", tables, 2, [0, 1, 1])):
        kept = rows.kept(Script()).rows.leaf
        assert kept["X"] is table
        assert kept["y"] is labels
        assert rows.n_kept == 3


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_stay_together_in_their_order_and_memory_layout(order):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 500)
    table = np.asarray(np.column_stack([np.arange(500.0), codes]), order=order)
    both = InMemory({"X": table, "numbers": np.arange(500)}, 500)
    rows = Groups.of_labels("fit", both, 3, codes)
    kept, numbers = rows.kept(SeededWords(1)).rows.leaf.values()
    assert kept.flags.f_contiguous == (order == "F")
    assert len(numbers) == rows.n_kept == np.minimum(np.bincount(codes), 3).sum()
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(kept[:, 0], numbers)
    np.testing.assert_array_equal(kept[:, 1], codes[numbers])
    assert np.bincount(codes[numbers]).max() == 3


PEOPLE = ["Ann", "Bob", "Ann", "Cem", "Bob"]
CODES = [0, 1, 0, 2, 1]


@pytest.mark.parametrize(
    "groups",
    [
        PEOPLE,
        tuple(PEOPLE),
        np.array(PEOPLE),
        np.array(PEOPLE, dtype=object),
        pd.Series(PEOPLE, index=list("vwxyz")),
        pd.Series(PEOPLE, dtype="category"),
        pd.Series(PEOPLE, dtype="string"),
        pd.Categorical(PEOPLE, categories=["Zoe", "Cem", "Bob", "Ann"]),
        pd.Index(PEOPLE),
        pl.Series(PEOPLE),
        pl.Series(PEOPLE, dtype=pl.Categorical),
        [7, -2, 7, 10**30, -2],
        [1, "1", 1, ("1",), "1"],
        [("a", 1), ("a", 2), ("a", 1), ("b", 1), ("a", 2)],
        np.array([0.5, -1e300, 0.5, np.inf, -1e300]),
        np.array(["2020-01-01", "2021-01-01", "2020-01-01", "2022-01-01", "2021-01-01"], "M8[D]"),
        np.ma.array([1, 2, 1, 3, 2]),
        np.array([True, False, True, True, False]),
    ],
    ids=lambda groups: type(groups).__module__ + str(getattr(groups, "dtype", "")),
)
def test_labels_of_any_kind_are_told_apart(groups):
    expected = CODES
    if isinstance(groups, np.ndarray) and groups.dtype.kind == "b":
        expected = [0, 1, 0, 0, 1]
    assert group_codes("Test.fit", groups, 5).tolist() == expected


MANY = np.random.default_rng(0).integers(-40, 40, 1000)


@quick(
    "ndarray object", "ndarray int8", "Series datetime64[us, UTC]", "ndarray bool", "ndarray <U21"
)
@pytest.mark.parametrize(
    "groups",
    [
        MANY,
        MANY.astype(np.int8),
        MANY.astype(np.uint64),
        MANY > 0,
        np.where(MANY % 2, 1.0, -1.0) * (MANY / 7.0).astype(np.float32),
        MANY * (1 + 2j),
        MANY.astype("M8[D]"),
        MANY.astype("m8[ns]"),
        MANY.astype(str),
        MANY.astype(bytes),
        MANY.astype(object),
        np.array([(i % 7, str(i % 3)) for i in MANY], dtype=[("a", int), ("b", "U1")]),
        np.array([0.0, -0.0, 1, True, "1", b"1", 1 + 0j, (1,), (True,)], dtype=object),
        pd.Series(MANY).astype("Int64"),
        pd.Series(MANY).astype("category"),
        pd.Series(pd.to_datetime(MANY, unit="D", utc=True)).dt.as_unit("us"),
        pd.Series(MANY.astype(str)).astype("string"),
        pd.MultiIndex.from_arrays([MANY % 3, MANY % 5]),
        pl.Series(MANY.astype(str)).cast(pl.Categorical),
    ],
    ids=lambda groups: f"{type(groups).__name__} {getattr(groups, 'dtype', '')}",
)
def test_groups_are_those_of_equal_labels_in_the_order_of_their_first_occurrence(groups):
    labels = list(groups.to_numpy() if hasattr(groups, "to_numpy") else groups)
    labels = [label.item() if isinstance(label, np.void) else label for label in labels]
    found = group_codes("Test.fit", groups, len(labels))
    firsts = list(dict.fromkeys(labels))
    assert found.dtype == np.intp
    assert found.tolist() == [firsts.index(label) for label in labels]
    assert len(firsts) < len(labels)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, ["object of type NoneType"]),
        (12345, ["object of type int"]),
        ("12345", ["object of type str"]),
        (np.array(12345), ["object of type ndarray"]),
        ({12345, 1, 2, 3, 4}, ["object of type set"]),
        ([12345] * 4, [r"shape \(4,\)", "in their order"]),
        (np.full((5, 1), 12345), [r"shape \(5, 1\)", "one column"]),
        (pd.DataFrame({"who": [12345] * 5}), [r"shape \(5, 1\)", r"frame\['person'\]"]),
        ([12345, None, 1, 2, 3], ["missing", "group of its own"]),
        ([12345.0, np.nan, 1, 2, 3], ["missing"]),
        (pd.Series([12345, pd.NA, 1, 2, 3], dtype="Int64"), ["missing"]),
        (pd.Series(["12345", None, "b", "c", "d"], dtype="category"), ["missing"]),
        (np.array(["2020-01-01", "NaT", "2020", "2021", "2022"], dtype="M8[D]"), ["missing"]),
        (np.ma.array([12345, 1, 2, 3, 4], mask=[0, 1, 0, 0, 0]), ["missing"]),
        (pl.Series(["12345", None, "b", "c", "d"]), ["missing"]),
        ([("12345", np.nan), ("a", 1), 1, 2, 3], ["missing"]),
        ([("12345", ("b", None)), ("a", 1), 1, 2, 3], ["missing"]),
        ([Decimal("12345"), Decimal("NaN"), 1, 2, 3], ["missing"]),
        (np.array([12345, complex(np.nan, 1), 1, 2, 3]), ["missing"]),
        (np.array([12345, pd.NaT, 1, 2, 3], dtype=object), ["missing"]),
        ([[12345], [1], [2], [3], [4]], ["can be hashed by their value"]),
        ([{"a": 12345}, 1, 2, 3, 4], ["can be hashed by their value"]),
    ],
    ids=lambda value: None if isinstance(value, list) else type(value).__name__,
)
def test_labels_that_do_not_fit_are_refused_without_showing_one(groups, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        group_codes("Test.fit", groups, 5)
    text = str(caught.value)
    assert text.startswith("The 'groups' parameter of Test.fit must be an array-like of shape (5,)")
    for word in words:
        assert caught.match(word)
    assert "12345" not in text


class Person:
    """Hashed by where it lies."""


class Scalar:
    """Equal by value, and yet hashed by where it lies, as torch's are."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return id(self)


class Name(str):
    """A text that is hashed in its own way."""

    def __hash__(self):
        return id(self)


class Row(tuple):
    """A tuple that is hashed in its own way."""

    def __hash__(self):
        return id(self)


@each_value(1)
@pytest.mark.parametrize("part", [lambda label: label, lambda label: ("Ann", label)])
@pytest.mark.parametrize("make", [Person, Scalar, lambda: Name("Ann"), lambda: Row((1, 2))])
def test_labels_that_are_not_known_to_be_hashed_by_their_value_are_refused(part, make):
    with pytest.raises(TypeError, match="hashed by their value"):
        group_codes("Owner", [part(make()), part(make())], 2)


class Colour(Enum):
    RED = 1
    BLUE = 2


class Place(NamedTuple):
    street: str
    number: int


class Text(str):
    """A text that changes nothing."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        (b"a", b"b"),
        (1, 2),
        (True, False),
        (1.5, 2.5),
        (1j, 2j),
        (Decimal("1.1"), Decimal("1.2")),
        (Fraction(1, 3), Fraction(2, 3)),
        (date(2020, 1, 1), date(2020, 1, 2)),
        (datetime(2020, 1, 1), datetime(2020, 1, 2)),
        (timedelta(1), timedelta(2)),
        (UUID(int=1), UUID(int=2)),
        (Colour.RED, Colour.BLUE),
        (Place("a", 1), Place("a", 2)),
        (Text("a"), Text("b")),
        (frozenset({1}), frozenset({2})),
        (np.int8(1), np.int8(2)),
        (np.str_("a"), np.str_("b")),
        (np.datetime64("2020"), np.datetime64("2021")),
        (pd.Timestamp("2020"), pd.Timestamp("2021")),
        (pd.Timedelta("1h"), pd.Timedelta("2h")),
        (pd.Period("2020"), pd.Period("2021")),
        (pd.Interval(0, 1), pd.Interval(1, 2)),
    ],
    ids=lambda label: type(label).__name__,
)
def test_labels_that_are_hashed_by_their_value(one, other):
    copies = pickle.loads(pickle.dumps([one, other, one]))
    for part in (lambda label: label, lambda label: (label, "b")):
        given = [part(label) for label in [one, other, *copies]]
        assert group_codes("Owner", given, 5).tolist() == [0, 1, 0, 1, 0]


@each_value(1)
@pytest.mark.parametrize("part", [lambda label: label, lambda label: (1, label)])
@pytest.mark.parametrize("label", [pa.scalar(None, pa.int64()), frozenset({float("nan")}), None])
def test_labels_that_hold_nothing_are_missing_whatever_holds_them(label, part):
    with pytest.raises(ValueError, match="without missing labels"):
        group_codes("Owner", [part(1), part(label)], 2)


@pytest.mark.parametrize(
    "labels",
    [
        [np.datetime64("2020-01-01"), date(2020, 1, 1)],
        [np.timedelta64(1, "D"), timedelta(days=1)],
        [np.float32(0.1), 0.1],
        [np.longdouble(2.0) ** 63 + 1, 2**63 + 1],
        [("a", np.datetime64("2020-01-01")), ("a", date(2020, 1, 1))],
    ],
    ids=str,
)
def test_labels_of_numpy_beside_others_that_they_equal_are_no_two_groups(labels):
    """Their hashes may differ."""
    if hash(labels[0]) == hash(labels[1]):
        assert group_codes("Test", labels, 2).tolist() == [0, 0]
        return
    with pytest.raises(TypeError, match="labels that can be hashed by their value"):
        group_codes("Test", labels, 2)


@pytest.mark.parametrize(
    "kind", [lambda v: np.datetime64(f"202{v}-01-01"), np.float32, np.longdouble, np.timedelta64]
)
def test_labels_of_one_kind_of_numpy_are_groups(kind):
    assert group_codes("Test", [kind(1), kind(2), kind(1)], 3).tolist() == [0, 1, 0]
