r"""Laplace noise on the coordinates that dominate a profile, normal noise on the others.

A few large sensitivities make the privacy loss a sum of few terms, for which Laplace noise is the
better one; many small ones make it nearly normal, for which normal noise is. The losses of both
kinds compose numerically, so a mechanism may use each where it is good.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from skdpnoise.mechanisms._numeric import Criterion, Request, about_factor, least_factor
from skdpnoise.noises import Noise, get_noise
from skdpnoise.privacy import LossCurve, NormalShift, PrivacyGuarantee

__all__ = ["propose_mixture"]

Vector = NDArray[np.float64]

_MOST_SPLITS = 7
_COARSE = 0.02
_WIDE = 2.5  # of the logarithm of the ratio of the two kinds of scales


def propose_mixture(
    request: Request, target: PrivacyGuarantee
) -> tuple[Vector, tuple[Noise, ...]] | None:
    r"""Return scales and the family of each coordinate, or None if there is nothing to mix.

    .. math:: b_j = c \, (\lambda_j / w_j)^{1/(p+1)} \text{ on the m largest}, \qquad
              \sigma_j = c \rho \, (\lambda_j^2 / w_j)^{1/(p+2)} \text{ on the rest}
    """
    # m runs over powers of two and the largest gap of the profile, ρ is searched in one dimension,
    # and c is the least factor that meets the guarantee. Joint bounds are not used; weights that
    # differ between releases are replaced by their means.
    limit = request.sensitivity.per_coordinate
    weights = np.ones(limit.size) if request.weights is None else request.weights
    if weights.ndim == 2:
        weights = weights.mean(axis=0)
    importance = limit * weights ** (1.0 / request.p)
    ranked = np.argsort(-importance, kind="stable")
    moving = int(np.count_nonzero(limit))
    if moving < 2 or importance[ranked[0]] <= 1.5 * importance[ranked[moving - 1]]:
        return None
    search = _Search(request, Criterion(target), weights, ranked, moving)
    best = min(search.best_ratio(m) for m in _splits(importance[ranked[:moving]]))
    _, m, log_ratio = best
    scale, laplace = search.scales(m, log_ratio)
    scale = scale * search.factor(scale, laplace, rough=False)
    families = tuple(get_noise("laplace" if chosen else "gaussian") for chosen in laplace)
    return scale, families


def _splits(importance: Vector) -> list[int]:
    """Return numbers of dominant coordinates to try."""
    gap = 1 + int(np.argmax(importance[:-1] / importance[1:]))
    powers = [2**k for k in range(_MOST_SPLITS) if 2**k < importance.size]
    return sorted({gap, *powers})


class _Search:
    """Errors of mixtures; the last factor is where the next search begins."""

    def __init__(
        self,
        request: Request,
        criterion: Criterion,
        weights: Vector,
        ranked: NDArray[np.intp],
        moving: int,
    ) -> None:
        self.request, self.criterion, self.weights = request, criterion, weights
        self.ranked, self.moving = ranked, moving
        self.limit = request.sensitivity.per_coordinate / request.sensitivity.per_coordinate.max()
        self.unit = float(request.sensitivity.per_coordinate.max())
        self.last: float | None = None

    def scales(self, m: int, log_ratio: float) -> tuple[Vector, NDArray[np.bool_]]:
        """Return scales up to a common factor, and which coordinates get Laplace noise."""
        p, weights = self.request.p, self.weights / self.weights.max()
        laplace = np.zeros(self.limit.size, dtype=bool)
        laplace[self.ranked[:m]] = True
        with np.errstate(divide="ignore"):
            b = (self.limit / weights) ** (1.0 / (p + 1.0))
            sigma = (self.limit**2 / weights) ** (1.0 / (p + 2.0))
        # The ratio is counted from where the two allocations agree on the first normal coordinate.
        first = self.ranked[m]
        level = b[first] / sigma[first] * math.exp(log_ratio)
        return np.where(laplace, b, level * sigma) * self.unit, laplace

    def factor(self, scale: Vector, laplace: NDArray[np.bool_], *, rough: bool) -> float:
        """Return the least c for which the scales times c meet the guarantee."""
        limit = self.limit * self.unit
        dominant = laplace & (limit > 0.0)
        normal = ~laplace & (limit > 0.0)
        n_releases = self.request.n_releases
        values = np.asarray(limit[dominant] / scale[dominant], dtype=np.float64)
        if rough:
            largest = float(values.max())
            steps = np.floor(np.log(largest / values) / _COARSE)
            values = np.asarray(largest * np.exp(-_COARSE * steps), dtype=np.float64)
        found, times = np.unique(values, return_counts=True)
        shifts = np.asarray(found, dtype=np.float64)
        counts = np.asarray(times * float(n_releases), dtype=np.float64)
        mu = math.sqrt(n_releases * float(np.sum((limit[normal] / scale[normal]) ** 2)))
        family: LossCurve = get_noise("laplace")

        def groups(c: float) -> list[tuple[LossCurve, Vector, Vector]]:
            return [
                (family, shifts / c, counts),
                (NormalShift(), np.array([mu / c]), np.ones(1)),
            ]

        start = self.last
        if start is None:
            square = mu**2 + float(counts @ shifts**2)
            start = math.sqrt(square) / self.criterion.mu
        if rough:
            self.last = about_factor(lambda c: self.criterion.about_excess(groups(c)), start)
        else:
            self.last = least_factor(lambda c: self.criterion.excess(groups(c)), start, 1e-7)
        return self.last

    def best_ratio(self, m: int) -> tuple[float, int, float]:
        """Return the error, m and log ρ of the best mixture with m Laplace coordinates."""

        def error(log_ratio: float) -> float:
            scale, laplace = self.scales(m, log_ratio)
            scale = scale * self.factor(scale, laplace, rough=True)
            p = self.request.p
            moments = np.where(
                laplace,
                get_noise("laplace").absolute_moment(p),
                get_noise("gaussian").absolute_moment(p),
            )
            return self.request.error(scale, moments)

        grid = np.linspace(-_WIDE, _WIDE, 6)
        errors = [error(x) for x in grid]
        k = int(np.argmin(errors))
        found = minimize_scalar(
            error,
            bounds=(grid[max(k - 1, 0)], grid[min(k + 1, 5)]),
            method="bounded",
            options={"xatol": 0.05},
        )
        return float(found.fun), m, float(found.x)
