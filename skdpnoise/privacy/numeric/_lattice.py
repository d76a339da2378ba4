r"""Privacy loss distributions on a lattice, and the tail of their composition, rounded up.

Letters: L the privacy loss, H(ε) the hockey-stick divergence (the smallest δ at ε), h the step of
the lattice, θ an exponential tilt, K(θ) = log E e^{θL}, N the length of the Fourier transform.

All pairs of distributions here are symmetric: (P, Q) and (Q, P) have the same curve H. Then
q_{-k} = p_k, and the positive half of the lattice says everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Curve = Callable[[Vector], Vector]

_EPS = np.finfo(np.float64).eps
_TAIL = 44.0  # what lies outside the window is below e**-44 of what is inside


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """Probabilities p[k] of the loss k h for k = -(m - 1), ..., m - 1, and `infinite` beyond."""

    p: Vector
    infinite: float

    @property
    def losses(self) -> Vector:
        """Values of the loss, in steps."""
        half = self.p.size // 2
        return np.arange(-half, half + 1, dtype=np.float64)


@np.errstate(under="ignore")
def discretise(values: Vector, step: float) -> Lattice:
    r"""Return a distribution whose curve connects the dots (kh, H_k) and so is never below H.

    .. math:: p_k = s_k - e^{-h} s_{k+1}, \qquad s_k = \frac{H_{k-1} - H_k}{1 - e^{-h}}, \quad k > 0
    """
    # (Doroshenko et al., "Connect the dots", PoPETs 2022, Algorithm 1.) H, rounded up, is convex as
    # a function of e^ε, so its chords lie above it. What is left at the last dot is an infinite
    # loss.
    slopes = (values[:-1] - values[1:]) / -math.expm1(-step)
    positive = slopes.copy()
    positive[:-1] -= math.exp(-step) * slopes[1:]
    np.maximum(positive, 0.0, out=positive)
    negative = positive * np.exp(-step * np.arange(1, values.size))
    infinite = float(values[-1])
    centre = max(0.0, 1.0 - infinite - float(positive.sum()) - float(negative.sum()))
    return Lattice(np.concatenate([negative[::-1], [centre], positive]), infinite)


@dataclass(slots=True, eq=False)
class Nodes:
    """Several lattices, laid end to end so that one operation serves them all."""

    lattices: list[Lattice]
    starts: NDArray[np.intp] = field(init=False)
    losses: Vector = field(init=False)
    log_p: Vector = field(init=False)
    lengths: NDArray[np.intp] = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = np.array([lattice.p.size for lattice in self.lattices])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        self.losses = np.concatenate([lattice.losses for lattice in self.lattices])
        with np.errstate(divide="ignore"):
            self.log_p = np.log(np.concatenate([lattice.p for lattice in self.lattices]))

    @np.errstate(under="ignore")
    def tilted(self, theta: float) -> tuple[Vector, Vector, Vector]:
        """Return the log of E e^{θL} of each lattice, and the mean and second moment under it."""
        exponent = theta * self.losses + self.log_p
        top = np.maximum.reduceat(exponent, self.starts)
        mass = np.exp(exponent - np.repeat(top, self.lengths))
        total = np.add.reduceat(mass, self.starts)
        mass *= self.losses
        mean = np.add.reduceat(mass, self.starts) / total
        mass *= self.losses
        return np.log(total) + top, mean, np.add.reduceat(mass, self.starts) / total


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A composition: term i is a public mixture of two lattices, taken `count` times."""

    # Term i is lattice `low[i]` with probability 1 - t and lattice `high[i]` with probability t.

    low: NDArray[np.intp]
    high: NDArray[np.intp]
    t: Vector
    count: Vector

    def support(self, nodes: Nodes) -> float:
        """Return the largest finite loss of the composition, in steps."""
        return float(self.count @ (nodes.lengths // 2)[self.high])

    def infinite(self, nodes: Nodes) -> float:
        """Return the probability that any loss is infinite."""
        each = np.array([lattice.infinite for lattice in nodes.lattices])
        mixed = (1.0 - self.t) * each[self.low] + self.t * each[self.high]
        return float(-np.expm1(self.count @ np.log1p(-np.minimum(mixed, 1.0 - _EPS))))


@dataclass(frozen=True, slots=True, eq=False)
class Tilted:
    """The composition under e^{θL}: K, its mean and variance (in steps), and mixing weights."""

    theta: float
    log_moments: Vector
    weight: Vector
    cumulant: float
    mean: float
    variance: float


def tilt(nodes: Nodes, terms: Terms, theta: float) -> Tilted:
    """Return the composition tilted by θ per step; losses are in steps here."""
    log_moments, means, seconds = nodes.tilted(theta)
    low, high = log_moments[terms.low], log_moments[terms.high]
    top_of_both = np.maximum(low, high)
    a = (1.0 - terms.t) * np.exp(low - top_of_both)
    b = terms.t * np.exp(high - top_of_both)
    weight = b / (a + b)
    mean = (1.0 - weight) * means[terms.low] + weight * means[terms.high]
    second = (1.0 - weight) * seconds[terms.low] + weight * seconds[terms.high]
    return Tilted(
        theta,
        log_moments,
        weight,
        float(terms.count @ (top_of_both + np.log(a + b))),
        float(terms.count @ mean),
        float(terms.count @ np.maximum(second - mean**2, 0.0)),
    )


def find_tilt(nodes: Nodes, terms: Terms, target: float) -> Tilted:
    """Return the tilt θ ≥ 0 whose mean is near `target` (in steps); any θ would be valid."""
    state = tilt(nodes, terms, 0.0)
    low, high = 0.0, math.inf
    for _ in range(40):
        deviation = math.sqrt(max(state.variance, 1e-12))
        gap = target - state.mean
        if abs(gap) <= 0.3 * deviation + 0.5 or (state.theta == 0.0 and gap < 0.0):
            break
        if gap > 0.0:
            low = state.theta
        else:
            high = state.theta
        # At most two deviations further at once: where the mean saturates, Newton overshoots.
        theta = state.theta + min(max(gap / deviation, -2.0), 2.0) / deviation
        if not low < theta < high:
            theta = 0.5 * (low + high) if high < math.inf else 2.0 * low + 1e-3
        if theta * float(nodes.lengths.max()) > 1e6:
            break
        state = tilt(nodes, terms, theta)
    return state


def reach(nodes: Nodes, terms: Terms, state: Tilted, *, right: bool) -> float:
    """Return how many steps from its mean the tilted loss goes, but for a chance of e^-44."""
    sign = 1.0 if right else -1.0
    deviation = math.sqrt(max(state.variance, 1e-12))
    best = terms.support(nodes) - sign * state.mean
    for standard in (3.0, 8.0):
        s = standard / deviation
        moved = tilt(nodes, terms, state.theta + sign * s).cumulant
        best = min(best, (moved - state.cumulant + _TAIL) / s - sign * state.mean)
    return max(best, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The tilted distribution of the composition: probabilities of consecutive losses, in steps."""

    losses: NDArray[np.intp]
    probability: Vector
    state: Tilted
    step: float


def window(
    nodes: Nodes, terms: Terms, state: Tilted, length: int, right: float, step: float
) -> Window:
    """Return the tilted distribution of the composition on N points, by a Fourier transform."""
    # It ends `right` steps from the mean. Losses left of it are wrapped into it and only add. The
    # error of rounding is bounded by that of the products of characteristic functions, and added.
    frequencies = length // 2 + 1
    transforms = np.empty((nodes.lengths.size, frequencies), dtype=np.complex128)
    for j, (start, size) in enumerate(zip(nodes.starts, nodes.lengths, strict=True)):
        half, part = size // 2, slice(start, start + size)
        exponent = state.theta * nodes.losses[part] + nodes.log_p[part]
        mass = np.exp(exponent - state.log_moments[j])
        folded = np.zeros(length)
        if size <= length:
            folded[: half + 1] = mass[half:]
            folded[length - half :] += mass[:half]
        else:
            np.add.at(folded, np.arange(-half, half + 1) % length, mass)
        transforms[j] = np.fft.rfft(folded)
    product = _product(transforms, terms, state)
    pmf = np.fft.irfft(product, length)
    relative = 4.0 * _EPS * (float(terms.count.sum()) + terms.count.size + math.log2(length))
    error = (2.0 * float(np.abs(product).sum()) / length) * relative + 1e-19
    end = math.ceil(state.mean + right)
    losses = np.arange(end - length + 1, end + 1)
    return Window(losses, np.maximum(pmf[losses % length], 0.0) + error, state, step)


def tail(found: Window, target: float) -> float:
    r"""Return an upper bound of E (1 - e^{ε - L})_+ over finite losses, for ε of `target` steps.

    .. math:: E\,(1 - e^{\varepsilon - L})_+ = e^{K(\theta)} \, E_\theta \,
              e^{-\theta L} (1 - e^{\varepsilon - L})_+
    """
    # Losses right of the window have the weight of its end at most.
    theta = found.state.theta
    beyond = found.losses > target
    losses = found.losses[beyond]
    weights = np.exp(-theta * (losses - target)) * -np.expm1(found.step * (target - losses))
    end = float(found.losses[-1])
    outside = 2.0 * math.exp(-_TAIL) * math.exp(-theta * max(0.0, end - target))
    inside = float(found.probability[beyond] @ weights)
    log_tail = found.state.cumulant - theta * target + math.log(inside + outside)
    return math.exp(min(0.0, log_tail))


def about_quantile(found: Window, delta: float) -> float:
    """Return about the ε, in steps, at which the tail is δ; an end of the window if beyond."""
    theta, losses = found.state.theta, found.losses
    offset = np.maximum(losses - float(losses[-1]), -600.0 / found.step)
    logs = found.state.cumulant - theta * float(losses[-1]) - math.log(delta)
    mass = found.probability * np.exp(np.minimum(logs - theta * offset, 600.0))
    above = np.cumsum(mass[::-1])[::-1]
    discounted = np.cumsum((mass * np.exp(-found.step * offset))[::-1])[::-1]
    # The tail beyond loss l, in units of δ; it falls with l.
    tails = np.maximum(above - np.exp(found.step * offset) * discounted, 1e-300)
    below = int(np.argmax(tails <= 1.0)) if tails[-1] <= 1.0 else losses.size - 1
    if below == 0:
        return float(losses[0])
    high, low = math.log(tails[below - 1]), math.log(tails[below])
    part = 1.0 if high <= low else min(1.0, high / max(high - low, 1e-300))
    return float(losses[below - 1]) + part


def _product(
    transforms: NDArray[np.complex128], terms: Terms, state: Tilted
) -> NDArray[np.complex128]:
    """Return the characteristic function of the composition, zero where it is below 1e-22."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(transforms))
    bound = np.zeros(transforms.shape[1])
    pairs = terms.low * transforms.shape[0] + terms.high
    unique, inverse = np.unique(pairs, return_inverse=True)
    counts = np.bincount(inverse, weights=terms.count)
    for pair, count in zip(unique, counts, strict=True):
        low, high = divmod(int(pair), transforms.shape[0])
        bound += count * np.maximum(logs[low], logs[high])
    (kept,) = np.nonzero(bound > -50.0)
    product = np.zeros(transforms.shape[1], dtype=np.complex128)
    total = np.zeros(kept.size, dtype=np.complex128)
    block = max(1, 2_000_000 // max(1, kept.size))
    used = transforms[:, kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, terms.count.size, block):
            part = slice(start, start + block)
            w = state.weight[part, None]
            mixed = (1.0 - w) * used[terms.low[part]] + w * used[terms.high[part]]
            total += (terms.count[part, None] * np.log(mixed)).sum(axis=0)
        product[kept] = np.exp(total)
    product[~np.isfinite(product)] = 0.0
    return product
