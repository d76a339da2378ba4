"""A session charges first, and adds the noise that it charged for."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from skdpnoise.accounting.session import Session
from skdpnoise.data.table import InMemory
from skdpnoise.mechanisms import PermuteAndFlip, calibrate
from skdpnoise.mechanisms.categories import CategoryMechanism
from skdpnoise.mechanisms.sampled import calibrate_sampled
from skdpnoise.privacy import GaussianLoss, PrivacyGuarantee, PureLoss
from skdpnoise.sampling import random_words
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum
from tests._cases import each_value


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


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
@pytest.mark.parametrize("ask", [Session.release, Session.tally])
def test_noise_is_calibrated_to_the_neighbours_of_the_session(ask, adjacency):
    session, query = Session(random_words(0), adjacency), Clipped(0.5, np.full(2, 1.5))
    values = InMemory.of(np.ones((20, 2)))
    released = ask(session, "sums", query, values, GaussianLoss(1.0), "iid_gaussian")
    wanted = query.sensitivity(adjacency).per_coordinate
    np.testing.assert_array_equal(released.mechanism.sensitivity.per_coordinate, wanted)


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
    for ask in (session.release, session.tally):
        with pytest.raises(ValueError, match=r"^refused$"):
            ask("sum", Clipped(0.0, np.ones(1)), rows, GaussianLoss(1.0), "iid_gaussian")
    np.testing.assert_array_equal(before[1].take(1), before[0])


def test_a_search_sees_of_the_rows_what_it_lets_the_session_release():
    charged, values = [], np.random.default_rng(0).uniform(0.0, 2.0, size=(5000, 1))
    session, asked = a_session(charged), []

    def search():
        for high in (1.0, 2.0):
            query = Clipped(0.0, np.full(1, high))
            release = partial(session.release, f"up to {high}", query)
            asked.append((yield partial(release, loss=GaussianLoss(1.0), noise="iid_gaussian")))
        return len(asked)

    assert session.answer(search(), InMemory.of(values)) == 2
    assert [label for label, _ in charged] == ["up to 1.0", "up to 2.0"]
    for found, high in zip(asked, (1.0, 2.0), strict=True):
        assert abs(found.values[0] - np.minimum(values, high).sum()) < 8.0 * high

    def stops():
        yield partial(session.number, loss=None, noise="iid_gaussian")
        raise StopIteration  # a fault of a search is none of its results

    with pytest.raises(RuntimeError, match="StopIteration"):
        session.answer(stops(), InMemory.of(values))


@pytest.mark.parametrize("adjacency", ["replace_one", "add_remove"])
def test_a_number_of_records_is_charged_where_it_is_private(adjacency):
    charged, rows = [], InMemory.of(np.zeros((500, 1)))
    session = Session(random_words(0), adjacency, lambda label, one: charged.append(label))
    found = session.number(rows, GaussianLoss(0.5), "iid_gaussian")
    private = adjacency == "add_remove"
    assert (found != 500.0) == private and abs(found - 500.0) < 20.0
    assert charged == ["number of records"] * private


def test_choices_and_cells_and_counts_are_charged_once_before_they_are_made():
    charged = []
    session = a_session(charged).under("table: ")
    chooser = PermuteAndFlip(1.0, 50.0)
    assert session.choose("best", chooser, [1.0, 500.0, 2.0]) == 1
    cells = SensitivityProfile(np.ones(2), l1=2.0)
    made = CategoryMechanism(calibrate("iid_laplace", cells, PureLoss(1.0)), 30.0)
    columns = [([500, 1], lambda: ["a", "b"]), ([400], lambda: ["c"])]
    first, second = session.cells("names", made, columns)
    assert first[0].tolist() == [True, False] and second[0].tolist() == [True]
    assert abs(session.count(1000, GaussianLoss(1.0), "iid_gaussian") - 1000.0) < 10.0
    assert [label for label, _ in charged] == [
        "table: best",
        "table: names",
        "table: number of records",
    ]
    assert charged[0][1] is chooser and charged[1][1] is made


@pytest.mark.parametrize("ask", ["choose", "cells", "count", "add"])
def test_nothing_is_chosen_or_shown_where_the_charge_is_refused(ask):
    class Untouchable:
        n_releases = 1

        def select(self, utilities, rng):
            raise AssertionError("a choice was made")

        def shown(self, counts, rng, names):
            raise AssertionError("cells were shown")

        def sample(self, rng):
            raise AssertionError("noise was sampled")

    def refuse(label, mechanism):
        raise ValueError("refused")

    session = Session(random_words(0), "replace_one", refuse)
    how = {
        "choose": ("choice", Untouchable(), [0.0, 1.0]),
        "cells": ("cells", Untouchable(), [([1], lambda: ["a"])]),
        "count": (10, GaussianLoss(1.0), "iid_gaussian"),
        "add": ("sums", Untouchable(), [1.0]),
    }
    with pytest.raises(ValueError, match="refused"):
        getattr(session, ask)(*how[ask])


def test_exact_values_and_fractions_get_the_noise_of_a_mechanism():
    mechanism = calibrate("iid_gaussian", SensitivityProfile(np.ones(3)), GaussianLoss(1.0))
    values = np.array([3, 10**15, -7])
    expected = mechanism.release(values, random_words(4))
    session = Session(random_words(4), "replace_one")
    np.testing.assert_array_equal(session.add("sums", mechanism, values), expected)
    one, other = (Session(random_words(4), "replace_one").draw("s", mechanism) for _ in range(2))
    halves = [Fraction(int(value)) / 2 for value in values]
    np.testing.assert_array_equal(one.on_fractions(halves), other.on(np.array([1.5, 5.0e14, -3.5])))


USES = {
    "all": lambda drawn: drawn.add(np.zeros((2, 3), dtype=int)),
    "a release": lambda drawn: drawn.add(np.zeros(3, dtype=int), 1),
    "in units": lambda drawn: drawn.in_units(np.zeros(3, dtype=int), 1),
    "one number": lambda drawn: drawn.add(0, (1, 2)),
    "exact values": lambda drawn: drawn.on(np.zeros((2, 3))),
}


def two_releases():
    profile = SensitivityProfile(np.ones(3))
    mechanism = calibrate("iid_gaussian", profile, GaussianLoss(1.0), n_releases=2)
    return a_session([]).draw("sums", mechanism)


@each_value(2)
@pytest.mark.parametrize("again", USES)
@pytest.mark.parametrize("first", USES)
def test_noise_that_met_integers_meets_no_others(first, again):
    drawn = two_releases()
    USES[first](drawn)
    with pytest.raises(RuntimeError, match="added a second time"):
        USES[again](drawn)


@pytest.mark.parametrize("at", [[0, 0], ([0, 1, 0], 2), (1, [2, 2, 2]), np.array([0, 1])], ids=str)
def test_no_list_of_places_says_which_noise_is_added_since_these_may_repeat(at):
    drawn = two_releases()
    zeros = np.zeros(np.shape(np.zeros((2, 3))[at]), dtype=int)
    with pytest.raises(RuntimeError, match="at a list of places"):
        drawn.add(zeros, at)
    drawn.add(np.zeros((2, 3), dtype=int))  # none of it was added


def test_parts_of_the_noise_meet_integers_one_after_the_other():
    profile = SensitivityProfile(np.ones(3))
    mechanism = calibrate("iid_gaussian", profile, GaussianLoss(1.0), n_releases=2)
    drawn = a_session([]).draw("sums", mechanism)
    parts = [drawn.add(np.arange(3), 0), [drawn.add(k, (1, k)) for k in range(3)]]
    np.testing.assert_array_equal(parts, drawn.noise + np.arange(3))


def test_no_release_is_sampled_beyond_those_that_were_charged_for():
    profile = SensitivityProfile([1.0])
    step = calibrate_sampled(
        "iid_gaussian", profile, PrivacyGuarantee(1.0, 1e-6, "add_remove"), rate=0.1, n_releases=3
    )
    charged = []
    sample = a_session(charged).each("gradients", step)
    assert charged == [("gradients", step)]
    assert all(sample().mechanism is step for _ in range(3))
    with pytest.raises(RuntimeError, match="charged for 3 releases, and one more"):
        sample()
