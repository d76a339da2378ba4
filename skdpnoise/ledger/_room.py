"""How much still fits: the largest ε of a release of the same kind that a budget would cover."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_FLOOR, Context, Decimal

from skdpnoise.ledger.composition import Composition
from skdpnoise.privacy import (
    GaussianLoss,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    PureLoss,
    gdp_mu,
)

__all__ = ["largest_epsilon"]

_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)  # of what is stated
_FINE, _COARSE = 60, 11  # halvings: to the last bit where a test is cheap, else to 1 in 2048
_SMALLEST = 1e-6  # of what was asked for: less is nothing
_PURE = 1.0 + 1e-9  # whose ε is what was stated, up to rounding
_ALMOST = 1.0 - 1e-3  # calibration of a smaller ε gives a loss that is only nearly proportional

Kind = Callable[[float], PrivacyLoss]


def largest_epsilon(
    loss: PrivacyLoss,
    stated: tuple[float, float],
    spent: Composition,
    budget: PrivacyGuarantee,
    *,
    adaptive: bool,
) -> float:
    """Return the largest ε for which a refused release would have fitted, rounded down.

    It is for the same kind of noise and the δ that was stated: all of a pure loss is proportional
    to ε, a Gaussian one is that of μ(ε, δ), and of others every shift shrinks by one factor.

    Parameters
    ----------
    loss : PrivacyLoss
        What was asked for, and does not fit.
    stated : tuple of float
        The ε and δ of it.
    spent : Composition
        What the budget has paid for so far.
    budget : PrivacyGuarantee
        The ledger's.
    adaptive : bool
        Whether losses may be chosen by looking at results.

    Returns
    -------
    float
        To four digits; 0 if nothing of this kind fits.

    Examples
    --------
    >>> spent = Composition()
    >>> spent.add(PureLoss(0.75), (0.75, 0.0))
    >>> budget = PrivacyGuarantee(1.0)
    >>> largest_epsilon(PureLoss(0.5), (0.5, 0.0), spent, budget, adaptive=False)
    0.25
    """
    epsilon, delta = stated

    def fits(smaller: PrivacyLoss) -> bool:
        total = spent.with_one_more(smaller, (0.0, 0.0))
        return total.fits(budget, adaptive=adaptive)

    if isinstance(loss, GaussianLoss) and delta > 0.0:
        unit = loss.mu / gdp_mu(epsilon, delta)
        return _search(lambda e: GaussianLoss(unit * gdp_mu(e, delta)), epsilon, fits, _FINE)
    pure = loss.epsilon(0.0)
    if isinstance(loss, PureLoss):
        return _search(lambda e: PureLoss(pure * (e / epsilon)), epsilon, fits, _FINE)
    numeric = loss.numeric()
    if pure <= epsilon * _PURE or delta == 0.0:
        return _search(lambda e: _shrunk(numeric, e / epsilon), epsilon, fits, _COARSE)
    factor = _search(lambda t: _shrunk(numeric, t), 1.0, fits, _COARSE)
    if factor == 0.0:
        return 0.0
    part = _shrunk(numeric, factor).epsilon(delta) / numeric.epsilon(delta)
    return _floor(epsilon * part * _ALMOST)


def _search(kind: Kind, asked: float, fits: Callable[[PrivacyLoss], bool], halvings: int) -> float:
    """Return the largest value below what was asked for whose loss fits, to four digits."""
    low, high = _SMALLEST * asked, asked
    if not fits(kind(low)):
        return 0.0
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if fits(kind(middle)) else (low, middle)
    # The first value that did not fit may be the right one but for its last bit.
    best = _floor(high)
    return best if best < asked and fits(kind(best)) else _floor(low)


def _shrunk(loss: NumericLoss, factor: float) -> NumericLoss:
    return NumericLoss(tuple((curve, shift * factor, n) for curve, shift, n in loss.terms))


def _floor(value: float) -> float:
    """Return a value rounded down to four digits."""
    return float(_DIGITS.create_decimal(Decimal(repr(value))))
