"""How far one record can move groups of coordinates, each measured by a norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, check_real, complaint
from skdpnoise._utils.sealed import sealed, stated
from skdpnoise.sensitivity.profile import SensitivityProfile
from skdpnoise.sensitivity.worst_cases import all_rounded_up

__all__ = ["GroupedProfile"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False, kw_only=True)
class GroupedProfile(SensitivityProfile):
    r"""The most that one record's change moves each group of coordinates, and all of them jointly.

    .. math:: |d_g|_r \le \Delta_g \text{ for every group } g, \qquad
              |d|_r \le \Delta, \qquad d = f(D) - f(D'), \; r \in \{1, 2\}

    for all neighbouring D, D'. A box of bounds on single coordinates charges for a record that
    moves all of them as far as it can at once. Where contributions are clipped by their norm, no
    record can: a group of d coordinates costs then what one coordinate does.

    Groups of one coordinate each are a :class:`SensitivityProfile`; one group clips by one norm.

    Parameters
    ----------
    bounds : array-like of shape (n_groups,)
        Δ_g, in the units of the query; 0 only for groups that are truly constant.
    groups : array-like of int of shape (n_coordinates,)
        The group of each coordinate, from 0 to n_groups - 1, each at least once.
    order : {1, 2}, default=2
        r, the norm of each group and of all of them: 2 suits normal noise, 1 Laplace noise. Other
        combinations are sound, too, and cost more.
    joint : float or None, default=None
        Δ, where the query has a better joint bound than the groups imply.

    Attributes
    ----------
    per_coordinate : ndarray of shape (n_coordinates,)
        Δ_g of the group of each coordinate, a bound on the coordinate alone.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Section VI-C (groups; the joint bound is ours).

    Examples
    --------
    >>> GroupedProfile([1.0, 3.0], [0, 0, 0, 1, 1])
    GroupedProfile(n_coordinates=5, n_groups=2, order=2, largest=3)
    """

    # Read as its base class, it stays true: Δ_g bounds each coordinate of g, and Δ the r-norm of
    # all of them.

    bounds: Vector
    groups: Vector  # whole numbers
    order: float

    def __init__(
        self, bounds: ArrayLike, groups: ArrayLike, order: float = 2, joint: float | None = None
    ) -> None:
        owner = type(self).__name__
        order = check_real(owner, "order", order)
        if order not in (1.0, 2.0):
            raise ValueError(complaint(owner, "order", "be 1 or 2", f"{order:g}"))
        values = check_array(owner, "bounds", bounds, sign="non-negative")
        if joint is not None and check_real(owner, "joint", joint) < values.max():
            must = f"be at least the largest of the bounds, {float(values.max())!r}"
            remedy = "No group can move further than all of them: lower those bounds to it."
            raise ValueError(complaint(owner, "joint", must, repr(joint), remedy))
        if not values.any():
            raise ValueError(complaint(owner, "bounds", "have a positive entry", "zeros only"))
        numbers = check_array(owner, "groups", groups, sign="non-negative")
        wanted = np.arange(values.size)
        if not np.array_equal(np.unique(numbers), wanted):
            wrong = [*np.setdiff1d(numbers, wanted)[:1], *np.setdiff1d(wanted, numbers)[:1]]
            must = f"number the groups of 'bounds' from 0 to {values.size - 1}, each at least once"
            given = f"one wrong or missing, {wrong[0]:g}"
            raise ValueError(complaint(owner, "groups", must, given))
        plain = _plain(values, order, joint)
        each = sealed(plain.per_coordinate[numbers.astype(np.intp)])
        stated(self, bounds=plain.per_coordinate, groups=sealed(numbers), order=order)
        stated(self, per_coordinate=each, l1=plain.l1, l2=plain.l2)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.bounds.size

    @property
    def members(self) -> NDArray[np.intp]:
        """The group of each coordinate, as an index."""
        return self.groups.astype(np.intp)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of coordinates of each group."""
        return np.bincount(self.members)

    @property
    def quotient(self) -> SensitivityProfile:
        """The profile of the norms of the groups, one coordinate for each."""
        joint = self.l1 if self.order == 1.0 else self.l2
        return _plain(self.bounds, self.order, joint)

    def spread(self, order: float) -> Vector:
        r"""Return the largest q-norm of vectors of r-norm one in each group, rounded up.

        .. math:: c_g = \max(1, d_g^{1/q - 1/r})

        Here q is the ``order`` of the costs of a noise family; shape (n_groups,).
        """
        if order >= self.order:
            return np.ones(self.n_groups)
        return all_rounded_up(
            np.power(self.sizes, 1.0 / order - 1.0 / self.order, dtype=np.float64)
        )

    def effective(self, scale: Vector, order: float) -> Vector:
        r"""Return one scale for each group that costs as much as the ``scale`` of its coordinates.

        .. math:: \tilde s_g = \Delta_g \Big/ \max_{|d_g|_r \le \Delta_g} |d_g / s|_q

        With q the ``order``, it is the smallest scale of the group where q ≥ r, and else
        :math:`(\sum_{j \in g} s_j^{-a})^{-1/a}` with :math:`a = q r / (r - q)`, rounded down; it is
        zero where a coordinate has no noise.
        """
        members, least = self.members, np.full(self.n_groups, np.inf)
        np.minimum.at(least, members, scale)
        if order >= self.order:
            return least
        a, sizes = order * self.order / (self.order - order), self.sizes.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(least[members] > 0.0, least[members] / scale, 0.0)
        sums = np.bincount(members, weights=ratios**a).astype(np.float64)
        norms = all_rounded_up(np.power(all_rounded_up(sums, sizes), 1.0 / a))
        with np.errstate(invalid="ignore"):
            down = np.nextafter(least / norms, 0.0)
        return np.where((sizes == 1.0) | (least == 0.0), least, down)

    def __repr__(self) -> str:
        joint = self.l1 if self.order == 1.0 else self.l2
        return (
            f"{type(self).__name__}(n_coordinates={self.n_coordinates}, n_groups={self.n_groups}, "
            f"order={self.order:g}, largest={self.bounds.max():.6g}"
            + ("" if joint is None else f", joint={joint:.6g}")
            + ")"
        )


def _plain(bounds: ArrayLike, order: float, joint: float | None) -> SensitivityProfile:
    return SensitivityProfile(bounds, **{"l1" if order == 1 else "l2": joint})
