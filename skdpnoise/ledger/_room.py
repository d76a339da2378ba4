"""How much still fits: the largest ε of a release of the same kind that a budget would cover."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np
from scipy.optimize import brentq

from skdpnoise.ledger.composition import Composition
from skdpnoise.ledger.storage.memory import Facts
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
from skdpnoise.privacy.repetition.curve import Composed, Repetition

__all__ = ["asked_in_words", "in_words", "largest_epsilon"]

_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)  # of what is stated
_STEP = 1e-3  # relative accuracy where a test takes a while
_NOTHING = 1e-300
_SMALLEST = 1e-6  # of what was asked for: less is nothing
_PURE = 1.0 + 1e-9  # whose ε is what was stated, up to rounding
_SAME, _UP = 1e-6, 1.0 + 1e-12  # a loss that is what was stated, and rounding of others
_ALMOST = 1.0 - 1e-3  # calibration of a smaller ε gives a loss that is only nearly proportional
_SHAPED = 0.95  # and less so where a shape is calibrated too
_WIDEST = 1e9  # shape of noise on the integers


def largest_epsilon(
    loss: PrivacyLoss, stated: tuple[float, float], spent: Composition, facts: Facts
) -> float:
    """Return the largest ε for which a refused release would have fitted, rounded down."""
    # It is for the same kind of noise and the δ that was stated: all of a pure loss is proportional
    # to ε, a Gaussian one is that of μ(ε, δ), and of others the noise widens by one factor, in
    # units of the change.
    epsilon, delta = stated

    def largest(kind: Callable[[float], PrivacyLoss], asked: float) -> float:
        def after(value: float) -> Composition:
            return spent.with_one_more(kind(value), (0.0, 0.0))

        return _largest(after, asked, facts)

    if isinstance(loss, GaussianLoss) and delta > 0.0:
        unit = loss.mu / gdp_mu(epsilon, delta)
        unit = 1.0 if abs(unit - 1.0) < _SAME else unit * _UP
        return largest(lambda e: GaussianLoss(unit * gdp_mu(e, delta)), epsilon)
    pure = loss.epsilon(0.0)
    if isinstance(loss, PureLoss):
        unit = 1.0 if pure == epsilon else pure / epsilon * _UP
        return largest(lambda e: PureLoss(unit * e), epsilon)
    numeric = loss.numeric()
    if pure <= epsilon * _PURE or delta == 0.0:
        return largest(lambda e: _shrunk(numeric, e / epsilon * _UP), epsilon)
    factor = largest(lambda t: _shrunk(numeric, t), 1.0)
    if factor == 0.0:
        return 0.0
    asked = numeric.epsilon(delta)  # 0 where δ alone covers the loss
    part = _shrunk(numeric, factor).epsilon(delta) / asked if asked > 0.0 else factor
    return _floor(epsilon * part * (_ALMOST if _is_proportional(loss, stated) else _SHAPED))


def asked_in_words(loss: PrivacyLoss, stated: tuple[float, float]) -> str:
    """Say what was asked for: a loss by numbers has no short form but what it was made for."""
    return f"({stated[0]:g}, {stated[1]:g})-DP" if isinstance(loss, NumericLoss) else str(loss)


def in_words(largest: float, loss: PrivacyLoss, stated: tuple[float, float]) -> str:
    """Say what ε fits, and how sure that is."""
    same = f"with the same noise and delta={stated[1]:g}"
    if _is_proportional(loss, stated):
        largest_is = f"The largest epsilon that still fits, {same}, is {largest!r}"
        return largest_is if largest > 0.0 else "Nothing of this kind fits any more"
    if largest > 0.0:
        return f"About epsilon={largest!r}, {same}, may still fit: calibration decides"
    return f"No epsilon was found that still fits, {same}"


def _is_proportional(loss: PrivacyLoss, stated: tuple[float, float]) -> bool:
    """Return whether calibration for another ε gives the same noise, only wider."""
    # The shape of other noise, the part of δ that is a chance of total disclosure, and the ratio of
    # scales depend on ε, and only a calibration finds them.
    if isinstance(loss, PureLoss | GaussianLoss) or loss.epsilon(0.0) <= stated[0] * _PURE:
        return True
    terms = loss.numeric().terms
    return len(terms) == 1 and isinstance(terms[0][0], Laplace)


def _largest(after: Callable[[float], Composition], asked: float, facts: Facts) -> float:
    """Return the largest value below what was asked for that fits, to four digits."""
    low = _SMALLEST * asked
    budget, limit = facts.guarantee, Decimal(repr(facts.epsilon))

    def fits(value: float) -> bool:
        return after(value).fits(budget, adaptive=facts.adaptive)

    if facts.adaptive or budget.delta == 0.0 or not after(low).terms:
        return _halved(fits, low, asked)
    # By sums of ε at once; by numbers in a few steps, since each takes a while.
    plain = _halved(lambda value: after(value).pure <= limit, low, asked)

    def excess(log_value: float) -> float:
        found = after(math.exp(log_value)).delta(budget.epsilon)
        return math.log(max(found, _NOTHING) / budget.delta)

    start = math.log(max(plain, low))
    if excess(start) >= 0.0:
        return plain
    best = _floor(math.exp(brentq(excess, start, math.log(asked), xtol=_STEP, rtol=_STEP)))
    while best > plain and not fits(best):
        best = _floor(best * (1.0 - _STEP))
    return max(best, plain)


def _halved(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest value between two that fits, to four digits; 0 if not even the first."""
    if not fits(low):
        return 0.0
    asked = high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    # The first value that did not fit may be the right one but for its last bit.
    best = _floor(high)
    return best if best < asked and fits(best) else _floor(low)


def _shrunk(loss: NumericLoss, factor: float) -> NumericLoss:
    return NumericLoss(tuple((*_widened(curve, x, factor), n) for curve, x, n in loss.terms))


def _widened(curve: LossCurve, shift: float, factor: float) -> tuple[LossCurve, float]:
    """Return the curve and the shift where the noise is wider by the inverse of a factor."""
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
    """Return log(e^x - 1) of any positive number."""
    return x + math.log(-math.expm1(-x))


def _floor(value: float) -> float:
    """Return a value rounded down to four digits."""
    return float(_DIGITS.create_decimal(Decimal(repr(value))))
