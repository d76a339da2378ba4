"""The curve of the best of K runs as other losses use it: tables for compositions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy.curves import LossCurve, NormalShift, RandomisedResponse
from skdpnoise.privacy.numeric.loss import NumericLoss
from skdpnoise.privacy.repetition._bound import Profile, RepetitionBound, lower_envelope
from skdpnoise.privacy.repetition.laws import RepetitionLaw, check_law

__all__ = ["Composed", "Repetition", "bound_of"]

Vector = NDArray[np.float64]
Dots = tuple[Vector, Vector]

_MARGIN = 1e-12
_ENDED = 1e-62  # a curve this low has ended
_LARGEST = 600.0  # losses of a table
_FEW = 4  # points up to which a curve is computed directly
_BULK, _BULK_DOTS = 1e-3, 80  # dots where prices are searched for
_STEP = 0.05  # of log δ between two dots of the tail
_COMPOSED_STEP = 0.1  # the same for a composition, each of whose values is dear
_COARSE = 400
_MOST_RUNS, _RUN_GROUPS = 1e4, 500  # more runs count as a δ of 1

NORMAL = NormalShift()
PURE = RandomisedResponse()  # the curve that a largest loss implies: 1 for an infinite one


@dataclass(frozen=True, slots=True)
class Composed:
    """The curve of a composition, as that of one run; its shift is 1."""

    terms: tuple[tuple[LossCurve, float, int], ...]  # as in skdpnoise.privacy.NumericLoss

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        """Return an upper bound of the smallest δ at each ε."""
        epsilon, _ = np.broadcast_arrays(np.asarray(epsilon, dtype=np.float64), shift)
        return _chords(*_composed_table(self.terms), epsilon)

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return the largest loss."""
        return np.full(np.shape(shift), NumericLoss(self.terms).pure_epsilon)


@dataclass(frozen=True, slots=True)
class Repetition:
    r"""The curve of the best of K runs; the shift is that of the curve of one run.

    .. math:: \delta(\varepsilon) \le \min_{\pi \ge 0} \int_0^1 \pi(u)\,du
              + E \max_u \left(g(u) - e^{\varepsilon} g(U(u))\, l - \pi(u)\right)_+

    with g(u) = f'(1 - u), f the generating function of K, U(u) the largest probability that a set
    of probability u can have for a neighbour, and l the likelihood ratio of one run. For any prices
    π this is a bound (the argument is at the head of ``privacy/repetition/_bound.py``); it is never
    above the bound :math:`E[K]\,\delta_{\text{one run}}(\varepsilon - \sup_u \log g(u)/g(U(u)))`.

    **Guarantee.** The curve bounds that of the best of K runs, in both orders of the neighbours,
    for every base whose curve is at most that of one run here, every number of outputs, and every
    order of scores; ties are broken independently of the data, or by the order of the runs. The
    runs are independent, and K is sampled by ``law.sample`` and not cut short. If runs beyond the
    n-th are left out, the guarantee at ε loses (1 + e^ε) Pr[K > n] of δ.

    Parameters
    ----------
    law : TruncatedNegativeBinomial or PoissonRepetitions
        Law of K.
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
        epsilon, shift = np.broadcast_arrays(
            np.asarray(epsilon, dtype=np.float64), np.asarray(shift, dtype=np.float64)
        )
        values = np.zeros(epsilon.shape)
        for one in np.unique(shift[shift > 0.0]):
            here = shift == one
            largest = float(self.max_loss(one))
            if np.count_nonzero(here) <= _FEW:
                bound = _bound(self, float(one))
                found = np.array([bound.delta(float(e)) for e in epsilon[here]])
                found = np.minimum(found, PURE.hockey_stick(epsilon[here], largest))
            else:
                found = _chords(*_table(self, float(one)), epsilon[here])
            values[here] = found
        return values

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return the largest loss: that of one run and what the law adds to it."""
        largest = np.asarray(self.base.max_loss(shift), dtype=np.float64)
        total = [value + self.law.pure_excess(value) for value in largest.ravel().tolist()]
        return np.reshape(np.array(total), largest.shape) * (1.0 + _MARGIN)


def bound_of(law: RepetitionLaw, base: LossCurve, shift: float) -> RepetitionBound:
    """Return the bound for K runs of the curve `base` at this shift."""

    def profile(losses: Vector) -> Vector:
        return base.hockey_stick(losses, shift)

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
    rest = max(0.0, 1.0 - none - float(masses.sum())) + 1e-12
    shifts = shift * np.sqrt(ends[1:] - 1.0)

    @np.errstate(under="ignore")
    def curve(losses: Vector) -> Vector:
        return NORMAL.hockey_stick(losses[:, None], shifts) @ masses + rest

    return curve


@lru_cache(maxsize=64)
def _bound(curve: Repetition, shift: float) -> RepetitionBound:
    return bound_of(curve.law, curve.base, shift)


@lru_cache(maxsize=64)
def _table(curve: Repetition, shift: float) -> Dots:
    """Return dots of a curve convex in e^ε that is above that of the best of K runs."""
    bound = _bound(curve, shift)
    largest = float(curve.max_loss(shift))
    losses = _dots(bound.without_prices, largest, _STEP)
    deltas = bound.without_prices(losses)
    bulk = float(losses[np.argmax(deltas < _BULK)]) if deltas[-1] < _BULK else float(losses[-1])
    dear = np.linspace(0.0, bulk, _BULK_DOTS)
    found, start = np.empty(dear.size), None
    for i in reversed(range(dear.size)):  # from small δ, where the interval is easy to find
        found[i], start = bound.search(float(dear[i]), start)
    losses, first = np.unique(np.concatenate([dear, losses]), return_index=True)
    deltas = np.concatenate([found, deltas])[first]
    deltas = np.minimum(deltas, PURE.hockey_stick(losses, largest))
    return lower_envelope(losses, np.minimum.accumulate(deltas))


@lru_cache(maxsize=16)
def _composed_table(terms: tuple[tuple[LossCurve, float, int], ...]) -> Dots:
    loss = NumericLoss(terms)

    def curve(losses: Vector) -> Vector:
        return np.array([loss.delta(float(e)) for e in losses])

    losses = _dots(curve, loss.pure_epsilon, _COMPOSED_STEP)
    return lower_envelope(losses, np.minimum.accumulate(curve(losses)))


def _dots(curve: Profile, largest: float, step: float) -> Vector:
    """Return losses from 0 to the end of a curve, between which its log falls by about a step."""
    end = largest
    if not math.isfinite(end):
        end = 1e-6
        while end < _LARGEST and float(curve(np.array([end]))[0]) > _ENDED:
            end = min(1.5 * end, _LARGEST)
    coarse = np.linspace(0.0, end, max(20, round(_COARSE * 0.05 / step) // 2))
    heights = np.log(np.maximum(curve(coarse), _ENDED))
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(heights)) / step + 0.1)])
    return np.interp(np.arange(0.0, math.ceil(length[-1]) + 1.0), length, coarse)


def _chords(losses: Vector, deltas: Vector, epsilon: Vector) -> Vector:
    """Return the curve that connects dots by chords in e^ε, and is constant after the last."""
    if losses.size == 1:
        return np.full_like(epsilon, deltas[0])
    epsilon = np.minimum(epsilon, losses[-1])
    i = np.clip(np.searchsorted(losses, epsilon, side="right") - 1, 0, losses.size - 2)
    left, right = losses[i], losses[i + 1]
    share = np.expm1(epsilon - left) / np.expm1(right - left)
    rest = np.expm1(epsilon - right) / np.expm1(left - right)
    return np.asarray(rest * deltas[i] + share * deltas[i + 1])
