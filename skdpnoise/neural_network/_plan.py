"""How one guarantee is shared between the stages of a training, on public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from numbers import Integral
from operator import add
from typing import Any, Protocol

from skdpnoise.accounting import Account
from skdpnoise.accounting.budget import BESIDE, COUNT_SHARE, split
from skdpnoise.accounting.session import FitSession, Query
from skdpnoise.mechanisms import AdditiveMechanism, calibrate
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
from skdpnoise.sensitivity import GroupedProfile

_ROOM = 1.0 - 1e-6  # for what rounding adds to a promise
_STEPS = 200  # of samples whose size is "auto"


class TrainingParameters(Protocol):
    noise: str
    delta: float
    batch_size: int | float | str
    max_iter: int
    n_samples: int | None
    rows_per_group: int


@dataclass(frozen=True, slots=True)
class Sampling:
    rate: float  # of each sample
    n_steps: int


@dataclass(frozen=True, slots=True)
class TrainingShares:
    """Costs of the stages beside the training, and the samples as far as known."""

    noise: str
    guarantee: PrivacyGuarantee
    # Of what is estimated: "count" (of people), "rows", "features", "target", "labels" (by score).
    losses: Mapping[str, LossBudget]
    n_people: float | None  # None where it is estimated
    most_rows: int  # of a person
    sampling: Sampling | None  # None where it hangs on the estimated number of people

    def counted(self, session: FitSession, n_people: int) -> FitSession:
        """Return the session with the number of people, public or estimated privately."""
        found = self.n_people
        if found is None:
            loss = self.losses["count"]
            noise = "iid_laplace" if isinstance(loss, PureLoss) else "iid_gaussian"
            found = max(2.0, session.of_groups().count(n_people, loss, noise))
            session.account.n_records = found
        return replace(session, n_records=found)

    def terms_of_rows(self, session: FitSession, n_kept: int) -> dict[str, Any]:
        """Return noise and number of rows, that of people or estimated privately, for queries."""
        noise, n_rows = self._noise_of_rows, session.n_records
        if "rows" in self.losses:
            found = session.count(n_kept, self.of_rows("rows"), noise, "number of rows")
            n_rows = max(2.0, found)
        return {"noise": noise, "n_samples": n_rows}

    def counting(self, query: Query) -> AdditiveMechanism | None:
        """Return the noise of the counts of labels by score, if they are asked for."""
        if "labels" not in self.losses:
            return None
        sensitivity = query.sensitivity("add_remove")
        return calibrate(self._noise_of_rows, sensitivity, self.of_rows("labels"))

    @property
    def _noise_of_rows(self) -> str:
        return "iid_" + self.noise.partition("_")[2]

    def of_rows(self, stage: str) -> LossBudget:
        """Return what a stage may cost for one row, if a person's rows cost what it has."""
        loss = self.losses[stage]
        order = 1 if isinstance(loss, PureLoss) else 2
        return loss.share(float(self.most_rows) ** -order)

    def mechanism(self, sampling: Sampling, profile: GroupedProfile) -> SampledMechanism:
        """Return the noise of the steps, within what the stages before leave."""
        others, count, guarantee = self._scales, self.losses.get("count"), self.guarantee
        make = partial(calibrate_sampled, rate=sampling.rate, n_releases=sampling.n_steps)
        calibrated = partial(make, self.noise, profile)
        made = calibrated(guarantee, beside=_sum([*others, *([count] if count else [])]))
        if self.sampling is not None:
            return made
        # Steps that hang on an estimated number compose with it as follows: its release is
        # ε'-private, and the steps are, whatever it was, (ε - ε', δ)-private together with all
        # that does not hang on it. Their sum is also within the guarantee: a report states it.
        assert isinstance(count, PureLoss)
        epsilon, delta = (_ROOM * value for value in (guarantee.epsilon, guarantee.delta))
        left = epsilon - count.pure_epsilon
        if reduce(add, [*others, made.privacy_loss()]).delta(left) <= delta:
            return made
        after = replace(guarantee, epsilon=left * _ROOM, delta=delta * _ROOM)
        return calibrated(after, beside=_sum(others))

    @property
    def _scales(self) -> list[PrivacyLoss]:
        """The losses of what is estimated after the number of people, but for the training."""
        return [loss for stage, loss in self.losses.items() if stage != "count"]

    def stages(self, profile: GroupedProfile) -> list[PrivacyLoss]:
        """Return what each stage of the whole fit costs, fixed before any of it."""
        if self.sampling is None:
            self.mechanism(Sampling(1.0, 1), profile)  # raises what any number of steps would raise
            epsilon, delta = _ROOM * self.guarantee.epsilon, _ROOM * self.guarantee.delta
            return [NumericLoss(((Promised(delta), epsilon, 1),))]
        return [*self.losses.values(), self.mechanism(self.sampling, profile).privacy_loss()]

    def fix(self, account: Account, training: SampledMechanism) -> None:
        """Fix the losses that hang on the number of people, now that it is released."""
        if self.sampling is None:
            losses = [*self._scales, training.privacy_loss()]
            account.fix(losses, of_groups=range(len(losses)))


def _sum(losses: Sequence[PrivacyLoss]) -> PrivacyLoss | None:
    return reduce(add, losses) if losses else None


def chosen_noise(estimator: TrainingParameters) -> str:
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
    estimator: TrainingParameters,
    guarantee: PrivacyGuarantee,
    *,
    features: bool,
    target: bool,
    labels: bool = False,
) -> TrainingShares:
    """Share the guarantee out between number of people, scales, training, and labels by score."""
    noise, epsilon = chosen_noise(estimator), guarantee.epsilon
    total: LossBudget = PureLoss(epsilon)
    if noise.endswith("_gaussian"):
        total = GaussianLoss(gdp_mu(epsilon, guarantee.delta))
    public = None if estimator.n_samples is None else float(estimator.n_samples)
    sampling, rows = planned_sampling(estimator, public), int(estimator.rows_per_group)
    wanted = {
        "count": COUNT_SHARE if public is None else 0.0,
        "rows": COUNT_SHARE if rows > 1 and (features or target) else 0.0,
        "features": BESIDE if features else 0.0,
        "target": BESIDE if target else 0.0,
        "labels": BESIDE if labels else 0.0,
    }
    losses = split(total, **wanted)
    if public is None and sampling is None:
        losses["count"] = PureLoss(COUNT_SHARE * epsilon)
    return TrainingShares(noise, guarantee, losses, public, rows, sampling)
