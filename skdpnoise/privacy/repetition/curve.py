r"""The curve of the best of K runs from the curve of one run, rounded up, and tables of it.

Letters: Q, Q' the laws of the output of one run on two neighbours, H their curve (the smallest δ at
ε), l = dQ'/dQ, u = Q(better outputs), U(u) the largest Q'-mass of a set of Q-mass u, g(u) =
f'(1 - u) with f the generating function of K, and a = g(u), b = e^ε g(U(u)), φ(l) = sup_u (a - b l
- π(u))_+ in the bound of :class:`Repetition`, which holds for *any* prices π ≥ 0 of positions.
``docs/develop/best_of_many.md`` proves it, step by step, and says how numbers are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.privacy import half_lines
from skdpnoise.privacy.curves import LossCurve, NormalShift, RandomisedResponse, raised
from skdpnoise.privacy.numeric.loss import NumericLoss
from skdpnoise.privacy.repetition.laws import RepetitionLaw, check_law

Vector = NDArray[np.float64]
Dots = tuple[Vector, Vector]
Profile = Callable[[Vector], Vector]

_MARGIN = 1e-12
_LARGEST = 600.0  # losses of a table
_FEW = 4  # points up to which a curve is computed directly
_BULK = 1e-3  # below this δ prices gain nothing
_COARSE = 20.0  # times the step, and how many dots show where a curve falls
_AT_ONCE, _IN_CACHE = 1_000_000, 20_000  # values that are summed, and that are computed, at once
_MOST_RUNS, _RUN_GROUPS = 1e4, 500  # more runs count as a δ of 1
_SAFE = 1.0 + 1e-9  # relative rounding error of the bound, with room to spare
_LINES = 1500
_SMALLEST = 1e-4  # of the scale on which g falls: the first cell
_CELLS = 100  # for each factor e of u, for a loss of about 1
_MOST_CELLS = 20_000
_FARTHEST = 60.0  # losses beyond count as this
_STARTS = 24
_REACHES = np.multiply.accumulate(np.r_[1e-6, np.full(81, 1.25)])  # beyond the farthest loss


class Detail(NamedTuple):
    """How many dots stand for a curve that is convex in e^ε: the chords between them lie above."""

    step: float  # of log δ between two dots of the tail
    composed_step: float  # the same for a composition, each of whose values is dear
    priced: int  # dots of the bulk, where prices are searched for
    ended: float  # a curve this low has ended


WHOLE = Detail(step=0.05, composed_step=0.1, priced=80, ended=1e-62)
NORMAL = NormalShift()
PURE = RandomisedResponse()  # the curve that a largest loss implies: 1 for an infinite one


@dataclass(frozen=True, slots=True)
class Composed:
    """The curve of a composition, as that of one run; its shift is 1."""

    terms: tuple[tuple[LossCurve, float, int], ...]  # as in skdpnoise.privacy.NumericLoss

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        epsilon, _ = half_lines.pairs(epsilon, shift)
        return chords(*_composed_table(self.terms), epsilon)

    def max_loss(self, shift: ArrayLike) -> Vector:
        return np.full(np.shape(shift), NumericLoss(self.terms).pure_epsilon)


@shared_texts
@dataclass(frozen=True, slots=True)
class Repetition:
    r"""The curve of the best of K runs; the shift is that of the curve of one run.

    .. math:: \delta(\varepsilon) \le \min_{\pi \ge 0} \int_0^1 \pi(u)\,du
              + E \max_u \left(g(u) - e^{\varepsilon} g(U(u))\, l - \pi(u)\right)_+

    with g(u) = f'(1 - u), f the generating function of K, U(u) the largest probability that a set
    of probability u can have for a neighbour, and l the likelihood ratio of one run. For any prices
    π this is a bound (the page "The best of many runs" of the documentation proves it); it is never
    above the bound :math:`E[K]\,\delta_{\text{one run}}(\varepsilon - \sup_u \log g(u)/g(U(u)))`.

    **Guarantee.** The curve bounds that of the best of K runs, in both orders of the neighbours,
    for every base whose curve is at most that of one run here, every number of outputs, and every
    order of scores; ties are broken independently of the data, or by the order of the runs. The
    runs are independent, and K is sampled by ``law.sample`` and not cut short. If runs beyond the
    n-th are left out, the guarantee at ε loses (1 + e^ε) Pr[K > n] of δ.

    Parameters
    ----------
    %(mechanisms: law)s
    base : LossCurve, default=NormalShift()
        Curve of one run.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", ICLR 2022.
    Koskela, Redberg and Wang, "Privacy profiles for private selection", arXiv:2402.06701.

    Examples
    --------
    >>> from skdpnoise.privacy import Repetition, TruncatedNegativeBinomial
    >>> curve = Repetition(TruncatedNegativeBinomial.with_mean(eta=1.0, mean=20.0))
    >>> bool(curve.hockey_stick(1.0, 0.14) < 1e-6 < curve.hockey_stick(0.9, 0.14))
    True
    """

    law: RepetitionLaw
    base: LossCurve = NORMAL

    def __post_init__(self) -> None:
        check_law("Repetition", self.law)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        """Return an upper bound of the smallest δ at each ε ≥ 0; broadcasts.

        A few points are computed one by one. Many come from chords in e^ε between some thousand
        dots, which lie above a convex curve.
        """
        epsilon, shift = half_lines.pairs(epsilon, shift)
        values = np.zeros(epsilon.shape)
        for one in np.unique(shift[shift > 0.0]):
            here = shift == one
            largest = float(self.max_loss(one))
            if np.count_nonzero(here) <= _FEW:
                bound = _bound(self, float(one))
                found = np.array([bound.delta(float(e)) for e in epsilon[here]])
                found = np.minimum(found, PURE.hockey_stick(epsilon[here], largest))
            else:
                found = chords(*table(self, float(one)), epsilon[here])
            values[here] = found
        return values

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return the largest loss: that of one run and what the law adds to it."""
        largest = np.asarray(self.base.max_loss(shift), dtype=np.float64)
        total = [value + self.law.pure_excess(value) for value in largest.ravel().tolist()]
        return np.reshape(np.array(total), largest.shape) * (1.0 + _MARGIN)


def bound_of(law: RepetitionLaw, base: LossCurve, shift: float) -> RepetitionBound:
    def profile(losses: Vector) -> Vector:
        return raised(base, losses, shift)

    return RepetitionBound(profile, law, _all_runs(law, shift) if base == NORMAL else None)


@np.errstate(under="ignore")
def _all_runs(law: RepetitionLaw, shift: float) -> Profile:
    """Return the curve of K and all K runs, sum_k Pr[K = k] H(ε, μ √k), rounded up."""
    # K is public, and k Gaussian losses compose to μ √k. Where δ is large, it is below what can be
    # said of the best run alone.
    ends = np.unique(np.ceil(np.geomspace(1.0, _MOST_RUNS + 1.0, _RUN_GROUPS)))
    counts = np.arange(1.0, ends[-1])
    masses = np.add.reduceat(law.pmf(counts), ends[:-1].astype(int) - 1)
    none = float(law.pmf(0.0))
    rest = max(0.0, 1.0 - none - float(masses.sum())) + 1e-9  # rounding
    shifts = shift * np.sqrt(ends[1:] - 1.0)

    @np.errstate(under="ignore")
    def curve(losses: Vector) -> Vector:
        return raised(NORMAL, losses[:, None], shifts) @ masses + rest

    return curve


@lru_cache(maxsize=64)
def _bound(curve: Repetition, shift: float) -> RepetitionBound:
    return bound_of(curve.law, curve.base, shift)


@lru_cache(maxsize=256)
def table(curve: Repetition, shift: float, detail: Detail = WHOLE) -> Dots:
    """Return dots of a curve convex in e^ε that is above that of the best of K runs."""
    bound = _bound(curve, shift)
    largest = float(curve.max_loss(shift))
    losses = _dots(bound.without_prices, largest, detail.step, detail.ended)
    deltas = bound.without_prices(losses)
    bulk = float(losses[np.argmax(deltas < _BULK)]) if deltas[-1] < _BULK else float(losses[-1])
    dear = np.linspace(0.0, bulk, detail.priced)
    losses, first = np.unique(np.concatenate([dear, losses]), return_index=True)
    deltas = np.concatenate([bound.deltas(dear), deltas])[first]
    deltas = np.minimum(deltas, PURE.hockey_stick(losses, largest))
    return _lower_envelope(losses, np.minimum.accumulate(deltas))


@lru_cache(maxsize=16)
def _composed_table(terms: tuple[tuple[LossCurve, float, int], ...]) -> Dots:
    loss = NumericLoss(terms)

    def curve(losses: Vector) -> Vector:
        return np.array([loss.delta(float(e)) for e in losses])

    return table_of(curve, loss.pure_epsilon, WHOLE)


def table_of(curve: Profile, largest: float, detail: Detail) -> Dots:
    losses = _dots(curve, largest, detail.composed_step, detail.ended)
    return _lower_envelope(losses, np.minimum.accumulate(curve(losses)))


def _dots(curve: Profile, largest: float, step: float, ended: float) -> Vector:
    """Return losses from 0 to the end of a curve, between which its log falls by about a step."""
    end = largest
    if not math.isfinite(end):
        end = 1e-6
        while end < _LARGEST and float(curve(np.array([end]))[0]) > ended:
            end = min(1.5 * end, _LARGEST)
    coarse = np.linspace(0.0, end, max(20, round(_COARSE / step) // 2))
    heights = np.log(np.maximum(curve(coarse), ended))
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(heights)) / step + 0.1)])
    return np.interp(np.arange(0.0, math.ceil(length[-1]) + 1.0), length, coarse)


def chords(losses: Vector, deltas: Vector, epsilon: Vector) -> Vector:
    """Return the curve that connects dots by chords in e^ε, and is constant after the last."""
    if losses.size == 1:
        return np.full_like(epsilon, deltas[0])
    epsilon = np.minimum(epsilon, losses[-1])
    i = np.clip(np.searchsorted(losses, epsilon, side="right") - 1, 0, losses.size - 2)
    left, right = losses[i], losses[i + 1]
    share = np.expm1(epsilon - left) / np.expm1(right - left)
    rest = np.expm1(epsilon - right) / np.expm1(left - right)
    return np.asarray(rest * deltas[i] + share * deltas[i + 1])


class RepetitionBound:
    # `profile` is H of one run at losses ≥ 0, for both orders of the neighbours; `all_runs` the
    # curve of K and all K runs, of which the best is a function.

    @np.errstate(under="ignore")
    def __init__(
        self, profile: Profile, law: RepetitionLaw, all_runs: Profile | None = None
    ) -> None:
        scale = 1.0 / max(1.0, -float(law.log_slope(0.0)))
        first = _SMALLEST * scale
        far = (profile(_REACHES) > 1e-3 * first) & (_REACHES < _FARTHEST)
        losses = np.linspace(0.0, float(_REACHES[np.argmin(far)]), _LINES)
        deltas = np.minimum(profile(losses), 1.0)
        per_factor = _CELLS / math.sqrt(min(float(losses[-1]), 1.0))
        n_cells = min(math.ceil(per_factor * -math.log(first)), _MOST_CELLS)
        ends = np.concatenate([[0.0], np.geomspace(first, 1.0, n_cells + 1)])
        ends[-1] = 1.0
        width = np.diff(ends)
        middle = 0.5 * (ends[1:] + ends[:-1])
        slope, value = _support_line(losses, deltas, middle)
        tangent = np.exp(law.log_derivative(value))
        fall = tangent * law.log_slope(value) * slope * 0.5 * width
        least = np.exp(law.log_derivative(value + slope * 0.5 * width))
        # A tangent that is below 0 at the right end says less there than the least value of g(U).
        left, right = np.where(tangent + fall > 0.0, [tangent - fall, tangent + fall], least)
        chord = np.exp(law.log_derivative(ends))
        # g is the exponential of sums of logarithms of this size, which are rounded.
        error = 1e-14 * (1.0 + float(np.abs(law.log_derivative([0.0, 1.0])).sum()))
        self.profile, self.all_runs = profile, all_runs
        # At both ends of every cell: bounds of g(u) and of g(U(u)), u, and shares of cells.
        self.a = _both(chord[:-1], chord[1:]) * (1.0 + error)
        self.b = _both(left, right) * (1.0 - error)
        self.position = _both(ends[:-1], ends[1:])
        self.capacity = np.repeat(0.5 * width, 2)
        self.order = np.argsort(self.b, kind="stable")
        # The law of l, its quantiles at these masses: for prices only, so that it need not be
        # exact.
        self.masses, self.ratios = _ratio_law(losses, deltas)

    def delta(self, epsilon: float) -> float:
        return self.search(epsilon)[0]

    def deltas(self, epsilons: Vector) -> Vector:
        """Return bounds of δ(ε) at ascending ε, each search from the result of the next."""
        found, start = np.empty(epsilons.size), None
        for i in reversed(range(epsilons.size)):  # where δ is small the interval is easy to find
            found[i], start = self.search(float(epsilons[i]), start)
        return found

    @np.errstate(under="ignore")
    def search(self, epsilon: float, start: int | None = None) -> tuple[float, int]:
        """Return a bound of δ(ε), and the cell with which the best interval of positions begins."""
        free = float(self.without_prices(np.array([epsilon]))[0])
        if free < _BULK or epsilon > _FARTHEST:
            return free, 0
        n_cells = self.a.size // 2
        if start is None:
            starts = np.unique(np.linspace(0, n_cells - 1, _STARTS).astype(int))
        else:
            starts = np.array([0, start])  # at 0 the price need not begin with 0
        values = {int(k): self._priced(epsilon, int(k)) for k in starts}
        best = min(values, key=values.__getitem__)
        step = max(1, n_cells // (2 * _STARTS))
        while step:
            for k in (best - step, best + step):
                if 0 <= k < n_cells and k not in values:
                    values[k] = self._priced(epsilon, k)
            nearer = min(values, key=values.__getitem__)
            step = step if nearer != best else step // 4
            best = nearer
        bound = min(free, values[best])
        if self.all_runs is not None:
            bound = min(bound, float(self.all_runs(np.array([epsilon]))[0]))
        return bound, best

    @np.errstate(under="ignore")
    def without_prices(self, epsilons: Vector) -> Vector:
        """Return the bound with no prices, E_Q sup_u (a - b l)_+, at each ε."""
        # It is tight where δ is small: only a part of all positions, much smaller than the scale on
        # which a and b vary, then counts.
        weights, logs, least = self._terms(np.zeros_like(self.a), 0.0)
        found = np.empty(epsilons.size)
        block, few = (max(1, size // weights.size) for size in (_AT_ONCE, _IN_CACHE))
        for i in range(0, epsilons.size, block):
            part = epsilons[i : i + block, None]
            rows = [self._full(part[j : j + few] + logs) for j in range(0, len(part), few)]
            found[i : i + block] = np.concatenate(rows) @ weights
        return np.minimum((found + least) * _SAFE, 1.0)

    def _priced(self, epsilon: float, start: int) -> float:
        prices = self._prices(epsilon, start)
        weights, logs, least = self._terms(prices, epsilon)
        spent = least + float(self.capacity @ prices)
        return min(1.0, (spent + float(weights @ self._full(logs))) * _SAFE)

    def _prices(self, epsilon: float, start: int) -> Vector:
        # The least l goes to the first position. The price rises by what makes neighbours in the
        # pairing equally good, π' = a' - b' l, up to the position where a - b l is 0 and so is π.
        prices = np.zeros_like(self.a)
        rest = slice(2 * start, None)
        a, b, u = self.a[rest], math.exp(epsilon) * self.b[rest], self.position[rest]
        taken = u - u[0]
        between = np.interp(0.5 * (taken[1:] + taken[:-1]), self.masses, self.ratios)
        rise = np.concatenate([[0.0], np.cumsum(np.diff(a) - np.diff(b) * between)])
        lost = a - b * np.interp(taken, self.masses, self.ratios) < 0.0
        lost[0] = False
        end = int(np.argmax(lost)) if lost.any() else a.size
        prices[2 * start : 2 * start + end] = np.maximum(rise[:end] - rise[end - 1], 0.0)
        return prices

    def _terms(self, prices: Vector, epsilon: float) -> tuple[Vector, Vector, float]:
        """Return weights, losses -log l_j and c of φ = c + sum_j weight_j (1 - l/l_j)_+."""
        x = np.concatenate([[0.0], self.b[self.order]])
        y = np.concatenate([[0.0], (self.a - prices)[self.order]])
        hull = _upper_hull(x, y)
        weights, widths = np.diff(y[hull]), np.diff(x[hull])
        rising = weights > 0.0
        logs = epsilon + np.log(widths[rising] / weights[rising])
        return weights[rising], logs, float(y[hull[0]])  # c > 0 only where b has vanished

    def _full(self, losses: Vector) -> Vector:
        """Return H at losses of both signs, H(-t) = 1 - e^{-t} + e^{-t} H(t)."""
        values = np.minimum(self.profile(np.abs(losses)), 1.0)
        fallen = np.exp(np.minimum(losses, 0.0))
        full: Vector = np.where(losses >= 0.0, values, -np.expm1(np.minimum(losses, 0.0)))
        return np.where(losses >= 0.0, full, np.minimum(full + fallen * values, 1.0))


def _both(left: Vector, right: Vector) -> Vector:
    return np.stack([left, right], axis=1).ravel()


def _support_line(losses: Vector, deltas: Vector, u: Vector) -> tuple[Vector, Vector]:
    """Return slope and value at u of a line that is above U, nearly the lowest there."""
    # For losses of both signs, so that the slopes fall.
    fallen = np.exp(-losses[1:])
    slopes = np.concatenate([np.exp(losses[::-1]), fallen]) * (1.0 + 1e-12)
    heights = np.concatenate([deltas[::-1], 1.0 - fallen + fallen * deltas[1:]]) * (1.0 + 1e-12)
    # Rounding errors may misplace a crossing: another line is then taken, which is above U too.
    crossings = np.maximum.accumulate(np.diff(heights) / -np.diff(slopes))
    index = np.searchsorted(crossings, u)
    value = slopes[index] * u + heights[index]
    full = value >= 1.0  # U is at most 1, the line of slope 0
    return np.where(full, 0.0, slopes[index]), np.minimum(value, 1.0)


def _ratio_law(losses: Vector, deltas: Vector) -> tuple[Vector, Vector]:
    """Return about the quantiles of l: Q(l <= 1/x) = H - x dH/dx at x = e^t."""
    fallen = np.exp(-losses[:0:-1])
    x = np.concatenate([fallen, np.exp(losses)])
    full = np.concatenate([1.0 - fallen + fallen * deltas[:0:-1], deltas])
    middle = 0.5 * (x[1:] + x[:-1])
    masses = 0.5 * (full[1:] + full[:-1]) - middle * np.diff(full) / np.diff(x)
    return np.maximum.accumulate(masses[::-1]), 1.0 / middle[::-1]


def _upper_hull(x: Vector, y: Vector) -> NDArray[np.int64]:
    from skdpnoise.privacy.repetition._hull import upper_hull

    return np.asarray(upper_hull(x, y))


def _lower_envelope(epsilons: Vector, deltas: Vector) -> tuple[Vector, Vector]:
    """Return the dots of the largest curve below given ones that is convex in e^ε."""
    kept = _upper_hull(np.expm1(epsilons), -deltas)
    return epsilons[kept], deltas[kept]
