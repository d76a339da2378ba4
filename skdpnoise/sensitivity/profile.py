"""How far one record can move a query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_array, complaint
from skdpnoise._utils.sealed import Sealed, sealed, stated
from skdpnoise.privacy import check_real

__all__ = ["SensitivityProfile"]

_RANGE = 1e150  # squares of ratios up to this stay within double precision


@dataclass(frozen=True, slots=True, eq=False)
class SensitivityProfile(Sealed):
    r"""The most that one record's change moves each coordinate of a query, and all of them jointly.

    .. math:: |f_j(D) - f_j(D')| \le \lambda_j, \qquad
              |f(D) - f(D')|_1 \le \Delta_1, \qquad |f(D) - f(D')|_2 \le \Delta_2

    for all neighbouring D, D'. Everything a mechanism promises rests on these numbers: they must
    hold for every pair of neighbours, not for the data at hand, and so must not be read from it.

    Parameters
    ----------
    per_coordinate : array-like of shape (n_coordinates,)
        λ, in the units of the query. An entry may be 0 only if that coordinate is truly constant;
        it is then released without noise.
    l1, l2 : float or None, default=None
        Joint bounds Δ_1 and Δ_2, where the query has better ones than λ implies.

    Raises
    ------
    ValueError
        If λ is not a non-empty vector of finite, non-negative numbers with a positive one among
        them, its positive entries span more than 150 orders of magnitude, or a joint bound is
        smaller than the largest λ_j.

    References
    ----------
    Muthukrishnan and Kalyani, "Differential privacy with higher utility by exploiting
    coordinate-wise disparity", arXiv:2302.03511 (the profile λ).

    Examples
    --------
    >>> SensitivityProfile([1.0, 1.0, 1.0], l1=2.0)
    SensitivityProfile(n_coordinates=3, largest=1, l1=2)
    """

    per_coordinate: NDArray[np.float64]
    l1: float | None = None
    l2: float | None = None

    def __init__(
        self, per_coordinate: ArrayLike, l1: float | None = None, l2: float | None = None
    ) -> None:
        owner, name = "SensitivityProfile", "per_coordinate"
        remedy = "A record without a bound cannot be protected by noise."
        values = check_array(owner, name, per_coordinate, sign="non-negative", remedy=remedy)
        largest = float(values.max())
        if largest == 0.0:
            remedy = "A query that no record can move needs no privacy mechanism."
            raise ValueError(complaint(owner, name, "have a positive entry", "zeros only", remedy))
        least = float(values[values > 0.0].min())
        if largest / _RANGE > least:
            must = f"have positive entries within a factor of {_RANGE:g} of each other"
            given, remedy = f"{least:g} to {largest:g}", "Raise the smallest: it stays valid."
            raise ValueError(complaint(owner, name, must, given, remedy))
        stated(self, per_coordinate=sealed(values))
        for name, bound in (("l1", l1), ("l2", l2)):
            if bound is not None:
                bound = check_real(owner, name, bound)
                if bound < largest:
                    must = f"be at least the largest entry of per_coordinate, {largest!r}"
                    remedy = "No coordinate can move further than all of them: lower those entries."
                    raise ValueError(complaint(owner, name, must, repr(bound), remedy))
            stated(self, **{name: bound})

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates of the query."""
        return self.per_coordinate.size

    def __repr__(self) -> str:
        parts = [f"n_coordinates={self.n_coordinates}", f"largest={self.per_coordinate.max():.6g}"]
        bounds = (("l1", self.l1), ("l2", self.l2))
        parts += [f"{name}={bound:.6g}" for name, bound in bounds if bound is not None]
        return f"{type(self).__name__}({', '.join(parts)})"
