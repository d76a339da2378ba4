r"""Releases from a Poisson sample: each record enters each batch independently of all others.

Let (A, B) be a pair that dominates one release without sampling: A with the record, B without.
With the record in the batch at rate q the release has the law M = q A + (1 - q) B, for whatever the
coins of the other records are, and so, by joint convexity, over all of them. Neighbours are data
sets with and without the record. For ε ≥ 0, S any set and H the curve of the pair in both orders,

.. math:: M(S) - e^{\varepsilon} B(S) = q\,[A(S) - e^{\varepsilon_0} B(S)], \qquad
          e^{\varepsilon_0} = 1 + (e^{\varepsilon} - 1) / q

when the record is taken away, and when it is added

.. math:: B(S) - e^{\varepsilon} M(S) = a\,[B(S) - e^{\varepsilon_1} A(S)], \qquad
          a = 1 - e^{\varepsilon} (1 - q), \quad e^{\varepsilon_1} = e^{\varepsilon} q / a

where a > 0; otherwise it is at most 0. Both are largest over S at once: q H(ε_0) and a H(ε_1).

**Replaced records are another matter.** Both laws are mixtures, which these curves do not bound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from skdpnoise._utils.checks import check_count, check_real, check_type, complaint
from skdpnoise.privacy.conversions import bisect, gdp_mu
from skdpnoise.privacy.curves import LossCurve, NormalShift, raised
from skdpnoise.privacy.guarantee import PrivacyGuarantee
from skdpnoise.privacy.loss import GaussianLoss, PrivacyLoss, PureLoss
from skdpnoise.privacy.numeric.loss import NumericLoss

Vector = NDArray[np.float64]
Cost = Callable[[float], NumericLoss]

_SMALLEST = 1e-100  # smaller rates count as this: larger is safe, and its inverse is a double
_DOWN = 1.0 - 2.0**-49  # more than a dozen roundings
_HUGE = 500.0  # losses beyond are far above -log(_SMALLEST)
_LEAST_DELTA = 1e-300
_FLOOR = 1e-6  # of δ, what is cut off a heavy tail in a search
_TOLERANCE = 1e-5  # of the logarithm of a shift
_FIRST = 0.02  # of the logarithm, at least, from one end of a bracket to the next
_MOST_GROWTHS = 40

NORMAL = NormalShift()


@dataclass(frozen=True, slots=True)
class Removing:
    """The curve of the sampled release against the one without the record."""

    base: LossCurve
    rate: float

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        """Return q H(ε_0), rounded up."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        odds = (1.0 - self.rate) / self.rate
        # log(1 + (e^ε - 1) / q) without a large or a small number that is lost.
        inner = epsilon + np.log1p(-odds * np.expm1(-epsilon))
        return self.rate * raised(self.base, inner * _DOWN, shift)

    def amplified(self, loss: ArrayLike) -> Vector:
        """Return the ε at which ε_0 is a loss of the release without sampling."""
        loss = np.asarray(loss, dtype=np.float64)
        small = np.log1p(self.rate * np.expm1(np.minimum(loss, _HUGE)))
        return np.asarray(np.where(loss < _HUGE, small, loss + math.log(self.rate)))

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return log(1 + q (e^s - 1)), with s the largest loss without sampling."""
        return self.amplified(self.base.max_loss(shift))


@dataclass(frozen=True, slots=True)
class Adding:
    """The curve of the release without the record against the sampled one."""

    base: LossCurve
    rate: float

    @np.errstate(over="ignore", divide="ignore")
    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        """Return a H(ε_1), rounded up."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        odds = (1.0 - self.rate) / self.rate
        fall = np.minimum(odds * np.expm1(epsilon) * _DOWN, 1.0)  # 1 - a / q
        inner = np.minimum(epsilon - np.log1p(-fall), 1e300)
        return np.asarray(self.rate * (1.0 - fall) * raised(self.base, inner * _DOWN, shift))

    def amplified(self, loss: ArrayLike) -> Vector:
        """Return the ε at which ε_1 is a loss of the release without sampling."""
        return np.asarray(-np.log1p(self.rate * np.expm1(-np.asarray(loss, dtype=np.float64))))

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return -log(1 - q + q e^{-s}), with s the largest loss without sampling."""
        return self.amplified(self.base.max_loss(shift))


@dataclass(frozen=True, slots=True)
class PoissonSampled:
    r"""The curves of a release from a Poisson sample; the shift is that of the release.

    .. math:: H_{-}(\varepsilon) = q\,H\!\left(\log\left(1 + \frac{e^{\varepsilon} - 1}{q}\right)
              \right), \qquad H_{+}(\varepsilon) = a\,H\!\left(\varepsilon + \log\frac{q}{a}\right),
              \quad a = 1 - e^{\varepsilon}(1 - q)

    with H the curve without sampling, q the rate, and a > 0. The first is for a record that is
    taken away, the second for one that is added. A composition follows each order of the neighbours
    by itself through all releases, and takes the larger δ in the end, as a single release does.

    **Guarantee.** For neighbours of the relation ``"add_remove"`` only, and if every record enters
    each batch independently with probability q at most. Batches of a fixed size, or shuffled ones,
    are not covered. The released number must not be divided by the size of the batch.

    Parameters
    ----------
    rate : float
        q, in (0, 1). Below 1e-100 it counts as that.
    base : LossCurve, default=NormalShift()
        Curve of one release if the record is in the batch, such as a noise family. It is symmetric.

    References
    ----------
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function",
    AISTATS 2022, Theorem 11 (sampling keeps domination) and Proposition 30. Balle, Barthe and
    Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018, Theorem 8 (the first curve).

    Examples
    --------
    >>> PoissonSampled(0.01).hockey_stick([0.0, 0.1], 1.0).round(6)
    array([3.829e-03, 7.300e-05])
    """

    rate: float
    base: LossCurve = NORMAL

    def __post_init__(self) -> None:
        rate = check_real("PoissonSampled", "rate", self.rate, high=1.0)
        object.__setattr__(self, "rate", max(rate, _SMALLEST))
        symmetric = hasattr(self.base, "hockey_stick") and not hasattr(self.base, "ways")
        if isinstance(self.base, type) or not symmetric:
            must = "be the curve of a release without sampling"
            raise TypeError(complaint("PoissonSampled", "base", must, repr(self.base)))

    @property
    def ways(self) -> tuple[LossCurve, LossCurve]:
        """The curves for a record that is taken away and for one that is added."""
        return Removing(self.base, self.rate), Adding(self.base, self.rate)

    def hockey_stick(self, epsilon: ArrayLike, shift: ArrayLike) -> Vector:
        """Return the smallest δ at each ε ≥ 0, for both orders of the neighbours."""
        one, other = (way.hockey_stick(epsilon, shift) for way in self.ways)
        return np.maximum(one, other)

    def max_loss(self, shift: ArrayLike) -> Vector:
        """Return the largest loss: that of a record taken away."""
        return self.ways[0].max_loss(shift)


def poisson_sampled(loss: PrivacyLoss, rate: float) -> PrivacyLoss:
    r"""Return the loss of a release that sees a Poisson sample of the records.

    Private stochastic gradient descent makes T such releases: ``.compose(T)``. What is returned
    adds to losses of all kinds, and a ledger with ``adjacency="add_remove"`` takes it. The curves
    are those of :class:`PoissonSampled`; a composition is tight, and rounded up.

    Parameters
    ----------
    loss : PrivacyLoss
        Cost of one release with the record in the batch, for neighbours with and without it: a
        GaussianLoss, a PureLoss, or a NumericLoss of one term, such as that of Laplace noise. Of
        several releases sample each, and add.
    rate : float
        Probability in [0, 1] with which each record enters the batch, independently of all others.

    Returns
    -------
    PrivacyLoss
        For neighbours of the relation ``"add_remove"``. The loss itself if the rate is 1.

    Notes
    -----
    Gradients of a step, clipped to C_g in group g of the parameters and released with normal noise
    of standard deviations s_g, have the loss :math:`\mu^2 = \sum_g C_g^2 / s_g^2`, whatever the
    groups are: whitening turns them into one number that moves by μ. Clipped in the l1 norm
    and released with Laplace noise of scales b_g, they are dominated by one Laplace number that
    moves by :math:`\sum_g C_g / b_g` times its scale. A loss that is ε-private without sampling is
    pure with

    .. math:: \varepsilon_T = T \log\left(1 + q\,(e^{\varepsilon} - 1)\right)

    References
    ----------
    Abadi et al., "Deep learning with differential privacy", CCS 2016, Algorithm 1. Zhu, Dong and
    Wang, AISTATS 2022, Theorems 10 and 11.

    Examples
    --------
    >>> from skdpnoise.privacy import GaussianLoss, PureLoss
    >>> training = poisson_sampled(GaussianLoss(1.0), rate=0.01).compose(1000)
    >>> round(training.epsilon(1e-5), 2), round((training + PureLoss(0.1)).epsilon(1e-5), 2)
    (1.83, 1.87)
    """
    rate = check_real("poisson_sampled", "rate", rate, high=1.0, low_closed=True, high_closed=True)
    terms = loss.numeric().terms
    if isinstance(loss, GaussianLoss) and loss.mu:  # whose form in numbers is rounded up
        terms = ((NORMAL, loss.mu, 1),)
    if sum(count for _, _, count in terms) > 1:
        must = "be the loss of one release"
        remedy = "Sample the loss of each release, and add or compose what is returned."
        raise ValueError(complaint("poisson_sampled", "loss", must, repr(loss), remedy))
    if rate == 0.0 or not terms:
        return PureLoss(0.0)
    if rate == 1.0:
        return loss
    ((curve, shift, _),) = terms
    return NumericLoss(((PoissonSampled(rate, curve), shift, 1),))


def largest_sampled_shift(
    guarantee: PrivacyGuarantee,
    *,
    rate: float,
    steps: int,
    base: LossCurve = NORMAL,
    beside: PrivacyLoss | None = None,
) -> float:
    r"""Return the largest shift that each of T releases from Poisson samples may have.

    .. math:: \max \{s : \delta_{T, q}(\varepsilon; s) \le \delta\}

    With normal noise the shift is μ of one step (without sampling), with Laplace noise the most
    that a record moves the released numbers in units of their scale. It is rounded down: the
    composed loss is computed for what is returned, rounded up, and within the guarantee.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        Of the relation ``"add_remove"``, with δ > 0 if the noise has an unbounded loss.
    rate : float
        Probability in (0, 1] with which a record enters a batch.
    steps : int
        T, the number of releases, at least 1.
    base : LossCurve, default=NormalShift()
        Curve of one release, such as ``get_noise("laplace")``.
    beside : PrivacyLoss or None, default=None
        Other losses within the guarantee, which must leave something of it.

    Returns
    -------
    float
        Within 1e-4 of the largest in relative terms, as far as numbers can tell.

    Examples
    --------
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> guarantee = PrivacyGuarantee(2.0, 1e-5, "add_remove")
    >>> round(largest_sampled_shift(guarantee, rate=0.01, steps=1000), 3)
    1.043
    """
    owner = "largest_sampled_shift"
    check_type(owner, "guarantee", guarantee, PrivacyGuarantee)
    rate = check_real(owner, "rate", rate, high=1.0, high_closed=True)
    steps = check_count(owner, "steps", steps)
    epsilon, delta = guarantee.epsilon, guarantee.delta
    sampled: LossCurve = base if rate == 1.0 else PoissonSampled(rate, base)
    check_relation(owner, sampled, guarantee.adjacency)
    before = NumericLoss(()) if beside is None else beside.numeric()
    check_relation(owner, before, guarantee.adjacency)
    if before.pure_epsilon >= epsilon and before.delta(epsilon) >= delta:
        must = f"leave something of the guarantee {guarantee}"
        raise ValueError(complaint(owner, "beside", must, str(beside)))

    def cost(shift: float) -> NumericLoss:
        return NumericLoss((*before.terms, (sampled, shift, steps)))

    if delta == 0.0:
        if not math.isfinite(float(base.max_loss(1.0))):
            must = "have a bounded loss where delta is 0"
            remedy = "Take Laplace noise, or delta > 0."
            raise ValueError(complaint(owner, "base", must, repr(base), remedy))
        return _largest_pure(cost, epsilon)
    # For small rates, about what the central limit theorem says of normal noise.
    total = gdp_mu(epsilon, delta) / rate
    guess = math.sqrt(math.log1p(min(total * total / steps, 1e300)))
    return _largest(cost, epsilon, delta, guess)


def _largest_pure(cost: Cost, epsilon: float) -> float:
    """Return the largest shift whose largest loss is at most ε."""
    high = 1.0
    while cost(high).pure_epsilon <= epsilon:
        high *= 2.0
    return bisect(lambda shift: cost(shift).pure_epsilon <= epsilon, 0.0, high)[0]


def _largest(cost: Cost, epsilon: float, delta: float, guess: float) -> float:
    """Return the largest shift whose computed δ is at most that of the guarantee."""

    floor = _FLOOR * delta / sum(count for _, _, count in cost(guess).terms)

    @cache
    def excess(log_shift: float) -> float:
        found = cost(math.exp(log_shift)).delta_beyond(epsilon, floor)
        return math.log(max(found, _LEAST_DELTA)) - math.log(delta)

    # δ falls with the shift about as the tail of a normal variable does with its deviation.
    ends = [math.log(guess)]
    rises = excess(ends[0]) < 0.0
    step = max(_FIRST, 0.65 * abs(excess(ends[0])) / max(1.0, -math.log(delta)))
    for _ in range(_MOST_GROWTHS):
        ends.append(ends[-1] + (step if rises else -step))
        if (excess(ends[-1]) < 0.0) != rises:
            break
        step *= 1.5
    low, high = sorted(ends[-2:])
    if (excess(low) < 0.0) == (excess(high) < 0.0):  # no shift of a size that can be computed
        return math.exp(low) if rises else 0.0
    shift = math.exp(float(brentq(excess, low, high, xtol=_TOLERANCE)))
    back = 0.1 * _TOLERANCE
    while cost(shift).delta(epsilon) > delta:
        shift *= 1.0 - back
        back = min(2.0 * back, 0.5)
    return shift


def needs_add_remove(value: object) -> bool:
    """Return whether a loss, or a curve, is one for records that come and go only."""
    if isinstance(value, PoissonSampled):
        return True
    if isinstance(value, NumericLoss):
        return any(map(needs_add_remove, {curve for curve, _, _ in value.terms}))
    if isinstance(value, tuple):
        return any(map(needs_add_remove, value))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return False
    fields = [field.name for field in dataclasses.fields(value)]
    return any(needs_add_remove(getattr(value, name, None)) for name in fields)


def check_relation(owner: str, loss: object, adjacency: str) -> None:
    """Refuse the loss of sampled releases where neighbours differ by a replaced record."""
    if adjacency != "add_remove" and needs_add_remove(loss):
        must = "be 'add_remove' for releases from Poisson samples, whose loss is proved for it only"
        remedy = "Ask for a guarantee with adjacency='add_remove'."
        raise ValueError(complaint(owner, "adjacency", must, repr(adjacency), remedy))
