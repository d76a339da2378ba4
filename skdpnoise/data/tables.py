"""Tables of private data are converted and checked; no message shows a value of them."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from skdpnoise._utils.silence import silence
from skdpnoise.data.cells import cells_of, column_of, kinds_of, types_of
from skdpnoise.data.columns import as_frame, by_declared_type, is_polars, objects_of, read_once
from skdpnoise.data.computed import is_computed
from skdpnoise.data.fitted_kinds import AS_PARAMETERS_SAY, NUMBER, as_fitted, differing
from skdpnoise.data.kinds import Kind, kind_of
from skdpnoise.data.missing import missing_numbers
from skdpnoise.data.redaction import check_collected, without_values
from skdpnoise.data.sources import is_spread

FLOATS = [np.float64, np.float32]
LARGEST = 1e100  # squares and sums of more rows than fit in memory stay finite

FLAT = (
    "Expected 2D array, got an array with fewer dimensions in {}. Reshape your data with "
    "X.reshape(-1, 1) if it has one feature, or X.reshape(1, -1) if it is one sample."
)

Kinds = Sequence[Kind | None]
Expected = Kinds | Callable[[Sequence[Any], Sequence[Kind]], Kinds] | None

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
        return as_survivable(table, missing=missing, **limits)
    check_values(type(estimator).__name__, "X", table, missing=missing, **limits)
    return table


def read_any_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    dates: bool = False,
    finite: bool = False,
    expected: Expected = None,
) -> Any:
    """Return a frame or an array of which no single value decides how the others are read."""
    # `expected` are the kinds of the columns at the fit; or, in a fit, what makes them of names and
    # declared kinds, for what parameters say of the columns.
    owner = type(estimator).__name__
    X = _rows_as_array(owner, X) if isinstance(X, list | tuple) else X
    X = read_once(owner, X, listed=_as_it_is)
    X = check_form(owner, "X", X)
    _check_shape(owner, getattr(X, "shape", ()))
    other = f"The names of the columns of X are not those that {owner} was fitted to."
    with silence(), without_values(other):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    kinds = kinds_of(X)
    if callable(expected):
        names = [*map(str, X.columns)] if hasattr(X, "columns") else range(X.shape[1])
        expected = expected(names, kinds) if kinds else None
    if reset:
        estimator._kinds = kinds
    if differences := differing(expected, kinds):
        why = AS_PARAMETERS_SAY if reset else "as in fit"
        X = as_fitted(owner, X, differences, why=why, values=not is_computed("X", estimator))
    if not dates:  # else whoever reads dates says of each column what it can be
        _refuse_dates(owner, X)
        check_types(owner, "X", X)
    if not (isinstance(X, np.ndarray) or hasattr(X, "iloc") or is_polars(X)):
        return by_declared_type(owner, X)  # which refuses it
    if finite and not is_computed("X", estimator):
        for place in (place for place, kind in enumerate(kinds) if kind.name == "number"):
            cells = cells_of(X, place)  # a list of whole numbers that no float holds, or an array
            if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and np.isinf(cells).any():
                raise ValueError(
                    f"Input X contains infinity. {owner} needs numbers that are finite or missing: "
                    "clip them to public bounds."
                )
    return X


def _converted(estimator: Any, X: Any, options: dict[str, Any]) -> NDArray[Any]:
    owner, reset = type(estimator).__name__, options["reset"]
    listed = isinstance(X, list | tuple)
    X = check_container(owner, "X", X) if listed else check_form(owner, "X", as_frame(X))
    values = not is_computed("X", estimator)
    if not reset:
        kinds = kinds_of(X)
        X = as_fitted(owner, X, differing([NUMBER] * len(kinds), kinds), values=values)
    X = check_container(owner, "X", X)
    if reset:
        _check_numbers(owner, X, values=values)
    if hasattr(X, "columns") and not hasattr(X, "column_names"):  # which tables of Arrow have
        X = by_declared_type(owner, X)
    X = _with_plain_gaps(X)
    otherwise, of_columns = _unreadable(owner, "X", X, reset=reset), bool(_not_numbers(X))
    with without_values(otherwise, of_columns=of_columns):
        table: NDArray[Any] = validate_data(estimator, X, **options)
    return table


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
    kinds = {kind.name for kind in kinds_of(X)} - {"number", "boolean"}
    if kinds - {"objects"}:
        raise ValueError(_unreadable(owner, "X", X))
    objects = _object_columns("X", X) if values else ()
    types = {one for _, column in objects for one in map(type, column)}
    if any(issubclass(one, str | bytes) for one in types):
        raise ValueError(_unreadable(owner, "X", X))


def read_projections(owner: str, X: Any, n_columns: int) -> NDArray[Any]:
    """Return what a transformer of other columns is to undo, with so many columns."""
    X = check_container(owner, "X", X)
    with without_values(_unreadable(owner, "X", X, reset=False)):
        table: NDArray[Any] = check_array(X, dtype=FLOATS, ensure_all_finite=False, input_name="X")
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


def _refuse_dates(owner: str, X: Any) -> None:
    """Refuse columns of dates, which are no categories, by their names."""
    dates = [k for k, kind in enumerate(kinds_of(X)) if kind.name == "date"]
    if dates:
        name = X.columns[dates[0]] if hasattr(X, "columns") else f"x{dates[0]}"
        raise TypeError(
            f"{owner} takes categories, and column {name!r} of X has dates, of which nearly every "
            "record has its own. Use DPTableVectorizer, which takes dates; or make few categories "
            f"of them first, as in X[{name!r}].dt.year."
        )


def _as_it_is(owner: str, data: Any) -> Any:
    return data


def _check_shape(owner: str, shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(FLAT.format(owner))
    if 0 in shape:
        which = ("sample", "feature")[shape.index(0)]
        raise ValueError(
            f"Found array with 0 {which}(s) (shape={shape}) while a minimum of 1 is required by "
            f"{owner}."
        )


def _rows_as_array(owner: str, rows: Any) -> NDArray[Any]:
    """Return a list of rows as an array of objects: no value decides how the others are read."""
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in rows}
    if len(lengths) > 1 or -1 in lengths:
        raise ValueError(FLAT.format(owner))
    return objects_of(rows) if lengths else np.empty((0, 0), dtype=object)


def check_types(owner: str, name: str, data: Any) -> None:
    """Refuse declared types of columns that are no numbers, text or objects."""
    columns = _columns(data)
    for place, dtype in enumerate(types_of(data)):
        _check_dtype(owner, _where(name, columns, place), dtype)


def check_form(owner: str, name: str, data: Any) -> Any:
    """Return the data, lists as arrays; refuse what is no table."""
    if data is None:
        raise ValueError(f"{owner} needs the data {name}. Got None instead.")
    check_collected(owner, name, type(data))
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
        with silence(), without_values(_unreadable(owner, name, data)):
            data = np.asarray(data)
    if isinstance(data, np.ma.MaskedArray):
        raise _masked(owner, name)
    if isinstance(data, np.ndarray) and data.dtype.kind == "c":
        raise complex_data(owner, name)
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
    values = _known(values) if missing else values
    fault = _fault(values, largest, keeps_subnormal=keeps_subnormal)
    if fault == "beyond":
        raise _beyond(owner, name, values, largest)
    if fault == "subnormal":
        raise ValueError(
            f"Input {name} of {owner} contains subnormal values (not zero, but below "
            f"{float(np.finfo(values.dtype).tiny):.3g}), which have lost their digits. Rescale "
            f"{name}, or set them to zero."
        )


def _known(values: NDArray[Any]) -> NDArray[Any]:
    """Return values with 0 where NaN stands for none."""
    return np.where(np.isnan(values), values.dtype.type(0.0), values)


def _fault(values: NDArray[Any], largest: float, *, keeps_subnormal: bool) -> str | None:
    """Return what is wrong with values: "beyond" or "subnormal", or None."""
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
            return "beyond"
        if not keeps_subnormal and np.subtract(bits, whole(1), out=bits).min() < fewest:
            return "subnormal"
    return None


def _sums_to_a_number(block: NDArray[Any]) -> bool:
    """Return whether the sum is finite, so that all entries are."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(block.sum()))


def as_survivable(
    values: NDArray[Any],
    *,
    largest: float = LARGEST,
    keeps_subnormal: bool = False,
    missing: bool = False,
) -> NDArray[Any]:
    """Return computed values as the next fit takes them: themselves, or a copy that is changed."""
    limits: dict[str, Any] = {"largest": largest, "keeps_subnormal": keeps_subnormal}
    if _fault(_known(values) if missing else values, **limits) is None:
        return values
    return survivable(values.copy("K"), missing=missing, **limits)


def survivable(
    values: NDArray[Any],
    *,
    largest: float = LARGEST,
    keeps_subnormal: bool = False,
    missing: bool = False,
) -> NDArray[Any]:
    """Return what a step computed, changed in place, as the next fit takes it."""
    # A fit behind it in a pipeline comes after the charge, and must not fail for a value: what is
    # beyond the limits becomes the limit, what is subnormal or undefined becomes zero. Each value
    # is changed by itself, and none that check_values accepts. With `missing` NaN is no value.
    gaps = np.isnan(values) if missing else None
    limits = np.finfo(values.dtype)
    most = values.dtype.type(min(largest, float(limits.max)))
    np.nan_to_num(values, copy=False, nan=0.0, posinf=most, neginf=-most)
    np.clip(values, -most, most, out=values)
    if not keeps_subnormal:
        values[np.abs(values) < limits.tiny] = 0.0
    if gaps is not None:
        values[gaps] = np.nan
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
    objects = [j for j, dtype in enumerate(types_of(data)) if str(dtype) in ("object", "Object")]
    if getattr(data, "ndim", 0) == 1 or isinstance(data, np.ndarray):
        yield from ((name, np.ravel(data)) for _ in objects)
    elif hasattr(data, "iloc") or hasattr(data, "to_series"):  # frames of pandas or polars
        yield from ((_where(name, data.columns, j), column_of(data, j)) for j in objects)


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
