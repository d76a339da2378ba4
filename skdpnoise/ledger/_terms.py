"""Losses taken apart: sums for the plain rules of composition, curves and shifts for the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv, ndtri_exp

from skdpnoise.privacy import (
    GaussianLoss,
    LossCurve,
    NormalShift,
    NumericLoss,
    PrivacyLoss,
    PureLoss,
    RandomisedResponse,
)

__all__ = ["SUMS", "Groups", "Parts", "arrays", "compact", "gaussian_mu_of_pure", "on_grid"]

SUMS = Context(prec=40, rounding=ROUND_CEILING)
_PER_OCTAVE = 512  # steps of the grid of shifts in a doubling
_MARGIN = 1e-12  # of the inverse error function
_TOLERANCE = 1e-13  # of a largest loss

Groups = list[tuple[LossCurve, NDArray[np.float64], NDArray[np.float64]]]


class Parts(NamedTuple):
    """What a loss adds to each sum."""

    bounded: Decimal  # ε of all but normal shifts; infinity if there is none
    normal: Decimal  # μ² of normal shifts
    squares: Decimal  # μ² of Gaussian bounds of everything
    terms: Sequence[tuple[LossCurve, float, int]]  # all but normal shifts


def gaussian_mu_of_pure(epsilon: float) -> float:
    r"""Return the smallest μ such that every ε-private release is μ-Gaussian private, rounded up.

    .. math:: \mu = 2 \Phi^{-1}\left(\frac{e^{\varepsilon}}{1 + e^{\varepsilon}}\right)

    Reference: Dong, Roth and Su, "Gaussian differential privacy", arXiv:1905.02383, Definition 2.6.
    """
    if not math.isfinite(epsilon):
        return math.inf
    if epsilon < 1.0:  # tanh(ε/2) = erf(μ / sqrt 8)
        mu = math.sqrt(8.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return mu * (1.0 + _MARGIN)


def compact(loss: PrivacyLoss, most: int = 200) -> PrivacyLoss:
    """Return a loss with few terms that is at least as large."""
    if not isinstance(loss, NumericLoss) or len(loss.terms) <= most:
        return loss
    terms: list[tuple[LossCurve, float, int]] = []
    for curve, shifts, counts in arrays(by_curve(loss.terms)):
        if shifts.size > most:
            # From the largest shift downwards, in steps that use up what there is of room.
            span = math.log(shifts[-1] / max(shifts[0], 1e-4 * shifts[-1]))
            step = span / (most - 2)
            rank = np.floor(np.log(shifts[-1] / shifts) / step + 1e-9)
            rank = np.minimum(rank, most - 1)
            up = np.maximum.reduceat(shifts, np.flatnonzero(np.diff(rank, prepend=-1.0)))
            counts = np.add.reduceat(counts, np.flatnonzero(np.diff(rank, prepend=-1.0)))
            shifts = up
        terms += [(curve, float(s), int(n)) for s, n in zip(shifts, counts, strict=True)]
    return NumericLoss(tuple(terms))


def parts_of(loss: PrivacyLoss) -> Parts:
    """Return what a loss adds to each sum, rounded up."""
    if isinstance(loss, PureLoss):
        return _parts_of_pure(loss.pure_epsilon)
    if isinstance(loss, GaussianLoss):
        square = SUMS.power(Decimal(loss.mu), 2)
        return Parts(Decimal(0), square, square, ())
    bounded = normal = squares = Decimal(0)
    terms = []
    for curve, shift, count in loss.numeric().terms:
        if isinstance(curve, NormalShift):
            square = SUMS.multiply(SUMS.power(Decimal(shift), 2), count)
            normal, squares = SUMS.add(normal, square), SUMS.add(squares, square)
            continue
        exact = isinstance(curve, RandomisedResponse)
        largest = shift if exact else float(curve.max_loss(shift)) * (1.0 + _TOLERANCE)
        bounded = SUMS.add(bounded, SUMS.multiply(Decimal(repr(largest)), count))
        square = SUMS.power(Decimal(gaussian_mu_of_pure(largest)), 2)
        squares = SUMS.add(squares, SUMS.multiply(square, count))
        terms.append((curve, shift, count))
    return Parts(bounded, normal, squares, terms)


@lru_cache(maxsize=256)
def _parts_of_pure(epsilon: float) -> Parts:
    square = SUMS.power(Decimal(gaussian_mu_of_pure(epsilon)), 2)
    terms = ((RandomisedResponse(), epsilon, 1),) if epsilon else ()
    return Parts(Decimal(repr(epsilon)), Decimal(0), square, terms)


def on_grid(shift: float) -> float:
    """Return the next value above on a fixed grid; a value of the grid is its own."""
    up: float = 2.0 ** (math.ceil(math.log2(shift) * _PER_OCTAVE - 1e-6) / _PER_OCTAVE)
    return max(up, shift)


def by_curve(
    terms: Iterable[tuple[LossCurve, float, int]],
) -> dict[LossCurve, dict[float, int]]:
    found: dict[LossCurve, dict[float, int]] = {}
    for curve, shift, count in terms:
        shifts = found.setdefault(curve, {})
        shifts[shift] = shifts.get(shift, 0) + count
    return found


def arrays(terms: dict[LossCurve, dict[float, int]]) -> Groups:
    groups: Groups = []
    for curve, shifts in terms.items():
        values, counts = np.array(sorted(shifts.items()), dtype=np.float64).T
        groups.append((curve, values, counts))
    return groups
