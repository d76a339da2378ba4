"""How far one record moves additive noise, in units of the noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms.allocation import worst_case_norm
from skdpnoise.mechanisms.geometry import binding_balls
from skdpnoise.mechanisms.quanta import rounding_cost
from skdpnoise.noises import Noise
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

_UP = 1.0 + 4.0 * float(np.finfo(np.float64).eps)  # above the rounding of a quotient and a sum

Vector = NDArray[np.float64]


def worst_shift(
    scale: Vector, sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    """Return the worst |d/s|_q of T releases together, rounding of the value included, upwards."""
    worst = worst_case_norm(scale, sensitivity, order)
    if scale.ndim == 1:
        worst *= n_releases ** (1.0 / order)
    return rounded_up(worst + rounding_cost(sensitivity, n_releases, bits, order))


def merges(sensitivity: SensitivityProfile, families: tuple[Noise, ...]) -> bool:
    """Return whether a change counts as that of one coordinate: there is a joint bound to use."""
    return (
        len(families) == 1
        and families[0].log_concave
        and not families[0].lattice
        and bool(binding_balls(sensitivity, 1.0))
    )


def shifts(
    scale: Vector, sensitivity: SensitivityProfile, n_releases: int, bits: int, *, merged: bool
) -> tuple[Vector, Vector]:
    """Return the shifts that compose to the worst case, in units of the noise, and their counts."""
    # They are rounded up. With `merged`, one for each release; else one for each coordinate that
    # can move, of shape (n_coordinates,) or (n_releases, n_coordinates).
    each = n_releases if scale.ndim == 1 else 1
    if merged:
        rows = np.atleast_2d(scale)
        values = np.array([worst_shift(row, sensitivity, 1, bits, 1.0) for row in rows])
        return values, np.full(values.shape, float(each))
    limit = np.broadcast_to(sensitivity.per_coordinate, scale.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(limit > 0.0, (limit / scale + 2.0**-bits * (1.0 + 1e-5)) * _UP, 0.0)
    return values, np.full(values.shape, float(each))
