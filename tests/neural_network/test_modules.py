"""Networks that keep something of a call, and networks of every kind that must be taken."""

from __future__ import annotations

import collections
import functools
import itertools
import random

import numpy as np
import pytest

from skdpnoise.neural_network import DPNeuralClassifier
from tests.contracts._register import Forbidden

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("the_same_words")

nn = torch.nn
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(60, 4)), RNG.integers(2, size=60)
ONCE = {"max_iter": 1, "batch_size": 1.0, "n_samples": 60, "classes": [0, 1], "random_state": 0}


MADE = []  # outside of all networks, where nobody looks


class Head(nn.Module):
    """A linear layer, and what a test does before it."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, rows):
        return self.head(rows) * self.also(rows)

    def also(self, rows):
        return 1.0


class Counts(Head):
    calls = 0

    def also(self, rows):
        self.calls += 1
        return 1.0


class CountsForAll(Head):
    calls = 0

    def also(self, rows):
        CountsForAll.calls += 1
        return 1.0


class Inherits(CountsForAll):
    pass


class Lists(Head):
    def __init__(self):
        super().__init__()
        self.facts = {"seen": []}

    def also(self, rows):
        self.facts["seen"].append(len(rows))
        return 1.0


class Remembers(Head):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(4)

    def also(self, rows):
        self.mean = 0.9 * self.mean + 0.1 * rows.detach().mean(0)
        return 1.0


class NumpysCoin(Head):
    def also(self, rows):
        return float(np.random.uniform() < 0.9)  # noqa: NPY002 (what is refused)


class PythonsCoin(Head):
    def also(self, rows):
        return float(random.random() < 0.9)


class Slots:
    __slots__ = ("n",)


def _with(name, make, use):
    """Return a network that holds something, and uses it in forward."""

    class Holds(Head):
        def __init__(self):
            super().__init__()
            setattr(self, name, make())

        def also(self, rows):
            return use(getattr(self, name))

    return Holds


def _of_slots():
    one = Slots()
    one.n = 0
    return one


def _slots_count(one):
    one.n += 1
    return 1.0


def _append(one):
    one.append(1)
    return 1.0


def _append_within(one):
    for _ in range(9):
        one = one[0]
    return _append(one)


def _in_a_closure():
    calls = []

    class Encloses(Head):
        def also(self, rows):
            calls.append(1)
            return 1.0

    return Encloses()


class Cached(Head):
    @functools.lru_cache  # noqa: B019 (what is refused)
    def seen(self, size):
        return size

    def also(self, rows):
        self.seen(object())
        return 1.0


def _hidden_modules():
    return [Counts()]


def _use_hidden(modules):
    modules[0].also(None)
    return 1.0


def _generate():
    yield from range(10**6)


HOLDERS = {
    "numpy's generator": _with("kept", lambda: np.random.default_rng(0), lambda one: one.random()),
    "a random state": _with("kept", lambda: np.random.RandomState(0), lambda one: one.uniform()),
    "Python's generator": _with("kept", lambda: random.Random(0), lambda one: one.random()),
    "torch's generator": _with(
        "kept", torch.Generator, lambda one: torch.rand(1, generator=one).item()
    ),
    "a deque": _with("kept", collections.deque, _append),
    "bytes": _with("kept", bytearray, _append),
    "a count": _with("kept", itertools.count, lambda one: 1.0 + 0.0 * next(one)),
    "slots": _with("kept", _of_slots, _slots_count),
    "hidden modules": _with("kept", _hidden_modules, _use_hidden),
    "an iterator": _with("kept", _generate, lambda one: 1.0 + 0.0 * next(one)),
    "lists in lists": _with("kept", lambda: [[[[[[[[[[]]]]]]]]]], _append_within),
    "a closure": _in_a_closure,
    "a cache": Cached,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_whatever_a_network_holds_must_not_change(name):
    error = TypeError if name == "an iterator" else ValueError  # which no network is copied with
    with pytest.raises(error, match=r"not change its attributes|cannot pickle"):
        DPNeuralClassifier(HOLDERS[name], ledger=Forbidden(), **ONCE).fit(ROWS, LABELS)


def test_what_a_network_holds_and_leaves_alone_is_taken():
    class Holds(Head):
        def __init__(self):
            super().__init__()
            self.rng, self.past = np.random.default_rng(0), collections.deque([1])
            self.act, self.layers, self.facts = torch.tanh, [nn.Linear(2, 2)], {"a": Slots}
            self.deep, self.ring = [[[[[[[[1]]]]]]]], []
            self.ring.append(self.ring)

        def also(self, rows):
            return self.act(rows[:, :1])

    assert DPNeuralClassifier(Holds, **ONCE).fit(ROWS, LABELS).n_steps_ == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (Counts, "calls"),
        (CountsForAll, "calls"),
        (Inherits, "calls"),
        (Lists, "facts"),
        (Remembers, "mean"),
        (NumpysCoin, "generator"),
        (PythonsCoin, "generator"),
    ],
)
def test_what_a_network_keeps_of_a_call_is_refused_before_the_charge(module, text):
    with pytest.raises(ValueError, match=text):
        DPNeuralClassifier(module, ledger=Forbidden(), **ONCE).fit(ROWS, LABELS)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, rows):
        return self.head(self.inner(rows)[0][:, -1])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, rows):
        return self.head(self.inner(rows).mean(1))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Embedding(10, 4), nn.Linear(4, 2)

    def forward(self, rows):
        return self.head(self.inner(rows.long()).mean(1))


def volumes():
    return nn.Sequential(nn.Conv3d(1, 2, 2), nn.Flatten(), nn.LazyLinear(2))


TAKEN = {
    "recurrent": (Recurrent, RNG.normal(size=(60, 5, 4))),
    "attention and dropout": (Attention, RNG.normal(size=(60, 5, 4))),
    "words": (Words, RNG.integers(10, size=(60, 6))),
    "volumes": (volumes, RNG.normal(size=(60, 1, 3, 3, 3))),
}


@pytest.mark.parametrize("name", TAKEN)
def test_networks_of_every_kind_are_taken(name):
    module, rows = TAKEN[name]
    model = DPNeuralClassifier(module, **ONCE).fit(rows, LABELS)
    assert np.isfinite(model.predict_proba(rows)).all()


class HangsOnValues(Head):
    def also(self, rows):
        return 1.0 if rows.sum() > 0 else 2.0


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.GRU(4, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, rows):
        return self.head(self.inner(rows)[0][:, -1])


@pytest.mark.parametrize(("module", "rows"), [(HangsOnValues, ROWS), (Gated, ROWS[:, np.newaxis])])
def test_what_torch_cannot_vectorise_is_refused_before_the_charge(module, rows):
    with pytest.raises(ValueError, match=r"torch\.func\.vmap"):
        DPNeuralClassifier(module, ledger=Forbidden(), **ONCE).fit(rows, LABELS)


def test_a_tensor_that_is_no_buffer_is_that_of_the_training():
    class Projects(nn.Module):
        def __init__(self):
            super().__init__()
            self.made = torch.randn(4, 8)
            self.head = nn.Linear(8, 2)

        def forward(self, rows):
            MADE.append(self.made)
            return self.head(rows @ self.made)

    model = DPNeuralClassifier(Projects, **ONCE).fit(ROWS, LABELS)
    assert torch.equal(model.module_.made, MADE[0])
    assert torch.equal(MADE[0], MADE[-1])


def test_a_factory_that_makes_another_network_each_time_is_called_once():
    widths = iter([8, 16])

    def network():
        width = next(widths)
        return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    model = DPNeuralClassifier(network, **ONCE).fit(ROWS, LABELS)
    assert model.module_[0].out_features == 8


def test_a_tensor_of_two_names_is_the_same_in_the_model():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
            self.two.weight = self.one.weight

        def forward(self, rows):
            return self.head(self.two(torch.tanh(self.one(rows))))

    settings = ONCE | {"max_iter": 10}
    model = DPNeuralClassifier(Tied, **settings).fit(ROWS, LABELS)
    state = model.module_.state_dict()
    assert torch.equal(state["one.weight"], state["two.weight"])
    # The mean of the last steps, as of any other tensor: not the last step.
    last = []
    move = torch.optim.SGD.step

    def step(self, *args):
        move(self, *args)
        last[:] = [one.detach().clone() for one in self.param_groups[0]["params"]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.SGD, "step", step)
        again = DPNeuralClassifier(Tied, **settings).fit(ROWS, LABELS).module_
    assert torch.equal(again.one.weight, model.module_.one.weight)
    assert not torch.equal(last[0], again.one.weight)


def test_another_default_type_of_torch_changes_nothing():
    plain = DPNeuralClassifier(lambda: nn.Linear(4, 2), **ONCE).fit(ROWS, LABELS)
    torch.set_default_dtype(torch.float64)
    try:
        model = DPNeuralClassifier(lambda: nn.Linear(4, 2), **ONCE).fit(ROWS, LABELS)
        assert model.predict_proba(ROWS).shape == plain.predict_proba(ROWS).shape
    finally:
        torch.set_default_dtype(torch.float32)


def test_no_error_tells_that_a_gradient_is_not_a_number():
    rows = ROWS.copy()
    rows[3] = 1e39
    with torch.autograd.set_detect_anomaly(True):
        DPNeuralClassifier(lambda: nn.Linear(4, 2), **ONCE).fit(rows, LABELS)
        assert torch.is_anomaly_enabled()
