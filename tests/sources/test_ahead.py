"""Reading ahead gives the same, one thing more is held, and no thread is left."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from skdpnoise.sources.ahead import read_ahead


class Batch:
    """Something that is seen to be let go."""


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert [one.name for one in threading.enumerate() if one.name == "read-ahead"] == []


def test_all_comes_in_its_order():
    assert list(read_ahead(n for n in range(100))) == list(range(100))
    assert list(read_ahead(n for n in ())) == []


def test_an_error_comes_where_its_value_would_be():
    def numbers():
        yield 1
        yield 2
        raise KeyError("three")

    found = read_ahead(numbers())
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(KeyError, match="three"):
        next(found)


def test_one_is_made_while_one_is_used_and_no_more():
    made, reached = [], threading.Event()

    def numbers():
        for n in range(9):
            made.append(n)
            if n == 1:
                reached.set()
            yield n

    found = read_ahead(numbers())
    assert next(found) == 0
    assert reached.wait(60.0)
    # The second waits until it is asked for: nothing that follows could begin the third.
    assert made == [0, 1]
    assert list(found) == list(range(1, 9))


def test_what_was_used_is_let_go():
    made = []

    def batches():
        for _ in range(20):
            batch = Batch()
            made.append(weakref.ref(batch))
            yield batch
            del batch

    most = 0
    for batch in read_ahead(batches()):
        del batch
        most = max(most, sum(one() is not None for one in made))
    assert most <= 2


def test_whoever_ends_early_ends_the_thread_and_closes_the_reader():
    closed = threading.Event()

    def numbers():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    found = read_ahead(numbers())
    assert [next(found), next(found)] == [0, 1]
    found.close()
    assert closed.is_set()


def test_all_of_the_reader_runs_in_one_thread():
    def names():
        try:
            yield threading.get_ident()
            yield threading.get_ident()
        finally:
            seen.append(threading.get_ident())

    seen = []
    seen += read_ahead(names())
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()
