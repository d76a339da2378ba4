"""What additive noise costs: the loss of a mechanism, from its scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms._geometry import binding_balls
from skdpnoise.mechanisms._quanta import rounding_cost
from skdpnoise.mechanisms.allocation import worst_case_norm
from skdpnoise.noises import Noise
from skdpnoise.privacy import GaussianLoss, LossCurve, NormalShift, NumericLoss, PrivacyLoss
from skdpnoise.sensitivity import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import rounded_up

if TYPE_CHECKING:
    from skdpnoise.mechanisms.additive import AdditiveMechanism

_MANY = 20_000  # shifts; more are rounded up to a grid
_GRID = 1e-4
_UP = 1.0 + 4.0 * float(np.finfo(np.float64).eps)  # above the rounding of a quotient and a sum

Vector = NDArray[np.float64]


def worst_shift(
    scale: Vector, sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    r"""Return the worst |d/s|_q of all releases together, rounding of the value included, upwards.

    Parameters
    ----------
    scale : ndarray of shape (n_coordinates,) or (n_releases, n_coordinates)
        s.
    sensitivity : SensitivityProfile
        λ and its joint bounds.
    n_releases : int
        T.
    bits : int
        B.
    order : float
        q.

    Returns
    -------
    float
    """
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
    """Return the shifts, in units of the noise, that compose to the worst case, and their counts.

    They are rounded up. With `merged`, one for each release; else one for each coordinate that can
    move, of shape (n_coordinates,) or (n_releases, n_coordinates).
    """
    each = n_releases if scale.ndim == 1 else 1
    if merged:
        rows = np.atleast_2d(scale)
        values = np.array([worst_shift(row, sensitivity, 1, bits, 1.0) for row in rows])
        return values, np.full(values.shape, float(each))
    limit = np.broadcast_to(sensitivity.per_coordinate, scale.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(limit > 0.0, (limit / scale + 2.0**-bits * (1.0 + 1e-5)) * _UP, 0.0)
    return values, np.full(values.shape, float(each))


def own_loss(mechanism: AdditiveMechanism) -> PrivacyLoss:
    """Return the loss of a mechanism from its scales."""
    families = mechanism.families
    assert families is not None
    scale, sensitivity = mechanism.scale, mechanism.sensitivity
    n_releases, bits = mechanism.n_releases, mechanism.bits
    if len(families) == 1 and families[0].norm_order == 2.0:
        return GaussianLoss(worst_shift(scale, sensitivity, n_releases, bits, 2.0))
    if families[0].lattice:
        values = np.rint(np.broadcast_to(sensitivity.per_coordinate, scale.shape))
        counts = np.full(values.shape, float(n_releases if scale.ndim == 1 else 1))
    else:
        merged = merges(sensitivity, families)
        values, counts = shifts(scale, sensitivity, n_releases, bits, merged=merged)
    if not np.isfinite(values).all():
        raise ValueError(
            "The 'scale' parameter of AdditiveMechanism must be positive in every coordinate that "
            "a record can move."
        )
    terms: list[tuple[LossCurve, float, int]] = []
    for family in dict.fromkeys(families):
        chosen: slice | NDArray[np.bool_] = slice(None)
        if len(families) > 1:
            chosen = np.array([other == family for other in families])
        curve = NormalShift() if family.norm_order == 2.0 else family
        values_of = _rounded_up(values[..., chosen].ravel())
        unique, inverse = np.unique(values_of, return_inverse=True)
        totals = np.bincount(inverse, weights=counts[..., chosen].ravel())
        terms += [
            (curve, float(value), round(total))
            for value, total in zip(unique, totals, strict=True)
            if value > 0.0
        ]
    return NumericLoss(tuple(terms))


def _rounded_up(values: Vector) -> Vector:
    """Return the values, or, if there are very many, the next ones above them on a fine grid."""
    if values.size <= _MANY:
        return values
    positive = values > 0.0
    rounded = np.zeros_like(values)
    exponent = np.ceil(np.log(values[positive] / values.max()) / _GRID)
    rounded[positive] = np.maximum(values.max() * np.exp(_GRID * exponent), values[positive])
    return rounded


def explanation(mechanism: AdditiveMechanism) -> str:
    """Return the text of :meth:`AdditiveMechanism.explain`."""
    scale, size = mechanism.scale, mechanism.sensitivity.n_coordinates
    releases = f"{mechanism.n_releases} release" + ("s" if mechanism.n_releases > 1 else "")
    lines = [
        f"{mechanism.noise}: scale {scale.min():.6g} to {scale.max():.6g}, {size} coordinate"
        f"{'s' if size > 1 else ''}, {releases}, {mechanism.privacy_loss()}"
    ]
    assert mechanism.families is not None
    if len(set(mechanism.families)) > 1 or mechanism.family.shape_range is not None:
        counted: dict[Noise, int] = {}
        for family in mechanism.families:
            counted[family] = counted.get(family, 0) + 1
        if len(counted) == 1:
            lines.append(f"shape: {mechanism.family}")
        elif len(counted) <= 4:
            lines += [f"{count} coordinates: {family}" for family, count in counted.items()]
        else:
            lines.append(f"{len(counted)} shapes, such as {mechanism.family}")
    if any(float(family.hockey_stick(1e4, 1.0)) > 0.0 for family in set(mechanism.families)):
        lines.append("its delta is a chance of total disclosure")
    lines.append(f"expected squared error {mechanism.expected_error():.6g} in all")
    if mechanism.considered:
        numbers = [(name, x) for name, x in mechanism.considered if not isinstance(x, str)]
        best = min(x for _, x in numbers)
        lines.append("considered, by expected error:")
        for name, x in sorted(numbers, key=lambda pair: pair[1]):
            lines.append(f"  {name}: {x:.6g} ({100.0 * (x / best - 1.0):+.3g} %)")
        lines += [f"  {name}: {x}" for name, x in mechanism.considered if isinstance(x, str)]
    return "\n".join(lines)
