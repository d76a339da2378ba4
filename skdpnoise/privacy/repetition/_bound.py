r"""The curve of the best of K runs from the curve of one run, rounded up.

Letters: Q, Q' the laws of the output of one run on two neighbours, H their curve (the smallest δ at
ε), l = dQ'/dQ, u = Q(better outputs), g(u) = f'(1 - u) with f the generating function of K.

**One run becomes the best of K.** Let ties be broken by an independent uniform number, which is
part of an output and dropped in the end. Then no two outputs tie, the curve of the pair is the
same, and the best of K runs has the law dA = g(u) dQ, dA' = g(u') dQ' with u' = Q'(better outputs).
If K is 0 nothing is chosen, with the same probability for both, which adds nothing for ε ≥ 0.

**One position at a time.** u' ≤ U(u), the largest Q'-mass of a set of Q-mass u, and g falls. So

.. math:: A(S) - e^{\varepsilon} A'(S) \le E_Q\,(a(u) - b(u)\, l)_+, \qquad
          a = g(u), \quad b = e^{\varepsilon} g(U(u))

**An assignment.** Under Q the position u is uniform, and l has a law that H knows; how the two are
paired is the adversary's choice. By linear duality, for *any* prices π ≥ 0 of positions,

.. math:: E_Q\,(a(u) - b(u)\, l)_+ \le \int_0^1 \pi(u)\,du + E_Q\, \varphi(l), \qquad
          \varphi(l) = \sup_u\,(a(u) - b(u)\, l - \pi(u))_+

φ is convex and falls to 0: with finitely many positions it is a sum of (1 - l/l_j)_+, of which Q
has the mean H(-log l_j), and for a larger H it is only larger. The inequality needs nothing of the
prices; good ones are found from the best pairing, which gives larger l to larger u (the payoff has
increasing differences where it is positive) on an interval of positions.

**Cells.** g is convex, so that a lies below its chord on a cell. U lies below the lines
:math:`e^t u + H(t)` (t of both signs); with one of them in place of U on a cell, b is convex and
lies above its tangent. Both ends of a cell then bound the whole of it: for a price that is linear
on the cell, a - b l - π is linear in u and largest at an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy.repetition.laws import RepetitionLaw

Vector = NDArray[np.float64]
Profile = Callable[[Vector], Vector]

_SAFE = 1.0 + 1e-9  # relative rounding error of the bound, with room to spare
_LINES = 1500
_SMALLEST = 1e-4  # of the scale on which g falls: the first cell
_CELLS = 100  # for each factor e of u, for a loss of about 1
_MOST_CELLS = 20_000
_FARTHEST = 60.0  # losses beyond count as this
_BULK = 1e-3  # below this δ prices gain nothing
_STARTS = 24


def _upper_hull(x: Vector, y: Vector) -> NDArray[np.int64]:
    """Return the vertices of the least concave function above points with ascending x."""
    from skdpnoise.privacy.repetition._hull import upper_hull

    return np.asarray(upper_hull(x, y))


def lower_envelope(epsilons: Vector, deltas: Vector) -> tuple[Vector, Vector]:
    """Return the dots of the largest curve below given ones that is convex in e^ε."""
    kept = _upper_hull(np.expm1(epsilons), -deltas)
    return epsilons[kept], deltas[kept]


class RepetitionBound:
    """Upper bounds of the curve of the best of K runs."""

    # `profile` is H of one run at losses ≥ 0, for both orders of the neighbours; `all_runs` the
    # curve of K and all K runs, of which the best is a function.

    @np.errstate(under="ignore")
    def __init__(
        self, profile: Profile, law: RepetitionLaw, all_runs: Profile | None = None
    ) -> None:
        scale = 1.0 / max(1.0, -float(law.log_slope(0.0)))
        first = _SMALLEST * scale
        reach = 1e-6
        while reach < _FARTHEST and float(profile(np.array([reach]))[0]) > 1e-3 * first:
            reach *= 1.25
        losses = np.linspace(0.0, reach, _LINES)
        deltas = np.minimum(profile(losses), 1.0)
        per_factor = _CELLS / math.sqrt(min(reach, 1.0))
        n_cells = min(math.ceil(per_factor * -math.log(first)), _MOST_CELLS)
        ends = np.concatenate([[0.0], np.geomspace(first, 1.0, n_cells + 1)])
        ends[-1] = 1.0
        width = np.diff(ends)
        middle = 0.5 * (ends[1:] + ends[:-1])
        slope, value = _support_line(losses, deltas, middle)
        tangent = np.exp(law.log_derivative(value))
        fall = tangent * law.log_slope(value) * slope * 0.5 * width
        chord = np.exp(law.log_derivative(ends))
        self.profile, self.all_runs = profile, all_runs
        # At both ends of every cell: bounds of g(u) and of g(U(u)), u, and shares of cells.
        self.a = _both(chord[:-1], chord[1:])
        self.b = np.maximum(_both(tangent - fall, tangent + fall), 0.0)
        self.position = _both(ends[:-1], ends[1:])
        self.capacity = np.repeat(0.5 * width, 2)
        self.order = np.argsort(self.b, kind="stable")
        # The law of l, its quantiles at these masses: for prices only, so that it need not be
        # exact.
        self.masses, self.ratios = _ratio_law(losses, deltas)

    def delta(self, epsilon: float) -> float:
        """Return a bound of δ(ε)."""
        return self.search(epsilon)[0]

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
        block = max(1, 1_000_000 // weights.size)
        for i in range(0, epsilons.size, block):
            found[i : i + block] = self._full(epsilons[i : i + block, None] + logs) @ weights
        return np.minimum((found + least) * _SAFE, 1.0)

    def _priced(self, epsilon: float, start: int) -> float:
        prices = self._prices(epsilon, start)
        weights, logs, least = self._terms(prices, epsilon)
        spent = least + float(self.capacity @ prices)
        return min(1.0, (spent + float(weights @ self._full(logs))) * _SAFE)

    def _prices(self, epsilon: float, start: int) -> Vector:
        """Return the prices of the pairing that begins with a cell."""
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
