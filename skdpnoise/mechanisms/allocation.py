r"""How far one record moves a query, and how much noise goes on which coordinate and release.

Letters: λ the sensitivity profile, w the error weights, p the exponent of the error, q the order of
the norm in which the noise family's cost adds (Gaussian 2, Laplace 1), r the order of a joint ball.
A scale vector s costs the worst case of |d/s|_q over all changes d that one record can make. It is
computed anew for every proposed shape: a bad rule wastes accuracy and breaks no guarantee.

Groups of coordinates with a norm bound of order r each
(:class:`~skdpnoise.sensitivity.GroupedProfile`) share one scale within a group. For q >= r that is
best, since a record may spend its norm on the coordinate with the least noise; for q < r (Laplace
noise on l2 groups) it is where the weights of a group are equal. So rules and worst cases are those
of the quotient, whose coordinates are the norms of the groups, with weights summed over a group.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms.grid_sizes import rounding_cost
from skdpnoise.noises import Noise
from skdpnoise.sensitivity import GroupedProfile, SensitivityProfile
from skdpnoise.sensitivity.worst_cases import largest_norm, rounded_up

Vector = NDArray[np.float64]
Ball = tuple[float, float]
"""The order and the radius of a joint bound."""

RULES = ("iid", "spr", "inid")
"""Rules of the noise grammar ``<rule>_<family>``."""

_UP = 1.0 + 4.0 * float(np.finfo(np.float64).eps)  # above the rounding of a quotient and a sum


def shape_of(
    rule: str, sensitivity: SensitivityProfile, *, order: float, weights: Vector | None, p: float
) -> Vector:
    """Return scales for one release up to a common factor (arXiv:2302.03511)."""
    if rule not in RULES:
        raise KeyError(rule)
    limit = sensitivity.per_coordinate
    if rule == "iid":
        return np.ones(limit.size)  # coordinates with λ_j = 0 get noise, too
    if isinstance(sensitivity, GroupedProfile):
        return _shape_of_groups(rule, sensitivity, order, weights, p)
    if rule == "spr":
        return np.asarray(limit / limit.max(), dtype=np.float64)
    # Theorems 4 and 5; with p = 2 and w = 1: λ_j^{1/2} for Gaussian, λ_j^{1/3} for Laplace noise.
    # Under a joint bound, λ is first replaced by capped_profile; of several the one that allows the
    # smaller error is used.
    balls = binding_balls(sensitivity, order)
    if not balls:
        return _unconstrained(limit, order, weights, p)
    caps = [_cap(sensitivity, order, ball, weights, p) for ball in balls]
    shapes = [_unconstrained(cap, order, weights, p) for cap in caps]
    scales = [shape * worst_case_norm(shape, sensitivity, order) for shape in shapes]
    return shapes[int(np.argmin([_error(scale, weights, p) for scale in scales]))]


def _shape_of_groups(
    rule: str, groups: GroupedProfile, order: float, weights: Vector | None, p: float
) -> Vector:
    quotient, summed, spread = over_groups(groups, order, weights, p)
    shape = shape_of(rule, quotient, order=order, weights=summed, p=p) * spread
    return np.asarray((shape / shape.max())[groups.members])


@shared_texts
def capped_profile(
    sensitivity: SensitivityProfile, *, order: float, weights: Vector | None = None, p: float = 2.0
) -> Vector:
    r"""Return the part of each λ_j that is worth protecting under a joint bound Δ on d.

    .. math:: d_j = \min(\lambda_j, \tau\, w_j^{e}), \qquad e = \frac{q}{(r-q)(p+q) + q^2},
              \qquad |d|_r = \Delta

    The formula of "inid" in :func:`allocate`, applied to d, is the exact minimum of the error over
    all scales whose worst case over the box and the ball is bounded, for r ≥ q. For Gaussian noise
    an l1 bound stands for the l2 bound that it implies. Of two bounds, that of lower order is used.

    Parameters
    ----------
    %(allocation: sensitivity, order)s
    weights : ndarray of shape (n_coordinates,) or None, default=None
        w; None is all ones.
    %(allocation: p)s

    Returns
    -------
    ndarray of shape (n_coordinates,)
        d, at most λ, in the units of λ; λ itself if no joint bound binds.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, for the box alone; with balls it is ours.

    Examples
    --------
    >>> capped_profile(SensitivityProfile([0.6, 2.0, 2.0], l2=2.0), order=2.0).round(4)
    array([0.6  , 1.3491, 1.3491])
    """
    balls = binding_balls(sensitivity, order)
    if not balls:
        return sensitivity.per_coordinate
    return _cap(sensitivity, order, balls[0], weights, p)


@shared_texts
def worst_case_norm(scale: Vector, sensitivity: SensitivityProfile, order: float) -> float:
    r"""Return the most that one record can move a query, measured in units of the noise.

    .. math:: \Big( \sum_t \max_{d_t} \sum_j (d_{tj} / s_{tj})^q \Big)^{1/q}, \qquad
              |d_{tj}| \le \lambda_j, \; |d_t|_r \le \Delta_r

    Each release t may be moved in its own worst way, as in adaptive use. Without a joint bound the
    worst case is d = λ. With r = q it is a fractional knapsack (Dantzig 1957); with r > q it is
    d_j = min(λ_j, ν s_j^{-q/(r-q)}). Of several joint bounds the smallest answer is returned,
    rounded up (:func:`~skdpnoise.sensitivity.worst_cases.largest_norm`).

    Parameters
    ----------
    scale : ndarray of shape (n_coordinates,) or (n_releases, n_coordinates)
        s, in the units of λ; positive where λ is.
    %(allocation: sensitivity, order)s

    Returns
    -------
    float
        Infinity if a coordinate that can move has no noise.

    Examples
    --------
    >>> profile = SensitivityProfile([1.0, 1.0, 1.0], l1=2.0)
    >>> round(worst_case_norm(np.array([1.0, 1.0, 4.0]), profile, order=1.0), 12)
    2.0
    """
    if scale.ndim == 2:
        norms = np.array([worst_case_norm(row, sensitivity, order) for row in scale])
        return rounded_up(norm(norms, order), norms.size)
    if isinstance(sensitivity, GroupedProfile):
        scale, sensitivity = sensitivity.effective(scale, order), sensitivity.quotient
    moving = moving_coordinates(sensitivity)
    limit, scale = sensitivity.per_coordinate[moving], scale[moving]
    if scale.min() <= 0.0:
        return float("inf")
    balls = binding_balls(sensitivity, order)
    if not balls:
        return rounded_up(norm(limit / scale, order), limit.size)
    weight = 1.0 / scale
    return min(largest_norm(weight, limit, radius, order=order, ball=r) for r, radius in balls)


@shared_texts
def allocate(
    rule: str,
    sensitivity: SensitivityProfile,
    *,
    order: float,
    n_releases: int = 1,
    weights: Vector | None = None,
    p: float = 2.0,
) -> Vector:
    r"""Return scales whose worst case over all releases together is one.

    "inid" minimises the expected error within a release, "spr" takes :math:`s_j \propto \lambda_j`,
    and "iid" one scale:

    .. math:: \min_s \sum_j w_j s_j^p \;\text{ s.t. }\; \sum_j (\lambda_j/s_j)^q \le R^q
              \quad\Rightarrow\quad s_j \propto (\lambda_j^q / w_j)^{1/(p+q)}

    A release of unit cost and error A_t, given the share R_t of the budget, has error A_t R_t^{-p},
    and the shares obey Σ R_t^q = 1: the same theorem again, over releases.

    .. math:: R_t \propto A_t^{1/(p+q)}

    Parameters
    ----------
    rule : {"iid", "spr", "inid"}
        How the noise is shared within a release.
    %(allocation: sensitivity, order)s
    %(mechanisms: n_releases)s
    weights : ndarray of shape (n_coordinates,) or (n_releases, n_coordinates), or None
        Positive error weights; None is all ones.
    %(allocation: p)s

    Returns
    -------
    ndarray of shape (n_coordinates,), or (n_releases, n_coordinates) if the weights have it
        Scales in the units of λ.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5, Section III ("spr"), and Remark 5
    (releases as coordinates).

    Examples
    --------
    >>> allocate("inid", SensitivityProfile([1.0, 9.0]), order=2.0, n_releases=4).round(3)
    array([ 6.325, 18.974])
    """
    rows: list[Vector | None] = [weights]
    if weights is not None:
        rows = list(np.atleast_2d(weights / weights.max()))
    shapes = (shape_of(rule, sensitivity, order=order, weights=row, p=p) for row in rows)
    scales = [shape * worst_case_norm(shape, sensitivity, order) for shape in shapes]
    if weights is None or weights.ndim == 1:
        return scales[0] * float(n_releases ** (1.0 / order))
    largest = max(scale.max() for scale in scales)
    errors = [_error(scale / largest, row, p) for scale, row in zip(scales, rows, strict=True)]
    shares = (np.array(errors) / max(errors)) ** (1.0 / (p + order))
    return np.array(scales) * (norm(shares, order) / shares)[:, np.newaxis]


def box_of(sensitivity: SensitivityProfile) -> SensitivityProfile:
    """Return the profile without its joint bound: a box, or a product of balls."""
    if isinstance(sensitivity, GroupedProfile):
        return GroupedProfile(sensitivity.bounds, sensitivity.groups, sensitivity.order)
    return SensitivityProfile(sensitivity.per_coordinate)


def over_groups(
    groups: GroupedProfile, order: float, weights: Vector | None, p: float
) -> tuple[SensitivityProfile, Vector, Vector]:
    """Return the norms of the groups as a profile, their weights, and the spread of unit scales."""
    # A scale s of the norm stands for s times the spread of each coordinate of the group. Without a
    # joint bound on the norms, larger norms say the same, and leave the weights alone.
    spread = groups.spread(order)
    summed = np.bincount(groups.members, weights=weights).astype(np.float64)
    if groups.l1 is None and groups.l2 is None:
        return SensitivityProfile(groups.bounds * spread), summed, np.ones(spread.size)
    return groups.quotient, summed * (spread / spread.max()) ** p, spread


def refuse_groups(noise: str, sensitivity: SensitivityProfile) -> None:
    """Refuse noise of which nothing better is known than the box of single coordinates."""
    if isinstance(sensitivity, GroupedProfile):
        raise ValueError(
            f"The 'noise' parameter of calibrate is {noise!r}, whose cost under a bound on the "
            "norm of a group is not known. Choose a log-concave family, such as 'inid_gaussian' or "
            "'inid_laplace', or give bounds on single coordinates by SensitivityProfile."
        )


def _error(scale: Vector, weights: Vector | None, p: float) -> float:
    """Return Σ w s^p."""
    powers = scale**p
    return float(powers.sum() if weights is None else weights @ powers)


def _unconstrained(d: Vector, order: float, weights: Vector | None, p: float) -> Vector:
    """Return s ∝ (d^q / w)^{1/(p+q)}."""
    exponent = 1.0 / (p + order)
    shape: Vector = (d / d.max()) ** (order * exponent)
    return shape if weights is None else shape / (weights / weights.max()) ** exponent


def _cap(
    sensitivity: SensitivityProfile, order: float, ball: Ball, weights: Vector | None, p: float
) -> Vector:
    """Return min(λ, τ w^e) on the sphere of a ball that cuts the box."""
    r, radius = ball
    shape = np.ones(sensitivity.n_coordinates)
    if weights is not None:
        shape = (weights / weights.max()) ** (order / ((r - order) * (p + order) + order**2))
    return radius * fill(sensitivity.per_coordinate / radius, shape, r)


def worst_shift(
    scale: Vector, sensitivity: SensitivityProfile, n_releases: int, bits: int, order: float
) -> float:
    """Return the worst |d/s|_q of T releases together, rounding of the value included, upwards."""
    worst = worst_case_norm(scale, sensitivity, order)
    if scale.ndim == 1:
        worst *= n_releases ** (1.0 / order)
    return rounded_up(worst + rounding_cost(sensitivity, n_releases, bits, order))


def counted_by(sensitivity: SensitivityProfile, families: tuple[Noise, ...]) -> str:
    """Return the unit that counts as one number moved by the l1 norm: "release", "group" or so."""
    # Only log-concave noise allows that a change of several numbers counts as one.
    if len(families) > 1 or families[0].lattice or not families[0].log_concave:
        return "coordinate"
    if isinstance(sensitivity, GroupedProfile):
        return "release" if binding_balls(sensitivity.quotient, 1.0) else "group"
    return "release" if binding_balls(sensitivity, 1.0) else "coordinate"


def shifts(
    scale: Vector, sensitivity: SensitivityProfile, n_releases: int, bits: int, *, by: str
) -> tuple[Vector, Vector]:
    """Return the shifts that compose to the worst case, in units of the noise, and their counts."""
    # They are rounded up. One for each release, or else for each group or coordinate that can move,
    # of shape (n_coordinates,) or (n_releases, n_coordinates).
    each = n_releases if scale.ndim == 1 else 1
    if by == "release":
        rows = np.atleast_2d(scale)
        values = np.array([worst_shift(row, sensitivity, 1, bits, 1.0) for row in rows])
        return values, np.full(values.shape, float(each))
    limit, steps, scale = _limits(scale, sensitivity, bits, by)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(limit > 0.0, (limit / scale + steps) * _UP, 0.0)
    return values, np.full(values.shape, float(each))


def _limits(
    scale: Vector, sensitivity: SensitivityProfile, bits: int, by: str
) -> tuple[Vector, Vector, Vector]:
    """Return how far coordinates or groups move, what rounding adds in units of s, and s."""
    limit, sizes = sensitivity.per_coordinate, np.ones(1)
    if by == "group":
        assert isinstance(sensitivity, GroupedProfile)
        limit, sizes = sensitivity.bounds, sensitivity.sizes.astype(np.float64)
        rows = [sensitivity.effective(row, 1.0) for row in np.atleast_2d(scale)]
        scale = np.array(rows) if scale.ndim == 2 else rows[0]
    steps = 2.0**-bits * (1.0 + 1e-5) * sizes
    return np.broadcast_to(limit, scale.shape), steps, scale


def moving_coordinates(sensitivity: SensitivityProfile) -> slice | NDArray[np.bool_]:
    """Return an index of the coordinates that a record can move, λ_j > 0; a slice for all."""
    limit = sensitivity.per_coordinate
    return slice(None) if limit.min() > 0.0 else limit > 0.0


def binding_balls(sensitivity: SensitivityProfile, order: float) -> list[Ball]:
    """Return the joint bounds (r, Δ_r) with r ≥ q that cut the box, those of lower r first."""
    # A ball with r < q enters as its consequence at r = q: |d|_q is convex in |d|^r, so it is
    # largest when the largest coordinates are filled first. The consequence is rounded up.
    limit = sensitivity.per_coordinate
    radii: dict[float, float] = {}
    for r, radius in ((1.0, sensitivity.l1), (2.0, sensitivity.l2)):
        if radius is None:
            continue
        if r < order:
            ranked = np.sort(limit)[::-1]
            used = np.cumsum((ranked / radius) ** r)
            left = np.clip(1.0 - (used - (ranked / radius) ** r), 0.0, None) ** (1.0 / r)
            # Where the ball cuts, an error of n u in what is left moves the sum by 2 n u of itself.
            radius = rounded_up(norm(np.minimum(ranked, radius * left), order), 4 * limit.size)
            r = order
        radii[r] = min(radius, radii.get(r, radius))
    # A ball that cuts off less than rounding error does not count: to leave it out is safe.
    return [
        (r, radius)
        for r, radius in sorted(radii.items())
        if norm(limit, r) > radius * (1.0 + 1e-12)
    ]


def fill(limit: Vector, shape: Vector, order: float) -> Vector:
    """Return min(limit, τ shape) of unit norm, for a limit of larger norm and a positive shape."""
    level = limit / shape
    ranked = np.argsort(level, kind="stable")
    size = limit[ranked] ** order
    still_open = np.cumsum(shape[ranked][::-1] ** order)[::-1]
    # τ^r if the coordinates before this one are at their limit and the others are not.
    tau = (1.0 - (np.cumsum(size) - size)) / still_open
    fits = tau <= level[ranked] ** order
    if not fits.any():
        return limit
    return np.asarray(np.minimum(limit, tau[int(np.argmax(fits))] ** (1.0 / order) * shape))


def norm(values: Vector, order: float) -> float:
    """Return |values|_order of non-negative values, in units of the largest (no overflow)."""
    largest = float(values.max())
    if largest == 0.0:
        return 0.0
    total = float(np.sum((values / largest) ** order))
    return largest * math.pow(total, 1.0 / order)
