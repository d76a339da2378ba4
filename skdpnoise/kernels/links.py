r"""Inverse links of one row that are the same bits in any block, on any machine.

Vectorised exponentials may differ in the last bit from the scalar ones that end a block, and from
those of another processor. Here everything is made of additions, multiplications, divisions and
roundings, each of which IEEE 754 defines to the last bit, in an order that is written down:

.. math:: e^x = 2^k e^r, \qquad k = \mathrm{round}(x / \log 2), \quad |r| \le \tfrac12 \log 2

with the polynomial of degree 13 of Taylor's series for :math:`e^r`, to a few units in the last
place (Cody and Waite, "Software manual for the elementary functions", 1980, chapter 6).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["exponential", "exponential_mean", "logistic_mean", "softmax"]

Floats = NDArray[np.float64]

_LOG2_E = 1.4426950408889634
# log 2 in two parts: multiples of the first are exact up to 2**20.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_TAYLOR = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_FARTHEST = 700.0  # so that no exponential over- or underflows


def exponential(x: Floats) -> Floats:
    """Return e^x, of arguments up to 700 in magnitude."""
    x = np.clip(x, -_FARTHEST, _FARTHEST)
    k = np.rint(x * _LOG2_E)
    r = x - k * _LOG2_HIGH
    r -= k * _LOG2_LOW
    series = np.full_like(r, _TAYLOR[0])
    for coefficient in _TAYLOR[1:]:
        series *= r
        series += coefficient
    return np.asarray(np.ldexp(series, k.astype(np.int32)))


def logistic_mean(scores: Floats) -> Floats:
    r"""Return :math:`1 / (1 + e^{-s})`."""
    small = exponential(-np.abs(scores))
    total = small + 1.0
    return np.where(scores < 0.0, small / total, 1.0 / total)


def softmax(scores: Floats) -> Floats:
    r"""Return :math:`e^{s_k} / \sum_l e^{s_l}` of every row; sums go from the first class on."""
    small = exponential(scores - scores.max(axis=1, keepdims=True))
    total = in_turn(small)
    return np.asarray(small / total[:, np.newaxis])


def exponential_mean(scores: Floats) -> Floats:
    """Return e^s, of arguments up to 40 in magnitude: larger ones count as ±40."""
    return exponential(np.clip(scores, -40.0, 40.0))


def in_turn(values: Floats) -> Floats:
    """Return the sum of every row, from the first column to the last."""
    total = values[:, 0].copy()
    for column in values.T[1:]:
        total += column
    return total
