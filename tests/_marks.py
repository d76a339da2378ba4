"""Which cases of a test are left to ``make test-all``."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def quick(names: Iterable[str], *chosen: str) -> list:
    """Return the cases of a test, of which only the chosen ones are quick enough for ``make test``.

    There is at least one, so that ``make test`` runs a case of every test.
    """
    cases = list(names)
    assert chosen and set(chosen) <= set(cases)
    slow = pytest.mark.slow
    return [case if case in chosen else pytest.param(case, marks=slow) for case in cases]
