"""The cases that decorators keep: each value, each pair, and which are quick."""

from itertools import combinations, product

import pytest

from tests._cases import each_value, every_pair, quick

AXES = {"a": range(5), "b": "xyz", "c": [0.5, None]}


def decorated(*decorators):
    """Return the cases of a test with three lists, by their names."""

    def test(a, b, c): ...

    for name, values in AXES.items():
        test = pytest.mark.parametrize(name, values)(test)
    for decorate in decorators:
        test = decorate(test)
    (mark,) = test.pytestmark
    assert mark.args[0] == [*AXES]
    return {case.id: case for case in mark.args[1]}


@pytest.mark.parametrize("times", [1, 2])
def test_each_value_of_the_longest_list_is_in_so_many_cases_and_each_other_in_some(times):
    rows = [case.values for case in decorated(each_value(times)).values()]
    assert sorted(a for a, _, _ in rows) == sorted([*range(5)] * times)
    assert {b for _, b, _ in rows} == set("xyz")
    assert {c for _, _, c in rows} == {0.5, None}


def test_any_two_values_meet_in_fewer_cases_than_there_are():
    rows = [case.values for case in decorated(every_pair).values()]
    for one, other in combinations(range(3), 2):
        met = {(row[one], row[other]) for row in rows}
        assert met == set(product(*[[*AXES.values()][k] for k in (one, other)]))
    assert len(rows) < 5 * 3 * 2


def test_what_is_not_named_is_slow_and_a_name_that_is_none_is_an_error():
    cases = decorated(quick("x-0.5", "4"))
    assert {name for name, case in cases.items() if not case.marks} == {
        *(f"{a}-x-0.5" for a in range(5)),
        *(f"4-{b}-{c}" for b in "xyz" for c in (0.5, None)),
    }
    with pytest.raises(AssertionError, match="no case is called w"):
        decorated(quick("w"))
