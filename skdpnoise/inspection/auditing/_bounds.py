"""Lower bounds of what a mechanism spends, from counts, each with a stated false alarm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

_LARGEST = 700.0  # beyond it exp(epsilon) is not a double
_SMALLEST = 1e-300


def clopper_pearson(
    hits: ArrayLike, trials: float, error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact bounds on probabilities; each is wrong with probability at most `error`."""
    k = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, beta.ppf(error, k, trials - k + 1), 0.0)
        high = np.where(k < trials, beta.isf(error, k + 1, trials - k), 1.0)
    return low, high


def epsilon_bound(
    hits: ArrayLike, false_hits: ArrayLike, trials: float, delta: float, false_alarm: float
) -> Any:
    r"""Return what ε must be at least if an event was hit so often on each of two data sets.

    .. math:: \varepsilon \ge \log\frac{p_{\mathrm{low}} - \delta}{p'_{\mathrm{high}}}
    """
    # It follows from p ≤ e^{ε} p' + δ. Each bound may err with half of the false alarm. A negative
    # bound says nothing, but less than one that is nearer to zero.
    low = clopper_pearson(hits, trials, false_alarm / 2)[0]
    high = clopper_pearson(false_hits, trials, false_alarm / 2)[1]
    return np.log(np.maximum(low - delta, _SMALLEST) / high)


def mu_bound(hits: ArrayLike, false_hits: ArrayLike, trials: float, false_alarm: float) -> Any:
    r"""Return what μ must be at least: :math:`\Phi^{-1}(p_{low}) - \Phi^{-1}(p'_{high})`."""
    low = clopper_pearson(hits, trials, false_alarm / 2)[0]
    high = clopper_pearson(false_hits, trials, false_alarm / 2)[1]
    return norm.ppf(low) - norm.ppf(high)


def one_run_pvalue(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    r"""Return a bound of the probability of v correct guesses or more under (ε, δ)-privacy.

    .. math:: \Pr[V \ge v] \le \Pr[W \ge v] + 2 m \delta \max_{1 \le i \le v}
              \frac{\Pr[v > W \ge v - i]}{i}, \qquad
              W \sim \mathrm{Binomial}\Bigl(r, \frac{e^\varepsilon}{1 + e^\varepsilon}\Bigr)
    """
    # Of m canaries, each in the data by a fair coin of its own, r were guessed about and m − r were
    # abstained from.
    # Steinke, Nasr and Jagielski, arXiv:2305.08846, Theorem 5.2 and Appendix D.
    rate = 1.0 / (1.0 + math.exp(-epsilon))
    pvalue = float(binom.sf(v - 1, r, rate))
    if delta > 0.0 and v > 0:
        steps = np.arange(1, v + 1)
        just_below = np.cumsum(binom.pmf(v - steps, r, rate))
        pvalue += 2.0 * m * delta * float(np.max(just_below / steps))
    return min(pvalue, 1.0)


def one_run_bound(m: int, r: int, v: int, delta: float, false_alarm: float) -> float:
    """Return the ε below which v correct guesses are too many, rounded down."""

    def excess(epsilon: float) -> float:
        return one_run_pvalue(m, r, v, epsilon, delta) - false_alarm

    if r == 0 or excess(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while excess(high) < 0.0 and high < _LARGEST:
        high *= 2.0
    found = float(brentq(excess, 0.0, high, xtol=1e-10))
    while found > 0.0 and excess(found) > 0.0:
        found = max(0.0, found - 1e-9)
    return found
