"""Tables of all kinds are taken apart and put together alike, and columns keep their types."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpnoise.inspection.auditing._tables import (
    as_table,
    numbers,
    numeric_columns,
    odd_values,
    rows_of,
    stacked,
    taken,
    with_cell,
    with_numbers,
)

FRAME = pd.DataFrame(
    {
        "real": [1.5, -2.0, 3.0, 0.5],
        "whole": [1, 2, 3, 4],
        "yes": [True, False, True, True],
        "text": ["u", "v", "u", "v"],
        "kind": pd.Categorical(["u", "v", "u", "v"], categories=["u", "v", "w"]),
        "when": pd.to_datetime(["2026-01-01"] * 4),
    }
)
TABLES = {
    "pandas": FRAME,
    "nullable": FRAME.convert_dtypes(),
    "polars": pl.from_pandas(FRAME),
    "enum": pl.from_pandas(FRAME).with_columns(pl.col("kind").cast(pl.Enum(["u", "v", "w"]))),
    "object": FRAME.astype(object).to_numpy(),
    "float": FRAME[["real", "whole"]].to_numpy(float),
    "float32": FRAME[["real", "whole"]].to_numpy(np.float32),
    "int8": FRAME[["whole", "whole"]].to_numpy(np.int8),
    "bool": FRAME[["yes", "yes"]].to_numpy(),
    "text": FRAME[["text", "kind"]].to_numpy(str),
}


def types(X):
    return list(X.dtypes) if hasattr(X, "columns") else [X.dtype] * X.shape[1]


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_taken_changed_and_stacked_without_another_type(name):
    X = as_table(TABLES[name])
    row = taken(X, [2])
    columns = list(numeric_columns(X))
    for size in (1e99, -1e99, 0.4):
        changed = with_numbers(row, {k: [size] for k in columns})
        both = stacked(X, changed)
        assert type(both) is type(X)
        assert both.shape == (5, X.shape[1])
        assert types(both) == types(X)
        assert np.isfinite(numbers(both, columns)).all()
        assert rows_of(taken(both, [0, 1, 2, 3])) == rows_of(X)
    assert rows_of(taken(stacked(X, row), [4])) == rows_of(taken(X, [2]))


EXPECTED = {
    "pandas": [["a NaN"], [], [], *[["a missing value", "an unseen category"]] * 2],
    "nullable": [*[["a missing value"]] * 3, *[["a missing value", "an unseen category"]] * 2],
    "polars": [
        ["a missing value", "a NaN"],
        *[["a missing value"]] * 2,
        *[["a missing value", "an unseen category"]] * 2,
    ],
    "object": [
        *[["a missing value", "a NaN"]] * 3,
        *[["a missing value", "a NaN", "an unseen category"]] * 2,
    ],
    "float": [["a NaN"]] * 2,
    "float32": [["a NaN"]] * 2,
    "int8": [[]] * 2,
    "bool": [[]] * 2,
    "text": [["an unseen category"]] * 2,
}
EXPECTED["enum"] = EXPECTED["polars"]
if FRAME["text"].dtype == object:  # pandas below 3
    EXPECTED["pandas"][3] = EXPECTED["object"][3]


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_tried_with_what_its_type_can_hold(name):
    X = as_table(TABLES[name])
    for column, expected in enumerate(EXPECTED[name]):
        odd = list(odd_values(X, column))
        assert [one.kind for one in odd] == expected
        for one in odd:
            changed = with_cell(one.table, 1, column, one.value)
            assert types(changed) == types(one.table)
            rows, before = rows_of(changed), rows_of(X)
            assert [rows[k] == before[k] for k in range(4)] == [True, False, True, True]


def test_categories_of_numbers_get_another_number():
    X = pd.DataFrame({"c": pd.Categorical([1, 2, 1, 2], categories=[1, 2, 5])})
    assert [one.value for one in odd_values(X, 0)] == [None, 6]


def test_missing_values_equal_one_another_and_nothing_else():
    nothing = np.array([[None], [float("nan")], [0.0]], dtype=object)
    rows = rows_of(nothing)
    assert rows == rows_of(nothing.copy())
    assert len(set(rows)) == 3
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})
    assert rows_of(frame) == rows_of(frame.copy())
    assert numbers(frame, [0]).ravel().tolist() == [1.0, 0.0]
