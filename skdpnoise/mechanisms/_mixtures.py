r"""Laplace noise on the coordinates that dominate a profile, normal noise on the others.

Laplace noise is better where few large sensitivities make the privacy loss, normal noise where many
small ones do. The losses of both kinds compose numerically.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skdpnoise.mechanisms._numeric import Group, Proposal, Request, grid_minimum
from skdpnoise.mechanisms.requests import MIXTURE
from skdpnoise.noises import get_noise
from skdpnoise.privacy import NormalShift, PrivacyGuarantee
from skdpnoise.sensitivity import SensitivityProfile

Vector = NDArray[np.float64]

_MOST_SPLITS = 7
_COARSE = 0.02
_WIDE = 2.5  # of the logarithm of the ratio of the two kinds of scales


def propose_mixture(request: Request) -> Proposal:
    r"""Return the best mixture, or say why there is none.

    .. math:: b_j = c \, (\lambda_j / w_j)^{1/(p+1)} \text{ on the m largest}, \qquad
              \sigma_j = c \rho \, (\lambda_j^2 / w_j)^{1/(p+2)} \text{ on the rest}
    """
    # m runs over powers of two and the largest gap of the profile, ρ is searched in one dimension,
    # and c is the least factor that meets the guarantee. Joint bounds are not used; weights that
    # differ between releases are replaced by their means.
    search, splits = prepared_mixture(request)
    _, m, log_ratio = min(search.best_ratio(m) for m in sorted(splits))
    scale, laplace = search.scales(m, log_ratio)
    return search.proposal(scale * search.factor(scale, laplace, rough=False), laplace)


def prepared_mixture(request: Request) -> tuple[_Search, list[int]]:
    """Return what mixtures are made of, and numbers of Laplace coordinates to try."""
    if not isinstance(request.target, PrivacyGuarantee):
        raise ValueError(
            f"The 'noise' parameter of calibrate is {MIXTURE!r}, which needs a PrivacyGuarantee "
            "with delta > 0. Give one, or choose a single family."
        )
    limit = request.sensitivity.per_coordinate
    weights = request.mean_weights
    if weights is None:
        weights = np.ones(limit.size)
    importance = limit * weights ** (1.0 / request.p)
    ranked = np.argsort(-importance, kind="stable")
    moving = int(np.count_nonzero(limit))
    if moving < 2 or importance[ranked[0]] <= 1.5 * importance[ranked[moving - 1]]:
        raise ValueError(
            f"The 'noise' parameter of calibrate is {MIXTURE!r}, but no coordinate dominates "
            "sensitivity.per_coordinate. Choose a single family, or 'auto'."
        )
    search = _Search(request, limit / limit.max(), limit.max(), weights / weights.max(), ranked)
    return search, _splits(importance[ranked[:moving]])


def _splits(importance: Vector) -> list[int]:
    """Return numbers of dominant coordinates to try, first that before the largest gap."""
    gap = 1 + int(np.argmax(importance[:-1] / importance[1:]))
    powers = [2**k for k in range(_MOST_SPLITS) if 2**k < importance.size]
    return list(dict.fromkeys([gap, *powers]))


@dataclass(slots=True)
class _Search:
    """Errors of mixtures; the last factor is where the next search begins."""

    request: Request
    limit: Vector  # in this unit
    unit: float
    weights: Vector
    ranked: NDArray[np.intp]
    last: float | None = None

    def scales(self, m: int, log_ratio: float) -> tuple[Vector, NDArray[np.bool_]]:
        """Return scales up to a common factor, and which coordinates get Laplace noise."""
        p, limit = self.request.p, self.limit
        laplace = np.zeros(limit.size, dtype=bool)
        laplace[self.ranked[:m]] = True
        with np.errstate(divide="ignore"):
            b = (limit / self.weights) ** (1.0 / (p + 1.0))
            sigma = (limit**2 / self.weights) ** (1.0 / (p + 2.0))
        # The ratio is counted from where the two allocations agree on the first normal coordinate.
        first = self.ranked[m]
        level = b[first] / sigma[first] * math.exp(log_ratio)
        return np.where(laplace, b, level * sigma) * self.unit, laplace

    def shifts(self, scale: Vector, laplace: NDArray[np.bool_]) -> tuple[Vector, float]:
        """Return the shifts of the Laplace coordinates of one release, and μ of all releases."""
        limit = self.limit * self.unit
        moving = limit > 0.0
        normal = limit[~laplace & moving] / scale[~laplace & moving]
        mu = math.sqrt(self.request.n_releases * float(np.sum(normal**2)))
        return limit[laplace & moving] / scale[laplace & moving], mu

    def joint_shifts(self, scale: Vector, laplace: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the sum of the shifts of the Laplace coordinates, and μ, of all releases."""
        values, mu = self.shifts(scale, laplace)
        return self.request.n_releases * float(values.sum()), mu

    def proposal(self, scale: Vector, laplace: NDArray[np.bool_]) -> Proposal:
        """Return the mixture of these scales as a proposal."""
        families = get_noise("laplace"), get_noise("gaussian")
        moments = [family.absolute_moment(self.request.p) for family in families]
        error = self.request.error(scale, np.where(laplace, *moments))
        chosen = tuple(families[not one] for one in laplace)
        box = SensitivityProfile(self.request.sensitivity.per_coordinate)
        return Proposal(scale, chosen, box, error)

    def factor(self, scale: Vector, laplace: NDArray[np.bool_], *, rough: bool) -> float:
        """Return the least c for which the scales times c meet the guarantee."""
        values, mu = self.shifts(scale, laplace)
        if rough:
            largest = float(values.max())
            values = largest * np.exp(-_COARSE * np.floor(np.log(largest / values) / _COARSE))
        shifts, times = np.unique(values, return_counts=True)
        counts = np.asarray(times * float(self.request.n_releases), dtype=np.float64)
        groups: list[Group] = [
            (get_noise("laplace"), np.asarray(shifts, dtype=np.float64), counts),
            (NormalShift(), np.array([mu]), np.ones(1)),
        ]
        start = self.last
        if start is None:
            start = math.sqrt(mu**2 + float(counts @ shifts**2)) / self.request.mu
        self.last = self.request.factor(groups, start, rough=rough)
        return self.last

    def best_ratio(self, m: int) -> tuple[float, int, float]:
        """Return the error, m and log ρ of the best mixture with m Laplace coordinates."""

        def error(log_ratio: float) -> float:
            scale, laplace = self.scales(m, log_ratio)
            return self.proposal(scale * self.factor(scale, laplace, rough=True), laplace).error

        found = grid_minimum(error, np.linspace(-_WIDE, _WIDE, 6), 0.05)
        return float(found.fun), m, float(found.x)
