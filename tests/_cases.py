"""Fewer cases of a test with several `parametrize`, and which of them `make test` leaves out.

Decorators that stand above those of `parametrize`:

- `each_value`: each value of the longest list is in one case, or as many as said, and each value of
  the others in some; two of them meet where there is room.
- `every_pair`: any two values of two lists meet in some case.
- `quick`: the cases that `make test` runs, by a part of their names; the others are slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])
Case = Any  # what pytest.param returns


def each_value(times: int) -> Callable[[Test], Test]:
    """Return a decorator that keeps so many cases of each value of the longest list."""
    return lambda test: _with_cases(test, _spread(_axes(test), times))


def every_pair(test: Test) -> Test:
    """Keep cases in which any two values of two lists meet."""
    return _with_cases(test, _spread(_axes(test), None))


def quick(*parts: str) -> Callable[[Test], Test]:
    """Return a decorator that marks as slow all cases whose names have none of these parts."""

    def decorate(test: Test) -> Test:
        cases = [_joined(row) for row in product(*_axes(test))]
        for part in parts:
            assert any(_has(case, part) for case in cases), f"no case is called {part}"
        marked = [
            case if any(_has(case, part) for part in parts) else _slow(case) for case in cases
        ]
        return _with_cases(test, marked)

    return decorate


def _has(case: Case, part: str) -> bool:
    return f"-{part}-" in f"-{case.id}-"


def _slow(case: Case) -> Case:
    return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])


def _axes(test: Callable[..., Any]) -> list[list[Case]]:
    """Return the named cases of each `parametrize`, from the one nearest to the test on."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    return [_named(*mark.args, **mark.kwargs) for mark in marks]


def _named(names: Any, values: Any, ids: Any = None) -> list[Case]:
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    ids = ids if ids is None or callable(ids) else list(ids)
    named = []
    for k, value in enumerate(values):
        case = value if hasattr(value, "marks") else pytest.param(*_values(value, words))
        name = case.id
        if name is None and isinstance(ids, list):
            name = ids[k]
        if name is None:
            own = ids if callable(ids) else lambda _: None
            parts = zip(case.values, words, strict=True)
            name = "-".join(str(own(one) or _shown(one, f"{word}{k}")) for one, word in parts)
        named.append(pytest.param(*case.values, id=name, marks=case.marks))
    return named


def _values(value: Any, words: list[str]) -> tuple[Any, ...]:
    return tuple(value) if len(words) > 1 else (value,)


def _shown(value: Any, otherwise: str) -> str:
    if value is None or isinstance(value, str | int | float | complex):
        return str(value)
    return getattr(value, "__name__", otherwise)


def _joined(row: tuple[Case, ...]) -> Case:
    values = [value for case in row for value in case.values]
    marks = [mark for case in row for mark in case.marks]
    return pytest.param(*values, id="-".join(case.id for case in row), marks=marks)


def _with_cases(test: Test, cases: list[Case]) -> Test:
    """Put one `parametrize` in the place of all."""
    kept, names = [], []
    for mark in test.pytestmark:
        if mark.name != "parametrize":
            kept.append(mark)
            continue
        given = mark.args[0]
        names += given.split(",") if isinstance(given, str) else given
    test.pytestmark = kept
    return pytest.mark.parametrize([name.strip() for name in names], cases)(test)


def _spread(axes: list[list[Case]], times: int | None) -> list[Case]:
    """Return so many cases of each value of the longest list, or as many as all pairs need.

    Each case is the one, of those with the next value of the longest list, with the most values
    that no case has had, and then with the pairs that have met least often.
    """
    sizes = [len(axis) for axis in axes]
    longest = sizes.index(max(sizes))
    rows = list(product(*map(range, sizes)))
    unmet = {meeting for row in rows for meeting in _meetings(row)}
    unseen = {value for row in rows for value in enumerate(row)}
    n_met: Counter[Any] = Counter()
    chosen: list[tuple[int, ...]] = []

    def news(row: tuple[int, ...]) -> tuple[int, int]:
        return len(unseen.intersection(enumerate(row))), -sum(n_met[one] for one in _meetings(row))

    while unmet if times is None else len(chosen) < times * sizes[longest] or unseen:
        next_value = len(chosen) % sizes[longest]
        fresh = [row for row in rows if row[longest] == next_value and row not in chosen]
        if not fresh:
            break
        row = max(fresh, key=news)
        n_met.update(_meetings(row))
        unmet.difference_update(_meetings(row))
        unseen.difference_update(enumerate(row))
        chosen.append(row)
    found = [zip(axes, row, strict=True) for row in sorted(chosen)]
    return [_joined(tuple(axis[k] for axis, k in row)) for row in found]


def _meetings(row: tuple[int, ...]) -> Iterator[Any]:
    return combinations(enumerate(row), 2)
