"""How one guarantee is shared between the stages of a fit, on public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdpnoise.ledger import Account
from skdpnoise.linear_model._defaults import COUNT_SHARE, REFERENCE_PASSES, scaling_share
from skdpnoise.mechanisms import calibrate, shared_budget
from skdpnoise.privacy import LossBudget, PrivacyGuarantee
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile, clipped_gradient

__all__ = ["Budget", "private_count", "split_budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The noise that is used throughout, and what each stage may cost.

    `count` is None where the number of records is public; `target` is not used for classifiers.
    """

    noise: str
    count: LossBudget | None
    features: LossBudget
    target: LossBudget
    descent: LossBudget


def split_budget(
    noise: str,
    guarantee: PrivacyGuarantee,
    n_outputs: int,
    feature_bounds: np.ndarray,
    target_bounds: np.ndarray | None = None,
) -> Budget:
    """Choose the noise, if that is "auto", and share the guarantee out, on public facts alone.

    A target gets as much for its scaling as several features, since without its
    scale there is no model at all.
    """
    n_features = feature_bounds.shape[1]
    n_coordinates = n_outputs * (n_features + 1)
    gradients = clipped_gradient(np.ones(n_coordinates), guarantee.adjacency)
    noise, total = shared_budget(noise, gradients, guarantee, REFERENCE_PASSES)
    count = COUNT_SHARE if guarantee.adjacency == "add_remove" else 0.0
    needs = [_need(feature_bounds)]
    all_bounds = feature_bounds
    if target_bounds is not None:
        needs.append(_need(target_bounds) * np.sqrt(n_features))
        all_bounds = np.hstack([feature_bounds, target_bounds])
    scaling = (1.0 - count) * scaling_share(bool(np.isfinite(all_bounds).all()))
    shares = [total.share(scaling * need / sum(needs)) for need in needs]
    return Budget(
        noise,
        total.share(count) if count else None,
        shares[0],
        shares[-1],
        total.share(1.0 - count - scaling),
    )


def _need(bounds: np.ndarray) -> float:
    """How much scaling the columns need: a column with public bounds a quarter of another."""
    return float(np.where(np.isfinite(bounds).all(axis=0), 0.25, 1.0).sum())


def private_count(n_samples: int, budget: Budget, account: Account, words: RandomWords) -> float:
    """Return the number of records: public under replace-one, bought under add/remove."""
    if budget.count is None:
        return float(n_samples)
    mechanism = calibrate(budget.noise, SensitivityProfile(np.ones(1)), budget.count)
    account.charge("number of records", mechanism)
    return max(2.0, float(mechanism.release(np.array([n_samples]), words)[0]))
