"""Exact sums of clipped values, and the checks that aggregates share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.noises import get_noise, noise_names
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.privacy.checks import check_array, check_order
from skdpnoise.queries._sweeps import all_finite
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import SensitivityProfile

Vector = NDArray[np.float64]

_ROWS = 1 << 16  # of one block: temporaries stay small beside the data
# Contributions are rounded to 2**-16 of the grid step of the noise, and their sum to the grid step:
# so rounding adds up to nothing that shows, even over 10**9 records.
_FINE_BITS = 16
_HALF_BITS = 31
_LARGEST = 1e60  # squares of bounds, and their ratios, stay within double precision


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Public bounds of the columns, and the point that contributions are measured from."""

    # low, high, centre: shape (n_columns,): in the units of the values
    low: Vector
    high: Vector
    centre: Vector
    # shape (n_columns,): the most that a contribution can be away from the centre
    half_width: Vector

    def uncentred(self) -> Bounds:
        """Return the same bounds, with contributions measured from zero."""
        reach = np.maximum(np.abs(self.low), np.abs(self.high))
        return Bounds(self.low, self.high, np.zeros_like(reach), reach)


def noisy_sums(
    table: NDArray[Any] | None,
    bounds: Bounds | None,
    mechanism: AdditiveMechanism,
    rng: RandomWords,
    count: int | None = None,
) -> Vector:
    """Return noisy sums of the columns, measured from their centre, and then the noisy count."""
    # A contribution is at most floor(half_width/u) steps of u = 2**-16 grid steps to either side,
    # so that the exact sum moves by at most half_width/u (twice that if a record is replaced), and
    # its rounding to grid steps by one more at most: what the mechanism is charged for.
    unit = np.ldexp(mechanism.grid_size, -_FINE_BITS)
    totals = []
    if table is not None and bounds is not None:
        totals += _exact_sums(table, bounds, unit[: table.shape[1]])
    if count is not None:
        totals.append(count * math.floor(1.0 / unit[-1]))
    half = 1 << (_FINE_BITS - 1)
    (draws,) = mechanism.sample(rng)
    # Python's integers: a sum may be larger than any of numpy's.
    quanta = np.array([t + half >> _FINE_BITS for t in totals], dtype=object)
    noisy = plus_noise(mechanism, quanta, draws.astype(object))
    released: Vector = mechanism.grid_size * noisy.astype(np.float64)
    return released


def check_widths(owner: str, bounds: Bounds, mechanism: AdditiveMechanism) -> None:
    """Refuse bounds whose contributions do not fit 62 bits, before anything is charged."""
    unit = np.ldexp(mechanism.grid_size[: bounds.half_width.size], -_FINE_BITS)
    if np.floor(bounds.half_width / unit).max() >= 2.0**62:
        raise ValueError(
            f"The bounds of {owner} are too wide in some columns for the noise that others need: "
            "choose units, or weights, in which the columns are nearer to each other."
        )


@np.errstate(over="ignore")  # a warning would tell of a single record
def _exact_sums(table: NDArray[Any], bounds: Bounds, unit: Vector) -> list[int]:
    limit = np.floor(bounds.half_width / unit)
    high, low = np.zeros((2, limit.size), dtype=np.int64)
    for start in range(0, len(table), _ROWS):
        block = np.clip(table[start : start + _ROWS].astype(np.float64), bounds.low, bounds.high)
        steps = np.clip(np.rint((block - bounds.centre) / unit), -limit, limit).astype(np.int64)
        # Two digits, so that no number of records overflows.
        high += (steps >> _HALF_BITS).sum(axis=0)
        low += (steps & ((1 << _HALF_BITS) - 1)).sum(axis=0)
    return [(h << _HALF_BITS) + d for h, d in zip(high.tolist(), low.tolist(), strict=True)]


def with_count(
    noise: str,
    bounds: Bounds,
    guarantee: PrivacyGuarantee | LossBudget,
    weights: Vector,
    count_weight: float,
) -> AdditiveMechanism:
    """Return the mechanism for centred sums and, as the last coordinate, the number of records."""
    profile = SensitivityProfile(np.append(bounds.half_width, 1.0))
    return calibrate(noise, profile, guarantee, weights=np.append(weights, count_weight))


def rounded_deviation(mechanism: AdditiveMechanism) -> float:
    r"""Return the standard deviation of the noise of one coordinate, rounded to integers.

    .. math:: E[K^2] = \sum_{k \ge 1} (2k - 1) \Pr(|K| \ge k), \qquad K = \mathrm{round}(s Z)
    """
    scale, family = float(mechanism.scale[0]), mechanism.family
    if family.lattice:
        return float(mechanism.standard_deviation[0])
    if scale > 64.0:  # the noise is smooth on the scale of one: Sheppard's correction
        return math.sqrt(scale**2 * family.variance + 1.0 / 12.0)
    k = np.arange(1.0, math.ceil(scale * float(family.isf(1e-20))) + 2.0)
    return math.sqrt(float(np.sum((2.0 * k - 1.0) * 2.0 * family.sf((k - 0.5) / scale))))


def check_summands(
    owner: str,
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    weights: ArrayLike | None,
    noise: str,
) -> tuple[NDArray[Any], Callable[[Vector], Any], Bounds, Vector]:
    """Return what `as_table` does, the bounds of the columns and their error weights."""
    family = str(noise).partition("_")[2]
    if family in noise_names() and get_noise(family).lattice:
        raise ValueError(
            f"The 'noise' parameter of {owner} must name a noise on the real numbers, since sums "
            f"of real numbers are not integer. Got {noise!r} instead."
        )
    table, shape = as_table(owner, values)
    n_columns = table.shape[1]
    bounds = check_interval(owner, low, high, n_columns)
    remedy = "Give a column that does not matter a small weight."
    given = np.ones(n_columns) if weights is None else weights
    importance = check_array(owner, "weights", given, (n_columns,), sign="positive", remedy=remedy)
    return table, shape, bounds, importance


def as_table(
    owner: str, values: ArrayLike, *, name: str = "values", n_dims: tuple[int, ...] = (1, 2)
) -> tuple[NDArray[Any], Callable[[Vector], Any]]:
    """Return the values as columns, and what gives a result per column the shape of the input."""
    array = np.asarray(values)
    shapes = " or ".join(["(n_records,)", "(n_records, n_columns)"][n - 1] for n in n_dims)
    allowed = f"The {name!r} parameter of {owner} must be an array of real numbers, shape {shapes}"
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{allowed}. Got an array of dtype {array.dtype} instead.")
    if array.ndim not in n_dims or 0 in array.shape[1:]:
        raise ValueError(f"{allowed}. Got an array of shape {array.shape} instead.")
    if not all_finite(array):
        raise ValueError(
            f"{allowed}, finite in every entry: remove or replace NaN and infinity first."
        )
    if array.ndim == 1:
        return array[:, np.newaxis], lambda result: float(result[0])
    return array, np.asarray


def check_interval(owner: str, low: ArrayLike, high: ArrayLike, n_columns: int) -> Bounds:
    """Return the bounds of every column, or say what is wrong with them."""
    shapes: tuple[tuple[int, ...], ...] = ((), (n_columns,))
    remedy = "Values without bounds cannot be protected by noise."
    left, right = (
        np.broadcast_to(check_array(owner, name, end, *shapes, remedy=remedy), (n_columns,))
        for name, end in (("low", low), ("high", high))
    )
    check_order(owner, "low", left, right)
    # Halves are taken before the sum, so that the widest bounds do not overflow.
    half = 0.5 * right - 0.5 * left
    if not (half.min() >= 1.0 / _LARGEST and np.abs([left, right]).max() <= _LARGEST):
        raise ValueError(
            f"The bounds of {owner} are beyond {_LARGEST:g}, or closer than its inverse: choose "
            "units in which they are nearer to one."
        )
    return Bounds(left, right, 0.5 * left + 0.5 * right, half)
