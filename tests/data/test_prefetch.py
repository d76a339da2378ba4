"""Reading ahead gives the same, one thing more is held, and no thread is left."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import pytest

from skdpnoise.data.partitions import SpreadError
from skdpnoise.data.prefetch import FEW_COLUMNS, Prefetcher, prefetched
from tests._cases import quick


class Batch:
    """Something that is seen to be let go."""


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert [one.name for one in threading.enumerate() if one.name == "prefetch"] == []


@pytest.mark.slow
def test_all_comes_in_its_order():
    assert list(prefetched(n for n in range(100))) == list(range(100))
    assert list(prefetched(n for n in ())) == []


class Panic(BaseException):
    """No Exception, as what readers in other languages raise may be."""


@quick("KeyboardInterrupt")
@pytest.mark.parametrize("kind", [KeyError, Panic, KeyboardInterrupt])
def test_an_error_comes_where_its_value_would_be(kind):
    def numbers():
        yield 1
        yield 2
        raise kind("three")

    found = prefetched(numbers())
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(kind, match="three"):
        next(found)


@pytest.mark.slow
def test_the_interpreter_does_not_wait_for_the_thread():
    found = prefetched(n for n in range(9))
    assert next(found) == 0
    assert [one.daemon for one in threading.enumerate() if one.name == "prefetch"] == [True]
    found.close()


@pytest.mark.slow
def test_one_is_made_while_one_is_used_and_no_more():
    made, reached = [], threading.Event()

    def numbers():
        for n in range(9):
            made.append(n)
            if n == 1:
                reached.set()
            yield n

    found = prefetched(numbers())
    assert next(found) == 0
    assert reached.wait(60.0)
    # The second waits until it is asked for: nothing that follows could begin the third.
    assert made == [0, 1]
    assert list(found) == list(range(1, 9))


@pytest.mark.slow
def test_what_was_used_is_let_go():
    made = []

    def batches():
        for _ in range(20):
            batch = Batch()
            made.append(weakref.ref(batch))
            yield batch
            del batch

    most = 0
    for batch in prefetched(batches()):
        del batch
        most = max(most, sum(one() is not None for one in made))
    assert most <= 2


@pytest.mark.slow
def test_whoever_ends_early_ends_the_thread_and_closes_the_reader():
    closed = threading.Event()

    def numbers():
        try:
            yield from range(10**9)
        finally:
            closed.set()

    given = numbers()  # held here, so that it is not closed because nobody has it
    found = prefetched(given)
    assert [next(found), next(found)] == [0, 1]
    found.close()
    assert closed.is_set()


@pytest.mark.slow
def test_all_of_the_reader_runs_in_one_thread():
    def names():
        try:
            yield threading.get_ident()
            yield threading.get_ident()
        finally:
            seen.append(threading.get_ident())

    seen = []
    seen += prefetched(names())
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()


# Over parts

COLUMNS = [f"x{k}" for k in range(FEW_COLUMNS)]


class RowReader:
    """Three batches for each part; remembers what was read, and in which thread."""

    n_parts = 4
    fails = None  # number of a part

    def __init__(self):
        self.made, self.threads, self.begun = [], set(), threading.Event()

    def read(self, part, columns):
        self.threads.add(threading.get_ident())
        if part == self.fails:
            raise KeyError(part)
        for k in range(3):
            self.made.append((part, k))
            if part == 1:
                self.begun.set()
            yield part, k, columns


def expected(part, columns=COLUMNS):
    return [(part, k, columns) for k in range(3)]


@pytest.mark.slow
def test_parts_come_in_their_order_from_one_thread():
    reader = RowReader()
    prefetcher = Prefetcher(reader)
    assert [[*prefetcher.read(part, COLUMNS)] for part in range(4)] == [*map(expected, range(4))]
    prefetcher.close()
    assert len(reader.made) == 12
    assert len(reader.threads) == 1
    assert reader.threads != {threading.get_ident()}


@pytest.mark.slow
def test_the_next_part_is_begun_while_the_last_rows_of_one_are_used():
    reader = RowReader()
    prefetcher = Prefetcher(reader)
    assert [*prefetcher.read(0, COLUMNS)] == expected(0)
    assert reader.begun.wait(60.0)
    assert reader.made == [(0, 0), (0, 1), (0, 2), (1, 0)]
    prefetcher.close()


@pytest.mark.slow
def test_whatever_is_read_next_is_what_was_asked_for():
    reader = RowReader()
    prefetcher = Prefetcher(reader)
    other = [*COLUMNS, "y"]
    for part, columns in [(1, COLUMNS), (2, other), (2, COLUMNS), (0, other), (1, None), (3, None)]:
        assert [*prefetcher.read(part, columns)] == expected(part, columns)
    left = prefetcher.read(2, COLUMNS)
    assert next(left) == (2, 0, COLUMNS)
    left.close()
    for part in (3, 2):  # not what was left of the other
        assert [*prefetcher.read(part, COLUMNS)] == expected(part)
    prefetcher.close()


@pytest.mark.slow
def test_few_columns_are_read_where_they_are_used():
    reader = RowReader()
    prefetcher = Prefetcher(reader)
    few = COLUMNS[:-1]
    assert [*prefetcher.read(0, few)] == expected(0, few)
    assert reader.threads == {threading.get_ident()}
    assert [*prefetcher.read(1, COLUMNS)] == expected(1)
    assert len(reader.threads) == 2
    prefetcher.close()


@pytest.mark.slow
def test_a_part_that_fails_does_so_when_it_is_read_and_each_time():
    reader = RowReader()
    reader.fails = 1
    prefetcher = Prefetcher(reader)
    assert [*prefetcher.read(0, COLUMNS)] == expected(0)
    for _ in range(2):
        with pytest.raises(KeyError, match="1"):
            [*prefetcher.read(1, COLUMNS)]
    assert [*prefetcher.read(2, COLUMNS)] == expected(2)
    prefetcher.close()


@pytest.mark.slow
def test_rows_of_parts_that_were_used_are_let_go():
    class Rows:
        n_parts = 9

        def read(self, part, columns):
            for _ in range(3):
                batch = Batch()
                made.append(weakref.ref(batch))
                yield batch
                del batch

    made, most = [], 0
    prefetcher = Prefetcher(Rows())
    for part in range(9):
        for batch in prefetcher.read(part, None):
            del batch
            most = max(most, sum(one() is not None for one in made))
    prefetcher.close()
    assert len(made) == 27
    assert most <= 2


@pytest.mark.slow
def test_whoever_forgets_it_leaves_no_thread():
    prefetcher = Prefetcher(RowReader())
    assert next(prefetcher.read(0, COLUMNS)) == (0, 0, COLUMNS)
    del prefetcher


@pytest.mark.slow
def test_other_threads_read_alone():
    reader, found = RowReader(), {}
    prefetcher = Prefetcher(reader)

    def read(part):
        found[part] = [*prefetcher.read(part, COLUMNS)]

    mine = prefetcher.read(0, COLUMNS)
    assert next(mine) == (0, 0, COLUMNS)
    for part in (1, 2):
        thread = threading.Thread(target=read, args=[part])
        thread.start()
        thread.join()
    # What this thread reads goes on where it was.
    assert [*mine] == expected(0)[1:]
    assert [*prefetcher.read(1, COLUMNS)] == expected(1)
    assert found == {1: expected(1), 2: expected(2)}
    prefetcher.close()


@pytest.mark.slow
def test_a_part_that_is_left_for_another_gives_no_rows_more_and_says_so():
    prefetcher = Prefetcher(RowReader())
    one = prefetcher.read(0, COLUMNS)
    assert next(one) == (0, 0, COLUMNS)
    assert [*prefetcher.read(2, COLUMNS)] == expected(2)
    with pytest.raises(SpreadError, match="not read to their end"):
        next(one)
    prefetcher.close()


@pytest.mark.slow
def test_a_reader_that_fails_where_it_is_closed_shows_nothing(monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", shown.append)

    def numbers():
        try:
            yield from range(9)
        finally:
            raise KeyError("a value")

    found = prefetched(numbers())
    assert next(found) == 0
    found.close()
    assert shown == []


@pytest.mark.slow
def test_in_another_process_it_is_the_reader():
    prefetcher = Prefetcher(range(3))
    assert pickle.loads(pickle.dumps(prefetcher)) == range(3)
