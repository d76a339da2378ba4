"""Data that no private estimator can be fitted to, with values in them that no error may show."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

SECRET, NAME, DAY = 123456.789, "secret", "1987-06-05"
SHOWN = ("123456", "secret", "1987")  # what must not occur in an error

rng = np.random.default_rng(0)
N = 40
GOOD = rng.normal(size=(N, 3))
GOOD[:, 1] += SECRET


class Quoting(float):
    """A number whose own methods fail, with a text that must not be shown."""

    def _fail(self, *args: Any) -> Any:
        raise RuntimeError(f"{NAME} {SECRET}")

    __float__ = __int__ = __index__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = _fail
    __hash__ = float.__hash__


class QuotingInteger(int):
    """A whole number of that kind."""

    __float__ = __int__ = __index__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = Quoting._fail
    __hash__ = int.__hash__


def _quoting() -> dict[str, list[Any]]:
    """Return columns with a value that cannot be read without an error, which may quote it."""
    return {
        "a float that fails": [1.0] * (N - 1) + [Quoting(1.0)],
        "an integer that fails": [1] * (N - 1) + [QuotingInteger(1)],
        "an integer that fails beside floats": [1.0] * (N - 1) + [QuotingInteger(1)],
        "a signalling NaN": [1.0] * (N - 1) + [Decimal("sNaN")],
    }


def _with(value: Any, dtype: Any = np.float64) -> np.ndarray:
    with np.errstate(over="ignore"):
        X = GOOD.astype(dtype)
    X[7, 2] = value
    return X


def _frame(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": GOOD[:, 0], "b": GOOD[:, 1], "c": column})


def _days(n: int = N) -> np.ndarray:
    return np.datetime64(DAY) + np.arange(n)


_GAPS = (
    *("NaN", "NaN in single precision", "NaN in strided memory"),
    *("None among objects", "NaN among objects", "pandas' NA among objects", "a masked constant"),
    *("frame: numbers with NA", "frame: floats with NA", "frame: booleans with NA"),
    *("frame: NaN", "polars: missing"),
)
_FAILING = (
    *("a float that fails", "an integer that fails"),
    *("an integer that fails beside floats", "a signalling NaN"),
)
_LABELS = (
    *("one row", *_GAPS, "pandas' NA among objects", "an integer beyond doubles"),
    "beyond double precision",
    *("text", "text among objects", "text in a list", "rows that are masked"),
    *("frame: text", "frame: text as objects", "frame: strings with NA", "frame: categories"),
    *("frame: periods", "polars: text"),
    *(f"{kind}: {name}" for kind in ("objects", "a list", "frame") for name in _FAILING),
)
# What is no fault, by what an estimator reads: what is no number or no text is missing.
TAKEN = {
    "numbers": (),
    "gaps": _GAPS,
    "labels": (
        *(*_LABELS, "infinity", "minus infinity"),
        "infinity in half precision",
    ),
    "tables": (
        *(*_LABELS, "dates", "frame: dates", "frame: dates with a zone"),
        *("polars: dates", "frame: categories of dates"),
    ),
}


def _masked() -> np.ma.MaskedArray:
    return np.ma.masked_array(GOOD, mask=GOOD > 1.0)


def tables() -> dict[str, Any]:
    """Return X by the reason for which it is refused: by every estimator, whatever y is."""
    text = np.where(np.arange(N) % 2, NAME, "b")
    days = [datetime.date(1987, 6, 5)] * N
    return {
        "None": None,
        "no rows": np.empty((0, 3)),
        "no columns": np.empty((N, 0)),
        "one row": GOOD[:1],
        "one dimension": GOOD[:, 1],
        "one dimension, a list": GOOD[:, 1].tolist(),
        "a scalar": SECRET,
        "a text": NAME,
        "bytes": NAME.encode(),
        "a dict": {NAME: [1.0]},
        "a set": {SECRET, 2.0},
        "a series": pd.Series(GOOD[:, 1], name=NAME),
        "a polars series": pl.Series(GOOD[:, 1]),
        "a generator": (row for row in GOOD),
        "three dimensions": np.full((N, 2, 2), SECRET),
        "ragged lists": [[SECRET, 1.0], [2.0], *[[1.0, 2.0]] * (N - 2)],
        "NaN": _with(np.nan),
        "infinity": _with(np.inf),
        "minus infinity": _with(-np.inf),
        "NaN in single precision": _with(np.nan, np.float32),
        "infinity in half precision": _with(np.inf, np.float16),
        "beyond double precision": _with(np.longdouble("1e4000"), np.longdouble),
        "NaN in strided memory": np.repeat(_with(np.nan), 2, axis=0)[::2],
        "None among objects": _with(None, object),
        "NaN among objects": _with(np.nan, object),
        "pandas' NA among objects": _with(pd.NA, object),
        "an integer beyond doubles": _with(10**400, object),
        "complex numbers": GOOD + 1j,
        "complex numbers without imaginary part": GOOD + 0j,
        "complex numbers among objects": _with(SECRET + 1j, object),
        "complex numbers in a list": (GOOD + 0j).tolist(),
        "text": np.full((N, 3), NAME),
        "text among objects": _with(NAME, object),
        "text in a list": [[1.0, NAME, 2.0]] * N,
        "bytes in an array": np.full((N, 3), NAME.encode()),
        "dictionaries among objects": _with({NAME: SECRET}, object),
        "lists among objects": _with([SECRET], object),
        "structured": np.array([(SECRET, 1.0)] * N, dtype=[("a", float), ("b", float)]),
        "masked": _masked(),
        "masked without a mask": np.ma.masked_array(GOOD),
        "rows that are masked": list(_masked()),
        "a masked constant": [[1.0, np.ma.masked, 2.0]] * N,
        "dates": np.column_stack([_days()] * 3),
        "durations": np.column_stack([_days() - _days()[0]] * 3),
        "dates among objects": _with(datetime.datetime(1987, 6, 5), object),
        "numpy dates among objects": _with(np.datetime64(DAY), object),
        "durations among objects": _with(np.timedelta64(1987, "D"), object),
        "timestamps among objects": _with(pd.Timestamp(DAY), object),
        "sparse": sp.csr_matrix(GOOD),
        "sparse array": sp.coo_array(GOOD),
        "frame: one sparse column": _frame(pd.arrays.SparseArray(GOOD[:, 2])),
        "frame: all sparse": pd.DataFrame(GOOD).astype(pd.SparseDtype(float)),
        "frame: text": _frame(text),
        "frame: text as objects": _frame(text.astype(object)),
        "frame: strings with NA": _frame(pd.array([NAME, None] * (N // 2), dtype="string")),
        "frame: numbers with NA": _frame(pd.array([123456, None] * (N // 2), dtype="Int64")),
        "frame: floats with NA": _frame(pd.array([SECRET, None] * (N // 2), dtype="Float64")),
        "frame: booleans with NA": _frame(pd.array([True, None] * (N // 2), dtype="boolean")),
        "frame: categories": _frame(pd.Categorical(text)),
        "frame: categories of dates": _frame(pd.Categorical(pd.to_datetime(_days()))),
        "frame: dates": _frame(pd.to_datetime(_days())),
        "frame: dates with a zone": _frame(pd.to_datetime(_days()).tz_localize("UTC")),
        "frame: durations": _frame(pd.to_timedelta(np.arange(N), unit="D")),
        "frame: periods": _frame(pd.period_range(DAY, periods=N)),
        "frame: days as objects": _frame(pd.Series(days, dtype=object)),
        "frame: durations as objects": _frame(
            pd.Series([datetime.timedelta(1987)] * N, dtype=object)
        ),
        "frame: complex": _frame(GOOD[:, 2] + 1j),
        "frame: NaN": _frame(np.where(GOOD[:, 2] > 0, np.nan, SECRET)),
        "frame: names of two kinds": pd.DataFrame(GOOD, columns=["a", 1, "c"]),
        "polars: text": pl.DataFrame({"a": GOOD[:, 0], "b": text.tolist()}),
        "polars: missing": pl.DataFrame({"a": [SECRET, None] * (N // 2), "b": GOOD[:, 0]}),
        "polars: dates": pl.DataFrame({"a": days, "b": days}),
        "polars: durations": pl.DataFrame({"a": [datetime.timedelta(1987)] * N}),
        "polars: lists": pl.DataFrame({"a": [[SECRET, 1.0]] * N}),
        **{f"objects: {name}": _with(c[-1], object) for name, c in _quoting().items()},
        **{f"a list: {name}": [[one] * 2 for one in c] for name, c in _quoting().items()},
        **{f"frame: {name}": _frame(pd.Series(c, dtype=object)) for name, c in _quoting().items()},
    }


def extremes() -> dict[str, Any]:
    """Return X with values that sums do not survive."""
    return {
        "huge": _with(1.23456789e300),
        "tiny": _with(-5e-324),
        "tiny in single precision": _with(1e-45, np.float32),
        "huge in a decimal": _with(Decimal("1.23456789e200"), object),
    }


def targets(kind: str) -> dict[str, Any]:
    """Return y that neither classifiers nor regressors can learn, and those of one kind."""
    y = np.arange(N) % 2
    both = {
        **_quoting(),
        **{f"objects: {name}": np.array(c, dtype=object) for name, c in _quoting().items()},
        **{f"series: {name}": pd.Series(c, dtype=object) for name, c in _quoting().items()},
        "None": None,
        "a scalar": SECRET,
        "a text": NAME,
        "a dict": {NAME: SECRET},
        "a set": {SECRET},
        "too short": y[1:],
        "too long": np.append(y, 1),
        "empty": np.empty(0),
        "two columns": np.column_stack([y, y + SECRET]),
        "lists": [[SECRET]] * (N - 1) + [[1.0, 2.0]],
        "NaN": np.where(y, np.nan, 1.0),
        "infinity": np.where(y, np.inf, 1.0),
        "None among objects": np.where(y, None, 123456),
        "NA among objects": np.where(y, pd.NA, 123456),
        "NaN among objects": np.where(y, np.nan, 123456).astype(object),
        "a list with None": [None, *y[1:]],
        "NA among nullable integers": pd.Series([123456, None] * (N // 2), dtype="Int64"),
        "NA among strings": pd.Series([NAME, None] * (N // 2), dtype="string"),
        "a polars series with nulls": pl.Series([123456, None] * (N // 2)),
        "complex": y + 1j * SECRET,
        "complex without imaginary part": y + 0j,
        "complex in a list": [complex(SECRET)] * N,
        "masked": np.ma.masked_array(y, mask=y),
        "masked without a mask": np.ma.masked_array(y),
        "dates": _days(),
        "durations": _days() - _days()[0],
        "dates in a list": [datetime.date(1987, 6, 5)] * N,
        "timestamps": pd.Series(pd.to_datetime(_days())),
        "durations in a list": [np.timedelta64(1987, "D")] * N,
        "sparse": sp.csr_matrix(y),
        "sparse series": pd.Series(pd.arrays.SparseArray(y)),
        "dictionaries": [{NAME: SECRET}] * N,
        "bytes": np.where(y, NAME.encode(), b"b"),
        "structured": np.array([(SECRET,)] * N, dtype=[("a", float)]),
    }
    numbers = {
        "text": np.where(y, NAME, "b"),
        "text as objects": np.where(y, NAME, "b").astype(object),
        "text and numbers": [NAME, 1.0] * (N // 2),
        "categories": pd.Series(pd.Categorical(np.where(y, NAME, "b"))),
        "huge": np.where(y, 1.23456789e300, 1.0),
        "tiny": np.where(y, 5e-324, 1.0),
        "beyond double precision": np.where(y, np.longdouble("1e4000"), 1.0),
        "an integer beyond doubles": [10**400, 1] * (N // 2),
    }
    labels = {
        "one class": np.full(N, 123456),
        "one class of text": np.full(N, NAME),
        "continuous": y + SECRET,
        "text and numbers": [NAME, 123456] * (N // 2),
        "text and booleans": [NAME, True] * (N // 2),
        "numbers and booleans": [123456, True] * (N // 2),
        "NaN among text": [np.nan, NAME] * (N // 2),
        "tuples": [(NAME, 1), (NAME, 2)] * (N // 2),
        "an integer beyond 64 bits": [10**30, 1] * (N // 2),
        "nullable booleans": pd.Series([True, None] * (N // 2), dtype="boolean"),
    }
    counts = {
        "negative": np.where(y, -SECRET, 1.0),
        "all negative": [-SECRET] * N,
        "a little negative": np.where(y, -1e-9, 123456.0),
        "negative objects": np.where(y, Decimal(-SECRET), 1).astype(object),
    }
    kinds = {"numbers": numbers, "counts": numbers | counts, "labels": labels}
    return both | kinds[kind]


def groups() -> dict[str, Any]:
    """Return labels of people that cannot be read."""
    codes = np.arange(N) % 10
    return {
        "a scalar": SECRET,
        "a text": NAME,
        "a dict": {NAME: SECRET},
        "a set": {SECRET},
        "a generator": (code for code in codes),
        "too short": codes[1:],
        "two columns": np.column_stack([codes, codes]),
        "a frame": pd.DataFrame({NAME: codes}),
        "missing numbers": np.where(codes, codes, np.nan),
        "None among them": np.where(codes, codes, None),
        "missing strings": pd.Series([NAME, None] * (N // 2), dtype="string"),
        "masked": np.ma.masked_array(codes, mask=codes == 1),
        "no dates": np.where(codes, _days(), np.datetime64("NaT")),
        "lists": [[SECRET]] * N,
        "dictionaries": [{NAME: SECRET}] * N,
        "one person": np.full(N, NAME),
        "sparse": sp.csr_matrix(codes),
    }
