"""Private selection among repeated runs: the cost of the best of a random number of runs.

A run draws a candidate, fits and scores it, all of it private. There are K runs, K from a public
law, and the output of the best score is released: however long the search, it costs a few runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skdpnoise._utils.checks import check_count, check_option, check_real, check_type, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.mechanisms._choice_laws import range_epsilon
from skdpnoise.mechanisms.requests import number_of
from skdpnoise.privacy import GaussianLoss, NumericLoss, PrivacyGuarantee, PrivacyLoss, PureLoss
from skdpnoise.privacy.conversions import bisect, gdp_mu
from skdpnoise.privacy.curves import NormalShift, Promised
from skdpnoise.privacy.loss import LossBudget
from skdpnoise.privacy.repetition.curve import Composed, Repetition, bound_of
from skdpnoise.privacy.repetition.laws import RepetitionLaw, TruncatedNegativeBinomial, check_law

_MARGIN = 1e-12
_DOMINATED = 16.0  # standard deviations to which a curve is compared: δ is 1e-57 there
_SHAPES = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)  # η that are tried
_AS_GOOD = 0.99
_OF_RUNS = 0.1  # of δ, for all runs


@shared_texts
def repeated_loss(base: PrivacyLoss, law: RepetitionLaw) -> PureLoss | NumericLoss:
    r"""Return the loss of the best of K runs that cost `base` each.

    .. math:: \varepsilon \mapsto \varepsilon + (\eta + 1) \log \frac{\gamma + e^{\varepsilon}}
              {1 + \gamma e^{\varepsilon}} \le (2 + \eta)\, \varepsilon, \qquad
              \varepsilon \mapsto \varepsilon + m \tanh(\varepsilon/2)

    for pure losses: the second term is the largest log g(u)/g(u') with both u' and 1 - u' within
    e^±ε of u and 1 - u. Any other loss becomes a :class:`~skdpnoise.privacy.NumericLoss`; so does
    ``base.numeric()``, which keeps the whole curve of a pure loss.

    Parameters
    ----------
    base : PrivacyLoss
        Loss of one run, everything that it does included.
    %(mechanisms: law)s

    References
    ----------
    Papernot and Steinke, ICLR 2022, Corollary 3 ((2 + η) ε) and Theorem 6.

    Examples
    --------
    >>> law = TruncatedNegativeBinomial(eta=1.0, gamma=0.05)
    >>> round(repeated_loss(GaussianLoss(0.14), law).epsilon(1e-6), 2)
    0.93
    """
    check_law("repeated_loss", law)
    if isinstance(base, PureLoss):
        epsilon = base.pure_epsilon
        return PureLoss((epsilon + law.pure_excess(epsilon)) * (1.0 + _MARGIN))
    if not isinstance(base, PrivacyLoss):
        given = f"an object of type {type(base).__name__}"
        raise TypeError(complaint("repeated_loss", "base", "be a PrivacyLoss", given))
    terms = base.numeric().terms
    if len(terms) == 1 and terms[0][2] == 1:
        curve, shift, _ = terms[0]
        return NumericLoss(((Repetition(law, curve), shift, 1),))
    return NumericLoss(((Repetition(law, Composed(terms)), 1.0, 1),) if terms else ())


@shared_texts
def base_budget(
    guarantee: PrivacyGuarantee | LossBudget, law: RepetitionLaw, kind: str = "gaussian"
) -> LossBudget:
    """Return the largest loss of one run for which the best of K runs keeps a guarantee.

    Parameters
    ----------
    guarantee : PrivacyGuarantee, PureLoss or GaussianLoss
        Cost of the whole search. A GaussianLoss must bound the whole curve, which leaves much less
        than the (ε, δ) that it implies: prefer a guarantee.
    %(mechanisms: law)s
    kind : {"gaussian", "pure"}, default="gaussian"
        Kind of loss of one run; "pure" if δ is 0.

    Returns
    -------
    GaussianLoss or PureLoss
        Rounded down.

    Examples
    --------
    >>> law = TruncatedNegativeBinomial(eta=1.0, gamma=1 / 81)
    >>> round(base_budget(PrivacyGuarantee(1.0, 1e-6), law).mu, 4)
    0.1291
    >>> print(base_budget(PrivacyGuarantee(1.0), law, kind="pure"))
    0.338947-DP
    """
    owner = "base_budget"
    check_law(owner, law)
    check_option(owner, "kind", kind, ("gaussian", "pure"))
    check_type(owner, "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    if kind == "pure":
        return _pure_base(guarantee, law)
    if isinstance(guarantee, PureLoss) or getattr(guarantee, "delta", None) == 0.0:
        must = "be 'pure' where delta is 0: no Gaussian noise is purely private"
        raise ValueError(complaint(owner, "kind", must, "'gaussian'"))
    if isinstance(guarantee, GaussianLoss):
        return GaussianLoss(_dominated_mu(guarantee.mu, law))
    return GaussianLoss(_gaussian_base(guarantee.epsilon, guarantee.delta, law))


@shared_texts
@lru_cache(maxsize=64)
def approximate_base(guarantee: PrivacyGuarantee, law: RepetitionLaw) -> tuple[float, float]:
    """Return ε and δ of one run for which the best of K runs keeps a guarantee.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        Cost of the whole search, with δ > 0.
    %(mechanisms: law)s

    Returns
    -------
    epsilon, delta : float
        Rounded down. A tenth of δ, divided by the mean of K, is that of one run.

    References
    ----------
    :class:`~skdpnoise.privacy.Repetition`, of the curve that (ε, δ)-privacy implies.

    Examples
    --------
    >>> law = TruncatedNegativeBinomial(eta=1.0, gamma=1 / 81)
    >>> epsilon, delta = approximate_base(PrivacyGuarantee(1.0, 1e-6), law)
    >>> round(epsilon, 4), f"{delta:.1e}"
    (0.3378, '1.2e-09')
    """
    check_law("approximate_base", law)
    check_type("approximate_base", "guarantee", guarantee, PrivacyGuarantee)
    check_real("approximate_base", "guarantee.delta", guarantee.delta, high=1.0)
    wanted, delta = guarantee.epsilon, _OF_RUNS * guarantee.delta / max(law.mean, 1.0)

    def keeps(epsilon: float) -> bool:
        loss = repeated_loss(NumericLoss(((Promised(delta), epsilon, 1),)), law)
        return bool(loss.delta(wanted) <= guarantee.delta)

    return bisect(keeps, 0.0, wanted)[0], delta


def choose_repetitions(
    n_candidates: int,
    guarantee: PrivacyGuarantee,
    *,
    coverage: float = 0.9,
    best: float = 0.1,
    max_mean: float = math.inf,
) -> TruncatedNegativeBinomial:
    r"""Return the law of K that leaves one run the most budget, and still searches enough.

    .. math:: 1 - f(1 - s) = \text{coverage}, \qquad
              s = \lceil \text{best} \cdot \text{candidates} \rceil / \text{candidates}

    If each run tries a candidate at random, one of the best is tried with this probability. Every η
    has one such γ; of the η within a per cent of the most budget, that of the fewest runs is taken.

    Parameters
    ----------
    n_candidates : int
        Number of candidates, public.
    guarantee : PrivacyGuarantee
        Cost of the whole search.
    coverage : float, default=0.9
        Probability with which one of the best candidates is tried.
    best : float, default=0.1
        Share of the candidates that counts as best, rounded up to whole candidates.
    max_mean : float, default=inf
        Most runs on average, if fewer are wanted than the privacy of the search asks for; a
        ValueError says if none of the laws has so few.

    Examples
    --------
    >>> law = choose_repetitions(20, PrivacyGuarantee(1.0, 1e-6))
    >>> law.eta, round(law.mean, 1)
    (2.0, 42.8)
    """
    owner = "choose_repetitions"
    n_candidates = check_count(owner, "n_candidates", n_candidates, low=2)
    best = check_real(owner, "best", best, high=1.0)
    share = min(math.ceil(best * n_candidates * (1.0 - _MARGIN)), n_candidates - 1) / n_candidates
    coverage = check_real(owner, "coverage", coverage, low=share, high=1.0)
    max_mean = check_real(owner, "max_mean", max_mean, low=1.0, high_closed=True)
    laws = []
    for eta in _SHAPES:
        try:
            laws.append(TruncatedNegativeBinomial.with_coverage(eta, share, coverage))
        except ValueError:
            continue  # its searches would be longer than a double can say
    laws = [law for law in laws if law.mean <= max_mean]
    if not laws:
        must = "be larger, or 'coverage' smaller: so few runs do not try one of the best "
        must += f"{share:.2g} of candidates with probability {coverage}"
        raise ValueError(complaint(owner, "max_mean", must, repr(max_mean)))
    kind = "gaussian" if guarantee.delta > 0.0 else "pure"
    budgets = [number_of(base_budget(guarantee, law, kind)) for law in laws]
    good = [law for law, size in zip(laws, budgets, strict=True) if size >= _AS_GOOD * max(budgets)]
    return min(good, key=lambda law: law.mean)


def _pure_base(guarantee: PrivacyGuarantee | LossBudget, law: RepetitionLaw) -> PureLoss:
    if isinstance(guarantee, GaussianLoss):
        total = 0.5 * range_epsilon(guarantee.mu)  # the pure ε that implies μ
    elif isinstance(guarantee, PureLoss):
        total = guarantee.pure_epsilon
    else:
        # PureLoss.epsilon(δ), solved for the pure ε: e^ε' = (e^ε + δ)/(1 - δ).
        epsilon, delta = guarantee.epsilon, guarantee.delta
        total = epsilon + math.log1p(delta * math.exp(-epsilon)) - math.log1p(-delta)
    total *= 1.0 - 4.0 * _MARGIN
    if isinstance(guarantee, PrivacyGuarantee):  # as the loss itself says, which rounds up
        while PureLoss(total * (1.0 + 2.0 * _MARGIN)).epsilon(guarantee.delta) > guarantee.epsilon:
            total *= 1.0 - _MARGIN
    return PureLoss(bisect(lambda base: base + law.pure_excess(base) <= total, 0.0, total)[0])


@lru_cache(maxsize=1024)
def _gaussian_base(epsilon: float, delta: float, law: RepetitionLaw) -> float:
    """Return the largest μ for which δ(ε) is at most `delta`, to 1e-7 of itself."""

    def excess(log_mu: float) -> float:
        value = bound_of(law, NormalShift(), math.exp(log_mu)).delta(epsilon)
        return math.log(max(value, 1e-300) / delta) + 1e-9

    return _largest(excess, math.log(gdp_mu(epsilon, delta)))


@lru_cache(maxsize=1024)
def _dominated_mu(total: float, law: RepetitionLaw) -> float:
    """Return the largest μ for which the whole curve is below that of a GaussianLoss."""
    # In between two dots the curve is below a chord in e^ε, and the convex curve of the
    # GaussianLoss above its tangents. It is enough that the chord is below them at the dots and
    # where they meet.
    if total == 0.0:
        return 0.0
    end = total * (_DOMINATED + 0.5 * total)
    losses = np.concatenate(
        [np.linspace(0.0, 2.0 * total, 40, endpoint=False), np.linspace(2.0 * total, end, 80)]
    )
    x, heights = np.exp(losses), NormalShift().hockey_stick(losses, total)
    slopes = ndtr(-losses / total - 0.5 * total)  # of the tangents, with the sign changed
    meet = np.diff(-heights - slopes * x) / -np.diff(slopes)
    share = np.clip((meet - x[:-1]) / np.diff(x), 0.0, 1.0)
    at_meeting = heights[:-1] - slopes[:-1] * share * np.diff(x)

    def excess(log_mu: float) -> float:
        found = bound_of(law, NormalShift(), math.exp(log_mu)).deltas(losses)
        chord = (1.0 - share) * found[:-1] + share * found[1:]
        ratios = np.concatenate([found / heights, chord / at_meeting])
        return float(np.log(np.max(ratios))) + 1e-9

    return _largest(excess, math.log(total))


def _largest(excess: Callable[[float], float], guess: float) -> float:
    """Return e^x for the largest x at which an increasing function is at most 0, rounded down."""
    high = guess
    while excess(high) <= 0.0:  # few runs, and often none, cost less than one
        high += 0.5
    low = high - 0.25
    while excess(low) > 0.0:
        low, high = 2.0 * low - high, low
    root = float(brentq(excess, low, high, xtol=1e-7, rtol=1e-9))
    while excess(root) > 0.0:
        root -= 1e-7
    return math.exp(root)
