"""Gradients of single people: those of a loop, and a function of the person alone."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.neural_network._gradients import PersonGradients, rounds, sampled, slots_agree
from skdpnoise.neural_network._modules import grouped
from skdpnoise.sampling import random_words
from tests.neural_network._words import Fixed

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

nn = torch.nn


def row_losses(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


NETWORKS = {
    "linear": lambda: nn.Sequential(nn.Linear(16, 3)),
    "perceptron": lambda: nn.Sequential(nn.Linear(16, 9), nn.Tanh(), nn.Linear(9, 3)),
    "convolutions": lambda: nn.Sequential(
        nn.Unflatten(-1, (1, 4, 4)),
        nn.Conv2d(1, 5, 3, padding=1),
        nn.GroupNorm(1, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(20, 3),
    ),
    "frozen": lambda: nn.Sequential(
        nn.Linear(16, 9).requires_grad_(False), nn.BatchNorm1d(9).requires_grad_(False).eval(),
        nn.ReLU(), nn.Linear(9, 3),
    ),
}  # fmt: skip


def batch(n_slots, n_rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn((n_slots, n_rows, 16), generator=generator)
    targets = torch.randint(0, 3, (n_slots, n_rows), generator=generator)
    return rows, targets, torch.ones(n_slots, n_rows) / n_rows


def made(name, seed=0):
    torch.manual_seed(seed)
    module = NETWORKS[name]()
    groups = grouped("Test", module, "layer")
    trained = {n: p.detach() for n, p in module.named_parameters() if n in groups.names}
    return module, groups, trained, PersonGradients(torch, module, groups, row_losses)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("n_rows", [1, 3])
def test_gradients_are_those_of_a_loop_over_single_people(name, n_rows):
    module, groups, trained, gradients = made(name)
    rows, targets, weights = batch(8, n_rows)
    found = np.concatenate(gradients(trained, rows, targets, weights), axis=1)
    assert found.dtype == np.float32
    assert found.shape == (8, groups.sizes.sum())
    named = dict(module.named_parameters())
    for i in range(8):
        module.zero_grad()
        (row_losses(module(rows[i]), targets[i]) * weights[i]).sum().backward()
        alone = np.concatenate([named[name].grad.numpy().ravel() for name in groups.names])
        assert np.abs(found[i] - alone).max() <= 1e-6


@pytest.mark.parametrize("name", NETWORKS)
def test_other_people_in_a_batch_change_no_bit_of_a_gradient(name):
    _, _, trained, gradients = made(name)
    rows, targets, weights = batch(16, 1)
    found = gradients(trained, rows, targets, weights)
    for other in (rows.clone(), torch.zeros_like(rows), 1e30 * rows, rows * float("nan")):
        other[5] = rows[5]
        again = gradients(trained, other, targets, weights)
        for one, before in zip(again, found, strict=True):
            assert np.array_equal(one[5], before[5])


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("scale", [0.0, 1e-42, 1e-3, 1.0, 1e4, 1e18, 1e38, np.inf, np.nan])
def test_where_slots_agree_a_person_has_the_same_bits_in_each_whatever_the_values(name, scale):
    # What is assumed of torch, with values that the trial does not try.
    _, _, trained, gradients = made(name)
    rows, targets, weights = batch(32, 1)
    if not slots_agree(torch, gradients, trained, (rows, targets, weights)):
        pytest.skip("slots of this network are drawn at random here")
    rows, places = scale * rows, torch.randperm(32, generator=torch.Generator().manual_seed(1))
    found = gradients(trained, rows, targets, weights)
    moved = gradients(trained, rows[places], targets[places], weights[places])
    for one, other in zip(found, moved, strict=True):
        assert np.array_equal(one[places.numpy()], other, equal_nan=True)


def test_a_sample_is_of_the_rate_and_each_person_alone():
    rng = random_words(3)
    sizes = [sampled(rng, 1000, 0.1).size for _ in range(200)]
    assert abs(np.mean(sizes) - 100.0) < 4 * np.sqrt(90.0 / 200)
    assert 60.0 < np.var(sizes) < 130.0  # a batch of a fixed size would have none
    assert sampled(rng, 7, 1.0).tolist() == list(range(7))
    assert sampled(rng, 1000, 1e-30).size == 0
    assert sampled(rng, 0, 0.5).size == 0


@pytest.mark.parametrize("agree", [True, False])
def test_everybody_in_a_sample_stands_in_one_slot_once(agree):
    for size in (0, 1, 7, 8, 9, 100):
        people = np.arange(50, 50 + size)
        seen = []
        for standing, taken in rounds(random_words(size), people, 8, agree=agree):
            assert standing.shape == taken.shape == (8,)
            seen += standing[taken].tolist()
        assert sorted(seen) == people.tolist()


def test_without_agreement_one_person_more_moves_nobody_to_another_slot():
    people, drawn = np.arange(20), np.random.default_rng(0).integers(0, 2**40, 20)
    with_all, without = (
        {
            int(person): slot
            for standing, taken in rounds(Fixed(words), some, 4, agree=False)
            for slot, person in enumerate(standing)
            if taken[slot]
        }
        for some, words in ((people, drawn), (np.delete(people, 6), np.delete(drawn, 6)))
    )
    del with_all[6]
    assert with_all == without


def test_slots_that_round_otherwise_are_found():
    _, _, trained, gradients = made("linear")
    assert slots_agree(torch, gradients, trained, batch(32, 1))

    def uneven(values, rows, targets, weights):
        found = gradients(values, rows, targets, weights)
        last = found[-1][-1]
        last[:] = np.nextafter(last, np.float32(1))  # as the remainder of a loop may be
        return found

    assert not slots_agree(torch, uneven, trained, batch(32, 1))


def test_a_head_of_zeros_does_not_hide_slots_that_round_otherwise():
    torch.manual_seed(0)

    def trained(zeros):
        last = nn.Linear(33, 2)
        if zeros:
            nn.init.zeros_(last.weight)
        module = nn.Sequential(nn.Linear(8, 33), nn.Tanh(), nn.Linear(33, 33), nn.Tanh(), last)
        groups = grouped("Test", module, "layer")
        values = {n: p.detach() for n, p in module.named_parameters()}
        return values, PersonGradients(torch, module, groups, row_losses)

    shape = (24, 1)
    zeros = torch.zeros(*shape, 8), torch.zeros(shape, dtype=torch.long), torch.ones(shape)
    found = []
    for last_is_zero in (False, True):
        values, gradients = trained(last_is_zero)
        found.append(slots_agree(torch, gradients, values, zeros))
    assert found[0] == found[1]


def test_a_network_that_does_not_take_random_rows_is_not_trusted():
    def refusing(values, rows, targets, weights):
        raise IndexError("no such word")

    shape = (8, 1)
    zeros = torch.zeros(*shape, 4), torch.zeros(shape, dtype=torch.long), torch.ones(shape)
    assert not slots_agree(torch, refusing, {"a": torch.zeros(2, 2)}, zeros)
