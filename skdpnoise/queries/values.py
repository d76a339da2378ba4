"""Values that a public function takes, checked, as a table of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.cells import kinds_of
from skdpnoise.data.kinds import OBJECTS
from skdpnoise.data.missing import Missing, with_gaps
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table, scanned
from skdpnoise.kernels.sweeps import all_finite
from skdpnoise.kernels.tiles import Floats

MISSING = float(np.finfo(np.float64).max)  # what a missing value counts as: beyond all others


def in_columns(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.ndim > 1 else array[:, np.newaxis]


def as_floats(array: NDArray[Any], *, fills: bool = False) -> NDArray[np.floating]:
    """Return columns of floats as they are, other numbers as doubles, and perhaps no NaN."""
    columns = array if array.ndim > 1 else array[:, np.newaxis]
    if columns.dtype.kind != "f":  # no loop is compiled for each type of whole numbers
        return columns.astype(np.float64)
    if not fills:  # a copy of large data would be as large again
        return columns
    with np.errstate(over="ignore"):  # a warning would tell of a single record
        filled = np.array(columns, dtype=np.float64)
    absent, most = np.isnan(filled), np.nextafter(MISSING, 0.0)
    np.minimum(filled, most, out=filled)
    filled[absent] = MISSING
    return filled


def ends(owner: str, low: Any, high: Any, bounds: Any) -> tuple[Any, Any]:
    one_by_one = low is not None and high is not None
    if bounds is None and one_by_one:
        return low, high
    if bounds is None or not (low is None and high is None):
        raise TypeError(f"{owner} needs public bounds: pass 'bounds' as (low, high), once.")
    if not (isinstance(bounds, list | tuple) and len(bounds) == 2):
        raise TypeError(
            f"The 'bounds' parameter of {owner} must be (low, high). Got "
            f"{type(bounds).__name__} instead."
        )
    return bounds[0], bounds[1]


def as_table(
    owner: str,
    values: Any,
    *,
    n_dims: tuple[int, ...] = (1, 2),
    missing: Missing | None = None,
    fewest: int = 0,
    each: Callable[[NDArray[Any]], NDArray[Any]] = in_columns,
) -> tuple[Table[NDArray[Any]], Callable[[Floats], Any]]:
    """Return what a function makes of the columns, and what gives results the input's shape."""
    # What is missing is NaN in the columns, where it is skipped.
    name = "columns" if n_dims == (2,) else "values"  # as queries call what they take
    check = partial(_checked_values, owner, name, n_dims, missing)
    rows, tail = read_values(owner, values, check, partial(_as_array, missing=missing))
    if len(rows) < fewest:
        raise ValueError(f"The {name!r} parameter of {owner} must not be empty.")
    shape, tail = (np.asarray, tail) if tail else (_first, (1,))
    return rows.map(each, *tail).or_else(np.empty((0, *tail))), shape


def read_values(
    owner: str, values: Any, check: Callable[[Any], Any], read: Callable[[Any], Any] | None = None
) -> tuple[Table[Any], tuple[int, ...]]:
    """Return checked values and the shape of one record; a table was checked by its reader."""
    # `check` and `read` make arrays, or lists, of some values; `read` need not check them again.
    rows, tails = scanned(
        partial(_checked_and_tail, check), partial(_of_values, read or check), values=values
    )
    if rows is values:
        return rows, rows.tail
    if len(set(tails)) > 1:
        raise ValueError(f"{owner} needs the same columns in all partitions of the rows.")
    return rows, tails[0] if tails else values.shape[1:]


def _checked_and_tail(
    check: Callable[[Any], Any], tables: dict[str, Any]
) -> tuple[Any, tuple[int, ...]]:
    array = check(tables["values"])
    return array, array.shape[1:] if isinstance(array, np.ndarray) else ()


def _of_values(read: Callable[[Any], Any], tables: dict[str, Any]) -> Any:
    return read(tables["values"])


def _as_array(values: Any, missing: Missing | None = None) -> NDArray[Any]:
    """Return values as an array: of a frame of floats as they lie in memory, in no time."""
    frame = hasattr(values, "iloc")
    if missing != "skip":
        # Not of all that has the method: arrays of pyarrow refuse what they would have to copy.
        array = np.asarray(values.to_numpy() if frame else values)
        # pandas makes objects of numbers of its own types where one is missing.
        if array.dtype.kind != "O" or not frame or OBJECTS in kinds_of(values):
            return array
    found = with_gaps(values)
    return np.asarray(values) if found is None else found


def _first(result: Floats) -> float:
    return float(result[0])


def _checked_values(
    owner: str, name: str, n_dims: tuple[int, ...], missing: Missing | None, values: Any
) -> NDArray[Any]:
    check_collected(owner, name, type(values))
    shapes = " or ".join(["(n_records,)", "(n_records, n_columns)"][n - 1] for n in n_dims)
    allowed = f"The {name!r} parameter of {owner} must be an array of real numbers, shape {shapes}"
    if np.ma.isMaskedArray(values) and missing != "skip":
        raise TypeError(f"{allowed}. Got a masked array, whose mask would be lost, instead.")
    array = _as_array(values, missing)
    skip = "" if missing is None else ", or give missing='skip' to leave out what is missing"
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{allowed}. Got an array of dtype {array.dtype} instead.")
    if array.ndim not in n_dims or 0 in array.shape[1:]:
        raise ValueError(f"{allowed}. Got an array of shape {array.shape} instead.")
    if missing == "skip":
        if np.isinf(array).any():
            raise ValueError(f"{allowed}, finite or missing in every entry: clip infinity first.")
    elif not all_finite(array):
        raise ValueError(
            f"{allowed}, finite in every entry: remove or replace NaN and infinity first{skip}."
        )
    return array
