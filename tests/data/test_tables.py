"""Tables are read as they are, and refused for exactly the values that a fit cannot bear."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdpnoise import BoundsClipper, DPSimpleImputer, DPStandardScaler
from skdpnoise.data.tables import (
    as_survivable,
    check_container,
    check_values,
    read_table,
    survivable,
)
from tests._cases import each_value

LIMITS = {dtype: np.finfo(dtype) for dtype in (np.float32, np.float64)}
DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))
LISTS = pd.ArrowDtype(pa.list_(pa.float64()))


def plainly(values, largest, keeps_subnormal):
    """Say what is wrong with values, one by one; whatever is found first may be said."""
    tiny = float(np.finfo(values.dtype).tiny)
    wide = np.abs(values.astype(np.float64).ravel())
    found = []
    if not (wide <= largest).all():
        found = [
            "NaN" if np.isnan(wide).any() else "infinity" if np.isinf(wide).any() else "beyond"
        ]
    if not keeps_subnormal and ((wide > 0.0) & (wide < tiny)).any():
        found.append("subnormal")
    return "|".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", LIMITS)
def test_values_are_refused_where_looking_at_each_would_refuse_them(dtype):
    rng, limits = np.random.default_rng(0), LIMITS[dtype]
    tiny, largest = limits.tiny, limits.max
    special = [0.0, -0.0, tiny, -tiny, np.nextafter(tiny, dtype(0)), limits.smallest_subnormal]
    special += [largest, -largest, np.nan, -np.nan, np.inf, -np.inf, -limits.smallest_subnormal]
    if dtype is np.float64:
        special += [1e100, np.nextafter(1e100, np.inf), -1e100, -np.nextafter(1e100, np.inf)]
    seen = set()
    for trial in range(600):
        X = rng.normal(size=(7, 3)).astype(dtype)
        for _ in range(trial % 3):
            X[rng.integers(7), rng.integers(3)] = special[rng.integers(len(special))]
        for table in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[:, 1], X[::-1]):
            for bound, keeps in ((1e100, False), (np.inf, True), (1e100, True)):
                expected = plainly(table, min(bound, float(largest)), keeps)
                seen.add(expected)
                if not expected:
                    check_values("Model", "X", table, largest=bound, keeps_subnormal=keeps)
                    continue
                with pytest.raises(ValueError, match=expected):
                    check_values("Model", "X", table, largest=bound, keeps_subnormal=keeps)
    assert seen >= {"", "NaN", "infinity", "subnormal"}


@each_value(1)
@pytest.mark.parametrize("options", [{}, {"largest": np.inf, "keeps_subnormal": True}])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_is_found_in_the_last_block_of_a_long_table(options, bad):
    X = np.ones((40_001, 3))
    X[-1, -1] = bad
    for table in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "infinity"):
            check_values("Model", "X", table, **options)


@each_value(1)
@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_finite_values_whose_sum_is_not_are_taken(dtype, sign):
    X = np.full((50, 3), sign * LIMITS[dtype].max, dtype=dtype)
    check_values("Model", "X", X, largest=np.inf, keeps_subnormal=True)


@each_value(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_floats_are_read_without_a_copy(dtype, order):
    X = np.ones((20, 3), dtype=dtype, order=order)
    assert read_table(BoundsClipper(), X) is X
    fortran = read_table(DPStandardScaler(), X, order="F")
    assert np.shares_memory(fortran, X) == (order == "F")
    assert fortran.dtype == dtype


def test_other_numbers_are_read_as_doubles():
    numbers = np.arange(6).reshape(3, 2)
    nullable = pd.DataFrame(numbers).astype({0: "Int64", 1: "Float32"})
    tables = [numbers, numbers.tolist(), numbers.astype(object), numbers.astype(np.float16)]
    tables += [nullable, pd.DataFrame(numbers), pl.DataFrame(numbers)]
    tables += [pl.DataFrame(numbers).cast(pl.Decimal(20, 2))]
    tables += [
        pd.DataFrame(numbers).astype("int64[pyarrow]").astype(DICTIONARY),
        pd.DataFrame(numbers).astype("category"),
        numbers.astype(np.longdouble),
    ]
    for table in tables:
        read = read_table(BoundsClipper(), table)
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, numbers)
    booleans = read_table(BoundsClipper(), numbers > 2)
    np.testing.assert_array_equal(booleans, numbers > 2)


# Columns that hold no numbers by their declared type, whatever their values say.
NO_NUMBERS = {
    "text": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype="str")}),
    "text in objects": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype=object)}),
    "text of Arrow": lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype="string[pyarrow]")}),
    "text in an array": lambda cells: np.array([*map(str, cells)])[:, np.newaxis],
    "objects in an array": lambda cells: np.array(cells, dtype=object)[:, np.newaxis],
    "bytes": lambda cells: np.array([*map(str, cells)]).astype("S")[:, np.newaxis],
    "lists": lambda cells: [[cell] for cell in cells],
    "categories": lambda cells: pd.DataFrame({"a": pd.Categorical(cells, categories=["1", "2"])}),
    "text of polars": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.String)}),
    "bytes of polars": lambda cells: pl.DataFrame({"a": cells}).cast(pl.Binary),
    "periods": lambda cells: pd.DataFrame(
        {"a": pd.Series([cell and "2000" for cell in cells])}
    ).assign(a=lambda frame: pd.to_datetime(frame["a"], format="%Y").dt.to_period("Y")),
    "lists of Arrow": lambda cells: pd.DataFrame(
        {"a": pd.array([cell and [1.0] for cell in cells], dtype=LISTS)}
    ),
}


@pytest.mark.parametrize("form", NO_NUMBERS)
def test_the_declared_type_alone_says_that_a_column_holds_no_numbers(form):
    def refusal(cells):
        match = "BoundsClipper needs numbers, and .*(DPTableVectorizer|[Cc]onvert it|Turn them)"
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            read_table(BoundsClipper(), NO_NUMBERS[form](cells))
        return str(caught.value)

    said = refusal(["1", "2", "1", "2"])
    assert ("'a'" in said) == hasattr(NO_NUMBERS[form](["1", "2"] * 2), "columns")
    assert said == refusal(["1", None, "1", "2"])


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", DICTIONARY, "category"])
def test_a_missing_number_is_called_that_whatever_type_holds_it(dtype):
    frame = pd.DataFrame({"a": pd.Series([1, None, 2], dtype="int64[pyarrow]").astype(dtype)})
    with pytest.raises(ValueError, match=r"X contains NaN.*\n.*DPSimpleImputer"):
        read_table(BoundsClipper(), frame)
    read = read_table(DPSimpleImputer(), frame, missing=True)
    np.testing.assert_array_equal(read[:, 0], [1.0, np.nan, 2.0])


def test_every_word_for_missing_is_one_among_objects():
    for gap in (None, np.nan, pd.NA, float("nan")):
        frame = pd.DataFrame({"a": pd.Series([1.0, gap, 2.0], dtype=object), "b": [1.0, 2.0, 3.0]})
        for table in (frame, frame.to_numpy(dtype=object)):
            with pytest.raises(ValueError, match=r"X contains NaN.*\n.*DPSimpleImputer"):
                read_table(BoundsClipper(), table)
            read = read_table(DPSimpleImputer(), table, missing=True)
            np.testing.assert_array_equal(read, [[1.0, 1.0], [np.nan, 2.0], [2.0, 3.0]])


def test_names_of_columns_are_kept_and_compared():
    frame = pd.DataFrame(np.ones((5, 2)), columns=["a", "b"])
    clipper = BoundsClipper().fit(frame)
    assert list(clipper.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match=r"names should match.*\n.*\n- c"):
        clipper.transform(frame.rename(columns={"b": "c"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clipper.transform(frame.to_numpy())
    with pytest.raises(ValueError, match="3 features, but BoundsClipper is expecting 2"):
        clipper.transform(np.ones((5, 3)))


def test_frames_and_arrays_pass_a_container_as_they_are():
    for data in (np.ones((2, 2)), pd.DataFrame([[1.0]]), pl.DataFrame({"a": [1.0]})):
        assert check_container("Model", "X", data) is data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 2e38, 1e-40])
@pytest.mark.parametrize("missing", [False, True])
def test_computed_values_are_copied_only_where_the_next_fit_would_refuse_one(dtype, odd, missing):
    values = np.array([[0.0, -1.0], [2.5, 1e30]], dtype=dtype, order="F")
    limits = {"largest": 1e35, "missing": missing}
    assert as_survivable(values, **limits) is values
    given = values.copy()
    given[1, 0] = odd
    met = given.copy()
    found = as_survivable(given, **limits)
    np.testing.assert_array_equal(given, met)
    np.testing.assert_array_equal(found, survivable(met, **limits))
    if not (missing and np.isnan(odd)) and not (dtype == np.float64 and odd == 1e-40):
        check_values("a fit", "X", found, **limits)
        assert found[1, 0] != odd
