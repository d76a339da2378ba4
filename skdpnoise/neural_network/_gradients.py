r"""Gradients of single people, many at once, each a function of that person alone, bit for bit.

Floating-point arithmetic on a batch may round a record otherwise than alone. So batches are of one
size, and empty slots hold zeros. :func:`torch.func.vmap` of a function of one person defines what a
slot gets. Two facts about torch are assumed, for one shape of batch, one network, one machine and
one number of threads:

1. *Slots do not mix:* the bits of a slot are a function of what is in it and of the parameters, and
   not of what is in others.
2. *Slots that agree are alike:* if all slots give the same bits of the same random rows, a slot
   goes through the same sequence of operations for all values, so that it does not matter where a
   person stands.

With these, the gradient of a person is a function of that person alone, to the last bit. Where a
loop has a remainder, slots do not agree; that is tried before a training, on public random rows and
parameters (:func:`slots_agree`). If they agree, slots are filled in order. Else every person in a
sample draws a slot at random, by itself, and those with the same slot stand in a queue: with and
without one person all others keep their slots, and by the first fact alone their bits.

Neither can be checked in a fit: a check on private rows would itself depend on them, and one on
public rows shows nothing of other values. So both are named as assumptions, in ``SECURITY.md`` and
in the guide to networks. Tests try them on values that are random, zero, huge and not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.neural_network._modules import ParameterGroups
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import words_go_by_rows

_WORD = 2.0**64
_SCALES = (1.0, 1.0, 1.0, 10.0, 100.0, 1000.0)  # of random rows, a batch of each


def sampled(rng: RandomWords, n_people: int, rate: float) -> NDArray[np.intp]:
    """Return who is in a Poisson sample: each by a coin of its own, of this rate or less."""
    if rate >= 1.0:
        return np.arange(n_people)
    words_go_by_rows()
    return np.flatnonzero(rng.take(n_people) < np.uint64(int(rate * _WORD)))


def rounds(
    rng: RandomWords, people: NDArray[np.intp], n_slots: int, *, agree: bool
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Yield who stands in each slot, round by round, and which slots are taken."""
    # `n_slots` is a power of two, so that slots that are drawn are uniform.
    if agree:
        places, slots = np.divmod(np.arange(people.size), n_slots)
    else:
        slots = (rng.take(people.size) % np.uint64(n_slots)).astype(np.intp)
        order = np.argsort(slots, kind="stable")
        slots, people = slots[order], people[order]
        places = np.arange(people.size) - np.searchsorted(slots, slots)
    for place in range(int(places.max(initial=-1)) + 1):
        here = places == place
        standing, taken = np.zeros(n_slots, dtype=np.intp), np.zeros(n_slots, dtype=np.bool_)
        standing[slots[here]], taken[slots[here]] = people[here], True
        yield standing, taken


def slots_agree(
    torch: Any, gradients: PersonGradients, trained: dict[str, Any], batch: Any
) -> bool:
    """Return whether all slots make the same bits of the same random row."""
    # Operations on one slot are a fixed sequence, whatever the values are. Two sequences that add
    # in different orders agree on some random numbers, and not on all coordinates of many. The
    # parameters are random, too, as zeros would hide what comes before them.
    rows, targets, weights = (one[:1].expand_as(one).clone() for one in batch)
    for scale in _SCALES:
        tried = {name: one + _like(torch, one) for name, one in trained.items()}
        rows[:] = scale * torch.randn_like(rows[0])
        try:
            found = gradients(tried, rows, targets, weights)
        except Exception:  # a network that does not take such rows, such as numbers of words
            return False
        for one in found:
            if not np.array_equal(one, np.broadcast_to(one[0], one.shape), equal_nan=True):
                return False
    return True


def _like(torch: Any, parameter: Any) -> Any:
    """Return random numbers of the size that a layer begins with."""
    return torch.randn_like(parameter) / max(1.0, parameter[:1].numel()) ** 0.5


class PersonGradients:
    """Gradients of the mean loss of each person's rows, by :func:`torch.func.vmap`."""

    def __init__(
        self, torch: Any, module: Any, groups: ParameterGroups, loss: Callable[..., Any]
    ) -> None:
        self._torch, self._names = torch, groups.names
        self._n_threads = torch.get_num_threads()
        state = dict(module.named_parameters()) | dict(module.named_buffers())
        state = {name: one.detach() for name, one in state.items()}
        self.trained = {name: state.pop(name) for name in groups.names}

        def of_one(trained: dict[str, Any], rows: Any, targets: Any, weights: Any) -> Any:
            outputs = torch.func.functional_call(module, {**state, **trained}, (rows,))
            return (loss(outputs, targets) * weights).sum()

        self._each = torch.func.vmap(
            torch.func.grad(of_one), in_dims=(None, 0, 0, 0), randomness="different"
        )

    @property
    def as_tried(self) -> bool:
        """Return whether loops still have as many threads as when slots were tried."""
        return bool(self._torch.get_num_threads() == self._n_threads)

    def __call__(
        self, trained: dict[str, Any], rows: Any, targets: Any, weights: Any
    ) -> list[NDArray[np.float32]]:
        """Return the gradients of each tensor, group by group: a row for every slot."""
        # rows (n_slots, n_rows, ...), targets and weights (n_slots, n_rows): the weights of a
        # person's rows in the mean, 0 where there is none.
        parts = self._each(trained, rows, targets, weights)
        kind = {"device": "cpu", "dtype": self._torch.float32}
        flat = [parts[name].reshape(len(rows), -1).to(**kind) for name in self._names]
        return [one.contiguous().numpy() for one in flat]
