"""What passes leave behind is found where it was left, and nowhere else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from skdpnoise.data import partition_cache
from skdpnoise.data.partition_cache import at, new_token, scratch, state


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    partition_cache._states.clear()
    at(0, 0, 0)


def test_a_state_belongs_to_a_fit_a_name_and_the_rows_that_are_read():
    one, other = new_token(), new_token()
    places = [(0, 0, 5), (0, 5, 5), (1, 0, 5), (0, 0, 4)]
    for token in (one, other):
        for name in ("a", "b"):
            for place in places:
                at(*place)
                expected = [token, name, place]
                assert state(token, name, partial(list, expected)) == expected
    for place in places:
        at(*place)
        assert state(one, "b", pytest.fail) == [one, "b", place]


def test_a_process_keeps_the_states_of_few_fits():
    tokens = [new_token() for _ in range(partition_cache.KEPT + 1)]
    for token in tokens[:-1]:
        state(token, "a", list).append(1)
    assert state(tokens[0], "a", list) == [1]  # used last
    state(tokens[-1], "a", list)
    assert state(tokens[0], "a", list) == [1]
    assert state(tokens[1], "a", list) == []


def test_threads_read_rows_of_their_own():
    def work(part):
        at(part, 0, 1)
        kept = state("fit", "a", list)
        kept.append(part)
        return list(state("fit", "a", list))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(40))) == [[part] for part in range(40)]


@pytest.mark.parametrize("n", [3, partition_cache.BUFFER])
def test_scratch_is_a_copy_that_can_be_written_to(n):
    values = np.arange(float(n))
    values.flags.writeable = False
    copy = scratch(values)
    assert np.array_equal(copy, values)
    copy[:] = 7.0
    assert values[-1] == n - 1.0
    assert (copy == 7.0).all()
