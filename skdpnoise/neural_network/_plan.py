"""How one guarantee is shared between the stages of a training, on public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral
from operator import add
from typing import Protocol

from skdpnoise.accounting import Account
from skdpnoise.accounting.budget import BESIDE
from skdpnoise.mechanisms.sampled import SampledMechanism, calibrate_sampled
from skdpnoise.privacy import (
    GaussianLoss,
    LossBudget,
    NumericLoss,
    PrivacyGuarantee,
    PrivacyLoss,
    Promised,
    PureLoss,
    gdp_mu,
)
from skdpnoise.queries.ranges import COUNT_SHARE
from skdpnoise.sensitivity import GroupedProfile

__all__ = ["Sampling", "TrainingShares", "chosen_noise", "planned_sampling", "share_out"]

_ROOM = 1.0 - 1e-6  # for what rounding adds to a promise
_STEPS = 200  # of samples whose size is "auto"


class TrainingParameters(Protocol):
    """The parameters of a network that decide how it is trained."""

    noise: str
    delta: float
    batch_size: int | float | str
    max_iter: int
    n_samples: int | None
    rows_per_group: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """How people are sampled."""

    rate: float  # of each sample
    n_steps: int


@dataclass(frozen=True, slots=True)
class TrainingShares:
    """Costs of the stages before the training, and the samples as far as known."""

    noise: str
    guarantee: PrivacyGuarantee
    count: LossBudget | None  # for the number of people; None where it is public
    rows: LossBudget | None  # for the number of their rows; None where it is not needed
    features: LossBudget | None  # None where nothing is bought
    target: LossBudget | None
    sampling: Sampling | None  # None where it hangs on the number of people that is bought

    def mechanism(self, sampling: Sampling, profile: GroupedProfile) -> SampledMechanism:
        """Return the noise of the steps, within what the stages before leave."""
        others, count, guarantee = self._scales, self.count, self.guarantee
        made = self._calibrated(guarantee, [*others, count], sampling, profile)
        if self.sampling is not None:
            return made
        # Steps that hang on a bought number compose with it as follows: the release of the number
        # is ε'-private, and the steps are, whatever it was, (ε - ε', δ)-private together with all
        # that does not hang on it. Their sum is also within the guarantee: a report states it.
        assert isinstance(count, PureLoss)
        epsilon, delta = (_ROOM * value for value in (guarantee.epsilon, guarantee.delta))
        left = epsilon - count.pure_epsilon
        if reduce(add, [*others, made.privacy_loss()]).delta(left) <= delta:
            return made
        after = replace(guarantee, epsilon=left * _ROOM, delta=delta * _ROOM)
        return self._calibrated(after, others, sampling, profile)

    def _calibrated(
        self,
        guarantee: PrivacyGuarantee,
        before: Sequence[PrivacyLoss | None],
        sampling: Sampling,
        profile: GroupedProfile,
    ) -> SampledMechanism:
        """Return the least noise of the steps beside other losses."""
        spent = [loss for loss in before if loss is not None]
        return calibrate_sampled(
            self.noise,
            profile,
            guarantee,
            rate=sampling.rate,
            n_releases=sampling.n_steps,
            beside=reduce(add, spent) if spent else None,
        )

    @property
    def _scales(self) -> list[LossBudget]:
        """The losses of what is bought between the number of people and the training."""
        return [loss for loss in (self.rows, self.features, self.target) if loss is not None]

    def spend(self, account: Account, profile: GroupedProfile) -> None:
        """Charge the ledger for the whole fit, before anything private is looked at."""
        if self.sampling is None:
            self.mechanism(Sampling(1.0, 1), profile)  # raises what any number of steps would raise
            epsilon, delta = _ROOM * self.guarantee.epsilon, _ROOM * self.guarantee.delta
            losses: list[PrivacyLoss] = [NumericLoss(((Promised(delta), epsilon, 1),))]
        else:
            training = self.mechanism(self.sampling, profile).privacy_loss()
            count = [] if self.count is None else [self.count]
            losses = [*count, *self._scales, training]
        account.spend(losses, self.noise, of_groups=range(len(losses)))

    def fix(self, account: Account, training: SampledMechanism) -> None:
        """Fix the losses that hang on the number of people, now that it is released."""
        if self.sampling is None:
            losses = [*self._scales, training.privacy_loss()]
            account.fix(losses, of_groups=range(len(losses)))


def chosen_noise(estimator: TrainingParameters) -> str:
    """Return the noise, or refuse what it cannot give."""
    noise, delta = estimator.noise, float(estimator.delta)
    if noise == "auto":
        return "inid_gaussian" if delta > 0.0 else "inid_laplace"
    if noise.endswith("_gaussian") and delta == 0.0:
        raise ValueError(
            f"The 'delta' parameter of {type(estimator).__name__} must be positive for normal "
            f"noise. Got 0 with noise={noise!r}: use Laplace noise, or delta > 0."
        )
    return str(noise)


def planned_sampling(estimator: TrainingParameters, n_people: float | None) -> Sampling | None:
    """Return rate and number of samples; None where they hang on a number that is not known."""
    size, epochs = estimator.batch_size, int(estimator.max_iter)
    if isinstance(size, str):
        rate = min(1.0, epochs / _STEPS)
    elif isinstance(size, Integral):
        if n_people is None:
            return None
        rate = min(1.0, float(size) / n_people)
    else:
        rate = float(size)
    return Sampling(rate, max(epochs, round(epochs / rate)))


def share_out(
    estimator: TrainingParameters, guarantee: PrivacyGuarantee, *, features: bool, target: bool
) -> TrainingShares:
    """Share the guarantee out between number of people, scales that are bought, and training."""
    noise, epsilon = chosen_noise(estimator), guarantee.epsilon
    total: LossBudget = PureLoss(epsilon)
    if noise.endswith("_gaussian"):
        total = GaussianLoss(gdp_mu(epsilon, guarantee.delta))
    public = None if estimator.n_samples is None else float(estimator.n_samples)
    sampling = planned_sampling(estimator, public)
    count: LossBudget | None = None
    if public is None:
        count = total.share(COUNT_SHARE) if sampling else PureLoss(COUNT_SHARE * epsilon)
    several = int(estimator.rows_per_group) > 1 and (features or target)
    return TrainingShares(
        noise,
        guarantee,
        count,
        total.share(COUNT_SHARE) if several else None,
        total.share(BESIDE) if features else None,
        total.share(BESIDE) if target else None,
        sampling,
    )
