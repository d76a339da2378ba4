"""Sums of parts are exact, whole or refused, and what fails shows no value."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPOrdinalEncoder
from skdpnoise.data import scan_batches
from skdpnoise.data.dask_rows import _opened
from skdpnoise.data.local import LocalRunner
from skdpnoise.data.partitions import (
    Failure,
    Partial,
    RowMask,
    SpreadError,
    between,
    combined,
    from_limbs,
    in_order,
)
from skdpnoise.data.reading import AnyColumns, _Scan
from skdpnoise.data.selection import selected_rows
from skdpnoise.data.sources import Taking
from tests._cases import each_value
from tests._same_bits import COUNTS, in_parts, source_of
from tests.data._seen import SECRET, refused, seen, targets, tenths, values

pytestmark = pytest.mark.usefixtures("the_same_words")


@pytest.mark.parametrize("n_parts", COUNTS)
def test_sums_are_those_of_all_rows_at_once(n_parts):
    X = np.random.default_rng(0).normal(size=(700, 3))
    assert np.array_equal(seen(X=in_parts(X, n_parts)).map(values).total(tenths), tenths(X))


# Numbers whose sums need both limbs, with carries between them.
LARGE = {
    "carries of low limbs": [2**32 - 1] * 9,
    "negative, of no high limb": [-1] * 9,
    "both signs": [2**40 + 5, -(2**40) - 7, 3],
    "the largest": [2**62 - 1, 2**62 - 1, 2**62 - 1],
    "the smallest": [-(2**63)] * 5,
    "back again": [2**62, 2**62, 2**62, -(2**62), -(2**62), -(2**62), 1],
    "at the border of 62 bits": [2**61, 2**61 - 1],
    "beyond the border": [2**61, 2**61],
}


@pytest.mark.parametrize("numbers", LARGE.values(), ids=LARGE.keys())
def test_sums_are_exact_whatever_their_size(numbers):
    X = np.array(numbers, dtype=np.int64)
    found = (
        seen(X=source_of(list(X[:, np.newaxis]))).map(values).total(partial(np.sum, keepdims=True))
    )
    assert found.tolist() == [sum(numbers)]
    # Of 64 bits where noise still fits beside it.
    assert (found.dtype == np.int64) == (abs(sum(numbers)) < 2**62)


def unsigned(rows):
    return rows.astype(np.uint64).sum(axis=0) + np.uint64(2**63)


def huge(rows):
    return np.array([2**70 * len(rows), -(2**70)], dtype=object)


def flags(rows):
    return rows[0] > 0


def small(rows):
    return rows[0].astype(np.int8)


def test_integers_of_any_type_are_added():
    rows = seen(X=source_of([np.ones((2, 1), dtype=np.int64)] * 3)).map(values)
    assert rows.total(unsigned).tolist() == [3 * (2**63 + 2)]
    assert rows.total(huge).tolist() == [6 * 2**70, -3 * 2**70]
    assert rows.total(flags).tolist() == [3]
    assert rows.total(small).tolist() == [3]
    assert rows.total(len) == 6


def test_a_sum_of_other_numbers_is_refused():
    rows = seen(X=source_of([np.ones((2, 2))] * 2)).map(values)
    assert "integers" in refused(rows.total, partial(np.sum, axis=0))


def by_length(rows):
    return np.zeros(len(rows), dtype=int)


@pytest.mark.parametrize("lengths", [(2, 3), (1, 3)])
def test_sums_of_other_shapes_are_refused_and_not_repeated_to_fit(lengths):
    one, other = (np.ones((n, 2)) for n in lengths)
    shapes = rf"\({lengths[0]},\), .*\({lengths[1]},\)"
    for source in (source_of([one, other]), scan_batches(lambda: [one, other])):
        with pytest.raises(SpreadError, match=shapes):
            seen(X=source).map(values).total(by_length)


def sum_of(begin, end):
    return Partial(begin, end, np.array([[end - begin], [0]]))


def test_neighbours_come_together_in_any_order():
    found = combined([sum_of(4, 6), sum_of(0, 3), sum_of(3, 4)])
    assert (found.begin, found.end, from_limbs(found.value).tolist()) == (0, 6, [6])


WRONG = {
    "one is missing": [(0, 1), (2, 3)],
    "one is there twice": [(0, 1), (1, 2), (1, 2)],
    "one is in a sum already": [(0, 3), (2, 3)],
    "sums overlap": [(0, 2), (1, 3)],
    "one is within another": [(0, 4), (1, 2), (4, 5)],
}


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG.keys())
def test_a_part_that_is_lost_or_there_twice_is_noticed(parts):
    with pytest.raises(SpreadError, match="lost or counted twice"):
        combined([sum_of(*part) for part in parts])


@pytest.mark.parametrize("parts", [[(0, 1), (1, 2), (1, 2)], [(0, 1), (0, 1)], [(0, 1), (2, 3)]])
def test_values_of_a_part_that_is_lost_or_there_twice_are_refused(parts):
    values = [Partial(*part, [part]) for part in parts]
    assert "lost or counted twice" in in_order(values, 2).text
    values = [Partial(k, k + 1, [k]) for k in (2, 0, 1)]
    assert in_order(values, 3) == [0, 1, 2]


@pytest.mark.parametrize("name", ["X", "y"])
def test_a_table_that_changes_beside_others_ends_a_pass(name):
    tables = {"X": np.ones((9, 2)), "y": np.ones(9)}
    rows = scan_batches(lambda: [np.column_stack(tuple(tables.values()))])
    some = seen(X=rows.map(_first_two, 2), y=rows.map(_last))
    tables[name] = tables[name] + 1.0
    assert "changed" in refused(some.map(values if name == "y" else targets).total, tenths)


def _first_two(rows):
    return rows[:, :2]


def _last(rows):
    return rows[:, 2]


def test_a_sum_without_the_first_or_the_last_part_is_refused(monkeypatch):
    rows = seen(X=in_parts(np.ones((30, 2)), 7)).map(values)
    run = LocalRunner.run
    for some in (slice(1, None), slice(None, -1), slice(0, 0)):
        monkeypatch.setattr(
            LocalRunner, "run", lambda self, jobs, label, some=some: run(self, jobs[some], label)
        )
        assert "lost" in refused(rows.total, tenths)


def test_what_failed_is_told_whatever_comes_with_it():
    failed = Partial(1, 2, Failure("The second part failed."))
    found = combined([combined([sum_of(0, 1), failed]), combined([sum_of(2, 3), failed_at(3)])])
    assert (found.begin, found.end, found.value.text) == (0, 4, "The second part failed.")


def failed_at(part):
    return Partial(part, part + 1, Failure("A later part failed."))


def test_no_repr_shows_a_sum():
    assert "31415" not in repr(Partial(0, 1, np.array([31415])))


def quotes(rows):
    raise ValueError(f"{SECRET} is in {rows}")


def quotes_with_place(rows, first):
    return quotes(rows)


def quotes_in_a_chain(rows):
    try:
        quotes(rows)
    except ValueError as error:
        raise KeyError(SECRET) from error


class Panic(BaseException):
    """An error that is no `Exception`, as Rust's are that polars raises."""


def panics(rows):
    raise Panic(f"{SECRET} is in {rows}")


def ends(rows):
    raise SystemExit(2)


TEXTS = np.array([[SECRET], ["Bob"]], dtype=object)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_of_a_step_shows_no_value(n_jobs):
    rows = seen(n_jobs, X=source_of([TEXTS, TEXTS])).map(values)
    assert refused(rows.total, quotes).startswith("ValueError in part 0 of the rows.")
    assert refused(rows.total, quotes_in_a_chain).startswith("KeyError in part 0")
    assert refused(rows.map(quotes).total, len).startswith("ValueError in part 0")
    assert refused(rows.joined, quotes_with_place, len).startswith("ValueError in part 0")
    assert refused(rows.joined, _pairs, quotes).startswith("ValueError where parts")
    assert refused(rows.total, panics).startswith("Panic in part 0")
    assert refused(rows.map(panics).total, len).startswith("Panic in part 0")
    assert refused(rows.joined, _pairs, panics).startswith("Panic where parts")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_is_meant_to_end_a_fit_ends_it(n_jobs):
    rows = seen(n_jobs, X=source_of([TEXTS, TEXTS])).map(values)
    with pytest.raises(SystemExit):
        rows.total(ends)


def _pairs(rows, first):
    return rows


def quoting_batches():
    yield TEXTS
    quotes(TEXTS)


def odd_unicode(tables):
    SECRET.encode() + b"\xff".decode("ascii")


def test_an_error_of_a_reader_or_of_a_map_shows_no_value():
    assert refused(lambda: seen(X=scan_batches(quoting_batches))).startswith("ValueError in part 0")
    mapped = source_of([TEXTS]).map(quotes, 1)
    assert refused(lambda: seen(X=mapped)).startswith("ValueError in part 0")


def test_a_check_refuses_rows_in_its_own_words():
    rows = source_of([np.ones((2, 1))])
    for kind in (TypeError, ValueError):
        text = refused(lambda kind=kind: seen(X=rows, check=partial(_refuse, kind)), kind=kind)
        assert text == "Columns must be two."
    # An error that cannot be made of a text becomes one that can.
    refused(lambda: seen(X=rows, check=odd_unicode), kind=ValueError)


def _refuse(kind, tables):
    raise kind("Columns must be two.")


class Batches:
    """Gives batches that can be changed."""

    def __init__(self, *batches):
        self.given = batches

    def __call__(self):
        return iter(self.given)

    def give(self, *batches):
        """Give these from now on."""
        self.given = batches


ROWS = np.arange(12.0).reshape(6, 2)
CHANGED = {
    "a value": [np.where(ROWS == 5.0, 5.5, ROWS)],
    "the order": [ROWS[::-1]],
    "a row less": [ROWS[:-1]],
    "a row more": [ROWS, ROWS[:1]],
    "none left": [],
    "the sign of zero": [np.where(ROWS == 0.0, -0.0, ROWS)],
}


@pytest.mark.parametrize("batches", CHANGED.values(), ids=CHANGED.keys())
def test_a_part_that_changed_is_refused(batches):
    other = Batches(ROWS)
    rows = seen(X=scan_batches([Batches(ROWS), other])).map(values)
    assert np.array_equal(rows.total(tenths), 2 * tenths(ROWS))
    other.give(*batches)
    assert "part 1 is not what it was" in refused(rows.total, tenths)
    for by_part in (False, True):
        join = partial(rows.joined, by_part=by_part)
        assert "part 1 is not what it was" in refused(join, _pairs, len)


def test_a_part_that_was_empty_and_has_rows_now_has_changed():
    other = Batches(ROWS[:0])
    rows = seen(X=scan_batches([Batches(ROWS), other])).map(values)
    other.give(ROWS)
    assert "part 1 is not what it was" in refused(rows.total, tenths)


def test_only_what_is_read_must_be_the_same():
    batches = Batches(ROWS)
    source = scan_batches(batches)
    rows = seen(X=source.map(partial(_column, 0)), y=source.map(partial(_column, 1)))
    batches.give(np.column_stack([ROWS[:, 0], ROWS[::-1, 1]]))
    expected = np.array(tenths(ROWS[:, 0]))
    assert np.array_equal(rows.only("X").map(values).total(tenths), expected)
    assert "is not what it was" in refused(rows.only("y").map(targets).total, tenths)
    assert "is not what it was" in refused(rows.map(values).total, tenths)


def _column(k, rows):
    return rows[:, k]


def test_batches_may_be_cut_elsewhere_in_each_pass():
    batches = Batches(ROWS)
    rows = seen(X=scan_batches(batches)).map(values)
    for cuts in ([], [1], [4], [2, 4, 5]):
        batches.give(*np.split(ROWS, cuts))
        assert np.array_equal(rows.total(tenths), tenths(ROWS))
        assert [first for first, _ in rows.joined(_with_place, list)] == [0, *cuts]
        assert rows.joined(_with_place, list, by_part=True) == [(0, 6)]


def _with_place(rows, first):
    return first, len(rows)


@pytest.mark.parametrize("empty", [[], [ROWS[:0]]], ids=["no batch", "an empty batch"])
def test_empty_parts_add_nothing(empty):
    sources = [scan_batches([lambda: [ROWS], *[lambda: empty] * 2, lambda: [ROWS]])]
    sources.append(scan_batches([lambda: [ROWS[:0]], lambda: empty, lambda: [ROWS, ROWS]]))
    for source in sources:
        rows = seen(X=source).map(values)
        assert len(rows) == 12
        assert np.array_equal(rows.total(tenths), 2 * tenths(ROWS))
        assert rows.joined(_pairs, _stacked).tolist() == [*ROWS.tolist(), *ROWS.tolist()]


def _stacked(parts):
    return np.concatenate(parts)


def test_a_sum_of_no_rows_is_refused():
    rows = seen(X=scan_batches(lambda: [ROWS[:0]])).map(values)
    assert "no rows" in refused(rows.total, tenths)


def test_tables_of_other_lengths_are_refused():
    source = scan_batches(lambda: [ROWS])
    assert "{'X': 6, 'y': 5}" in refused(lambda: seen(X=source, y=source.map(_but_one, 2)))


def _but_one(rows):
    return rows[1:]


def even(labels, first):
    return (np.asarray(labels) + first) % 2 == 0


def test_rows_are_kept_by_labels_that_are_read_again():
    labels = np.arange(6)
    batches = Batches(np.column_stack([ROWS, labels]))
    source = scan_batches([batches, list])
    rows = seen(X=source.map(_front, 2), groups=source.map(partial(_column, 2)))
    kept = rows.sampled(even, (3, 0)).only("X").map(values)
    assert np.array_equal(kept.total(tenths), tenths(ROWS[::2]))
    batches.give(np.column_stack([ROWS, labels[::-1]]))
    assert "is not what it was" in refused(kept.total, tenths)


def _front(rows):
    return rows[:, :2]


def test_labels_of_fewer_rows_than_there_are_are_told_as_a_change():
    mask = RowMask(np.ones(5, dtype=bool), None, 0)
    assert mask(3).tolist() == [True, True, True]
    assert "changed while they were read" in refused(mask, 3)


class ByLabels(pd.DataFrame):
    """A frame of which a slice has the rows with these labels, as before pandas 3 if floats."""

    def __getitem__(self, key):
        return self.loc[key] if isinstance(key, slice) else super().__getitem__(key)


def test_rows_are_taken_by_their_places_and_not_by_their_labels():
    table = ByLabels({"a": [1.0, 2.0, 3.0]}, index=[-2.0, -1.0, 0.0])
    assert between(table, 1, 3)["a"].tolist() == [2.0, 3.0]
    assert len(between(table, 0, 0)) == 0
    schema = _Scan(DPOrdinalEncoder, AnyColumns(), frozenset())({"X": table})
    assert (schema.columns, schema.names) == (("a",), ("a",))
    chunk = _opened({"X": Taking()}, [table])(frozenset({"X"}))
    assert [len(tables["X"]) for tables in chunk] == [3]
    assert between(np.arange(5), 1, 3).tolist() == [1, 2]


class InPlace:
    """Gives batches of which each is written to the memory of the last."""

    def __init__(self, table, n_rows, make):
        self.table, self.n_rows, self.make = table, n_rows, make

    def __call__(self):
        memory = np.empty((self.n_rows, *self.table.shape[1:]), dtype=self.table.dtype)
        for begin in range(0, len(self.table), self.n_rows):
            memory[:] = self.table[begin : begin + self.n_rows]
            yield self.make(memory)
        memory[:] = 0


def _frame(memory):
    return pd.DataFrame(memory, columns=["a", "b", "person"], copy=False)


@pytest.mark.parametrize("n_rows", [6, 24])
def test_rows_that_are_kept_while_more_are_read_are_copied(n_rows):
    table = np.arange(72).reshape(24, 3)
    source = scan_batches(InPlace(table, n_rows, _frame))
    rows = seen(X=source[["a", "b"]], groups=source["person"])
    assert np.array_equal(rows.joined(_persons, np.concatenate, by_part=True), table[:, 2])
    kept = rows.sampled(even, (12,))
    expected = table[table[:, 2] % 2 == 0, :2]
    assert np.array_equal(kept.only("X").map(values).total(tenths), tenths(expected))
    sources = {"X": source[["a", "b"]], "groups": source["person"]}
    left = selected_rows(sources, kept.rows)["X"]
    assert np.array_equal(seen(X=left).map(values).total(tenths), tenths(expected))


def _persons(tables, first):
    return np.asarray(tables["groups"])


@each_value(1)
@pytest.mark.parametrize("column", [np.asarray, pd.Series])
@pytest.mark.parametrize("types", [(np.int64, np.uint64), (np.uint64, np.int64)])
def test_labels_of_other_types_stay_what_they_are(types, column):
    # As floats 2**53 and 2**53 + 1 would be one label, and 5 would be another than in other parts.
    some, others = np.array([5, 2**53], dtype=types[0]), np.array([2**53 + 1], dtype=types[1])
    source = scan_batches([lambda: [column(some), column(others)]])
    rows = seen(groups=source)
    found = rows.joined(_persons, lambda parts: parts[0], by_part=True)
    assert [str(label) for label in found.tolist()] == ["5", str(2**53), str(2**53 + 1)]
