"""How one guarantee is shared between the stages of a fit, on public facts alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skdpnoise.ledger import Account
from skdpnoise.linear_model._defaults import COUNT_SHARE, REFERENCE_PASSES, scaling_share
from skdpnoise.mechanisms import calibrate, shared_budget
from skdpnoise.privacy import GaussianLoss, LossBudget, PrivacyGuarantee
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import SensitivityProfile, clipped_gradient

__all__ = ["Budget", "count_records", "split_budget"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The noise that is used throughout, and what each stage may cost.

    Parameters
    ----------
    noise : str
        "<rule>_<family>".
    total : PureLoss or GaussianLoss
        Of the whole fit.
    needs : tuple of float
        How much scaling the features need, and the target; 0 for classifiers.
    n_open : int
        Columns without public bounds, the target included.
    counting : float
        Share of the total for the number of records; 0 where that is public.
    scaling : float
        Share of the rest for locations and scales.
    """

    noise: str
    total: LossBudget
    needs: tuple[float, float]
    n_open: int
    counting: float
    scaling: float

    @property
    def features(self) -> LossBudget:
        """What the scaling of the features may cost."""
        return self._scaling_share(self.needs[0])

    @property
    def target(self) -> LossBudget:
        """What the scaling of the target may cost."""
        return self._scaling_share(self.needs[1])

    @property
    def model(self) -> LossBudget:
        """What the gradients or second moments may cost."""
        return self.total.share((1.0 - self.counting) * (1.0 - self.scaling))

    def stages(self, n_samples: float) -> list[LossBudget]:
        """Return what each stage may cost, fixed before the first one: for a ledger.

        Gaussian losses add in squares, so that stages would say no more than the total does. Where
        the number of records is bought, what is left is shared by that number.
        """
        if isinstance(self.total, GaussianLoss):
            return [self.total]
        if self.counting:
            return [self.total.share(self.counting), self.total.share(1.0 - self.counting)]
        known = self.for_records(n_samples)
        scaling = [known.features] if not known.needs[1] else [known.features, known.target]
        return [*scaling, known.model]

    def for_records(self, n_samples: float) -> Budget:
        """Return the budget once the number of records, public or paid for, is known."""
        if not self.n_open:
            return self
        histograms = SensitivityProfile(np.ones(2 * self.n_open))
        mechanism = calibrate(self.noise, histograms, self.total)
        level = float(mechanism.standard_deviation.mean()) / n_samples
        return replace(self, scaling=scaling_share(level))

    def _scaling_share(self, need: float) -> LossBudget:
        return self.total.share((1.0 - self.counting) * self.scaling * need / sum(self.needs))


def split_budget(
    noise: str,
    guarantee: PrivacyGuarantee,
    n_outputs: int,
    feature_bounds: np.ndarray,
    target_bounds: np.ndarray | None = None,
    *,
    rows_per_group: int | None = None,
) -> Budget:
    """Choose the noise, if that is "auto", and share the guarantee out, on public facts alone.

    If the guarantee is for groups of so many rows, the budget is what one row may cost.

    A target gets as much for its scaling as several features, since without its
    scale there is no model at all.
    """
    n_features = feature_bounds.shape[1]
    n_coordinates = n_outputs * (n_features + 1)
    gradients = clipped_gradient(np.ones(n_coordinates), guarantee.adjacency)
    noise, total = shared_budget(noise, gradients, guarantee, REFERENCE_PASSES, rows_per_group or 1)
    target_need, n_open = 0.0, _count_open(feature_bounds)
    if target_bounds is not None:
        target_need = _need(target_bounds) * float(np.sqrt(n_features))
        n_open += _count_open(target_bounds)
    return Budget(
        noise,
        total,
        (_need(feature_bounds), target_need),
        n_open,
        COUNT_SHARE if guarantee.adjacency == "add_remove" else 0.0,
        scaling_share() if n_open else scaling_share(None),
    )


def _count_open(bounds: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isfinite(bounds).all(axis=0)))


def _need(bounds: np.ndarray) -> float:
    """How much scaling the columns need: a column with public bounds a quarter of another."""
    return float(np.where(np.isfinite(bounds).all(axis=0), 0.25, 1.0).sum())


def count_records(
    n_samples: int, budget: Budget, account: Account, words: RandomWords
) -> tuple[float, Budget]:
    """Return the number of records, public under replace-one, bought under add/remove.

    With it comes the budget of the other stages, whose shares may depend on it.
    """
    if not budget.counting:
        return float(n_samples), budget.for_records(n_samples)
    mechanism = calibrate(
        budget.noise, SensitivityProfile(np.ones(1)), budget.total.share(budget.counting)
    )
    account.charge("number of records", mechanism)
    found = max(2.0, float(mechanism.release(np.array([n_samples]), words)[0]))
    account.n_records = found
    return found, budget.for_records(found)
