"""Rows are read alike in memory and in partitions; later batches are checked by their values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPRidge, DPSimpleImputer, DPStandardScaler
from skdpnoise.data import reading, scan_batches
from skdpnoise.data.computed import reading as computing
from skdpnoise.data.reading import AnyColumns, NumberColumns, Supervised, read
from skdpnoise.sampling import SeededWords
from tests._cases import each_value

GOOD = np.random.default_rng(0).normal(size=(6, 3))
BAD = {
    "NaN": np.nan,
    "infinite": np.inf,
    "negative and infinite": -np.inf,
    "beyond squares": 1e30,
    "subnormal": 1e-310,
}


def frame(table, dtype=np.float64):
    return pd.DataFrame(table.astype(dtype), columns=list("abc"))


def scanned(*batches, estimator=None, n_jobs=None, **options):
    estimator = DPStandardScaler() if estimator is None else estimator
    return read(estimator, NumberColumns(options), X=scan_batches(lambda: batches), n_jobs=n_jobs)


def error_of(function, *arguments, **options):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*arguments, **options)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_a_value_of_later_rows_is_refused_as_one_of_the_first(name):
    options = {"largest": 1e20}
    table = GOOD.copy()
    table[4, 1] = BAD[name]
    first = error_of(scanned, frame(table), **options)
    assert error_of(scanned, frame(GOOD), frame(GOOD), frame(table), **options) == first


def test_missing_values_of_later_rows_are_taken_where_those_of_the_first_are():
    table = GOOD.copy()
    table[4, 1] = np.nan
    _, both = scanned(frame(GOOD), frame(table), estimator=DPSimpleImputer(), missing=True)
    assert both.rows.n_rows == 12
    table[4, 1] = np.inf
    kind, text = error_of(scanned, frame(GOOD), frame(table), missing=True)
    assert kind is ValueError
    assert "infinity" in text


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_step_computed_is_not_refused_in_any_thread(n_jobs):
    table = GOOD.copy()
    table[4, 1] = np.nan
    with computing({"X"}):
        _, rows = scanned(frame(table), frame(GOOD), frame(table), n_jobs=n_jobs)
    found = rows.rows.joined(lambda leaf, _: leaf, np.concatenate)
    assert found.shape == (18, 3)
    assert found[4, 1] == 0.0


def test_each_form_is_checked_as_a_whole_once(monkeypatch):
    given = []

    def spied(estimator, X, **options):
        given.append(X)
        return read_table(estimator, X, **options)

    read_table = reading.read_table
    monkeypatch.setattr(reading, "read_table", spied)
    single = frame(GOOD, np.float32)
    counts = frame(GOOD * 0.0, np.int64)
    schema, _ = scanned(frame(GOOD), single, counts, frame(GOOD), single, counts)
    assert len(given) == 3
    assert (schema.n_columns, schema.names, schema.dtype) == (3, ("a", "b", "c"), "<f8")
    given.clear()
    assert scanned(single, single)[0].dtype == "<f4"
    assert len(given) == 1
    assert scanned(single, frame(GOOD), single)[0].dtype == "<f8"


def test_a_missing_value_of_a_nullable_type_is_refused_in_later_rows():
    table = frame(np.rint(GOOD)).astype({"a": "Int64", "b": "Float64"})
    assert scanned(table, table)[1].rows.n_rows == 12
    broken = table.copy()
    broken.loc[4, "a"] = pd.NA
    kind, text = error_of(scanned, table, broken)
    assert kind is ValueError
    assert "NaN" in text


class Mine(pd.DataFrame):
    """A frame that could say anything of itself."""


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(Mine(frame(GOOD)), id="another class"),
        pytest.param(frame(GOOD).astype("str"), id="text"),
        pytest.param(frame(GOOD).astype(object), id="objects"),
        pytest.param(GOOD, id="an array"),
    ],
)
def test_other_tables_are_always_checked_as_a_whole(table):
    assert reading._columns_of_floats(table) is None


@each_value(1)
@pytest.mark.parametrize("estimator", [DPStandardScaler(), DPRidge()], ids=str)
@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_rows_are_refused_as_in_memory(estimator, n_rows):
    table = frame(GOOD)[:n_rows]
    rows = scan_batches(lambda: [frame(GOOD)[:0], table])
    told = error_of(estimator.fit, table, table["a"])
    assert error_of(estimator.fit, rows, rows["a"]) == told
    assert f"{n_rows} sample(s)" in told[1]
    assert "a minimum of 2" in told[1]


# In memory and in partitions


FRAME = pd.DataFrame(
    {
        "a": np.arange(12.0),
        "b": np.arange(12, dtype=np.float32),
        "town": ["Ulm", "Bonn", None] * 4,
        "y": ["no"] * 4 + ["yes", "no"] * 4,  # of the first batch one
        "person": np.repeat([1, 2, 3], 4),
    }
)
FORMS = {
    "numbers": (NumberColumns(), ["a", "b"], False),
    "cells": (AnyColumns(), ["a", "town"], False),
    "numbers and a target": (Supervised(NumberColumns(), labels=True), ["a", "b"], True),
}


def in_both(name, **options):
    """Yield what is read of the same rows in memory, and in partitions."""
    form, columns, supervised = FORMS[name]
    source = scan_batches(lambda: (FRAME[:4], FRAME[4:8], FRAME[8:]))
    for table in (FRAME, source):
        chosen = {"X": table[columns]} | ({"y": table["y"]} if supervised else {})
        grouped = {key: table[column] for key, column in options.items()}
        yield read(DPStandardScaler(rows_per_group=3), form, **chosen, **grouped)


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("name", FORMS)
def test_the_same_is_public_of_rows_in_memory_and_in_partitions(name):
    (memory, whole), (partitions, scanned_rows) = in_both(name, groups="person")
    for fact in ("n_columns", "names", "dtype", "n_rows", "identity"):
        assert getattr(partitions, fact) == getattr(memory, fact)
    assert (memory.classes is None) == (name != "numbers and a target")
    if memory.classes is not None:
        assert memory.classes.tolist() == partitions.classes.tolist() == ["no", "yes"]
    for rows in (whole, scanned_rows):
        assert (rows.rows.n_rows, rows.rows.tail, rows.n_groups, rows.n_kept) == (12, (2,), 3, 9)


def column(leaf):
    """Return the first column of a leaf of any form."""
    table = leaf["X"] if isinstance(leaf, dict) else leaf
    return np.asarray(table)[:, 0].astype(float)


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("name", FORMS)
def test_the_same_rows_are_kept_in_memory_and_in_partitions(name):
    kept = [
        rows.kept(SeededWords(3)).rows.joined(lambda leaf, _: column(leaf), np.concatenate)
        for _, rows in in_both(name, groups="person")
    ]
    assert kept[0].tolist() == kept[1].tolist()
    assert len(kept[0]) == 9


def test_a_target_that_is_not_there_is_refused_in_the_same_words():
    source = scan_batches(lambda: [FRAME])
    told = {
        error_of(read, DPRidge(), Supervised(NumberColumns()), X=table[["a"]], y=None)
        for table in (FRAME, source)
    }
    ((kind, text),) = told
    assert kind is ValueError
    assert "requires y to be passed" in text


def test_a_form_of_rows_in_memory_refuses_partitions():
    form = Supervised(NumberColumns(), in_memory=True)
    rows = scan_batches(lambda: [FRAME])
    kind, text = error_of(read, DPRidge(), form, X=rows[["a"]], y=rows["y"])
    assert kind is TypeError
    assert "needs all rows of X in memory" in text


@pytest.mark.parametrize("form", [NumberColumns(), AnyColumns()], ids=["numbers", "cells"])
def test_later_rows_of_other_names_are_refused(form):
    names = iter([["a", "b", "c"], ["a", "b", "c"], ["b", "a", "c"]])
    rows = scan_batches(lambda: [GOOD] * 3)
    named = rows.map(lambda table: pd.DataFrame(table, columns=next(names)), 3)
    with pytest.raises(ValueError, match="same columns in all parts"):
        read(DPStandardScaler(), form, X=named)


@pytest.mark.usefixtures("the_same_words")
@pytest.mark.parametrize("groups", [None, "person"])
def test_rows_in_memory_know_their_threads_whatever_is_made_of_them(groups):
    scaler, facts = DPStandardScaler(rows_per_group=3), {"n_jobs": 3}
    for table, n_threads in ((FRAME, 3), (scan_batches(lambda: [FRAME]), 1)):
        own = facts if groups is None else facts | {"groups": table[groups]}
        used = read(scaler, NumberColumns(), X=table[["a", "b"]], **own)[1]
        assert used.rows.n_threads == used.kept(SeededWords(0)).rows.n_threads == n_threads
        assert used.rows.map(len).n_threads == n_threads
        assert used.rows.lasts == (n_threads == 3)


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_the_number_of_rows_is_public_under_replace_one_only(adjacency):
    scaler = DPStandardScaler(adjacency=adjacency)
    schema, _ = read(scaler, NumberColumns(), scaler._known, X=FRAME[["a", "b"]])
    assert schema.n_rows == (12 if adjacency == "replace_one" else None)


@pytest.mark.usefixtures("the_same_words")
def test_groups_that_leave_one_row_are_refused_in_the_same_words():
    told = {
        error_of(DPStandardScaler().fit, table[["a"]], groups=table["same"])
        for table in (FRAME.assign(same=1), scan_batches(lambda: [FRAME.assign(same=1)]))
    }
    ((kind, text),) = told
    assert kind is ValueError
    assert "rows_per_group=1 keeps 1" in text
