r"""Private stochastic gradient descent, planned and run.

.. math:: \hat g_t = \frac{a}{q n} \Bigl(\sum_{i \in B_t} k_i + Z_t\Bigr), \qquad
          w_{t+1} = w_t - \eta \, \hat g_t / C

with B_t a Poisson sample of rate q, k_i the clipped gradient of a person in grid steps a
(:class:`~skdpnoise.kernels.joint.parts.ClippedParts`), Z_t integer noise and C the joint bound of
all groups. The sum is divided by the number of people that is public or was estimated, never by the
size of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting.session import Drawn
from skdpnoise.kernels.joint.parts import ClippedParts
from skdpnoise.mechanisms.sampled import SampledMechanism
from skdpnoise.neural_network._gradients import PersonGradients, rounds, sampled
from skdpnoise.neural_network._modules import ParameterGroups
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import GroupedProfile

__all__ = ["People", "Steps", "Training", "n_slots_for"]

_SLOTS_BY, _MOST_SLOTS = 8, 256
_DEVIATIONS = 1.5  # standard deviations by which a sample may be larger without another round
_MEMORY = 1 << 26  # bytes of the gradients of one round
# Clips that follow the median of norms: how fast, and how far from where they began.
_WITHIN, _FOLLOW, _FARTHEST = 0.5, 0.2, 1e6
# Of "auto" learning rates: more by a power of signal over noise, within ends; "adam" has the least.
_PACE, _PACE_POWER, _SLOWEST, _FASTEST = 1.8, 0.85, 2e-3, 0.3
_AVERAGED = 0.2  # of the steps: the last ones, whose mean is the model


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The private rows, person by person, as tensors."""

    torch: Any
    rows: Any  # Tensor (n_rows, ...)
    targets: Any  # Tensor (n_rows,)
    members: NDArray[np.intp]  # (n_people, n_most): rows of each person, -1 for none

    def of(self, standing: NDArray[np.intp], taken: NDArray[np.bool_]) -> tuple[Any, Any, Any]:
        """Return rows, targets and weights of who stands in each slot; zeros where nobody does."""
        numbers = np.where(taken[:, np.newaxis], self.members[standing], -1)
        there = numbers >= 0
        weights = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
        device = self.rows.device
        place = self.torch.from_numpy(np.where(there, numbers, 0)).to(device)
        weight = self.torch.from_numpy(weights.astype(np.float32)).to(device)
        rows, targets = self.rows[place], self.targets[place]
        absent = weight == 0
        rows[absent], targets[absent] = 0, 0
        return rows, targets, weight


@dataclass(frozen=True, slots=True)
class Steps:
    """How parameters follow noisy gradients: scikit-learn's names."""

    solver: str
    learning_rate: float | None  # None follows the noise
    momentum: float
    alpha: float
    n_epochs: int

    @classmethod
    def of(cls, estimator: Any) -> Steps:
        """Return the settings of an estimator."""
        rate = estimator.learning_rate_init
        return cls(
            estimator.solver,
            None if isinstance(rate, str) else float(rate),
            float(estimator.momentum),
            float(estimator.alpha),
            int(estimator.max_iter),
        )

    def optimizer(self, torch: Any, parameters: list[Any], strength: float, n_steps: int) -> Any:
        """Return torch's optimizer, for a signal over noise of each step."""
        rate = self.learning_rate
        if self.solver == "adam":
            return torch.optim.Adam(parameters, lr=rate or _SLOWEST)
        # The noise of all steps moves parameters by about the root of their number over this.
        followed = _PACE * strength**_PACE_POWER / math.sqrt(n_steps)
        rate = rate or min(max(followed, _SLOWEST), _FASTEST)
        return torch.optim.SGD(parameters, lr=rate, momentum=self.momentum)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """All that is fixed before the first batch."""

    groups: ParameterGroups
    mechanism: SampledMechanism
    draw: Callable[[], Drawn]  # samples its noise for the next step
    profile: GroupedProfile
    steps: Steps
    n_people: float  # public or estimated
    n_slots: int
    agree: bool  # whether all slots of a batch make the same bits of a row
    adaptive: bool = False  # whether the clips follow the norms; the last group is of counts

    def epochs(
        self, torch: Any, module: Any, gradients: PersonGradients, people: People, rng: RandomWords
    ) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
        """Train the module in place; yield the model and the clips after each epoch."""
        named = dict(module.named_parameters())
        trained = {name: named[name] for name in self.groups.names}
        first_names = {id(one): name for name, one in trained.items()}
        same = [  # a tensor may have several names
            (name, first_names[id(one)])
            for name, one in module.named_parameters(remove_duplicate=False)
            if id(one) in first_names
        ]
        n_steps = self.mechanism.n_releases
        first = self.allocation(self._bounds)
        noise = first["noise"] * np.sqrt(first["n_parameters"])
        strength = math.hypot(*(first["signal_to_noise"] * noise)) / math.hypot(*noise)
        optimizer = self.steps.optimizer(torch, list(trained.values()), strength, n_steps)
        first_of_mean = n_steps - max(1, round(_AVERAGED * n_steps))
        clips, done = self._bounds.copy(), 0
        mean: dict[str, Any] = {}
        for epoch in range(self.steps.n_epochs):
            until = round((epoch + 1) * n_steps / self.steps.n_epochs)
            for step in range(done, until):
                values = {name: one.detach() for name, one in trained.items()}
                noisy, followed = self._noisy_gradient(values, gradients, people, rng, clips)
                self._move(torch, trained, optimizer, noisy / math.hypot(*clips))
                clips = followed
                if step >= first_of_mean:
                    count = step - first_of_mean + 1
                    for name, one in trained.items():
                        now = one.detach()
                        mean[name] = now.clone() if count == 1 else mean[name].lerp(now, 1 / count)
            done = until
            whole = module.state_dict() | {name: mean[first] for name, first in same if mean}
            yield {name: one.detach().clone() for name, one in whole.items()}, clips

    @property
    def _bounds(self) -> NDArray[np.float64]:
        """The first clips: those of the groups of parameters."""
        bounds: NDArray[np.float64] = self.profile.bounds[: len(self.groups.labels)]
        return bounds

    def allocation(self, clips: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return what each group has: parameters, clip, noise, and the first over the second."""
        profile, starts = self.profile, self.groups.starts[:-1]
        deviation = self.mechanism.step.standard_deviation[starts] * clips / self._bounds
        size = self.groups.n_parameters
        most = clips * self.mechanism.rate * self.n_people
        if profile.order == 1.0:  # in Euclidean norm, of entries that are alike
            most = most / np.sqrt(size)
        return {
            "group": np.array(self.groups.labels),
            "n_parameters": size,
            "clip": clips.copy(),
            "noise": deviation.copy(),
            "signal_to_noise": most / (deviation * np.sqrt(size)),
        }

    def _noisy_gradient(
        self,
        values: dict[str, Any],
        gradients: PersonGradients,
        people: People,
        rng: RandomWords,
        clips: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the noisy mean of the clipped gradients of one sample, and the next clips."""
        # In units of the clips sensitivity and noise are always those of the first ones.
        starts, order = self.groups.starts, int(self.profile.order)
        grid_size = self.mechanism.grid_size
        unit = clips / self._bounds
        parts = ClippedParts(starts, clips, grid_size[starts[:-1]] * unit, order)
        total, excess = np.zeros(starts[-1], dtype=np.int64), np.zeros(clips.size, dtype=np.int64)
        chosen = sampled(rng, len(people.members), self.mechanism.rate)
        agree = self.agree and gradients.as_tried  # a callback may have changed it
        for standing, taken in rounds(rng, chosen, self.n_slots, agree=agree):
            sums, more = parts.sums_and_excess(
                gradients(values, *people.of(standing, taken)), taken
            )
            total, excess = total + sums, excess + more
        each = 0
        if self.adaptive:  # a person is one step of so many for each group, within or beyond
            each = int(self.profile.bounds[-1] / clips.size ** (1.0 / order) / grid_size[-1])
            total = np.append(total, each * excess)
        noisy = self.draw().add(total)
        noisy = noisy * grid_size / (self.mechanism.rate * self.n_people)
        mean = noisy[: starts[-1]] * np.repeat(unit, self.groups.n_parameters)
        if not self.adaptive:
            return mean, clips
        within = 0.5 + 0.5 * noisy[starts[-1] :] / (each * grid_size[-1])
        followed = clips * np.exp(_FOLLOW * (_WITHIN - within))
        return mean, np.clip(followed, self._bounds / _FARTHEST, self._bounds * _FARTHEST)

    def _move(self, torch: Any, trained: dict[str, Any], optimizer: Any, gradient: Any) -> None:
        """Make one step along a noisy gradient in units of the clip."""
        ends = np.cumsum(self.groups.sizes)
        parts = np.split(gradient, ends[:-1])
        for name, part in zip(self.groups.names, parts, strict=True):
            one = trained[name]
            slope = torch.from_numpy(part.reshape(one.shape)).to(one)
            if one.ndim > 1:  # biases are not penalised
                slope = slope + self.steps.alpha * one.detach()
            one.grad = slope
        optimizer.step()


def n_slots_for(n_parameters: int, sample_size: float) -> int:
    """Return how many people a round holds, so that few slots stay empty, by public numbers."""
    most = int(min(_MOST_SLOTS, max(1.0, _MEMORY / (4.0 * n_parameters))))
    whole = min(_SLOTS_BY, most)
    most -= most % whole
    wanted = sample_size + _DEVIATIONS * math.sqrt(sample_size)
    n_rounds = math.ceil(wanted / most)
    return min(most, whole * math.ceil(wanted / n_rounds / whole))
