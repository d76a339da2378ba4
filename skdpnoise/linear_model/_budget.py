"""How one guarantee is shared between the stages of a fit, on public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdpnoise.ledger import Account
from skdpnoise.linear_model._defaults import COUNT_SHARE, REFERENCE_PASSES, scaling_share
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile, clipped_gradient

__all__ = ["Budget", "private_count", "split_budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The noise that is used throughout, and what each stage may cost."""

    noise: str
    count: PrivacyLoss | None
    scaling: PrivacyLoss
    descent: PrivacyLoss


def split_budget(
    noise: str,
    guarantee: PrivacyGuarantee,
    n_coordinates: int,
    bounds: np.ndarray,
) -> Budget:
    """Choose the noise, if that is "auto", and share the guarantee out, on public facts alone.

    "auto" takes the family with the smallest expected error for the gradients of a few passes over
    all coordinates.
    """
    gradients = clipped_gradient(np.ones(n_coordinates), guarantee.adjacency)
    whole = calibrate(noise, gradients, guarantee, n_releases=REFERENCE_PASSES)
    total = whole.privacy_loss()
    count = COUNT_SHARE if guarantee.adjacency == "add_remove" else 0.0
    scaling = (1.0 - count) * scaling_share(bool(np.isfinite(bounds).all()))
    return Budget(
        whole.noise,
        total.share(count) if count else None,
        total.share(scaling),
        total.share(1.0 - count - scaling),
    )


def private_count(n_samples: int, budget: Budget, account: Account, words: RandomWords) -> float:
    """Return the number of records: public under replace-one, bought under add/remove."""
    if budget.count is None:
        return float(n_samples)
    mechanism = calibrate(budget.noise, SensitivityProfile(np.ones(1)), budget.count)
    account.charge("number of records", mechanism)
    return max(2.0, float(mechanism.release(np.array([n_samples]), words)[0]))
