"""Numbers as they were given: integers are never rounded on the way to their grid steps.

A double holds integers up to 2**53. Beyond, two neighbours that differ by one may become equal, or
come out hundreds apart, and the noise would be too small for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.quanta import nearest_quanta

_LARGEST_QUANTA = 2**62
_LARGEST_INTEGER = 2**53  # up to here a double holds every integer


def exact_numbers(value: ArrayLike) -> NDArray[Any]:
    """Return the value as an array in which no number was rounded: of Python numbers if need be."""
    array = np.asarray(value)
    if array.dtype.kind == "f" and not isinstance(value, np.ndarray):
        # numpy makes doubles of integers that stand beside a float, or beside very large ones.
        given = np.asarray(value, dtype=object)
        if given.shape != array.shape or not any(map(_is_large_integer, given.flat)):
            return array
        array = given
    if array.dtype.kind != "O" or not all(map(_is_real, array.flat)):
        return array
    plain = np.empty(array.size, dtype=object)
    plain[:] = [int(x) if isinstance(x, int | np.integer) else float(x) for x in array.flat]
    return plain.reshape(array.shape)


def are_real(array: NDArray[Any]) -> bool:
    """Return whether all entries are real numbers, of double precision or exact."""
    if array.dtype.kind == "O":
        return all(map(_is_real, array.flat))
    return array.dtype.kind in "iufb" and array.dtype.itemsize <= 8


def are_finite(array: NDArray[Any]) -> bool:
    """Return whether no entry of real numbers is infinite or NaN."""
    if array.dtype.kind == "O":
        return all(isinstance(x, int) or math.isfinite(x) for x in array.flat)
    return bool(np.isfinite(array).all())


def are_integers(array: NDArray[Any]) -> bool:
    """Return whether all entries of finite numbers are integers, of whatever dtype."""
    if array.dtype.kind == "O":
        return all(x == int(x) for x in array.flat)
    return array.dtype.kind in "iub" or bool((array == np.rint(array)).all())


def exact_quanta(value: NDArray[Any], grid_size: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/grid step as nearest integers, clipped to ±2**62."""
    # Large integers go by exact arithmetic, so that what one record moves is not rounded away or
    # up; all other numbers as skdpnoise.mechanisms.quanta.nearest_quanta says.
    large = are_large(value)
    if not large.any():
        return nearest_quanta(value.astype(np.float64), grid_size)
    quanta = np.empty(value.shape, dtype=np.int64)
    quanta[~large] = nearest_quanta(value[~large].astype(np.float64), grid_size[~large])
    quanta[large] = exact_integers(value[large].tolist(), grid_size[large].tolist())
    return quanta


def exact_integers(
    values: Sequence[Any],
    quanta: Sequence[float],
    nearest: Callable[[Fraction], int] = round,
    limit: int = _LARGEST_QUANTA,
) -> NDArray[np.int64]:
    """Return value/grid step as integers by exact arithmetic, clipped to ±limit."""
    quotients = (Fraction(v) / Fraction(q) for v, q in zip(values, quanta, strict=True))
    return np.array([min(max(nearest(x), -limit), limit) for x in quotients], dtype=np.int64)


def are_large(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are integers that a double may not hold: beyond 2**53."""
    if array.dtype.kind == "O":
        found = np.array([_is_large_integer(x) for x in array.flat], dtype=bool)
        return found.reshape(array.shape)
    large = np.zeros(array.shape, dtype=bool)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        large = array > _LARGEST_INTEGER
        if array.dtype.kind == "i":
            large |= array < -_LARGEST_INTEGER
    return large


def _is_large_integer(number: object) -> bool:
    return isinstance(number, int | np.integer) and abs(int(number)) > _LARGEST_INTEGER


def _is_real(number: object) -> bool:
    if isinstance(number, np.floating):
        return number.dtype.itemsize <= 8
    return isinstance(number, int | float | np.integer | np.bool_)
