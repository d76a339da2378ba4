"""The best of several public candidates, chosen privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from skdpnoise._utils.checks import check_option, check_type
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.account import Ledger
from skdpnoise.accounting.terms import Terms
from skdpnoise.mechanisms.selection import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    range_epsilon,
)
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee, PureLoss
from skdpnoise.privacy.loss import promised
from skdpnoise.sampling import random_words

_METHODS = ("auto", "permute_and_flip", "exponential", "report_noisy_max")


@shared_texts
def private_argmax(
    utilities: ArrayLike,
    guarantee: PrivacyGuarantee | LossBudget | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    method: str = "auto",
    random_state: Any = None,
    ledger: Ledger | None = None,
) -> tuple[int, ExponentialMechanism | PermuteAndFlip | ReportNoisyMax]:
    r"""Choose the best candidate privately.

    Under (ε, δ) the choice is by permute-and-flip with ε. Under a
    :class:`~skdpnoise.privacy.GaussianLoss` μ it is by the exponential mechanism, whose bounded
    range allows ε = 2 logit Φ(μ/2) (:meth:`ExponentialMechanism.gaussian_loss`).

    **Guarantee.** It holds for neighbours between which no utility moves by more than Δ. The
    neighbouring relation is that for which the sensitivity was computed.

    Parameters
    ----------
    utilities : array-like of shape (n_candidates,)
        u, larger is better. Candidates, and their number, are public; the utilities are not.
    %(queries: guarantee, epsilon, delta)s
    sensitivity : float, default=1.0
        Δ, public: the most that one record moves any utility; in their units.
    monotonic : bool, default=False
        Whether a record moves all utilities in the same direction, as counts under "add_remove".
    method : {"auto", "permute_and_flip", "exponential", "report_noisy_max"}, default="auto"
        "report_noisy_max" is that with Laplace noise.
    %(queries: random_state, ledger)s

    Returns
    -------
    index : int
        The chosen candidate.
    mechanism : ExponentialMechanism, PermuteAndFlip or ReportNoisyMax
        What chose it, with its ``privacy_loss``. An exponential mechanism that was chosen for a
        GaussianLoss is to be charged by its ``gaussian_loss``.

    Raises
    ------
    %(mechanisms: TypeError)s
    ValueError
        If the utilities are not finite or the method is unknown.

    References
    ----------
    McKenna and Sheldon, NeurIPS 2020, Theorem 2. Dong, Durfee and Rogers, ICML 2020.

    Examples
    --------
    >>> index, mechanism = private_argmax([500, 100, 200], PrivacyGuarantee(1.0), random_state=0)
    >>> index, mechanism
    (0, PermuteAndFlip(sensitivity=1.0, epsilon=1.0, monotonic=False))
    >>> _, mechanism = private_argmax([500, 100, 200], GaussianLoss(0.5), random_state=0)
    >>> print(mechanism.gaussian_loss())
    0.5-GDP
    """
    guarantee = promised("private_argmax", guarantee, epsilon, delta, None)
    check_option("private_argmax", "method", method, _METHODS)
    check_type("private_argmax", "guarantee", guarantee, PrivacyGuarantee, PureLoss, GaussianLoss)
    made = chooser_within(guarantee, sensitivity, monotonic=monotonic, method=method)
    rng = random_words(random_state)
    made.mechanism.check(utilities)
    relation: Any = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else None
    session = Terms(rng, relation, owner="private_argmax", guarantee=guarantee, ledger=ledger)
    session.reserve(made.loss, made.method)
    return session.choose("choice", made.mechanism, utilities), made.mechanism


@dataclass(frozen=True, slots=True, eq=False)
class Chooser:
    """A mechanism that chooses, and the loss that it is charged for."""

    mechanism: ExponentialMechanism | PermuteAndFlip | ReportNoisyMax
    method: str
    loss: LossBudget

    def privacy_loss(self) -> LossBudget:
        return self.loss


def chooser_within(
    guarantee: PrivacyGuarantee | LossBudget,
    sensitivity: float,
    *,
    monotonic: bool,
    method: str = "auto",
) -> Chooser:
    """Return what chooses by utilities that one record moves so far, within a loss."""
    ranged = isinstance(guarantee, GaussianLoss) and method in ("auto", "exponential")
    if isinstance(guarantee, PrivacyGuarantee):
        epsilon = guarantee.epsilon
    elif isinstance(guarantee, PureLoss):
        epsilon = guarantee.pure_epsilon
    else:
        # ε-DP is the case of a range from −ε to ε: 2 logit Φ(μ/2) of range, half of it for ε.
        epsilon = range_epsilon(guarantee.mu) * (1.0 if ranged else 0.5)
    if method == "auto":
        method = "exponential" if ranged else "permute_and_flip"
    mechanism: ExponentialMechanism | PermuteAndFlip | ReportNoisyMax
    if method == "report_noisy_max":
        mechanism = ReportNoisyMax(sensitivity, epsilon, monotonic, noise="laplace")
    elif method == "exponential":
        mechanism = ExponentialMechanism(sensitivity, epsilon, monotonic)
    else:
        mechanism = PermuteAndFlip(sensitivity, epsilon, monotonic)
    if ranged and isinstance(mechanism, ExponentialMechanism):
        return Chooser(mechanism, method, mechanism.gaussian_loss())
    return Chooser(mechanism, method, mechanism.privacy_loss())
