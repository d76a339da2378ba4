"""Real values as integers of a grid size, exactly, and what the rounding costs.

A double holds integers up to 2**53. Beyond, two neighbours that differ by one may become equal, or
hundreds apart, and the noise would be too small for that: integers are never rounded before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import complaint
from skdpnoise.sensitivity import SensitivityProfile

_LARGEST_STEPS = 2**62
_LARGEST_INTEGER = 2**53  # up to here a double holds every integer
_DIGIT = 2.0**32
_ROUNDING = 1.0 + 1e-5  # nearest_steps errs by less than 1e-6 of a grid step


def norm_of_rounding(order: float, n_entries: int, bits: int) -> float:
    r"""Return a bound on the q-norm that rounding K entries to grid steps adds to a change.

    .. math:: K^{1/q} \, 2^{-B}
    """
    # Each entry gets at most one more grid step; a factor covers the error of nearest_steps.
    return math.ldexp(n_entries ** (1.0 / order), -bits) * _ROUNDING


def rounding_cost(
    sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    r"""Return a bound on the addition of rounding to the worst |d/s|_q of T releases.

    .. math:: (T K)^{1/q} \, 2^{-B}
    """
    # Each of the K coordinates that can move gets at most one more grid step, 2^-B of its noise
    # scale.
    moving = int(np.count_nonzero(sensitivity.per_coordinate))
    return norm_of_rounding(order, n_releases * moving, bits)


def check_whole_steps(owner: str, limit: NDArray[np.float64]) -> None:
    """Refuse noise on the integers for what moves by other numbers."""
    if (limit != np.rint(limit)).any():
        must = "be integer in every entry for noise on the integers"
        remedy = "Choose another noise, or express the query in whole units."
        raise ValueError(complaint(owner, "sensitivity", must, "fractions", remedy))


def check_precision(
    owner: str, name: str, unit: ArrayLike, bits: int, ends: tuple[float, float]
) -> None:
    """Refuse units that leave double precision, their grid steps included."""
    least, most = float(np.min(unit)), float(np.max(unit))
    if not (most <= ends[1] and least * 2.0**-bits >= ends[0]):
        must = "not be beyond double precision, grid steps included"
        given, remedy = f"{least:g} to {most:g}", "Choose units in which it is nearer to one."
        raise ValueError(complaint(owner, name, must, given, remedy))


def nearest_steps(value: NDArray[np.float64], grid_size: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/grid size as nearest integers, clipped to ±2**62."""
    # A float quotient alone is off by many units beyond 2**53, and that error would add to the
    # sensitivity. So the quotient is taken in two digits of base 2**32: the remainder of the first
    # is exact, hence so is the first digit, and the second is off by less than 1e-6 before
    # rounding. Clipping never moves two values further apart.
    limit = grid_size * float(_LARGEST_STEPS)
    clipped = np.clip(value, -limit, limit)
    large = grid_size * _DIGIT
    rest = np.fmod(clipped, large)
    high = np.rint(clipped / large - rest / large).astype(np.int64)
    low = np.rint(rest / grid_size).astype(np.int64)
    return high * int(_DIGIT) + low


def exact_numbers(value: ArrayLike) -> NDArray[Any]:
    """Return the value as an array of unrounded numbers: of Python objects if need be."""
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


def exact_array(owner: str, name: str, value: ArrayLike) -> NDArray[Any]:
    """Return finite real numbers as they are, unrounded, or refuse them."""
    array, masked = exact_numbers(value), np.ma.isMaskedArray(value)
    if masked or not are_real(array):
        must = "be an array of real numbers, integers or of double precision or less"
        given = "a masked array" if masked else f"an array of dtype {array.dtype}"
        raise TypeError(complaint(owner, name, must, given))
    if not are_finite(array):
        given, remedy = "NaN or infinity", "Remove or replace NaN and infinity first."
        raise ValueError(complaint(owner, name, "be finite in every entry", given, remedy))
    return array


def are_real(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "O":
        return all(map(_is_real, array.flat))
    return array.dtype.kind in "iufb" and array.dtype.itemsize <= 8


def are_finite(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "O":
        return all(isinstance(x, int) or math.isfinite(x) for x in array.flat)
    return bool(np.isfinite(array).all())


def are_integers(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "O":
        return all(x == int(x) for x in array.flat)
    return array.dtype.kind in "iub" or bool((array == np.rint(array)).all())


def exact_steps(value: NDArray[Any], grid_size: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/grid size as nearest integers, clipped to ±2**62, however large the value."""
    # Large integers go by exact arithmetic, so that what one record moves is not rounded away or
    # up; all other numbers as nearest_steps does.
    large = are_large(value)
    if not large.any():
        return nearest_steps(value.astype(np.float64), grid_size)
    integers = np.empty(value.shape, dtype=np.int64)
    integers[~large] = nearest_steps(value[~large].astype(np.float64), grid_size[~large])
    integers[large] = exact_integers(value[large].tolist(), grid_size[large].tolist())
    return integers


def exact_integers(
    values: Sequence[Any],
    grid_sizes: Sequence[float],
    nearest: Callable[[Fraction], int] = round,
    limit: int = _LARGEST_STEPS,
) -> NDArray[np.int64]:
    """Return value/grid size as integers by exact arithmetic, clipped to ±limit."""
    quotients = (Fraction(v) / Fraction(q) for v, q in zip(values, grid_sizes, strict=True))
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
