"""A word is taken, or the reservation is returned: never both, whatever fails and whoever asks."""

from __future__ import annotations

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from skdpnoise import PrivacyWarning
from skdpnoise._utils.context import within
from skdpnoise.accounting import BudgetExceededError
from skdpnoise.accounting.reservation import Reservation, reason_of, returnable
from skdpnoise.sampling import SeededWords, SystemWords

pytestmark = pytest.mark.usefixtures("the_same_words")

SOURCES = [SystemWords(), SeededWords(0)]


class Noted:
    """What a reservation did to its ledger."""

    def __init__(self):
        self.done = []
        self.reservation = Reservation(self.returning, lambda: self.done.append("charged"))

    def returning(self, reason):
        self.done.append(reason)
        return True


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_a_word_keeps_what_is_reserved(source):
    noted = Noted()
    with within(reservation=noted.reservation):
        source.take(1)
        source.take(1)
    assert not noted.reservation.give_back("too late")
    assert noted.done == ["charged"]


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_no_word_is_given_out_after_a_return(source):
    noted = Noted()
    assert noted.reservation.give_back("bad")
    with within(reservation=noted.reservation), pytest.raises(RuntimeError, match="was returned"):
        source.take(1)
    assert not noted.reservation.give_back("again")
    assert noted.done == ["bad"]


def test_no_word_is_given_out_while_the_line_of_a_return_is_written():
    def returning(reason):
        with pytest.raises(RuntimeError, match="was returned"):
            reservation.keep()
        return True

    reservation = Reservation(returning)
    assert reservation.give_back("bad")


def test_what_could_not_be_written_is_not_given_back_but_no_word_is_given_out_either():
    def lost(reason):
        raise OSError("no answer")

    reservation = Reservation(lost)
    with pytest.raises(OSError, match="no answer"):
        reservation.give_back("bad")
    with pytest.raises(RuntimeError, match="was returned"):
        reservation.keep()


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_no_word_is_given_out_after_a_refused_charge_whoever_catches_that(source):
    def refusing():
        raise BudgetExceededError("too much")

    def read():
        for _ in range(2):
            with pytest.raises(BudgetExceededError, match="too much"):
                source.take(1)

    reservation = Reservation(keeping=refusing)
    returnable(reservation, read)
    with pytest.raises(BudgetExceededError, match="too much"):
        reservation.keep()
    assert not reservation.give_back("too late")


def test_of_many_threads_that_draw_and_return_at_once_one_kind_wins():
    def run(k):
        try:
            if k % 2:
                return "returned" if noted.reservation.give_back("bad") else None
            noted.reservation.keep()
            return "kept"
        except RuntimeError:
            return None

    for _ in range(50):
        noted = Noted()
        with ThreadPoolExecutor(8) as pool:
            ends = set(pool.map(run, range(8))) - {None}
        assert len(ends) == 1
        assert len(noted.done) == 1


def in_a_fork(work):
    """Return the exit status of a function in a copy of this process."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        except BaseException:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_neither_draws_nor_returns_what_its_parent_reserved():
    reservation = Reservation()
    assert in_a_fork(lambda: reservation.keep() or 0) == 9
    assert in_a_fork(lambda: int(reservation.give_back("bad"))) == 0
    assert reservation.state == "open"
    reservation.keep()
    assert in_a_fork(lambda: reservation.keep() or 0) == 0  # of what is kept anybody may draw


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_reservation_has_no_copies(make):
    with pytest.raises(TypeError, match="each copy could return it"):
        make(Reservation())


class Odd(ValueError):
    """A subclass of somebody else's."""


KEPT = [MemoryError, KeyboardInterrupt, RuntimeError, OSError, Odd, np.linalg.LinAlgError]
RETURNED = [ValueError, TypeError, PrivacyWarning, DataConversionWarning]


def raising(error, after=lambda n: None):
    """Return a function that fails."""

    def read():
        after(1)
        raise error

    return read


@pytest.mark.parametrize("kind", KEPT + RETURNED)
def test_only_what_is_declared_or_public_returns(kind):
    noted = Noted()
    with pytest.raises(kind):
        returnable(noted.reservation, raising(kind("Input X contains NaN.\nMore is said here")))
    reason = f"{kind.__name__}: Input X contains NaN."
    assert noted.done == [reason] if kind in RETURNED else ["charged"]
    assert (reason_of(kind("a")) is not None) == (kind in RETURNED)


def test_a_declared_failure_after_a_word_returns_nothing():
    noted = Noted()
    with pytest.raises(ValueError, match="NaN"):
        returnable(noted.reservation, raising(ValueError("NaN"), after=SystemWords().take))
    assert noted.done == ["charged"]


def test_a_ledger_that_cannot_write_the_line_does_not_hide_what_failed():
    def lost(reason):
        raise OSError("the disk is full")

    with pytest.raises(ValueError, match="NaN") as caught:
        returnable(Reservation(lost), raising(ValueError("NaN")))
    assert "could not be returned: the disk is full" in caught.value.__notes__[0]


def test_a_ledger_that_refuses_what_must_be_kept_shows_nothing_of_the_failure():
    def refused():
        raise ValueError("over the budget")

    reservation = Reservation(keeping=refused)
    with pytest.raises(ValueError, match="over the budget") as caught:
        returnable(reservation, raising(MemoryError("a value")))
    assert caught.value.__context__ is None
