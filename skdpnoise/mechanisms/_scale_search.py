"""Calibration where no norm decides: scales and shapes found with the numeric loss.

Letters: λ the sensitivity, s the scales, w the error weights, p the exponent of the error, c a
common factor of the scales. A search only proposes; the loss of the finished mechanism then sets c.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import erfinv, ndtri, ndtri_exp

from skdpnoise.mechanisms.allocation import allocate, box_of, counted_by, refuse_groups, shifts
from skdpnoise.mechanisms.requests import MIXTURE
from skdpnoise.mechanisms.vectors import VectorMechanism
from skdpnoise.noises import Noise, get_noise
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss, gdp_mu
from skdpnoise.privacy.curves import LossCurve, NormalShift
from skdpnoise.privacy.numeric.loss import Group, about_epsilon, composed_delta
from skdpnoise.sensitivity import SensitivityProfile

Vector = NDArray[np.float64]

_NO_ROUNDING = 200  # bits: the rounding of the value is added later
_COARSE = 0.02  # ratio of the shifts whose Gaussian losses are told apart
_FEW_SHIFTS, _NEGLIGIBLE = 40, 1e-3  # that a search tells apart; share of the squares below them
_ROUGH, _FINE = 1e-3, 1e-7  # of log c, while searching and at the end
_FAR = 1e6  # times the target: of losses beyond double precision, for solvers that need finite ones
_CLOSE = 1e-4  # excess from which a last secant step leaves no error that counts
_MANY_SHIFTS = 64
_MOST_ORDER = 6.0  # of the exponents tried; where delta is total disclosure, more than 2 is best
_NEAR, _TIE = 1.1, 1e-5  # relative errors
_LEAST = 1e-250  # stands for a delta of zero
_MOST_SPLITS = 7
WIDE = 2.5  # of the logarithm of the ratio of the two kinds of scales
_MIXED = get_noise("laplace"), get_noise("gaussian")
_FLOOR = 1e-9  # of delta: a probability that may count as that of total disclosure


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The arguments of a calibration; a guarantee with δ = 0 is a pure loss."""

    sensitivity: SensitivityProfile
    n_releases: int
    weights: Vector | None
    p: float
    target: PrivacyGuarantee | LossBudget

    @property
    def mean_weights(self) -> Vector | None:
        weights = self.weights
        return weights if weights is None or weights.ndim == 1 else weights.mean(axis=0)

    def scales(self, rule: str, order: float, bounds: SensitivityProfile) -> Vector:
        """Return the scales of a rule, with a worst case of one."""
        return allocate(
            rule, bounds, order=order, n_releases=self.n_releases, weights=self.weights, p=self.p
        )

    def error(self, scale: Vector, moments: Vector | float) -> float:
        """Return Σ w s^p E|Z|^p over coordinates and releases."""
        shape = (self.n_releases, self.sensitivity.n_coordinates)
        values = np.broadcast_to(scale**self.p * moments, shape)
        return float(values.sum() if self.weights is None else (values * self.weights).sum())

    def expected(self, mechanism: VectorMechanism) -> float:
        return mechanism.expected_error(self.p, self.weights)

    @property
    def mu(self) -> float:
        """About how far apart two normal distributions may be; it sets the size of a search."""
        assert not isinstance(self.target, PureLoss)
        if isinstance(self.target, GaussianLoss):
            return self.target.mu
        return gdp_mu(self.target.epsilon, self.target.delta)

    def excess(self, groups: list[Group]) -> float:
        """Return the excess of composed shifts over the target, at most 0 where it is met."""
        assert not isinstance(self.target, PureLoss)
        if isinstance(self.target, GaussianLoss):
            squares = sum(float(n @ gaussian_mu(f, a) ** 2) for f, a, n in groups)
            return min(math.sqrt(squares) / self.target.mu, _FAR) - 1.0
        epsilon, delta = self.target.epsilon, self.target.delta
        if sum(float(n @ curve.max_loss(a)) for curve, a, n in groups) <= epsilon:
            return math.log(_LEAST / delta)
        found = composed_delta(groups, epsilon, floor=_FLOOR * delta)
        return math.log(max(found, _LEAST) / delta)

    def about_excess(self, groups: list[Group]) -> float:
        """Return about log(ε(δ)/ε), which is smooth in the scales; zero where the target is met."""
        if not isinstance(self.target, PrivacyGuarantee):
            return self.excess(groups)
        epsilon, delta = self.target.epsilon, self.target.delta
        found = about_epsilon(groups, delta, epsilon) / epsilon
        return math.log(min(max(found, 1e-3), _FAR))

    def factor(self, groups: list[Group], start: float, *, rough: bool) -> float:
        """Return the least c for which the shifts divided by c meet the target."""

        def divided(c: float) -> list[Group]:
            return [(curve, shifts / c, counts) for curve, shifts, counts in groups]

        if rough:
            return _about_factor(lambda c: self.about_excess(divided(c)), start)
        return least_factor(lambda c: self.excess(divided(c)), start, _FINE)


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Scales and families that should meet a target, with the bounds that they rest on."""

    scale: Vector
    families: tuple[Noise, ...]
    sensitivity: SensitivityProfile
    error: float


def propose(rule: str, name: str, request: Request) -> Proposal:
    # "inid" looks for the exponent: scales (λ^q/w)^{1/(p+q)} with q from 1 (pure limit) past 2
    # (central limit); the shapes of the other two rules are candidates too, and so are the bounds
    # without the joint ones. A shape of the family is looked for in its range.
    bounds = [box_of(request.sensitivity)]
    if counted_by(request.sensitivity, (get_noise(name),)) == "release":
        bounds.insert(0, request.sensitivity)
    proposals = [_ScaleSearch(rule, name, each, request).run() for each in bounds]
    return min(proposals, key=lambda proposal: proposal.error)


@dataclass(slots=True)
class _ScaleSearch:
    # It remembers how far the last factor was from that of normal noise: the next one starts there.

    rule: str
    name: str
    sensitivity: SensitivityProfile
    request: Request
    last: float | None = None
    log_shape: float = 0.0  # the best one so far

    def run(self) -> Proposal:
        if self.rule != "inid":
            return self.finished(self.scales(self.rule, 1.0))
        shape = self.scales("inid", 1.5)
        if _proportional(shape, self.scales("inid", 1.0)):
            if _proportional(shape, self.scales("iid", 1.0)):
                return self.following("iid")
            return self.finished(shape)
        family = self.best_family(shape)
        is_box = self.sensitivity.l1 is None and self.sensitivity.l2 is None
        found = minimize_scalar(
            lambda q: math.log(self.attempt(self.scales("inid", float(q)), family).error),
            bounds=(1.0, _MOST_ORDER if is_box else 2.0),
            method="bounded",
            options={"xatol": 0.1},
        )
        shape = self.scales("inid", float(found.x))
        family = self.best_family(shape, near=True)
        shapes = [shape, self.scales("inid", 1.0), self.scales("inid", 2.0)]
        errors = [self.attempt(each, family).error for each in shapes]
        best = int(np.argmin(errors))
        own = self.attempt(shapes[best], family, rough=False)
        proposals = [own]
        for rule in ("iid", "spr"):  # never worse than these: where it is close, look properly
            shape = self.scales(rule, 1.0)
            if shape.min() > 0.0 and self.attempt(shape, family).error < _NEAR * errors[best]:
                proposals.append(self.following(rule))
        # The final scales are raised by up to about a millionth: a tie goes to the plain rule.
        return min(proposals[::-1], key=lambda found: found.error * (1.0 + _TIE * (found is own)))

    def finished(self, shape: Vector) -> Proposal:
        """Return the proposal for scales up to a factor, with the best shape of the family."""
        return self.attempt(shape, self.best_family(shape), rough=False)

    def following(self, rule: str) -> Proposal:
        return _ScaleSearch(rule, self.name, self.sensitivity, self.request).run()

    def scales(self, rule: str, order: float) -> Vector:
        return self.request.scales(rule, order, self.sensitivity)

    def best_family(self, scales: Vector, *, near: bool = False) -> Noise:
        """Return the family with the shape of the smallest error, by a bounded search."""
        family = get_noise(self.name)
        if family.shape_range is None:
            return family
        low, high = np.log(family.shape_range)
        if near:
            low, high = max(low, self.log_shape - 0.4), min(high, self.log_shape + 0.4)

        def error(x: float) -> float:
            return math.log(self.attempt(scales, get_noise(self.name, math.exp(x))).error)

        # One coordinate, or one merged one, has an exact curve: shapes that differ by a hair count.
        # The error may have two valleys, as of the flipped Huber density: a coarse grid sees one.
        alone = scales.size == 1 and self.request.n_releases == 1
        found = grid_minimum(
            error, np.linspace(low, high, 3 if near else 13), 1e-4 if alone else 0.03
        )
        self.log_shape = float(found.x)
        return get_noise(self.name, math.exp(self.log_shape))

    def attempt(self, shape: Vector, family: Noise, *, rough: bool = True) -> Proposal:
        """Return the proposal of scales proportional to `shape`, with the least factor."""
        request = self.request
        by = counted_by(self.sensitivity, (family,))
        values, counts = shifts(shape, self.sensitivity, request.n_releases, _NO_ROUNDING, by=by)
        rough = rough and not (values.size == 1 and float(counts.sum()) == 1.0)
        guess = math.sqrt(float((counts * values**2).sum())) / request.mu
        start = guess * (self.last or math.sqrt(min(family.fisher_information, 4.0)))
        moving = values > 0.0
        unique, inverse = np.unique(values[moving], return_inverse=True)
        totals = np.asarray(np.bincount(inverse, weights=counts[moving]), dtype=np.float64)
        if rough and unique.size > _FEW_SHIFTS:
            unique, totals = _gathered(unique, totals)
        curve = NormalShift() if family.norm_order == 2.0 else family
        factor = request.factor([(curve, unique, totals)], start, rough=rough)
        self.last = factor / guess
        error = request.error(shape * factor, family.absolute_moment(request.p))
        return Proposal(shape * factor, (family,), self.sensitivity, error)


def propose_mixture(request: Request) -> Proposal:
    r"""Return the best mixture; raise if there is none.

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


def prepared_mixture(request: Request) -> tuple[Mixtures, list[int]]:
    """Return the search for mixtures, and numbers of Laplace coordinates to try."""
    if not isinstance(request.target, PrivacyGuarantee):
        raise ValueError(
            f"The 'noise' parameter of calibrate is {MIXTURE!r}, which needs a PrivacyGuarantee "
            "with delta > 0. Give one, or choose a single family."
        )
    refuse_groups(MIXTURE, request.sensitivity)
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
    search = Mixtures(request, limit / limit.max(), limit.max(), weights / weights.max(), ranked)
    # Numbers of dominant coordinates: first that before the largest gap, then powers of two.
    falling = importance[ranked[:moving]]
    gap = 1 + int(np.argmax(falling[:-1] / falling[1:]))
    powers = [2**k for k in range(_MOST_SPLITS) if 2**k < moving]
    return search, list(dict.fromkeys([gap, *powers]))


@dataclass(slots=True)
class Mixtures:
    """Errors of mixtures, each search from the last factor."""

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

    def error(self, scale: Vector, laplace: NDArray[np.bool_]) -> float:
        moments = [family.absolute_moment(self.request.p) for family in _MIXED]
        return self.request.error(scale, np.where(laplace, *moments))

    def proposal(self, scale: Vector, laplace: NDArray[np.bool_]) -> Proposal:
        chosen = tuple(_MIXED[not one] for one in laplace)
        box = SensitivityProfile(self.request.sensitivity.per_coordinate)
        return Proposal(scale, chosen, box, self.error(scale, laplace))

    def factor(self, scale: Vector, laplace: NDArray[np.bool_], *, rough: bool) -> float:
        """Return the least c for which the scales times c meet the guarantee."""
        values, mu = self.shifts(scale, laplace)
        if rough:
            largest = float(values.max())
            values = largest * np.exp(-_COARSE * np.floor(np.log(largest / values) / _COARSE))
        shifts, times = np.unique(values, return_counts=True)
        counts = np.asarray(times * float(self.request.n_releases), dtype=np.float64)
        groups: list[Group] = [
            (_MIXED[0], np.asarray(shifts, dtype=np.float64), counts),
            (NormalShift(), np.array([mu]), np.ones(1)),
        ]
        start = self.last or math.sqrt(mu**2 + float(counts @ shifts**2)) / self.request.mu
        self.last = self.request.factor(groups, start, rough=rough)
        return self.last

    def best_ratio(self, m: int) -> tuple[float, int, float]:
        """Return the error, m and log ρ of the best mixture with m Laplace coordinates."""

        def error(log_ratio: float) -> float:
            scale, laplace = self.scales(m, log_ratio)
            return self.error(scale * self.factor(scale, laplace, rough=True), laplace)

        found = grid_minimum(error, np.linspace(-WIDE, WIDE, 6), 0.05)
        return float(found.fun), m, float(found.x)


def grid_minimum(function: Callable[[float], float], grid: Vector, tolerance: float) -> Any:
    """Return scipy's bounded minimum around the best point of a grid."""
    best = int(np.argmin([function(x) for x in grid]))
    return minimize_scalar(
        function,
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]),
        method="bounded",
        options={"xatol": tolerance},
    )


def _proportional(one: Vector, other: Vector) -> bool:
    return bool(np.allclose(one / one.max(), other / other.max(), rtol=1e-9, atol=0.0))


def _gathered(values: Vector, counts: Vector) -> tuple[Vector, Vector]:
    """Return a few shifts of about the same composed loss: root mean squares of narrow bins."""
    squares = counts * values**2
    # The smallest shifts, which hardly matter together, share the lowest bin.
    lowest = values[np.searchsorted(np.cumsum(squares), _NEGLIGIBLE * squares.sum())]
    edges = np.geomspace(lowest, values[-1], _FEW_SHIFTS)[1:-1]
    bins = np.searchsorted(edges, values)
    totals = np.asarray(np.bincount(bins, weights=counts), dtype=np.float64)
    used = totals > 0.0
    gathered: Vector = np.sqrt(np.bincount(bins, weights=squares)[used] / totals[used])
    return gathered, totals[used]


def _about_factor(excess: Callable[[float], float], start: float) -> float:
    """Return about the c with excess(c) = 0, for a search: secants in log c, few evaluations."""
    x, value, slope = math.log(start), excess(start), -1.0
    for _ in range(12):
        step = min(max(-value / slope, -0.7), 0.7)
        if abs(value) <= _CLOSE:
            return math.exp(x + step)
        moved = excess(math.exp(x + step))
        if moved != value:
            slope = min((moved - value) / step, -0.3)
        x, value = x + step, moved
    return least_factor(excess, math.exp(x), _ROUGH)


def least_factor(excess: Callable[[float], float], start: float, tolerance: float) -> float:
    """Return the least c with excess(c) <= 0, for a function that falls; relative tolerance."""

    @cache
    def at(x: float) -> float:
        return excess(math.exp(x))

    low = high = math.log(start)
    step = 0.03
    while at(high) > 0.0:
        low, high, step = high, high + step, 3.0 * step
        if step > 100.0:
            raise ValueError("no scale meets the guarantee within the precision of the accounting")
    step = 0.03
    while high == low or at(low) <= 0.0:
        high, low, step = low, low - step, 3.0 * step
        if step > 100.0:
            return math.exp(high)
    return math.exp(float(brentq(at, low, high, xtol=tolerance)))


def gaussian_mu(family: LossCurve, shift: Vector) -> Vector:
    r"""Return the μ of a Gaussian loss that contains the family's, for each shift.

    .. math:: \mu(a) = \max_t \left[g(t) - g(t - a)\right], \qquad g = \Phi^{-1} \circ F

    Reference: Dong, Roth and Su, arXiv:1905.02383, Section 2 and Proposition A.3.
    """
    # For log-concave noise T(F, F(· − a)) lies above that of N(0, 1) and N(μ, 1) exactly if g rises
    # by at most μ over any distance a. The maximum is found on a grid that is refined twice around
    # its best point, and rounded up. For other families the largest loss ε is used: a Gaussian with
    # the same total variation contains ε-privacy, because its trade-off function is convex and
    # passes through the corner of the two straight pieces.
    if isinstance(family, NormalShift):
        return shift
    assert isinstance(family, Noise)
    if not family.log_concave or family.lattice:
        epsilon = family.max_loss(shift)
        distance, tail = np.tanh(0.5 * epsilon), 1.0 / (1.0 + np.exp(epsilon))
        return _separation(distance, tail)
    # Where there are many shifts, they are rounded up to a few.
    largest = float(shift.max())
    steps = np.floor(np.log(largest / np.maximum(shift, 1e-9 * largest)) / _COARSE)
    rounded = largest * np.exp(-_COARSE * steps) if shift.size > _MANY_SHIFTS else shift
    values, inverse = np.unique(rounded, return_inverse=True)
    centred = _separation(family.hockey_stick(0.0, values), family.sf(0.5 * values))
    rises = np.array([_largest_rise(family, float(a)) if a > 0.0 else 0.0 for a in values])
    return np.asarray(np.maximum(centred, rises)[inverse])


def _separation(distance: Vector, tail: Vector) -> Vector:
    """Return the μ of a total variation distance, given also as twice the tail that it leaves."""
    near = math.sqrt(8.0) * erfinv(np.minimum(distance, 0.6))
    with np.errstate(divide="ignore"):
        mu: Vector = np.where(distance < 0.5, near, -2.0 * ndtri(tail)) * (1.0 + 1e-9)
    return mu


def _largest_rise(family: Noise, shift: float) -> float:
    """Return max g(t) - g(t - shift) over t >= shift/2, which by symmetry is over all t."""

    def g(t: Vector) -> Vector:
        with np.errstate(divide="ignore"):
            value = ndtri_exp(np.log(np.maximum(family.sf(np.abs(t)), 1e-300)))
        return np.asarray(np.where(t > 0.0, -value, value), dtype=np.float64)

    low, high = 0.5 * shift, 0.5 * shift + float(family.isf(1e-100))
    best = 0.0
    for _ in range(3):
        t = np.linspace(low, high, 400)
        rises = g(t) - g(t - shift)
        k = int(np.argmax(rises))
        low, high = t[max(k - 1, 0)], t[min(k + 1, t.size - 1)]
        best = max(best, float(rises[k]))
    return best * (1.0 + 1e-7) + 1e-15
