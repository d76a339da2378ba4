"""A session charges first, and adds the noise that it charged for."""

import numpy as np

from skdpnoise.accounting.session import Session
from skdpnoise.data.table import InMemory
from skdpnoise.privacy import GaussianLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import clipped_sum


class Clipped:
    """Sums of values clipped to an interval."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def sensitivity(self, adjacency):
        return clipped_sum(self.low, self.high, adjacency)

    def step(self, grid_size):
        def sums(values):
            clipped = np.clip(values, self.low, self.high)
            return np.rint(clipped / grid_size).astype(np.int64).sum(axis=0)

        return sums


def a_session(charged, seed=0):
    return Session(
        random_words(seed), "replace_one", lambda label, one: charged.append((label, one))
    )


def test_a_release_is_charged_under_its_label_and_close_to_the_sum():
    charged, values = [], np.random.default_rng(0).uniform(0.0, 2.0, size=(5000, 3))
    session = a_session(charged).under("target: ")
    found = session.release(
        "means", Clipped(0.0, np.ones(3)), InMemory.of(values), GaussianLoss(1.0), "iid_gaussian"
    )
    ((label, mechanism),) = charged
    assert label == "target: means"
    assert mechanism is found.mechanism
    error = found.values - np.minimum(values, 1.0).sum(axis=0)
    assert (np.abs(error) < 8.0 * found.standard_deviation).all()
    assert (error != 0.0).all()
    steps = found.values / mechanism.grid_size
    np.testing.assert_array_equal(steps, np.rint(steps))


def test_nothing_is_sampled_or_summed_where_the_charge_is_refused():
    def refuse(label, mechanism):
        raise ValueError("refused")

    class Untouchable(InMemory):
        def total(self, step, label="sums"):
            raise AssertionError("rows were read")

    rng = random_words(0)
    before = rng.take(1), random_words(0)
    session = Session(before[1], "replace_one", refuse)
    rows = Untouchable(np.ones((2, 1)), 2)
    try:
        session.release("sum", Clipped(0.0, np.ones(1)), rows, GaussianLoss(1.0), "iid_gaussian")
    except ValueError as error:
        assert str(error) == "refused"
    np.testing.assert_array_equal(before[1].take(1), before[0])
