"""Audits compare fitted networks bit by bit: what they are made of is read."""

from __future__ import annotations

import numpy as np
import pytest

from skdpnoise.inspection.auditing._fingerprint import Unread, examined, fingerprint
from skdpnoise.neural_network import DPNeuralRegressor

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")


def unread(value):
    return [one.kind for one in examined(value)[1] if type(one) is Unread]


def test_networks_of_equal_bits_are_the_same_and_others_are_not():
    X = np.random.default_rng(0).normal(size=(60, 2))
    first, again, other = (
        DPNeuralRegressor(max_iter=1, random_state=seed).fit(X, X[:, 0]) for seed in (0, 0, 1)
    )
    assert fingerprint(first.module_) == fingerprint(again.module_)
    assert fingerprint(first) == fingerprint(again)
    assert fingerprint(first.module_) != fingerprint(other.module_)
    assert unread(first.module_) == []
    with torch.no_grad():
        next(again.module_.parameters()).flatten()[0].nextafter_(torch.tensor(torch.inf))
    assert fingerprint(first.module_) != fingerprint(again.module_)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.reshape(2, 3),
        lambda one: one.to(torch.float64),
        lambda one: one.requires_grad_(),
        lambda one: torch.nn.Parameter(one),
        lambda one: one.view(torch.int32),
    ],
)
def test_tensors_of_equal_numbers_but_of_another_kind_differ(change):
    one = torch.zeros(6)
    assert fingerprint(one) == fingerprint(torch.zeros(6))
    assert fingerprint(change(one.clone())) != fingerprint(one)


def test_what_a_tensor_is_a_view_of_is_read_too():
    private = torch.arange(6.0)
    neighbour = private.clone()
    neighbour[5] = 77.0
    assert fingerprint(private[:3]) != fingerprint(neighbour[:3])
    assert fingerprint(private[:3].clone()) == fingerprint(neighbour[:3].clone())


def test_a_gradient_is_a_part_and_the_graph_that_made_a_number_is_not_read():
    plain, held, again = (torch.nn.Parameter(torch.ones(2)) for _ in range(3))
    held.grad, again.grad = torch.ones(2), torch.ones(2)
    assert fingerprint(plain) != fingerprint(held)
    assert fingerprint(again) == fingerprint(held)
    assert unread(held) == []
    assert unread(held.sum()) != []


def test_hooks_and_every_byte_of_the_storage_are_read():
    def hooked(private):
        tensor = torch.ones(2, requires_grad=True)
        tensor.register_hook(lambda gradient, held=private: gradient)
        return tensor

    assert fingerprint(hooked([1.0])) != fingerprint(hooked([2.0]))
    stored = [torch.UntypedStorage(6) for _ in range(2)]
    stored[0][5], stored[1][5] = 1, 2
    views = [torch.empty(0, dtype=torch.int32).set_(one, 0, (1,), (1,)) for one in stored]
    views[0][0] = views[1][0] = 3
    assert fingerprint(views[0]) != fingerprint(views[1])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int8])
def test_equal_tensors_of_any_type_are_the_same(dtype):
    one, other = (torch.ones(3).to(dtype) for _ in range(2))
    assert fingerprint(one) == fingerprint(other)
    assert unread(one) == []
    if dtype.is_complex:
        assert fingerprint(one.conj()) != fingerprint(one)
        assert fingerprint(one.conj()) == fingerprint(other.conj())
