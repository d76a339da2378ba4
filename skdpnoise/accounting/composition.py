r"""The cost of many charges, kept so that one more is judged without looking at the rest.

**Losses fixed in advance.** Every loss here is dominated by a pair of distributions: a noise family
at a shift, randomised response at ε (Kairouz, Oh and Viswanath, arXiv:1311.0776, Theorem 3.3), a
normal shift at μ. Dominating pairs compose (Zhu, Dong and Wang, AISTATS 2022, Theorem 10), also if
each mechanism is chosen after looking at what earlier ones released, as long as the losses
themselves are not. So

.. math:: \delta(e) = E\left(1 - e^{e - \sum_i L_i}\right)_+ \le \delta

at the e = ε of the budget is what a charge must leave true. Also if the losses *are* chosen by
looking, that test is exact where all are pure and δ = 0, or all are Gaussian.

**Losses chosen by looking** (``adaptive=True``). Two rules hold then, and so does their union. Each
charge must leave one of these true:

A. :math:`\sum_i \varepsilon_i \le \varepsilon` (Rogers, Roth, Ullman and Vadhan, NeurIPS 2016,
   Theorem 3.6);
B. :math:`\sum_i \mu_i^2 \le \mu^2` with μ the largest for which μ-Gaussian privacy implies the
   budget (Smith and Thakurta, arXiv:2210.17520, Theorem 1). An ε-private release is μ-Gaussian
   private with :math:`\mu = 2 \Phi^{-1}(e^{\varepsilon} / (1 + e^{\varepsilon}))`: its trade-off
   curve consists of the chords of the Gaussian one to the common fixed point, and that is convex
   (Dong, Roth and Su, arXiv:1905.02383, Definition 2.6 and Proposition 2.5).

Both assume that a release has the loss that it is charged for *whatever was released before*, and B
that the squares stay within μ² *on every path*, with certainty: that is Smith and Thakurta's
condition, and what the check before every charge makes true.

That A needs no δ makes their union work: two rules that both need one make a filter for the sum of
both. What holds is the *budget*: an ε that is read from these sums at a time that was chosen by
looking (`adaptive_epsilon`) is what counts against it, and no promise. The page "Losses chosen by
looking" of the documentation proves all of this from the beginning.

Sums round up, and ε is read as the decimal number it is written as: three charges of 0.1 make 0.3.
More than 512 shifts of a curve are rounded up to 512 a doubling: ε rises by less than 0.1 percent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from copy import copy
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv, ndtri_exp

from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.privacy.conversions import gdp_epsilon, gdp_mu
from skdpnoise.privacy.curves import LossCurve, NormalShift, RandomisedResponse
from skdpnoise.privacy.numeric.loss import bounds_near, composed_delta
from skdpnoise.privacy.sampled import PoissonSampled

__all__ = ["Composition", "compact"]

SUM_NAMES = ("pure", "normal", "squares", "basic_epsilon", "basic_delta")
"""Names of the sums over all losses that a composition keeps."""

_SUMS = Context(prec=40, rounding=ROUND_CEILING)
_MANY = 512  # distinct shifts of a curve before they are rounded up to the grid
_PER_OCTAVE = 512  # steps of the grid of shifts in a doubling
_WRITTEN = 200  # distinct shifts of a curve that are written down
_ROUNDING = 1e-15
_MARGIN = 1e-12  # of the inverse error function
_TOLERANCE = 1e-13  # of a largest loss
_LARGEST = 1e6  # ε that are looked for

Term = tuple[LossCurve, float, int]
Terms = dict[LossCurve, Counter[float]]  # how often each shift of a curve occurs
Groups = list[tuple[LossCurve, NDArray[np.float64], NDArray[np.float64]]]


class Anchor(NamedTuple):
    """A bound that was computed once and covers what comes after it, for a while."""

    # What had been spent, with normal shifts of `normal` in all, stays within the δ of the budget
    # at its ε less `slack`. So whatever adds at most `slack` of pure loss, and normal shifts that
    # stay below `normal`, fits.

    slack: Decimal
    normal: Decimal

    def covers(self, total: Composition) -> bool:
        return total.since <= self.slack and total.normal <= self.normal


class Composition:
    """The sum of many losses, in a few dozen numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.pure = Decimal(0)  # sum of ε
        self.normal = Decimal(0)  # sum of μ² of normal shifts
        self.squares = Decimal(0)  # sum of μ² of Gaussian bounds of everything
        self.basic_epsilon, self.basic_delta = Decimal(0), Decimal(0)
        self.terms: Terms = {}  # all but normal shifts
        self.only: PrivacyLoss | None = None  # while there is one: its own curve is the tightest
        self.anchor: Anchor | None = None
        self.since = Decimal(0)  # sum of ε of all but normal shifts since the anchor
        self._epsilons: dict[tuple[float, float], float] = {}  # computed, by δ and a guess

    def copy(self) -> Composition:
        other = copy(self)
        other.terms = {curve: Counter(shifts) for curve, shifts in self.terms.items()}
        return other

    def with_one_more(self, loss: PrivacyLoss, guarantee: tuple[float, float]) -> Composition:
        other = self.copy()
        other.add(loss, guarantee)
        return other

    def add(self, loss: PrivacyLoss, guarantee: tuple[float, float], times: int = 1) -> None:
        sums, terms = _parts_of(loss)
        if not all(value >= 0 for value in sums.values()):  # a curve that is none
            raise ValueError(f"a loss must be at least 0, and is {loss!r}")
        sums["pure"] = Decimal("Infinity") if sums["normal"] else sums["since"]
        sums["basic_epsilon"], sums["basic_delta"] = (Decimal(repr(x)) for x in guarantee)
        for name, value in sums.items():
            if value:
                setattr(self, name, _plus(getattr(self, name), value, times))
        for curve, shift, count in terms:
            self._put(curve, shift, count * times)
        self.only = loss if self.count == 0 and times == 1 else None
        self.count += times
        self._epsilons = {}

    def _put(self, curve: LossCurve, shift: float, count: int) -> None:
        shifts = self.terms.setdefault(curve, Counter())
        if shift not in shifts and len(shifts) >= _MANY - 1:
            shift = on_grid(shift)
            if len(shifts) == _MANY - 1:
                rounded = [(curve, on_grid(known), number) for known, number in shifts.items()]
                self.terms[curve] = shifts = _by_curve(rounded)[curve]
        shifts[shift] += count

    @property
    def basic(self) -> tuple[float, float]:
        """Sums of ε and of δ of the guarantees, rounded up."""
        return _up(self.basic_epsilon), min(1.0, _up(self.basic_delta))

    def loss(self, epsilon: float) -> PrivacyLoss:
        """Return the composed loss, in the form that is smallest around an ε."""
        closed = self._closed()
        if closed is not None:
            return closed
        if self.pure <= Decimal(repr(epsilon)):
            return PureLoss(_up(self.pure))
        normal = [(NormalShift(), _root(self.normal), 1)] if self.normal else []
        return NumericLoss((*self._flat(), *normal))

    def _closed(self) -> PrivacyLoss | None:
        """Return the composed loss where no numbers are needed."""
        if self.only is not None or self.terms:
            return self.only
        return GaussianLoss(_root(self.normal)) if self.normal else PureLoss(0.0)

    def _flat(self) -> list[Term]:
        return [(c, s, n) for c, shifts in self.terms.items() for s, n in shifts.items()]

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of δ at an ε ≥ 0."""
        if self.pure <= Decimal(repr(epsilon)):
            return 0.0
        closed = self._closed()
        return composed_delta(self.groups(), epsilon) if closed is None else closed.delta(epsilon)

    def epsilon(self, delta: float, near: float = 1.0) -> float:
        """Return a tight ε for a δ, rounded up; a guess of it makes that faster."""
        pure = _up(self.pure)
        if delta == 0.0 or pure == 0.0:
            return pure
        closed = self._closed()
        if closed is not None:
            return min(pure, closed.epsilon(delta))
        if (delta, near) not in self._epsilons:
            self._epsilons[delta, near] = _smallest_epsilon(self.groups(), delta, near)
        return min(pure, self._epsilons[delta, near])

    def counted(self, delta: float, *, adaptive: bool) -> float:
        """Return the ε that counts against a budget."""
        return self.adaptive_epsilon(delta) if adaptive else self.epsilon(delta)

    def adaptive_epsilon(self, delta: float) -> float:
        """Return the ε that counts if losses were chosen by looking; infinity if no rule fits."""
        pure = _up(self.pure)
        if delta == 0.0 or not self.squares.is_finite():
            return pure
        return min(pure, gdp_epsilon(_root(self.squares), delta))

    def fits(self, budget: PrivacyGuarantee, *, adaptive: bool) -> bool:
        """Return whether this is within a budget; see the head of this file for the rules."""
        epsilon, delta = budget.epsilon, budget.delta
        if self.pure <= Decimal(repr(epsilon)):
            return True
        if delta == 0.0:
            return False
        if adaptive:
            # Squared as the losses are, so that a loss of just this size fits.
            return self.squares <= _SUMS.power(Decimal(gdp_mu(epsilon, delta)), 2)
        if self._closed() is not None:
            return self.delta(epsilon) <= delta
        if self.anchor is not None and self.anchor.covers(self):
            return True
        return self._fits_by_numbers(epsilon, delta)

    def groups(self, room: Decimal = Decimal(0)) -> Groups:
        """Return curves, shifts in increasing order and counts, with room for normal shifts."""
        groups, normal = _arrays(self.terms), max(room, self.normal)
        if normal:
            groups.append((NormalShift(), np.array([_root(normal)]), np.ones(1)))
        return groups

    def _fits_by_numbers(self, epsilon: float, delta: float) -> bool:
        rooms = [self.normal]
        share = 0.5 if self.anchor is None else float(self.anchor.slack) / epsilon
        if self.normal and share > 4e-3:
            # First with room for normal shifts to come, a share of what was left last time.
            rooms.insert(0, _SUMS.multiply(self.normal, Decimal(1.0 + 0.5 * share)))
        for room in rooms:
            at, smallest = bounds_near(self.groups(room), delta, epsilon, coarse=True)
            if at <= delta:
                slack = max(Decimal(0), Decimal(repr(epsilon)) - Decimal(repr(smallest)))
                self.anchor, self.since = Anchor(slack, room), Decimal(0)
                return True
        return composed_delta(self.groups(), epsilon) <= delta


def _up(value: Decimal) -> float:
    """Return the float that is written as the value, or else the next one above it."""
    number = float(value)
    return number if Decimal(repr(number)) >= value else math.nextafter(number, math.inf)


def _root(square: Decimal) -> float:
    return math.sqrt(square) * (1.0 + _ROUNDING)


def _first_epsilon(groups: Groups, delta: float, near: float) -> float:
    """Return an ε of a δ, rounded up coarsely; infinity if there is none below a million."""
    best = last = math.inf
    for _ in range(100):
        found = bounds_near(groups, delta, near, coarse=True)[1]
        best = min(best, found)
        if found == last < math.inf:  # the same from elsewhere
            break
        last = found
        close = abs(found - near) <= 0.2 * near < math.inf
        if (close and found != near) or best <= 1e-6 or near > _LARGEST:
            break
        if found == math.inf:
            near *= 2.0
        else:  # where the loss ends before, it is all below
            near = 0.8 * near if found == near else max(found, 0.1 * near)
    return best


def _smallest_epsilon(groups: Groups, delta: float, near: float) -> float:
    """Return the ε of a δ, rounded up; infinity if there is none below a million."""
    best = _first_epsilon(groups, delta, near)
    if best == math.inf:
        return best
    if best <= 1e-6 and composed_delta(groups, 0.0) <= delta:
        return 0.0
    at, found = bounds_near(groups, delta, best)
    best = min(best, found)
    if at < 0.5 * delta:  # the ε of δ lies below all that a look at this one can see
        while best > 1e-6 and composed_delta(groups, 0.9 * best) <= delta:
            best *= 0.9
        best = min(best, bounds_near(groups, delta, best)[1])
    step = 1e-6
    while composed_delta(groups, best) > delta:  # two bounds: what is said holds by both
        if best > _LARGEST:  # a δ below what can be computed
            return math.inf
        best *= 1.0 + step
        step *= 2.0
    return best


def compact(loss: PrivacyLoss) -> PrivacyLoss:
    """Return a loss with few terms that is at least as large."""
    if not isinstance(loss, NumericLoss) or len(loss.terms) <= _WRITTEN:
        return loss
    terms: list[Term] = []
    for curve, shifts, counts in _arrays(_by_curve(loss.terms)):
        if shifts.size > _WRITTEN:
            # From the largest shift downwards, in steps that use up what there is of room.
            span = math.log(shifts[-1] / max(shifts[0], 1e-4 * shifts[-1]))
            rank = np.floor(np.log(shifts[-1] / shifts) / (span / (_WRITTEN - 2)) + 1e-9)
            rank = np.minimum(rank, _WRITTEN - 1)
            starts = np.flatnonzero(np.diff(rank, prepend=-1.0))
            shifts, counts = np.maximum.reduceat(shifts, starts), np.add.reduceat(counts, starts)
        terms += [(curve, float(s), int(n)) for s, n in zip(shifts, counts, strict=True)]
    return NumericLoss(tuple(terms))


def _parts_of(loss: PrivacyLoss) -> tuple[dict[str, Decimal], list[Term]]:
    """Return what a loss adds to the sums, rounded up, and its terms but for normal shifts."""
    terms = loss.numeric().terms
    if isinstance(loss, GaussianLoss):  # whose form in numbers is rounded up
        terms = ((NormalShift(), loss.mu, 1),)
    since = normal = squares = Decimal(0)
    others = []
    for curve, shift, count in terms:
        if isinstance(curve, NormalShift):
            mu = shift
            normal = _plus(normal, _SUMS.power(Decimal(mu), 2), count)
        else:
            exact = isinstance(curve, RandomisedResponse)
            largest = shift if exact else float(curve.max_loss(shift)) * (1.0 + _TOLERANCE)
            since = _plus(since, Decimal(repr(largest)), count)
            mu = gaussian_mu_of_pure(largest)
            if isinstance(curve, PoissonSampled) and isinstance(curve.base, NormalShift):
                mu = min(mu, shift)  # sampled or not, it is μ-Gaussian private
            others.append((curve, shift, count))
        squares = _plus(squares, _SUMS.power(Decimal(mu), 2), count)
    return {"since": since, "normal": normal, "squares": squares}, others


def _plus(total: Decimal, value: Decimal, count: int) -> Decimal:
    return _SUMS.add(total, _SUMS.multiply(value, count))


@lru_cache(maxsize=256)
def gaussian_mu_of_pure(epsilon: float) -> float:
    r"""Return the smallest μ such that every ε-private release is μ-Gaussian private, rounded up.

    .. math:: \mu = 2 \Phi^{-1}\left(\frac{e^{\varepsilon}}{1 + e^{\varepsilon}}\right)
    """
    if not math.isfinite(epsilon):
        return math.inf
    if epsilon < 1.0:  # tanh(ε/2) = erf(μ / sqrt 8)
        mu = math.sqrt(8.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return mu * (1.0 + _MARGIN)


def on_grid(shift: float) -> float:
    """Return the next value above on a fixed grid; a value of the grid is its own."""
    up: float = 2.0 ** (math.ceil(math.log2(shift) * _PER_OCTAVE - 1e-6) / _PER_OCTAVE)
    return max(up, shift)


def _by_curve(terms: Iterable[Term]) -> Terms:
    found: Terms = {}
    for curve, shift, count in terms:
        found.setdefault(curve, Counter())[shift] += count
    return found


def _arrays(terms: Terms) -> Groups:
    groups: Groups = []
    for curve, shifts in terms.items():
        values, counts = np.array(sorted(shifts.items()), dtype=np.float64).T
        groups.append((curve, values, counts))
    return groups
