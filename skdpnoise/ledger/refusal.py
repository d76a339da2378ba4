"""Refusals of charges, with the largest ε of a release of the same kind that still fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_FLOOR, Context, Decimal
from typing import NamedTuple

import numpy as np

from skdpnoise.accounting.composition import Composition
from skdpnoise.accounting.reservation import LossAt
from skdpnoise.ledger.storage.base import StoredBudget
from skdpnoise.noises.discrete_gaussian import DiscreteGaussian
from skdpnoise.noises.discrete_laplace import DiscreteLaplace
from skdpnoise.noises.laplace import Laplace
from skdpnoise.noises.staircase import Staircase
from skdpnoise.noises.truncated_laplace import TruncatedLaplace
from skdpnoise.privacy import (
    GaussianLoss,
    LossCurve,
    NumericLoss,
    PoissonSampled,
    PrivacyLoss,
    PureLoss,
    RandomisedResponse,
    gdp_mu,
)
from skdpnoise.privacy.numeric.loss import bounds_near, composed_delta
from skdpnoise.privacy.repetition.curve import Composed, Repetition
from skdpnoise.privacy.repetition.sketch import sketched

__all__ = ["largest_epsilon", "refusal"]

_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)  # of what is stated
_NOTHING, _MOST = 1e-300, 1.0 - 1e-6  # of δ
_SMALLEST = 1e-6  # of what was asked for: less is nothing
_PURE = 1.0 + 1e-9  # whose ε is what was stated, up to rounding
_SAME, _UP = 1e-6, 1.0 + 1e-12  # a loss that is what was stated, and rounding of others
_ALMOST = 1.0 - 1e-3  # calibration of a smaller ε gives a loss that is only nearly proportional
_SHAPED = 0.95  # and less so where a shape is calibrated too
_WIDEST = 1e9  # shape of noise on the integers
_CALIBRATIONS, _TRIES, _LINES = 5, 30, 6  # how often at most, compositions, those of them by lines
_CLOSE = 1.004  # what fits is the largest if this times as much does not
_NEAR, _NEARER = 1e-3, 1e-6  # relative accuracy, where a composition is tried, and a single loss
_SAFE = 5e-3  # by which the logarithm of a δ from few dots is to be below that of the budget


class _Kind(NamedTuple):
    """Losses of the same kind as the one that was asked for, by a size that grows with ε."""

    asked: float  # size of the loss that was asked for
    at: LossAt  # of a size
    named: Callable[[float], float]  # ε of a size, if the same δ is stated
    sure: float = 1.0  # part of that ε whose calibration gives no more than the size


class _Remaining:
    def __init__(self, spent: Composition, budget: StoredBudget) -> None:
        self.spent, self.budget, self.adaptive = spent, budget.guarantee, budget.adaptive
        self.limit = Decimal(repr(budget.epsilon))

    def after(self, loss: PrivacyLoss) -> Composition:
        return self.spent.with_one_more(loss, (0.0, 0.0))

    def by_sums(self, total: Composition) -> bool:
        return self.adaptive or self.budget.delta == 0.0 or not total.terms

    def excess(self, loss: PrivacyLoss, *, quick: bool = True) -> float:
        """Return log(δ / δ of the budget) with one more loss, which fits if that is at most 0."""
        total, epsilon, delta = self.after(loss), self.budget.epsilon, self.budget.delta
        if total.pure <= self.limit:
            return -math.inf
        if self.by_sums(total):
            return -math.inf if total.fits(self.budget, adaptive=self.adaptive) else math.inf
        if total.only is not None:
            return math.log(max(total.delta(epsilon), _NOTHING) / delta)
        quick_loss = _sketched(loss) if quick else loss
        groups, safe = self.after(quick_loss).groups(), quick_loss is not loss
        found = bounds_near(groups, delta, epsilon, coarse=True)[0]
        if found > delta and not safe:  # as a charge is judged
            found = composed_delta(groups, epsilon)
        return math.log(max(found, _NOTHING) / delta) + _SAFE * safe

    def square(self, excess: float) -> float:
        """Return μ² of the Gaussian loss with this δ at the ε of the budget."""
        delta = min(self.budget.delta * math.exp(min(max(excess, -700.0), 700.0)), _MOST)
        return gdp_mu(self.budget.epsilon, delta) ** 2 if delta > _NOTHING else 0.0

    def largest(self, kind: _Kind, high: float, excess: float) -> float:
        """Return about the largest size that fits, below one that does not; 0 if there is none."""
        # `excess` is that of the size that was asked for.
        low = _SMALLEST * kind.asked
        if self.by_sums(self.after(kind.at(low))):
            return _halved(lambda size: self.excess(kind.at(size)) <= 0.0, low, high)
        # By sums of ε at once; by numbers in a few steps, since each takes a while.
        plain = _halved(lambda size: self.after(kind.at(size)).pure <= self.limit, low, high)
        near = _NEAR if self.spent.count else _NEARER
        enough = 2.0 * near * max(1.0, -math.log(self.budget.delta))
        # Squares of μ add up, so that the one with the δ of a size is nearly a line over its square
        target, best = self.square(-0.5 * enough), plain
        low, size = max(plain, low), kind.asked
        last, here = (0.0, self.square(self.excess(PureLoss(0.0)))), (size**2, self.square(excess))
        for tried in range(_TRIES):
            rise = (here[1] - last[1]) / (here[0] - last[0])
            square = here[0] + (target - here[1]) / rise if rise > 0.0 else 0.0
            size = math.sqrt(max(square, 0.0))
            if tried >= _LINES or not low < size < high:  # where δ jumps, lines lead nowhere
                size = math.sqrt(low * high)
            excess = self.excess(kind.at(size))
            last, here = here, (size**2, self.square(excess))
            if excess > 0.0:
                high = size
            else:
                low = best = size
            if -enough <= excess <= 0.0 or high < low * (1.0 + 0.5 * near):
                break
        return best


def refusal(
    loss: PrivacyLoss,
    guarantee: tuple[float, float],
    spent: Composition,
    budget: StoredBudget,
    loss_at: LossAt | None,
) -> tuple[str, float]:
    """Return the message of a refusal, and the largest ε that would fit."""
    after = spent.with_one_more(loss, (0.0, 0.0)).counted(budget.delta, adaptive=budget.adaptive)
    # Rounding up must not say more than what was checked.
    before = min(spent.counted(budget.delta, adaptive=budget.adaptive), budget.epsilon)
    largest = largest_epsilon(loss, guarantee, spent, budget, loss_at)
    found = _in_words(largest, loss, guarantee, calibrated=loss_at is not None)
    remedy = f"{found}; what is promised here does not change."
    if budget.adaptive and after == math.inf:
        remedy = (
            "A ledger with adaptive=True takes pure and Gaussian losses only: use a noise with "
            "such a loss, or a ledger with adaptive=False if losses are fixed in advance."
        )
    stated = "({:g}, {:g})-DP".format(*guarantee) if isinstance(loss, NumericLoss) else str(loss)
    text = (
        f"asks for {stated}, with which the total would be "
        f"epsilon={after:.4g} at delta={budget.delta:g}: {spent.count} "
        f"charge{'' if spent.count == 1 else 's'} spent {before:.4g} of the budget "
        f"epsilon={budget.epsilon:g}, and {budget.epsilon - before:.4g} is left. "
        f"Nothing was charged. {remedy}"
    )
    return text, largest


def largest_epsilon(
    loss: PrivacyLoss,
    stated: tuple[float, float],
    spent: Composition,
    budget: StoredBudget,
    loss_at: LossAt | None = None,
) -> float:
    """Return the largest ε for which a refused release would have fitted, rounded down."""
    left, kind = _Remaining(spent, budget), _kind_of(loss, stated)
    excess = left.excess(loss, quick=False)  # from what was computed to refuse it
    found = kind.named(left.largest(kind, kind.asked, excess))
    if loss_at is None or (budget.adaptive and found == 0.0):
        return to_four_digits(found * kind.sure)
    # What is calibrated for less may be of another kind: another law of runs, or no runs at all.
    low, high = 0.0, stated[0]
    for _ in range(_CALIBRATIONS):
        epsilon = to_four_digits(found * (1.0 + 2.0 * _NEARER))
        if not low < epsilon < high:
            epsilon = to_four_digits(math.sqrt(max(low, _SMALLEST * high) * high))
        if not low < epsilon < high:
            break
        excess, most = math.inf, 1.0
        with suppress(ValueError):  # if no noise gives this guarantee
            kind = _kind_of(loss := loss_at(epsilon), (epsilon, stated[1]))
            excess = left.excess(loss)
        if excess > 0.0:
            high = epsilon
        else:
            low, most = epsilon, high / epsilon
            if left.excess(kind.at(_CLOSE * kind.asked)) > 0.0:
                break
        found = kind.named(left.largest(kind, most * kind.asked, excess))
    return low


def _kind_of(loss: PrivacyLoss, stated: tuple[float, float]) -> _Kind:
    # All of a pure loss is proportional to ε, a Gaussian one is that of μ(ε, δ), and of others the
    # noise widens by one factor, in units of the change.
    epsilon, delta = stated

    def itself(size: float) -> float:
        return size

    if isinstance(loss, GaussianLoss) and delta > 0.0:
        unit = loss.mu / gdp_mu(epsilon, delta)
        unit = 1.0 if abs(unit - 1.0) < _SAME else unit * _UP
        return _Kind(epsilon, lambda e: GaussianLoss(unit * gdp_mu(e, delta)), itself)
    pure = loss.epsilon(0.0)
    if isinstance(loss, PureLoss):
        unit = 1.0 if pure == epsilon else pure / epsilon * _UP
        return _Kind(epsilon, lambda e: PureLoss(unit * e), itself)
    numeric = loss.numeric()
    if pure <= epsilon * _PURE or delta == 0.0:
        repeats = any(isinstance(curve, Repetition) for curve, _, _ in numeric.terms)

        def shrunk(size: float) -> NumericLoss:
            return _shrunk(numeric, size / epsilon * _UP)

        def of_runs(size: float) -> float:  # runs add more to a small ε than to a large one
            return epsilon * shrunk(size).epsilon(0.0) / pure if size > 0.0 else 0.0

        return _Kind(epsilon, shrunk, of_runs if repeats else itself)

    def named(factor: float) -> float:
        if factor == 0.0:
            return 0.0
        asked = numeric.epsilon(delta)  # 0 where δ alone covers the loss
        part = _shrunk(numeric, factor).epsilon(delta) / asked if asked > 0.0 else factor
        return epsilon * part

    sure = _ALMOST if _is_proportional(loss, stated) else _SHAPED
    return _Kind(1.0, lambda factor: _shrunk(numeric, factor), named, sure)


def _in_words(
    largest: float, loss: PrivacyLoss, stated: tuple[float, float], *, calibrated: bool
) -> str:
    same = f"with the same noise and delta={stated[1]:g}"
    if calibrated or _is_proportional(loss, stated):
        largest_is = f"The largest epsilon that still fits, {same}, is {largest!r}"
        return largest_is if largest > 0.0 else "Nothing of this kind fits any more"
    if largest > 0.0:
        return f"About epsilon={largest!r}, {same}, may still fit: calibration decides"
    return f"No epsilon was found that still fits, {same}"


def _is_proportional(loss: PrivacyLoss, stated: tuple[float, float]) -> bool:
    # The shape of other noise, the part of δ that is a chance of total disclosure, and the ratio of
    # scales depend on ε, and only a calibration finds them.
    if isinstance(loss, PureLoss | GaussianLoss) or loss.epsilon(0.0) <= stated[0] * _PURE:
        return True
    terms = loss.numeric().terms
    return len(terms) == 1 and isinstance(terms[0][0], Laplace)


def _halved(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest value between two that fits, to four digits; 0 if not even the first."""
    if not fits(low):
        return 0.0
    asked = high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    # The first value that did not fit may be the right one but for its last bit.
    best = to_four_digits(high)
    return best if best < asked and fits(best) else to_four_digits(low)


def _sketched(loss: PrivacyLoss) -> PrivacyLoss:
    terms = loss.numeric().terms
    quick = tuple((sketched(curve), shift, count) for curve, shift, count in terms)
    return loss if quick == terms else NumericLoss(quick)


def _shrunk(loss: NumericLoss, factor: float) -> NumericLoss:
    return NumericLoss(tuple((*_widened(curve, x, factor), n) for curve, x, n in loss.terms))


def _widened(curve: LossCurve, shift: float, factor: float) -> tuple[LossCurve, float]:
    """Return the curve and the shift of noise that is wider by 1 / factor."""
    # On the integers the shape is what widens: a change is whole. The steps of a staircase keep
    # their width and get lower, so that all a smaller ε says of it is its largest loss.
    if isinstance(curve, DiscreteLaplace | DiscreteGaussian):
        return type(curve)(min(curve.shape / min(factor, 1.0), _WIDEST)), shift
    if isinstance(curve, Repetition):
        base, shift = _widened(curve.base, shift, factor)
        return Repetition(curve.law, base), shift
    if isinstance(curve, PoissonSampled):
        base, shift = _widened(curve.base, shift, factor)
        return PoissonSampled(curve.rate, base), shift
    if isinstance(curve, Composed):
        return Composed(_shrunk(NumericLoss(curve.terms), factor).terms), shift
    if isinstance(curve, TruncatedLaplace) and shift > 0.0:  # as much of δ stays total disclosure
        small = shift * factor
        log_mass = _log_expm1(small) - _log_expm1(shift) + _log_expm1(curve.shape)
        shape = float(np.logaddexp(0.0, log_mass))
        return TruncatedLaplace(min(max(shape, _NOTHING), curve.shape)), small
    if isinstance(curve, Staircase):
        return RandomisedResponse(), float(curve.max_loss(shift)) * factor
    return curve, shift * factor


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x))


def to_four_digits(value: float) -> float:
    """Return a number rounded down to four digits."""
    return float(_DIGITS.create_decimal(Decimal(repr(value))))
