"""How large the rows of a table are: a private quantile of their norms, with or without limits."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.checks import check_real, complaint
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.terms import OfSeveral, Terms, takes_terms
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.table import Table
from skdpnoise.kernels.tiles import Floats
from skdpnoise.mechanisms.calibrate import shared_budget
from skdpnoise.mechanisms.selection import NormQuantileMechanism
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.queries.values import read_values
from skdpnoise.sensitivity import SensitivityProfile

_PER_OCTAVE = 4  # candidates per factor of two
_LOWEST, _HIGHEST = -1200, 1360  # exponents of candidates, in quarters of an octave
_WINDOW = 2 * _PER_OCTAVE  # candidates of the window that holds most norms
_PREFERRED = 4.0  # octaves around 1 that are looked at first
# What a radius twice as large must hold in addition, in shares of the records beyond the quantile
# that is asked for, if there are two octaves; of more, all have the price of two.
_PRICE = 0.05
# Candidates 2**(k/4). The mantissas are compared exactly, so that whether a norm is within a
# candidate is a function of that norm alone.
_STEPS = np.exp2(np.arange(1, _PER_OCTAVE) / _PER_OCTAVE - 1.0)
# What is public in a utility is a multiple of 2**-10 of at most 2**40 records, as its counts are
# whole numbers below 2**40: so sums are exact, and one record moves them by one and no ulp more.
_UNIT, _MOST = 2.0**-10, 2.0**40


@takes_terms
@shared_texts
def private_norm_quantile(
    norms: NDArray[np.float64] | Table[Any],
    level: float,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    limits: tuple[float, float] | None = None,
    n_samples: float | None = None,
    **terms: Unpack[OfSeveral],
) -> float:
    r"""Choose a radius that about a share `level` of the rows do not exceed.

    Candidates are :math:`r_k = 2^{k/4}`, whatever the data; N(r) is the number of norms up to r.

    1. *Magnitude.* Of all windows (r/4, r], r a power of two, the one with most norms is chosen, by
       the utility :math:`N(r) - N(r/4)`. The second step is limited to it.
    2. *Quantile.* Of the candidates in the window one is chosen, by the utility

       .. math:: u_k = -|N(r_k) - q n| - c (1 - q) \, n \log_2 (r_k / r_{\mathrm{low}})

       with q the level and c = 0.05. The second term, a public one, takes the smaller of two radii
       that hold almost the same rows: noise grows with the radius.

    With limits that are no further apart than a window there is no first step. The largest of all
    candidates counts as holding all rows. Without limits a public preference,
    :math:`(1 + (\log_2 r / 4)^2)^{-1}`, multiplies the probabilities of an exponential mechanism in
    the first step: magnitudes near 1 are looked at first.

    **Guarantee.** The norm of a row is a function of that row, and n is public or released. Adding
    a record adds 0 or 1 to each N(r) and each N(r) - N(r/4), and moves each u_k by at most 1.
    Replacing one moves each N(r) by −1, 0 or 1, hence u_k by at most 1, and the count of a window
    by at most 1: the record leaves it, enters it, or neither. So the sensitivity is 1 under both
    relations, and the counts of windows are monotonic under "add_remove". What is public in
    utilities is rounded to multiples of 2^-10, so that utilities *as computed* are exact. Both
    choices are exact (:class:`~skdpnoise.mechanisms.ExponentialMechanism`); their costs add up.

    Parameters
    ----------
    norms : ndarray or RowSource of shape (n_samples,)
        The private norms of rows: non-negative.
    level : float
        q, between 0 and 1, public. If few records or little budget are left, about
        (1 − q) n ε/2 should be above 8: otherwise a radius far beyond all rows may be chosen.
    %(queries: guarantee)s
    limits : tuple (low, high) or None, default=None
        Public, or released, limits of the radius, 0 < low ≤ high. The result is at least
        low / 2^{1/4} and at most 2^{1/4} high.
    n_samples : float or None, default=None
        n. None takes the number of norms; a private one must be given under "add_remove".
    %(queries: epsilon, delta, adjacency, random_state, ledger, charge)s

    Returns
    -------
    float
        A radius, in the units of the norms.

    Raises
    ------
    ValueError
        If the level, the limits or the norms are not as described, or `n_samples` is missing under
        "add_remove".
    %(queries: SpreadError)s

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011,
    Algorithm 2 (quantiles by the exponential mechanism). McSherry and Talwar, FOCS 2007.

    Examples
    --------
    >>> norms = np.random.default_rng(0).uniform(900.0, 1100.0, size=2000)
    >>> radius = private_norm_quantile(norms, 0.9, PrivacyGuarantee(5.0, 1e-6), random_state=0)
    >>> 1000.0 < radius < 1300.0
    True
    """
    session = Terms.of("private_norm_quantile", guarantee, terms, several=True)
    owner = session.owner
    q = check_real(owner, "level", level, high=1.0)
    values, _ = read_values(owner, norms, partial(_checked_norms, owner), np.asarray)
    n_samples = session.public_count(n_samples, len(values), low=-math.inf)
    _, budget = shared_budget("auto", SensitivityProfile([1.0]), session.guarantee, 2)
    low, high = (_LOWEST, _HIGHEST) if limits is None else _check_limits(owner, limits)
    up_to = values.or_else(np.zeros(0)).total(partial(_counts, high), "norms of rows")
    session.reserve(budget, NormQuantileMechanism.within(budget).noise)
    if high - low > _WINDOW:
        first, monotonic = budget.share(HALF), session.adjacency == "add_remove"
        mechanism = NormQuantileMechanism.within(first, monotonic=monotonic)
        tops = np.arange(high, low + _WINDOW - 1, -_PER_OCTAVE)
        preference = np.zeros(tops.size)
        if limits is None:
            octaves = tops / (_PER_OCTAVE * _PREFERRED)
            # in records: an exponential mechanism multiplies probabilities by exp(utility / scale)
            preference = -np.log1p(octaves**2) * mechanism.scale[0]
        held = up_to[tops - _LOWEST] - up_to[tops - _WINDOW - _LOWEST]
        utilities = _window_utilities(held, preference)
        high = int(tops[session.choose("magnitude of norms", mechanism, utilities)])
        low = high - _WINDOW
        budget = budget.share(1.0 - HALF)
    mechanism = NormQuantileMechanism.within(budget)
    candidates = np.arange(low, high + 1)
    octaves = (candidates - low) / _PER_OCTAVE
    price = (1.0 - q) * n_samples * octaves * _PRICE * 2.0 / max(2.0, octaves[-1])
    utilities = _rank_utilities(up_to[candidates - _LOWEST], q * n_samples, price)
    chosen = session.choose("norm quantile", mechanism, utilities)
    return float(np.exp2(candidates[chosen] / _PER_OCTAVE))


def _rank_utilities(counts: NDArray[np.int_], rank: float, price: Floats) -> Floats:
    return -np.abs(counts - exact_terms(np.asarray(rank))) - exact_terms(price)


def _window_utilities(counts: NDArray[np.int_], preference: Floats) -> Floats:
    return counts + exact_terms(preference)


def exact_terms(public: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return public numbers as multiples of a unit whose sums with counts are exact."""
    return np.asarray(np.rint(np.clip(public, -_MOST, _MOST) / _UNIT) * _UNIT)


def _checked_norms(owner: str, norms: Any) -> NDArray[Any]:
    check_collected(owner, "norms", type(norms))
    values = np.asarray(norms)
    if not (values.dtype.kind == "f" and values.ndim == 1 and (values >= 0.0).all()):
        raise ValueError(
            f"The 'norms' parameter of {owner} must be a one-dimensional array of non-negative "
            "floating-point numbers."
        )
    return values


@np.errstate(over="ignore")  # a warning would tell of a single record
def _counts(last: int, norms: NDArray[Any]) -> NDArray[np.int_]:
    """Return how many norms are at most 2**(k/4), for integer k; at the last k, all of them."""
    norms = norms.astype(np.float64, copy=False)
    mantissa, exponent = np.frexp(norms)
    # the least k with norm <= 2**(k/4), exactly; of zeros, and beyond the ends, the first, last
    least = _PER_OCTAVE * (exponent - 1) + (mantissa > 0.5)
    for step in _STEPS:
        least += mantissa > step
    least[norms == 0.0] = _LOWEST
    least[np.isinf(norms)] = last
    span = np.clip(least, _LOWEST, last) - _LOWEST
    return np.asarray(np.cumsum(np.bincount(span, minlength=last - _LOWEST + 1)))


def _check_limits(owner: str, limits: tuple[float, float]) -> tuple[int, int]:
    low, high = limits
    if not (0.0 < low <= high and math.isfinite(high)):
        must = "be a pair (low, high) with 0 < low <= high"
        raise ValueError(complaint(owner, "limits", must, repr(limits)))
    ends = (math.floor(_PER_OCTAVE * math.log2(low)), math.ceil(_PER_OCTAVE * math.log2(high)))
    first, last = (min(max(end, _LOWEST), _HIGHEST) for end in ends)
    return first, last
