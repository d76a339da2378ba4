r"""Privacy loss distributions on a lattice, and the tail of their composition, rounded up.

Letters: L the privacy loss, H(ε) the hockey-stick divergence (the smallest δ at ε), h the step of
the lattice, θ an exponential tilt, K(θ) = log E e^{θL}, N the length of the Fourier transform.

Most pairs of distributions here are symmetric: (P, Q) and (Q, P) have the same curve H. Then
q_{-k} = p_k, and the positive half of the lattice says everything. Where they are not, the curve of
(Q, P) says the negative half: p_{-k} = e^{-kh} q_{-k}. It may end anywhere: its last chord is the
one to e^ε = 0, and lies above what is left of the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from skdpnoise.privacy.curves import Amplified, LossCurve, raised, ways_of

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]

_EPS = np.finfo(np.float64).eps
_LARGE = 340.0  # a logarithm: sums of products of two such numbers stay in double precision
_TAIL = 44.0  # what lies outside the window is below e**-44 of what is inside
_NODES_FREE = 48  # so many different shifts of a curve get a lattice each
_RATIO = 1.07  # between lattices, where there are more, or the next larger shift
_NEGLIGIBLE = 5e-4  # of the variance, for what interpolating from zero adds
_TINY = 1e-9  # of the largest shift: smaller ones count as that
_REACHES = np.geomspace(1e-8, 1e5, 200).reshape(-1, 8)  # of unbounded losses, in shifts
_NEWTON = 12  # steps after which bisection is quicker
_TRIALS = 20  # of tilts that may bound a heavy tail
_RARE = 12.0  # minus the logarithm of a probability that a transform tells from its errors
_FAR = 0.7  # of the logarithm of a tail, by a tilt that does not make it a long one
_LOST = 1e-3  # of a tail that is rounding error
_LEAST = 1e-300  # of a tail, which is no number below
_SPREAD = np.geomspace(1e-6, 1.0, 100)  # of skewed losses, in parts of the largest
_LEFT, _LEFT_FLOOR = 40.0, 1e-16  # less than that is left of skewed losses cut there
_CELLS = 2_000_000  # values computed at once, about
_DISTINCT, _MERGED = 1000, 0.002  # more shifts than that are merged if within this of a larger one
_ROUNDING = 1e-12  # any are merged within this


class Lattice:
    r"""A distribution whose curve connects the dots (kh, H_k) and so is never below H.

    .. math:: p_k = s_k - e^{-h} s_{k+1}, \qquad s_k = \frac{H_{k-1} - H_k}{1 - e^{-h}}, \quad k > 0
    """

    # Probabilities p[k] of the loss k h for k = -(m - 1), ..., m - 1, and `infinite` beyond; losses
    # are in steps. (Doroshenko et al., "Connect the dots", PoPETs 2022, Algorithm 1.) H, rounded
    # up, is convex as a function of e^ε, so its chords lie above it. What is left at the last dot
    # is an infinite loss. `back` are the values of the other order, if that has others.

    @np.errstate(under="ignore")
    def __init__(self, values: Vector, step: float, back: Vector | None = None) -> None:
        if back is None:
            positive = reverse = self._masses(values, step)
        else:  # both have the same value at 0, but for how it was rounded up
            first = max(values[:1], back[:1])
            values, back = (np.concatenate([first, half[1:]]) for half in (values, back))
            positive, reverse = (self._masses(half, step) for half in (values, back))
        negative = reverse * np.exp(-step * np.arange(1, reverse.size + 1))
        self.infinite = float(values[-1])
        centre = 1.0 - self.infinite - float(positive.sum()) - float(negative.sum())
        self.p = np.concatenate([negative[::-1], [max(0.0, centre)], positive])
        self.losses = np.arange(-float(negative.size), values.size)

    @staticmethod
    def _masses(values: Vector, step: float) -> Vector:
        slopes = (values[:-1] - values[1:]) / -math.expm1(-step)
        slopes[:-1] -= math.exp(-step) * slopes[1:]
        return np.maximum(slopes, 0.0)


class Plan:
    """Lattices for some of the shifts of a curve, so that thousands of them share a few dozen."""

    # Whatever stands for a shift is one of the shifts themselves and not below it: noise on the
    # integers has curves that jump from one integer to the next, so that a node a hair below one
    # would have the curve of the integer before.

    # Of a pair that is not symmetric, one order of the neighbours is followed: `back` is the curve
    # of the other one.

    def __init__(
        self,
        curve: LossCurve,
        shifts: Vector,
        counts: Vector,
        floor: float,
        *,
        adding: bool = False,
    ) -> None:
        shifts = np.maximum(shifts, _TINY * shifts[-1])
        merged = _MERGED if shifts.size > _DISTINCT else _ROUNDING
        cells = np.floor(np.log(shifts[-1] / shifts) / merged)
        first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
        counts = np.add.reduceat(counts, first)
        shifts = np.maximum.reduceat(shifts, first)
        nodes, part = shifts, shifts / shifts[-1]
        total = float(counts @ part**2)
        if shifts.size > _NODES_FREE:
            # Below the lowest lattice, interpolation from zero adds up to shift times lowest.
            added = np.cumsum(counts * part) * part
            lowest = shifts[max(0, int(np.searchsorted(added, _NEGLIGIBLE * total)) - 1)]
            n_nodes = max(2, math.ceil(math.log(shifts[-1] / lowest) / math.log(_RATIO)) + 1)
            wanted = np.searchsorted(shifts, np.geomspace(lowest, shifts[-1], n_nodes))
            wanted[-1] = shifts.size - 1
            nodes = np.concatenate([[0.0], np.unique(shifts[wanted])])
        self.curve, self.back = ways_of(curve)[:: -1 if adding else 1]
        self.symmetric = self.curve is self.back
        self.size = 0.0  # about the mean of the sum of absolute losses, where that matters
        self.shifts, self.counts, self.nodes = shifts, counts, nodes
        middle = math.sqrt(total / float(counts.sum())) * shifts[-1]
        self.middle = shifts[min(int(np.searchsorted(shifts, middle)), shifts.size - 1)]
        floors = np.append(np.full(nodes.size, floor), 1e-12)
        tops = _tops(self.curve, np.append(nodes, self.middle), floors)
        self.tops, self.middle_top = tops[:-1], float(tops[-1])
        self.back_tops, self.middle_back = self.tops, self.middle_top
        if not self.symmetric:
            least = np.maximum(floors, _LEFT_FLOOR)
            tops = np.minimum(_tops(self.back, np.append(nodes, self.middle), least), _LEFT)
            self.back_tops, self.middle_back = tops[:-1], float(tops[-1])
        self.largest = float(max(self.tops.max(), self.back_tops.max()))
        # the node that stands for each shift, or is the upper one of the two that do
        self.high = np.searchsorted(nodes, shifts)
        assert (nodes[self.high] >= shifts).all(), "a node lies below its shift"

    def variance(self) -> float:
        if not self.symmetric:
            return self._skewed_variance()
        step = self.middle_top / 64.0
        lattice = Lattice(raised(self.curve, step * np.arange(66), self.middle), step)
        losses = lattice.losses
        mean = float(lattice.p @ losses)
        return float(lattice.p @ (losses - mean) ** 2) * step**2 * float(self.counts.sum())

    def _skewed_variance(self) -> float:
        """Return about the variance where most of the loss is much nearer to 0 than its end."""
        first = second = 0.0
        for curve, top, sign in (
            (self.curve, self.middle_top, 1.0),
            (self.back, self.middle_back, -1.0),
        ):
            losses = np.append(0.0, top * _SPREAD)
            falls = -np.diff(raised(curve, losses, self.middle))
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                masses = falls / -np.expm1(-np.diff(losses))
                masses[:-1] -= falls[1:] / np.expm1(np.diff(losses[1:]))
                if sign < 0.0:
                    masses *= np.exp(-losses[1:])
            masses = np.maximum(np.nan_to_num(masses), 0.0)
            first += sign * float(masses @ losses[1:])
            second += float(masses @ losses[1:] ** 2)
            self.size += float(masses @ losses[1:]) * float(self.counts.sum())
        return max(second - first**2, 0.0) * float(self.counts.sum())

    def support(self) -> float:
        """Return about the largest finite loss of the composition."""
        return float(self.counts @ self.tops[self.high])

    def width(self) -> float:
        return self.support() + float(self.counts @ self.back_tops[self.high])

    def end(self) -> float:
        """Return the largest loss of the composition, which may be infinite."""
        return float(self.counts @ self.curve.max_loss(self.shifts))

    def build(self, step: float, nodes: list[Lattice]) -> tuple[Indices, Indices, Vector, Vector]:
        """Append the lattices to `nodes`; return low, high, t and count of each term."""
        first = len(nodes)
        values = self._values(self.curve, self.tops, step)
        if self.symmetric:
            nodes += [Lattice(row, step) for row in values]
        else:
            back = self._values(self.back, self.back_tops, step)
            nodes += [Lattice(*rows) for rows in zip(values, repeat(step), back, strict=False)]
        high = self.high
        if self.nodes is self.shifts:
            index = first + np.arange(self.nodes.size)
            return index, index, np.ones(index.size), self.counts
        low = np.maximum(high - 1, 0)
        t = np.zeros(self.shifts.size)
        halves = (
            [(self.curve, values)] if self.symmetric else [(self.curve, values), (self.back, back)]
        )
        for j in np.unique(high):
            (members,) = np.nonzero(high == j)
            for curve, rows in halves:
                needed = _weights(curve, self.shifts[members], rows[max(j - 1, 0)], rows[j], step)
                t[members] = np.maximum(t[members], needed)
        return first + low, first + high, t, self.counts

    def _values(self, curve: LossCurve, tops: Vector, step: float) -> list[Vector]:
        dots = np.maximum(np.ceil(tops / step * (1.0 + 1e-12)).astype(int) + 1, 2)
        # Many lattices are computed in one table, end to end, that is not too large.
        changes = np.flatnonzero(np.diff(np.cumsum(dots) // _CELLS)) + 1
        values: list[Vector] = []
        for part in np.split(np.arange(dots.size), changes):
            starts = np.cumsum(dots[part]) - dots[part]
            grid = step * (np.arange(dots[part].sum()) - np.repeat(starts, dots[part]))
            table = raised(curve, grid, np.repeat(self.nodes[part], dots[part]))
            values += np.split(table, starts[1:])
        return values


def _weights(curve: LossCurve, shifts: Vector, low: Vector, high: Vector, step: float) -> Vector:
    """Return the least t for which low + t (high - low) covers each curve at every dot."""
    below = np.pad(low[: high.size], (0, max(0, high.size - low.size)))
    between = raised(curve, step * np.arange(high.size), shifts[:, None]) - below
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(between > 0.0, between / (high - below), 0.0)
    return np.asarray(np.clip(np.nan_to_num(ratio, nan=1.0).max(axis=1) * (1 + 1e-9), 0.0, 1.0))


def _tops(curve: LossCurve, shifts: Vector, floors: Vector) -> Vector:
    """Return the loss at which each curve ends: its largest, or where it falls to its floor."""
    if isinstance(curve, Amplified):
        return curve.amplified(_tops(curve.base, shifts, floors))
    tops = np.array(curve.max_loss(shifts), dtype=np.float64)
    (endless,) = np.nonzero(np.isinf(tops))
    if endless.size:
        shift = shifts[endless, None]
        grid = _REACHES[:, -1] * shift
        values = curve.hockey_stick(grid, shift)
        # An infinite loss with positive probability makes the curve flat in the end.
        level = np.maximum(values[:, -1:] * (1.0 + 1e-9), floors[endless, None])
        # First among the ends of the blocks, then within one.
        grid = _REACHES[(values <= level).argmax(axis=1)] * shift
        ended = curve.hockey_stick(grid, shift) <= level
        ended[:, -1] = True
        tops[endless] = grid[np.arange(endless.size), ended.argmax(axis=1)]
    return tops


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """The composition under e^{θL}: K, its mean and variance (in steps), and mixing weights."""

    theta: float
    log_moments: Vector
    weight: Vector
    cumulant: float
    mean: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The tilted distribution of the composition: probabilities of consecutive losses, in steps."""

    losses: NDArray[np.intp]
    probability: Vector
    state: Tilted
    step: float
    error: float = 0.0  # of each probability, which it includes

    def tail(self, target: float) -> float:
        r"""Return an upper bound of E (1 - e^{ε - L})_+ over finite losses; ε in steps.

        .. math:: E\,(1 - e^{\varepsilon - L})_+ = e^{K(\theta)} \, E_\theta \,
                  e^{-\theta L} (1 - e^{\varepsilon - L})_+
        """
        # Losses right of the window have the weight of its end at most.
        theta = self.state.theta
        beyond = self.losses > target
        losses = self.losses[beyond]
        weights = np.exp(-theta * (losses - target)) * -np.expm1(self.step * (target - losses))
        end = float(self.losses[-1])
        outside = 2.0 * math.exp(-_TAIL) * math.exp(-theta * max(0.0, end - target))
        inside = float(self.probability[beyond] @ weights)
        log_tail = self.state.cumulant - theta * target + math.log(max(inside + outside, _LEAST))
        return math.exp(min(0.0, log_tail))

    def is_lost(self, target: float) -> bool:
        """Return whether rounding errors outweigh the mass beyond a loss; ε in steps."""
        beyond = self.probability[self.losses > target]
        return bool(self.error * beyond.size > _LOST * float(beyond.sum()))

    def about_quantile(self, delta: float) -> float:
        theta, losses = self.state.theta, self.losses
        offset = np.maximum(losses - float(losses[-1]), -_LARGE / self.step)
        logs = self.state.cumulant - theta * float(losses[-1]) - math.log(delta)
        mass = self.probability * np.exp(np.minimum(logs - theta * offset, _LARGE))
        above = np.cumsum(mass[::-1])[::-1]
        discounted = np.cumsum((mass * np.exp(-self.step * offset))[::-1])[::-1]
        # The tail beyond loss l, in units of δ; it falls with l.
        tails = np.maximum(above - np.exp(self.step * offset) * discounted, 1e-300)
        below = int(np.argmax(tails <= 1.0)) if tails[-1] <= 1.0 else losses.size - 1
        if below == 0:
            return float(losses[0])
        high, low = math.log(tails[below - 1]), math.log(tails[below])
        part = 1.0 if high <= low else min(1.0, high / max(high - low, 1e-300))
        return float(losses[below - 1]) + part


class LatticeSum:
    """Independent losses: term i is a public mixture of two lattices, taken `count` times."""

    # Term i is lattice `low[i]` with probability 1 - t and lattice `high[i]` with probability t.
    # The lattices are laid end to end, so that one operation serves them all.

    def __init__(
        self, lattices: list[Lattice], low: Indices, high: Indices, t: Vector, count: Vector
    ) -> None:
        self.low, self.high, self.t, self.count = low, high, t, count
        self.lengths = np.array([lattice.p.size for lattice in lattices])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        self.losses = np.concatenate([lattice.losses for lattice in lattices])
        with np.errstate(divide="ignore"):
            self.log_p = np.log(np.concatenate([lattice.p for lattice in lattices]))
        each = np.array([lattice.infinite for lattice in lattices])
        mixed = (1.0 - t) * each[low] + t * each[high]
        # the probability that any loss is infinite, and the largest finite loss, in steps
        self.infinite = float(-np.expm1(count @ np.log1p(-np.minimum(mixed, 1.0 - _EPS))))
        tops = np.array([lattice.losses[-1] for lattice in lattices])
        ends = np.array([lattice.losses[0] for lattice in lattices])
        self.support, self.lowest = float(count @ tops[high]), float(count @ ends[high])

    @np.errstate(under="ignore")
    def tilted(self, theta: float) -> Tilted:
        """Return the composition tilted by θ per step; losses are in steps here."""
        exponent = theta * self.losses + self.log_p
        peak = np.maximum.reduceat(exponent, self.starts)
        mass = np.exp(exponent - np.repeat(peak, self.lengths))
        total = np.add.reduceat(mass, self.starts)
        mass *= self.losses
        means = np.add.reduceat(mass, self.starts) / total
        mass *= self.losses
        seconds = np.add.reduceat(mass, self.starts) / total
        log_moments = np.log(total) + peak
        low, high = log_moments[self.low], log_moments[self.high]
        top = np.maximum(low, high)
        a, b = (1.0 - self.t) * np.exp(low - top), self.t * np.exp(high - top)
        weight = b / (a + b)
        mean = (1.0 - weight) * means[self.low] + weight * means[self.high]
        second = (1.0 - weight) * seconds[self.low] + weight * seconds[self.high]
        cumulant = float(self.count @ (top + np.log(a + b)))
        variance = float(self.count @ np.maximum(second - mean**2, 0.0))
        return Tilted(theta, log_moments, weight, cumulant, float(self.count @ mean), variance)

    def tilted_to(self, target: float, enough: float = -math.inf) -> Tilted:
        """Return the tilt θ ≥ 0 whose mean is near `target` (in steps); any θ would be valid."""
        # Or one that bounds the logarithm of the tail by what is enough.
        state = self.tilted(0.0)
        low, high = 0.0, math.inf
        for attempt in range(60):
            deviation = math.sqrt(max(state.variance, 1e-12))
            gap = target - state.mean
            if abs(gap) <= 0.3 * deviation + 0.5 or (state.theta == 0.0 and gap < 0.0):
                break
            if state.cumulant - state.theta * target < enough:
                break
            if gap > 0.0:
                low = state.theta
            else:
                high = state.theta
            # At most two deviations further at once: where the mean saturates, Newton overshoots.
            theta = state.theta + min(max(gap / deviation, -2.0), 2.0) / deviation
            # Where two sizes of the loss are as likely as each other, it does so again and again.
            if not low < theta < high or (attempt >= _NEWTON and high < math.inf):
                theta = 0.5 * (low + high) if high < math.inf else 2.0 * low + 1e-3
            if theta * float(self.lengths.max()) > 1e6:
                break
            state = self.tilted(theta)
        return state

    def tilted_less(self, target: float, enough: float, *, far: bool) -> Tilted:
        """Return a tilt that is no larger than needed, or goes most of the way to the target."""
        # Heavy tails become long ones by a tilt, and their window wide. By as much as E e^{θ(L-ε)},
        # which bounds the tail, is above its least value, the tilted tail is too small.
        best = self.tilted_to(target, enough)
        if best.cumulant - best.theta * target < enough:
            return best
        least = best.cumulant - best.theta * target
        most = _FAR * least if far else least + _RARE
        low, found = 0.0, self.tilted(0.0)
        if found.cumulant <= most:
            return found
        high, found = best.theta, best
        for _ in range(8):
            state = self.tilted(0.5 * (low + high))
            if state.cumulant - state.theta * target <= most:
                high, found = state.theta, state
            else:
                low = state.theta
        return found

    def reach(self, state: Tilted, sign: float, *, skewed: bool = False) -> float:
        """Return how far from its mean the tilted loss goes, but for a chance of e^-44."""
        deviation = math.sqrt(max(state.variance, 1e-12))
        best = (self.support if sign > 0.0 else -self.lowest) - sign * state.mean

        def bound(standard: float) -> float:
            s = standard / deviation
            moved = self.tilted(state.theta + sign * s).cumulant
            return (moved - state.cumulant + _TAIL) / s - sign * state.mean

        best = min(best, bound(3.0), bound(8.0))
        if skewed:
            # The tilt that bounds a heavy tail best is no matter of the deviation.
            for factor in (0.4, 2.5):
                standard, last = 3.0, math.inf
                for _ in range(_TRIALS):
                    standard *= factor
                    found = bound(standard)
                    if not found < 0.98 * last:
                        break
                    best, last = min(best, found), found
        return max(best, 1.0)

    def window(self, state: Tilted, length: int, right: float, step: float) -> Window:
        """Return the tilted distribution of the composition on N points, by a Fourier transform."""
        # It ends `right` steps from the mean. Losses left of it are wrapped into it and only add.
        # The error of rounding is bounded by that of the products of characteristic functions, and
        # added.
        transforms = np.empty((self.lengths.size, length // 2 + 1), dtype=np.complex128)
        for j, (start, size) in enumerate(zip(self.starts, self.lengths, strict=True)):
            part, zero = slice(start, start + size), -int(self.losses[start])
            exponent = state.theta * self.losses[part] + self.log_p[part]
            mass = np.exp(exponent - state.log_moments[j])
            folded = np.zeros(length)
            if size <= length:
                folded[: size - zero] = mass[zero:]
                folded[length - zero :] += mass[:zero]
            else:
                np.add.at(folded, np.arange(-zero, size - zero) % length, mass)
            transforms[j] = np.fft.rfft(folded)
        product = self._product(transforms, state.weight)
        pmf = np.fft.irfft(product, length)
        n_roundings = float(self.count.sum()) + self.count.size + math.log2(length)
        relative = 4.0 * _EPS * n_roundings
        error = (2.0 * float(np.abs(product).sum()) / length) * relative + 1e-19
        end = math.ceil(state.mean + right)
        losses = np.arange(end - length + 1, end + 1)
        return Window(losses, np.maximum(pmf[losses % length], 0.0) + error, state, step, error)

    def _product(
        self, transforms: NDArray[np.complex128], weight: Vector
    ) -> NDArray[np.complex128]:
        """Return the characteristic function of the composition, zero where it is below 1e-22."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(transforms))
        bound = np.zeros(transforms.shape[1])
        pairs = self.low * transforms.shape[0] + self.high
        unique, inverse = np.unique(pairs, return_inverse=True)
        counts = np.bincount(inverse, weights=self.count)
        for pair, count in zip(unique, counts, strict=True):
            low, high = divmod(int(pair), transforms.shape[0])
            bound += count * np.maximum(logs[low], logs[high])
        (kept,) = np.nonzero(bound > -50.0)
        product = np.zeros(transforms.shape[1], dtype=np.complex128)
        total = np.zeros(kept.size, dtype=np.complex128)
        block = max(1, 2_000_000 // max(1, kept.size))
        used = transforms[:, kept]
        with np.errstate(divide="ignore", invalid="ignore"):
            for start in range(0, self.count.size, block):
                part = slice(start, start + block)
                w = weight[part, None]
                mixed = (1.0 - w) * used[self.low[part]] + w * used[self.high[part]]
                total += (self.count[part, None] * np.log(mixed)).sum(axis=0)
            product[kept] = np.exp(total)
        product[~np.isfinite(product)] = 0.0
        return product
