"""Compositions of curves, evaluated on a lattice, rounded up."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from skdpnoise._utils.checks import check_count, check_real
from skdpnoise.privacy.base import BaseLoss
from skdpnoise.privacy.curves import LossCurve, NormalShift, Promised, raised, ways_of
from skdpnoise.privacy.numeric._lattice import Lattice, LatticeSum, Plan, Window

Vector = NDArray[np.float64]
Terms = tuple[tuple[LossCurve, float, int], ...]
Group = tuple[LossCurve, Vector, Vector]
"""A curve, shifts, and how often each is composed."""

_NOTHING = 1e-60  # a curve this low has ended
_LOW, _TOGETHER = 1e-40, 8  # the same for bounds of several δ, and how many share a lattice
_SMALLEST = 1e-100  # smaller shifts count as this: larger is safe, and its square is a double
_MOST_DOTS = 1 << 17  # of a curve
_SHORTEST, _LONGEST = 13, 20  # log2 of the length of the transform
_TOLERANCE = 1e-13
_FINE = 0.02  # of the variance, what rounding to steps may add
_MOST_FINE, _FINEST = 16, 1 << 17  # so many times more points for that, and in all
_CUTS, _ENOUGH = 6, 0.7  # times that a tail is cut, while δ falls by more than this


@dataclass(frozen=True, slots=True)
class NumericLoss(BaseLoss):
    r"""The loss of independent releases whose curves are known one by one.

    .. math:: \delta(e) = E \left(1 - e^{e - L}\right)_+, \qquad L = \sum_i n_i \text{ losses } L_i

    with L_i the privacy loss of term i. Each curve is replaced by the chords between its values on
    a lattice, which lie above it; where a curve comes with many different shifts, those between two
    lattices are replaced by a public mixture of the two that lies above them at every point of
    the lattice, hence everywhere. Dominating curves compose to dominating curves, so what is
    returned is never too small. The sum's distribution comes from a Fourier transform of the
    *tilted* distributions, which keeps relative accuracy however small δ is.

    Releases may be chosen adaptively as long as the terms themselves are fixed in advance.

    Parameters
    ----------
    terms : tuple of (LossCurve, float, int)
        Curve, shift and count of each kind of release; equal ones are merged. A shift below 1e-100
        counts as that, unless the curve then loses nothing.

    References
    ----------
    Koskela, Jälkö and Honkela, "Computing tight differential privacy guarantees using FFT",
    AISTATS 2020. Doroshenko et al., "Connect the dots", PoPETs 2022, Theorem 3.1 (domination).
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function",
    AISTATS 2022, Theorem 10 (dominating pairs compose).

    Examples
    --------
    >>> from skdpnoise.privacy import GaussianLoss, PureLoss
    >>> loss = PureLoss(0.5) + GaussianLoss(0.4)
    >>> round(loss.delta(1.0), 4)
    0.016
    >>> PureLoss(0.5).numeric().compose(3)
    NumericLoss(3 x RandomisedResponse)
    """

    terms: Terms

    def __post_init__(self) -> None:
        merged: Counter[tuple[LossCurve, float]] = Counter()
        normal = []
        for curve, shift, count in self.terms:
            shift = check_real("NumericLoss", "shift", shift, low_closed=True)
            count = check_count("NumericLoss", "count", count)
            shift = max(shift, _SMALLEST) if shift > 0.0 else 0.0
            if isinstance(curve, NormalShift):
                normal.append(math.sqrt(count) * shift)  # normal shifts compose exactly
            elif curve.max_loss(shift) > 0.0:
                merged[curve, max(shift, _SMALLEST)] += count
        mu = math.hypot(*normal)
        if mu > 0.0:
            merged[NormalShift(), mu * (1.0 + _TOLERANCE)] = 1
        terms = tuple((curve, shift, count) for (curve, shift), count in merged.items())
        object.__setattr__(self, "terms", terms)

    @property
    def pure_epsilon(self) -> float:
        """The ε of pure privacy that this loss implies; infinity if there is none."""
        total = math.fsum(
            count * float(curve.max_loss(shift)) for curve, shift, count in self.terms
        )
        return total * (1.0 + _TOLERANCE)

    def __str__(self) -> str:
        pure = self.pure_epsilon
        if math.isfinite(pure):
            return f"{pure:.6g}-DP"
        return f"({self.epsilon(1e-6):.6g}, 1e-06)-DP"

    def __repr__(self) -> str:
        counts: Counter[str] = Counter()
        for curve, _, count in self.terms:
            counts[type(curve).__name__] += count
        inner = ", ".join(f"{count} x {name}" for name, count in counts.items())
        return f"{type(self).__name__}({inner})"

    def _delta_at(self, epsilon: float) -> float:
        if not self.terms or epsilon >= self.pure_epsilon:
            return 0.0
        return _delta(self.terms, epsilon)

    def _epsilon_at(self, delta: float) -> float:
        pure = self.pure_epsilon
        if delta == 0.0 or pure == 0.0:
            return pure
        if self.delta(0.0) <= delta:
            return 0.0
        high = min(pure, 1.0)
        while high < pure and self.delta(high) > delta:
            high = min(2.0 * high, pure)
            if high > 1e6:
                return pure
        if high == pure < math.inf and _delta(self.terms, pure * (1.0 - 1e-9)) > delta:
            return pure

        def excess(value: float) -> float:
            return math.log(max(self.delta(value), 1e-300) / delta)

        low = 0.0 if high <= 1.0 else 0.5 * high
        root = float(brentq(excess, low, high, xtol=1e-12, rtol=1e-9))
        while self.delta(root) > delta:
            root = min(root * (1.0 + 1e-8) + 1e-12, pure)
        return root

    def _times(self, count: int) -> Self:
        return type(self)(tuple((curve, shift, count * n) for curve, shift, n in self.terms))

    def numeric(self) -> NumericLoss:
        """Return the loss itself."""
        return self

    def delta_beyond(self, epsilon: float, floor: float) -> float:
        """Return an upper bound of δ(ε) that cuts curves below a floor: quick for heavy tails."""
        if not self.terms or epsilon >= self.pure_epsilon:
            return 0.0
        return composed_delta(_groups(self.terms), epsilon, floor=floor)

    def deltas(self, epsilons: Vector) -> Vector:
        """Return quick upper bounds of δ at ascending ε, of which neighbours share a lattice."""
        found = np.zeros(epsilons.size)
        n_below = int(np.searchsorted(epsilons, self.pure_epsilon)) if self.terms else 0
        for some in np.split(np.arange(n_below), np.arange(_TOGETHER, n_below, _TOGETHER)):
            if some.size:
                found[some] = composed_deltas(_groups(self.terms), epsilons[some])
        return found

    def bounds_near(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Return quick upper bounds of δ(ε) and of ε(δ), close where they are near each other."""
        return _bounds(self.terms, epsilon, delta)

    def __add__(self, other: object) -> NumericLoss:
        numeric = getattr(other, "numeric", None)
        if numeric is None:
            return NotImplemented
        return NumericLoss(self.terms + numeric().terms)

    __radd__ = __add__


@lru_cache(maxsize=1024)
def _delta(terms: Terms, epsilon: float) -> float:
    return composed_delta(_groups(terms), epsilon)


@lru_cache(maxsize=1024)
def _bounds(terms: Terms, epsilon: float, delta: float) -> tuple[float, float]:
    return bounds_near(_groups(terms), delta, epsilon, coarse=True)


def _groups(terms: Terms) -> list[Group]:
    grouped: dict[LossCurve, list[tuple[float, int]]] = {}
    for curve, shift, count in terms:
        grouped.setdefault(curve, []).append((shift, count))
    groups = []
    for curve, pairs in grouped.items():
        shifts, counts = np.array(sorted(pairs)).T
        groups.append((curve, shifts, counts))
    return groups


@dataclass(frozen=True, slots=True)
class _Skew:
    """Settings for the composition of pairs that are not symmetric."""

    adding: bool = False  # the order of the neighbours
    known: float = 0.0  # a δ that is needed anyway, so that smaller ones are not computed
    # Whether to tilt far. A tilt makes the window of a heavy tail wide, and so the lattice coarse;
    # without one, a small δ is lost in rounding errors.
    far: bool = False


def _orders(groups: list[Group]) -> tuple[bool, ...]:
    """Return the orders of the neighbours to compute: a record taken away (False), or added."""
    pairs = (ways_of(curve) for curve, _, _ in groups)
    return (False,) if all(one is other for one, other in pairs) else (False, True)


def _without_chances(groups: list[Group]) -> tuple[list[Group], float]:
    """Return the groups without chances c of disclosure, and c: δ = c + (1 - c) δ(the rest)."""
    # With no shift, a promise of δ alone loses all with that probability, else nothing.
    kept, logs = [], 0.0
    for curve, shifts, counts in groups:
        alone = np.array([isinstance(curve, Promised)]) & (shifts <= _SMALLEST)
        if alone.any():
            with np.errstate(divide="ignore"):  # of a chance of one
                logs += float(counts[alone] @ np.log1p(-raised(curve, 0.0, shifts[alone])))
        if not alone.all():
            kept.append((curve, shifts[~alone], counts[~alone]))
    return (kept, min(1.0, -math.expm1(logs) * (1.0 + _TOLERANCE))) if logs else (groups, 0.0)


def composed_delta(groups: list[Group], epsilon: float, *, floor: float = _NOTHING) -> float:
    """Return an upper bound of δ(ε) of a composition, for both orders of the neighbours."""
    groups, chance = _without_chances(groups)
    if chance > 0.0:
        rest = composed_delta(groups, epsilon, floor=floor) if groups else 0.0
        return min(1.0, (chance + (1.0 - chance) * rest) * (1.0 + _TOLERANCE))
    if len(groups) == 1 and groups[0][1].size == 1 and groups[0][2][0] == 1.0:
        curve, shifts, _ = groups[0]
        # Below the smallest double, that double.
        return math.nextafter(float(raised(curve, epsilon, shifts[0])), 1.0)
    orders = _orders(groups)
    if len(orders) == 1:
        return _delta_of(groups, epsilon, floor)
    found = 0.0
    for order in orders:
        found = max(found, _skewed_delta(groups, epsilon, floor, found, adding=order))
    return found


def _delta_of(groups: list[Group], epsilon: float, floor: float) -> float:
    found, infinite = _compose(groups, epsilon, floor, _SHORTEST)
    finite = 0.0 if found is None else found.tail(epsilon / found.step)
    return min(1.0, finite + infinite)


def _skewed_delta(
    groups: list[Group], epsilon: float, floor: float, known: float, *, adding: bool
) -> float:
    """Return a bound of δ(ε) for one order of neighbours, where tails may be heavy: see `_Skew`."""
    # Each bound holds. The shorter the tails, the finer is the lattice, and the smaller the next.
    n_releases = sum(float(counts.sum()) for _, _, counts in groups)
    best, far = math.inf, False
    for _ in range(_CUTS):
        skew = _Skew(adding, known, far)
        found, infinite = _compose(groups, epsilon, floor, _SHORTEST, skew)
        finite = 0.0 if found is None else found.tail(epsilon / found.step)
        lost = not far and found is not None and found.is_lost(epsilon / found.step)
        fallen = finite + infinite < _ENOUGH * best
        best = min(best, finite + infinite, 1.0)
        higher = max(floor, 1e-6 * best / n_releases)
        if best <= known or not (lost or (fallen and higher > 10.0 * floor)):
            break
        far = far or (lost and floor > _NOTHING)
        floor = higher
    return best


def composed_deltas(groups: list[Group], epsilons: Vector) -> Vector:
    """Return upper bounds of δ at some ε, tight near the middle one: all from one lattice."""
    groups, chance = _without_chances(groups)
    if chance > 0.0:
        rest = composed_deltas(groups, epsilons) if groups else np.zeros(epsilons.size)
        return np.minimum(1.0, (chance + (1.0 - chance) * rest) * (1.0 + _TOLERANCE))
    found = np.zeros(epsilons.size)
    middle = float(epsilons[epsilons.size // 2])
    for adding in _orders(groups):
        window, infinite = _compose(groups, middle, _LOW, _SHORTEST - 2, _Skew(adding))
        if window is None:  # the loss ends before, or is infinite
            return np.array([composed_delta(groups, float(e), floor=_LOW) for e in epsilons])
        found = np.maximum(found, [window.tail(e / window.step) + infinite for e in epsilons])
    return np.minimum(found, 1.0)


def about_epsilon(groups: list[Group], delta: float, near: float) -> float:
    """Return about the ε(δ) of a composition, if that is near a value; for searches, not claims."""
    groups, chance = _without_chances(groups)
    if chance > 0.0:
        if not groups or delta <= chance:
            return 0.0 if delta > chance else 4.0 * near
        delta = (delta - chance) / (1.0 - chance)
    return max(_about_epsilon(groups, delta, near, adding=order) for order in _orders(groups))


def _about_epsilon(groups: list[Group], delta: float, near: float, *, adding: bool) -> float:
    few = sum(shifts.size for _, shifts, _ in groups) <= 4
    shortest = _SHORTEST - 2 * (not few)
    found, infinite = _compose(groups, near, 1e-9 * delta, shortest, _Skew(adding))
    if infinite >= delta:
        return 4.0 * near * min(infinite / delta, 1e6)
    if found is None:  # the loss ends before
        plans = (Plan(*group, 1e-9 * delta, adding=adding) for group in groups)
        return min(near, sum(plan.support() for plan in plans))
    return found.about_quantile(delta - infinite) * found.step


def bounds_near(
    groups: list[Group], delta: float, near: float, *, coarse: bool = False
) -> tuple[float, float]:
    """Return upper bounds of δ at an ε, and of ε at a δ, from one distribution of the loss."""
    # Both hold; the second is tight where it comes out near the ε that was given.
    groups, chance = _without_chances(groups)
    if chance > 0.0:
        room, rest, least = 0.0, 0.0, 0.0
        if delta > chance:
            room = (delta - chance) / (1.0 - chance) * (1.0 - _TOLERANCE)
        if groups:
            rest, least = bounds_near(groups, room, near, coarse=coarse)
        whole = min(1.0, (chance + (1.0 - chance) * rest) * (1.0 + _TOLERANCE))
        return whole, least if room > 0.0 else math.inf
    bounds = [_bounds_near(groups, delta, near, coarse, order) for order in _orders(groups)]
    at, smallest = zip(*bounds, strict=True)
    return max(at), max(smallest)


def _bounds_near(
    groups: list[Group], delta: float, near: float, coarse: bool, adding: bool
) -> tuple[float, float]:
    shortest = _SHORTEST - 2 * coarse
    found, infinite = _compose(groups, near, 1e-9 * delta, shortest, _Skew(adding))
    room = delta - infinite
    if found is None:  # the loss ends before
        return min(1.0, abs(infinite)), near if room >= 0.0 else math.inf
    at = min(1.0, found.tail(near / found.step) + infinite)
    if room > 0.0:
        guess = found.about_quantile(room)
        for more in (1e-6, 1e-3, 0.03, 0.3, 1.0):
            target = max(guess + more, 0.0)
            if found.tail(target) <= room:
                return at, target * found.step
    return at, near if at <= delta else math.inf


def _compose(
    groups: list[Group], epsilon: float, floor: float, shortest: int, skew: _Skew = _Skew()
) -> tuple[Window | None, float]:
    """Return the distribution of the loss around ε, and the probability of an infinite loss."""
    plans = [Plan(*group, floor, adding=skew.adding) for group in groups]
    symmetric = all(plan.symmetric for plan in plans)
    if not symmetric and epsilon >= sum(plan.end() for plan in plans) * (1.0 + _TOLERANCE):
        return None, 0.0
    n_total = sum(float(plan.counts.sum()) for plan in plans)
    points = math.ceil(math.log2(300.0 * math.sqrt(n_total))) + (shortest - _SHORTEST)
    length = 1 << min(max(points, shortest), _LONGEST)
    variance = sum(plan.variance() for plan in plans)
    step = max(20.0 * math.sqrt(variance), 1e-3 * epsilon) / length
    step = min(step, 1.05 * sum(plan.width() for plan in plans) / length)
    largest = max(plan.largest for plan in plans)
    step = max(step, largest / _MOST_DOTS)
    # Near the end of a bounded loss the window shrinks without end.
    finest = max(step / 4.0, largest / _MOST_DOTS)
    size = sum(plan.size for plan in plans)
    fine = _FINE * variance / size if size and variance and floor > _NOTHING else math.inf
    for attempt in range(8):
        lattices: list[Lattice] = []
        parts = [plan.build(step, lattices) for plan in plans]
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        composition = LatticeSum(lattices, *columns)
        infinite = composition.infinite
        if infinite > 0.999 or epsilon / step >= composition.support:
            return None, min(1.0, infinite / 0.999)
        if symmetric:
            state = composition.tilted_to(epsilon / step)
        else:
            enough = math.log(skew.known) - 1e-6 if skew.known else -math.inf
            state = composition.tilted_less(epsilon / step, enough, far=skew.far)
            bound = state.cumulant - state.theta * epsilon / step
            if bound < enough:  # (1 - e^{ε - L})_+ is below e^{θ(L - ε)}
                return None, min(1.0, math.exp(bound) + infinite)
        right, left = (composition.reach(state, sign, skewed=not symmetric) for sign in (1.0, -1.0))
        needed = 1.02 * (left + right) + 4.0
        if needed <= length and (needed > 0.6 * length or attempt >= 3 or step <= finest):
            if step <= fine:
                break
            # Most losses are smaller than a step: once with as many more points as that takes.
            more = min(1 << math.ceil(math.log2(step / fine)), _MOST_FINE)
            length = max(length, min(length * more, _FINEST))
            finest, fine = 0.0, math.inf
        step = max(step * needed / (0.95 * length), finest, largest / _MOST_DOTS)
    else:
        length = 1 << math.ceil(math.log2(needed))
    return composition.window(state, length, right, step), infinite
