"""Later rows of a form that was checked are checked by their values alone, with the same errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skdpnoise import DPRidge, DPSimpleImputer, DPStandardScaler
from skdpnoise.data import reading, scan_batches
from skdpnoise.data.computed import reading as computing
from skdpnoise.data.reading import NumberColumns, read
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
    assert both.n_rows == 12
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


def test_later_rows_of_other_names_are_refused():
    names = iter([["a", "b", "c"], ["a", "b", "c"], ["b", "a", "c"]])
    rows = scan_batches(lambda: [GOOD] * 3)
    named = rows.map(lambda table: pd.DataFrame(table, columns=next(names)), 3)
    with pytest.raises(ValueError, match="same columns in all parts"):
        read(DPStandardScaler(), NumberColumns(), X=named)


def test_a_missing_value_of_a_nullable_type_is_refused_in_later_rows():
    table = frame(np.rint(GOOD)).astype({"a": "Int64", "b": "Float64"})
    assert scanned(table, table)[1].n_rows == 12
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
