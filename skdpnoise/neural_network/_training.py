r"""Private stochastic gradient descent, planned and run.

.. math:: \hat g_t = \frac{a}{q n} \Bigl(\sum_{i \in B_t} k_i + Z_t\Bigr), \qquad
          w_{t+1} = w_t - \eta \, \hat g_t / C

with B_t a Poisson sample of rate q, k_i the clipped gradient of a person in grid steps a
(:class:`~skdpnoise.kernels.joint.parts.ClippedParts`), Z_t integer noise and C the joint bound of
all groups. The sum is divided by the public or estimated number of people, not of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from skdpnoise.accounting.session import Drawn
from skdpnoise.kernels.joint.parts import ClippedParts
from skdpnoise.mechanisms.sampled import SampledMechanism
from skdpnoise.neural_network._gradients import PersonGradients, rounds, sampled
from skdpnoise.neural_network._modules import ParameterGroups
from skdpnoise.sampling import RandomWords
from skdpnoise.sensitivity import GroupedProfile

_SLOTS_BY, _MOST_SLOTS = 8, 256
_DEVIATIONS = 1.5  # standard deviations by which a sample may be larger without another round
_MEMORY = 1 << 26  # bytes of the gradients of one round
# Clips that follow the median of norms: how fast, and how far from where they began.
_WITHIN, _FOLLOW, _FARTHEST = 0.5, 0.2, 1e6
# Of "auto" learning rates: in proportion to signal over noise; the fastest of numbers, whose loss
# bends as much wherever they are.
_PACE, _FASTEST = 2.0, 0.3
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


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """All that is fixed before the first batch."""

    estimator: Any  # whose parameters say how a network follows noisy gradients
    groups: ParameterGroups
    gradients: PersonGradients
    people: People
    mechanism: SampledMechanism
    draw: Callable[[], Drawn]  # samples its noise for the next step
    profile: GroupedProfile
    rng: RandomWords
    n_people: float  # public or estimated
    n_slots: int
    agree: bool  # whether all slots of a batch make the same bits of a row

    def epochs(self, module: Any) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
        """Train the module in place; yield the model and the clips after each epoch."""
        named = dict(module.named_parameters())
        trained = {name: named[name] for name in self.groups.names}
        first_names = {id(one): name for name, one in trained.items()}
        same = [  # a tensor may have several names
            (name, first_names[id(one)])
            for name, one in module.named_parameters(remove_duplicate=False)
            if id(one) in first_names
        ]
        n_steps, n_epochs = self.mechanism.n_releases, int(self.estimator.max_iter)
        optimizer = self._optimizer(list(trained.values()))
        first_of_mean = n_steps - max(1, round(_AVERAGED * n_steps))
        clips, done = self._bounds.copy(), 0
        mean: dict[str, Any] = {}
        for epoch in range(n_epochs):
            until = round((epoch + 1) * n_steps / n_epochs)
            for step in range(done, until):
                values = {name: one.detach() for name, one in trained.items()}
                noisy, followed = self._noisy_gradient(values, clips)
                self._move(trained, optimizer, noisy / math.hypot(*clips))
                clips = followed
                if step >= first_of_mean:
                    count = step - first_of_mean + 1
                    for name, one in trained.items():
                        now = one.detach()
                        mean[name] = now.clone() if count == 1 else mean[name].lerp(now, 1 / count)
            done = until
            whole = module.state_dict() | {name: mean[first] for name, first in same if mean}
            yield {name: one.detach().clone() for name, one in whole.items()}, clips

    def _optimizer(self, parameters: list[Any]) -> Any:
        """Return torch's optimizer; "auto" learning rates follow the signal over the noise."""
        asked, optim = self.estimator, self.people.torch.optim
        rate = asked.learning_rate_init
        given = None if isinstance(rate, str) else float(rate)
        if asked.solver == "adam":
            return optim.Adam(parameters, **({"lr": given} if given else {}))
        first = self.allocation(self._bounds)
        noise = first["noise"] * np.sqrt(first["n_parameters"])
        strength = math.hypot(*(first["signal_to_noise"] * noise)) / math.hypot(*noise)
        # The noise of all steps then moves parameters by about as far, however much there is, and
        # what gradients agree on by as much more as there are records for the noise.
        followed = _PACE * min(1.0, strength / math.sqrt(self.mechanism.n_releases))
        rate = given or (followed if is_classifier(asked) else min(followed, _FASTEST))
        return optim.SGD(parameters, lr=rate, momentum=float(asked.momentum))

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
        self, values: dict[str, Any], clips: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the noisy mean of the clipped gradients of one sample, and the next clips."""
        # In units of the clips sensitivity and noise are always those of the first ones.
        starts, order = self.groups.starts, int(self.profile.order)
        grid_size = self.mechanism.grid_size
        unit = clips / self._bounds
        parts = ClippedParts(starts, clips, grid_size[starts[:-1]] * unit, order)
        total, excess = np.zeros(starts[-1], dtype=np.int64), np.zeros(clips.size, dtype=np.int64)
        chosen = sampled(self.rng, len(self.people.members), self.mechanism.rate)
        agree = self.agree and self.gradients.as_tried  # a callback may have changed it
        for standing, taken in rounds(self.rng, chosen, self.n_slots, agree=agree):
            found = self.gradients(values, *self.people.of(standing, taken))
            sums, more = parts.sums_and_excess(found, taken)
            total, excess = total + sums, excess + more
        each, adaptive = 0, len(self.profile.bounds) > clips.size  # the last group is of counts
        if adaptive:  # a person is one step of so many for each group, within or beyond
            each = int(self.profile.bounds[-1] / clips.size ** (1.0 / order) / grid_size[-1])
            total = np.append(total, each * excess)
        noisy = self.draw().add(total)
        noisy = noisy * grid_size / (self.mechanism.rate * self.n_people)
        mean = noisy[: starts[-1]] * np.repeat(unit, self.groups.n_parameters)
        if not adaptive:
            return mean, clips
        within = 0.5 + 0.5 * noisy[starts[-1] :] / (each * grid_size[-1])
        followed = clips * np.exp(_FOLLOW * (_WITHIN - within))
        return mean, np.clip(followed, self._bounds / _FARTHEST, self._bounds * _FARTHEST)

    def _move(self, trained: dict[str, Any], optimizer: Any, gradient: Any) -> None:
        ends = np.cumsum(self.groups.sizes)
        parts = np.split(gradient, ends[:-1])
        for name, part in zip(self.groups.names, parts, strict=True):
            one = trained[name]
            slope = self.people.torch.from_numpy(part.reshape(one.shape)).to(one)
            if one.ndim > 1:  # biases are not penalised
                slope = slope + float(self.estimator.alpha) * one.detach()
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
