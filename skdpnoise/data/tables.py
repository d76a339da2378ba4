"""Tables of private data are converted and checked; no message shows a value of them."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from skdpnoise._utils.silence import silence
from skdpnoise.data.columns import as_frame, by_declared_type
from skdpnoise.data.computed import is_computed
from skdpnoise.data.fitted_kinds import NUMBER, as_fitted, kinds_in
from skdpnoise.data.kinds import kind_of, kinds_of
from skdpnoise.data.missing import missing_numbers
from skdpnoise.data.redaction import check_collected, without_values
from skdpnoise.data.sources import is_spread

FLOATS = [np.float64, np.float32]
LARGEST = 1e100  # squares and sums of more rows than fit in memory stay finite

FLAT = (
    "Expected 2D array, got an array with fewer dimensions in {}. Reshape your data with "
    "X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one sample."
)

_NAMED = 8  # columns that a message names
_BLOCK = 1 << 15  # entries that are looked at together, while they are in the cache
_TEMPORAL = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NOT_A_SERIES = (str, bytes, dict, set, frozenset)


def read_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool = True,
    largest: float = LARGEST,
    keeps_subnormal: bool = False,
    missing: bool = False,
    **options: Any,
) -> NDArray[Any]:
    """Return X as an array of float32 or float64, finite and of a size that sums survive."""
    # With `missing` a NaN stands for no value, and stays.
    options |= {"reset": reset, "dtype": FLOATS, "ensure_all_finite": False}
    # New data may be those of the fit, on their way through a pipeline.
    with silence() if reset else np.errstate(all="ignore"):
        if type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS:
            table: NDArray[Any] = validate_data(estimator, X, **options)  # refuses shapes alone
        else:
            table = _converted(estimator, X, options)
    if not reset:
        largest, keeps_subnormal = np.inf, True
    limits: dict[str, Any] = {"largest": largest, "keeps_subnormal": keeps_subnormal}
    if is_computed("X", estimator):
        return surviving(table, missing=missing, **limits)
    check_values(type(estimator).__name__, "X", table, missing=missing, **limits)
    return table


def _converted(estimator: Any, X: Any, options: dict[str, Any]) -> NDArray[Any]:
    owner, reset = type(estimator).__name__, options["reset"]
    if isinstance(X, list | tuple):
        X = check_container(owner, "X", X)
    X = as_frame(X)
    values = not is_computed("X", estimator)
    if not (reset or isinstance(X, np.ma.MaskedArray) or is_complex(X)):
        kinds = kinds_in(X) or ()
        X = as_fitted(owner, X, [NUMBER] * len(kinds), given=kinds, values=values)
    X = check_container(owner, "X", X)
    if reset:
        _check_numbers(owner, X, values=values)
    if hasattr(X, "columns") and not hasattr(X, "column_names"):  # which tables of Arrow have
        X = by_declared_type(owner, X)
    X = _with_plain_gaps(X)
    otherwise, of_columns = _unreadable(owner, "X", X, reset=reset), bool(_not_numbers(X))

    def convert() -> NDArray[Any]:
        table: NDArray[Any] = validate_data(estimator, X, **options)
        return table

    return without_values(convert, otherwise, of_columns=of_columns)


def _with_plain_gaps(X: Any) -> Any:
    """Return a table whose objects have NaN where pandas' NA stands for a missing number."""
    objects = _object_columns("X", X)
    if not any(type(cell).__name__ == "NAType" for _, column in objects for cell in column):
        return X
    import pandas

    given = pandas.DataFrame(X) if isinstance(X, np.ndarray) else X
    plain = given.map(lambda cell: np.nan if cell is pandas.NA else cell)
    return plain.to_numpy(dtype=object) if isinstance(X, np.ndarray) else plain


def _check_numbers(owner: str, X: Any, *, values: bool) -> None:
    """Refuse columns that are not declared as numbers, whatever their text says."""
    kinds = {kind.name for kind in kinds_in(X) or ()} - {"number", "boolean"}
    if kinds - {"objects"}:
        raise ValueError(_unreadable(owner, "X", X))
    objects = _object_columns("X", X) if values else ()
    types = {one for _, column in objects for one in map(type, column)}
    if any(issubclass(one, str | bytes) for one in types):
        raise ValueError(_unreadable(owner, "X", X))


def is_complex(X: Any) -> bool:
    """Return whether an array is of complex numbers, which are refused by what they are."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "c"


def surviving(
    table: NDArray[Any], *, largest: float = LARGEST, missing: bool = False, **limits: Any
) -> NDArray[Any]:
    """Return a copy of what a step computed, as the next fit takes it; NaN may be no value."""
    copy = survivable(table.copy("K"), largest=largest, **limits)
    if missing:
        copy[np.isnan(table)] = np.nan
    return copy


def read_projections(owner: str, X: Any, n_columns: int) -> NDArray[Any]:
    """Return what a transformer of other columns is to undo, with so many columns."""
    X = check_container(owner, "X", X)
    table: NDArray[Any] = without_values(
        lambda: check_array(X, dtype=FLOATS, ensure_all_finite=False, input_name="X"),
        _unreadable(owner, "X", X, reset=False),
    )
    check_values(owner, "X", table, largest=np.inf, keeps_subnormal=True)
    if table.shape[1] != n_columns:
        raise ValueError(
            f"X has {table.shape[1]} features, but {owner}.inverse_transform is expecting "
            f"{n_columns} features as input."
        )
    return table


def check_container(owner: str, name: str, data: Any) -> Any:
    """Return the data, lists as arrays; refuse what would lose its meaning as numbers."""
    data = check_form(owner, name, data)
    check_types(owner, name, data)
    for where, column in _object_columns(name, data):
        check_objects(owner, where, set(map(type, column)))
    return data


def check_types(owner: str, name: str, data: Any) -> None:
    """Refuse declared types of columns that are no numbers, text or objects."""
    columns = _columns(data)
    for place, dtype in enumerate(_dtypes(data)):
        _check_dtype(owner, _where(name, columns, place), dtype)


def check_form(owner: str, name: str, data: Any) -> Any:
    """Return the data, lists as arrays; refuse what is no table."""
    if data is None:
        raise ValueError(f"{owner} needs the data {name}. Got None instead.")
    check_collected(owner, name, data)
    if is_spread(type(data)):
        raise TypeError(
            f"{owner} needs all rows of {name} in memory here. Got rows in parts, which fits of "
            "sums and methods of single rows read: give an array or a frame."
        )
    if issparse(data) or type(data).__module__.partition(".")[0] == "sparse":
        raise TypeError(
            f"Sparse data was passed for {name}, but {owner} needs dense data. Use '.toarray()' "
            "to convert to a dense numpy array."
        )
    if isinstance(data, _NOT_A_SERIES):
        raise ValueError(
            f"{owner} needs {name} as an array or a frame. Got an object of type "
            f"{type(data).__name__} instead: Expected 2D array for X, and 1D array for y."
        )
    if isinstance(data, list | tuple):
        if any(isinstance(row, np.ma.MaskedArray) for row in data):
            raise _masked(owner, name)
        with silence():
            listed = data
            data = without_values(lambda: np.asarray(listed), _unreadable(owner, name, listed))
    if isinstance(data, np.ma.MaskedArray):
        raise _masked(owner, name)
    return data


def check_objects(owner: str, name: str, types: Iterable[type]) -> None:
    """Refuse types of single values that numpy would turn into numbers, or into no error."""
    for kind in types:
        if issubclass(kind, _TEMPORAL):
            raise _temporal(owner, name)
        if issubclass(kind, np.ma.MaskedArray):
            raise _masked(owner, name)
        if issubclass(kind, numbers.Complex) and not issubclass(kind, numbers.Real):
            raise complex_data(owner, name)


def check_infinite(estimator: Any, columns: Iterable[Any]) -> None:
    """Refuse infinite numbers that a user passes, in columns that may have missing ones."""
    floats = (one for one in columns if isinstance(one, np.ndarray) and one.dtype.kind == "f")
    if not is_computed("X", estimator) and any(np.isinf(column).any() for column in floats):
        raise ValueError(
            f"Input X contains infinity. {type(estimator).__name__} needs numbers that are finite "
            "or missing: clip them to public bounds."
        )


def check_values(
    owner: str,
    name: str,
    values: NDArray[Any],
    *,
    largest: float = LARGEST,
    keeps_subnormal: bool = False,
    missing: bool = False,
) -> None:
    """Refuse values that are not finite, or too large or too small for sums of them."""
    if missing:  # where NaN stands for no value
        values = np.where(np.isnan(values), values.dtype.type(0.0), values)
    # The bits of floating-point numbers without their sign are ordered as the magnitudes are, so
    # that one sweep in integers finds the largest and the smallest.
    size = values.dtype.itemsize
    whole: Any = np.uint32 if size == 4 else np.uint64
    magnitude = whole(2 ** (8 * size - 1) - 1)
    limits = np.finfo(values.dtype)
    most = _bits(min(largest, float(limits.max)), values.dtype)
    # Zero becomes the largest integer, so that the smallest magnitude is that of another number.
    fewest = whole(0) if keeps_subnormal else _bits(float(limits.tiny), values.dtype) - whole(1)
    finite_is_enough = keeps_subnormal and largest == np.inf
    # Some at a time in the order of memory, without a copy of all of them.
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    for block in cast(Any, np.nditer(values, flags, order="K", buffersize=_BLOCK)):
        if finite_is_enough and _sums_to_a_number(block):
            continue
        bits = np.bitwise_and(block.view(whole), magnitude)
        if bits.max() > most:
            raise _beyond(owner, name, values, largest)
        if not keeps_subnormal and np.subtract(bits, whole(1), out=bits).min() < fewest:
            raise ValueError(
                f"Input {name} of {owner} contains subnormal values (not zero, but below "
                f"{float(limits.tiny):.3g}), which have lost their digits. Rescale {name}, or set "
                "them to zero."
            )


def _sums_to_a_number(block: NDArray[Any]) -> bool:
    """Return whether the sum is finite, so that all entries are."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(block.sum()))


def survivable(
    values: NDArray[Any], *, largest: float = LARGEST, keeps_subnormal: bool = False
) -> NDArray[Any]:
    """Return what a step computed, changed in place, as the next fit takes it."""
    # A fit behind it in a pipeline comes after the charge, and must not fail for a value: what is
    # beyond the limits becomes the limit, what is subnormal or undefined becomes zero. Each value
    # is changed by itself, and none that check_values accepts.
    limits = np.finfo(values.dtype)
    most = values.dtype.type(min(largest, float(limits.max)))
    np.nan_to_num(values, copy=False, nan=0.0, posinf=most, neginf=-most)
    np.clip(values, -most, most, out=values)
    if not keeps_subnormal:
        values[np.abs(values) < limits.tiny] = 0.0
    return values


def _bits(value: float, dtype: np.dtype[Any]) -> Any:
    whole = np.uint32 if dtype.itemsize == 4 else np.uint64
    return np.asarray(value, dtype=dtype).view(whole)[()]


def _beyond(owner: str, name: str, values: NDArray[Any], largest: float) -> ValueError:
    if np.isnan(values).any():
        return missing_numbers(owner, name)
    if np.isinf(values).any():
        return ValueError(
            f"Input {name} contains infinity or a value too large for {values.dtype}. {owner} "
            "needs finite values: clip them to public bounds."
        )
    return ValueError(
        f"Input {name} of {owner} contains values beyond {largest:g} in magnitude: their "
        f"sums could overflow. Rescale {name}."
    )


def _dtypes(data: Any) -> list[Any]:
    """Return the types of the columns, as far as the container knows them."""
    if hasattr(data, "schema") and hasattr(data.schema, "types"):
        return list(data.schema.types)  # of pyarrow
    found = getattr(data, "dtypes", None)
    if found is None:
        found = getattr(data, "dtype", None)
    if found is None:
        return []
    return list(found) if hasattr(found, "__iter__") and not isinstance(found, type) else [found]


def _check_dtype(owner: str, where: str, dtype: Any) -> None:
    # Categories hold values of one type, and are read as these values.
    inner = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    temporal = getattr(dtype, "is_temporal", None)  # of polars
    kind = getattr(inner, "kind", None)
    timed = kind in ("m", "M") or (callable(temporal) and temporal()) or _is_arrow_time(dtype)
    if timed or kind_of(dtype).name == "date":
        raise _temporal(owner, where)
    if kind == "c":
        raise complex_data(owner, where)
    if hasattr(dtype, "fill_value") and hasattr(dtype, "subtype"):  # of pandas
        raise TypeError(
            f"Sparse data was passed for {where}, but {owner} needs dense data. Use "
            "'X.sparse.to_dense()' to make the columns dense."
        )
    if kind_of(dtype).name == "other" or str(dtype) == "null[pyarrow]":
        raise TypeError(
            f"{owner} needs numbers, and {where} is declared to hold values of another type. "
            "Convert it to numbers or text first, or leave it out."
        )


def _is_arrow_time(dtype: Any) -> bool:
    if type(dtype).__module__.partition(".")[0] != "pyarrow":
        return False
    import pyarrow

    return bool(pyarrow.types.is_temporal(dtype))


def _object_columns(name: str, data: Any) -> Iterator[tuple[str, Iterable[Any]]]:
    """Yield columns whose values may be of any type, and how each is called."""
    objects = [j for j, dtype in enumerate(_dtypes(data)) if str(dtype) in ("object", "Object")]
    if getattr(data, "ndim", 0) == 1 or isinstance(data, np.ndarray):
        yield from ((name, np.ravel(data)) for _ in objects)
    elif hasattr(data, "iloc"):
        yield from ((_where(name, data.columns, j), data.iloc[:, j]) for j in objects)
    elif hasattr(data, "to_series"):  # of polars
        yield from ((_where(name, data.columns, j), data.to_series(j)) for j in objects)


def _where(name: str, columns: Any, place: int) -> str:
    """Return how messages call a column; all of an array, or of a list, have one type."""
    return name if columns is None else f"column {columns[place]!r} of {name}"


def _columns(data: Any) -> Any:
    """Return the names of the columns of a frame, or of a table of Arrow; None of others."""
    names = getattr(data, "columns", None)
    if names is None or (hasattr(data, "schema") and hasattr(data.schema, "field")):  # of pyarrow
        names = getattr(data, "column_names", None)
    return names


def _masked(owner: str, name: str) -> TypeError:
    return TypeError(
        f"{owner} does not support masked arrays: {name} would be read without its mask. Fill what "
        "is masked by a public constant, as in numpy.ma.filled(..., 0.0)."
    )


def _temporal(owner: str, where: str) -> TypeError:
    return TypeError(
        f"{owner} needs numbers, and {where} has dates, times or durations. Turn them into numbers "
        "of a unit of your choice first, such as days since a public date."
    )


def complex_data(owner: str, name: str) -> ValueError:
    return ValueError(
        f"Complex data not supported by {owner}. Give the real and the imaginary part of {name} as "
        "two columns."
    )


def _unreadable(owner: str, name: str, data: Any, *, reset: bool = True) -> str:
    """Return what is said where numpy or scikit-learn would quote the data."""
    shape = getattr(data, "shape", None)
    if (isinstance(shape, tuple) and len(shape) < 2 and name == "X") or np.isscalar(data):
        return FLAT.format(owner)
    where = _not_numbers(data) or (
        f"{name} has text, or values of another kind (they are not shown; {name}.dtype or "
        f"numpy.asarray({name}, dtype=float) would tell)"
    )
    if not reset:
        return (
            f"{owner} was fitted to numbers, and {where}. Convert them as before the fit: text by "
            "pandas.to_numeric, for example."
        )
    return (
        f"{owner} needs numbers, and {where}. Let a DPTableVectorizer make numbers of text, dates "
        "and categories: DPPipeline([('table', DPTableVectorizer()), ('model', "
        f"{owner}(...))]). Numbers that are text become numbers by pandas.to_numeric, or by "
        "astype(float)."
    )


def _not_numbers(data: Any) -> str:
    """Return which columns of a frame are not declared as numbers, by types alone; '' if none."""
    names = _columns(data)
    if names is None:
        return ""
    kinds = zip(names, kinds_of(data), strict=True)
    found = [str(name) for name, kind in kinds if kind.name not in ("number", "boolean")]
    shown = ", ".join(map(repr, found[:_NAMED])) + (", ..." if len(found) > _NAMED else "")
    return f"these columns of X are not declared as numbers: {shown}" if found else ""
