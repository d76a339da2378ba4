"""Numbers as they were given: integers are never rounded on the way to their quanta.

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
    """Return the value as an array in which no number was rounded.

    Parameters
    ----------
    value : array-like
        What the caller gave.

    Returns
    -------
    ndarray
        Of objects, each a Python int or float, where no dtype of numpy holds all numbers; else as
        numpy reads it. What is not a real number is left for the caller to refuse.

    Examples
    --------
    >>> exact_numbers([2**60 + 1, 0.5]).tolist()
    [1152921504606846977, 0.5]
    >>> exact_numbers([1, 0.5])
    array([1. , 0.5])
    """
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
    """Return whether all entries are real numbers, of double precision or exact.

    Parameters
    ----------
    array : ndarray
        Of :func:`exact_numbers`.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_real(np.array([1.0])), are_real(np.array(["a"]))
    (True, False)
    """
    if array.dtype.kind == "O":
        return all(map(_is_real, array.flat))
    return array.dtype.kind in "iufb" and array.dtype.itemsize <= 8


def are_finite(array: NDArray[Any]) -> bool:
    """Return whether no entry is infinite or NaN.

    Parameters
    ----------
    array : ndarray
        Of real numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_finite(exact_numbers([2**70, 0.5])), are_finite(exact_numbers([2**70, np.nan]))
    (True, False)
    """
    if array.dtype.kind == "O":
        return all(isinstance(x, int) or math.isfinite(x) for x in array.flat)
    return bool(np.isfinite(array).all())


def are_integers(array: NDArray[Any]) -> bool:
    """Return whether all entries are integers, of whatever dtype.

    Parameters
    ----------
    array : ndarray
        Of finite real numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_integers(exact_numbers([2**70, 3.0])), are_integers(np.array([0.5]))
    (True, False)
    """
    if array.dtype.kind == "O":
        return all(x == int(x) for x in array.flat)
    return array.dtype.kind in "iub" or bool((array == np.rint(array)).all())


def exact_quanta(value: NDArray[Any], quantum: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return value/quantum as nearest integers, clipped to ±2**62.

    Doubles and small integers as :func:`~skdpnoise.mechanisms.quanta.nearest_quanta` says; larger
    integers by exact arithmetic, so that what one record moves is not rounded away or up.

    Parameters
    ----------
    value, quantum : ndarray of one shape
        In the same units; the quantum positive.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> exact_quanta(np.array([2**60 + 128, 2**60 + 129]), np.ones(2)) - 2**60
    array([128, 129])
    """
    large = _are_large(value)
    if not large.any():
        return nearest_quanta(value.astype(np.float64), quantum)
    quanta = np.empty(value.shape, dtype=np.int64)
    quanta[~large] = nearest_quanta(value[~large].astype(np.float64), quantum[~large])
    quanta[large] = exact_integers(value[large].tolist(), quantum[large].tolist())
    return quanta


def exact_integers(
    values: Sequence[Any],
    quanta: Sequence[float],
    nearest: Callable[[Fraction], int] = round,
    limit: int = _LARGEST_QUANTA,
) -> NDArray[np.int64]:
    """Return value/quantum as integers by exact arithmetic, clipped to ±limit.

    Examples
    --------
    >>> exact_integers([2**60 + 129, -1], [2.0, 2.0], math.floor)
    array([576460752303423552,                 -1])
    """
    quotients = (Fraction(v) / Fraction(q) for v, q in zip(values, quanta, strict=True))
    return np.array([min(max(nearest(x), -limit), limit) for x in quotients], dtype=np.int64)


def has_large_integers(array: NDArray[Any]) -> bool:
    """Return whether an entry is an integer that a double may not hold.

    Parameters
    ----------
    array : ndarray
        Of real numbers.

    Returns
    -------
    bool

    Examples
    --------
    >>> has_large_integers(np.array([2**53])), has_large_integers(np.array([2**53 + 1]))
    (False, True)
    """
    return bool(_are_large(array).any())


def _are_large(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are integers beyond 2**53."""
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
