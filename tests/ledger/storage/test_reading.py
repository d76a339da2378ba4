"""Pieces of a storage that a ledger reads: each is as a ledger writes it, or is refused."""

import json
from dataclasses import replace

import pytest

from skdpnoise.ledger.storage.base import StoredBudget
from skdpnoise.ledger.storage.database import DatabaseStorage, _summary_in
from skdpnoise.ledger.storage.reading import head_in, parameters_in, time_in

FACTS = StoredBudget(1.0, 1e-6, "replace_one", "record", False)


@pytest.mark.parametrize(
    "stored",
    ["2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00", "yesterday", "", None, 1.0],
)
def test_a_time_is_one_in_utc(stored):
    assert time_in("2026-01-01T00:00:00+00:00").year == 2026
    with pytest.raises((TypeError, ValueError)):
        time_in(stored)


@pytest.mark.parametrize(
    "facts",
    [
        {"epsilon": -1.0},
        {"epsilon": 0.0},
        {"epsilon": float("inf")},
        {"epsilon": float("nan")},
        {"epsilon": "1"},
        {"delta": -1e-9},
        {"delta": 1.0},
        {"adjacency": "any"},
        {"epsilon": None, "delta": None},
        {"unit": True},
        {"adaptive": 2},
        {"most_returned": -1},
    ],
    ids=str,
)
def test_a_budget_is_one_that_a_ledger_takes(facts):
    FACTS.check()
    with pytest.raises((TypeError, ValueError)):
        replace(FACTS, **facts).check()


def test_parameters_have_names_and_heads_of_nobody_fit_no_charge():
    with pytest.raises(TypeError):
        parameters_in(json.dumps([1]))
    for text in ("", "{", "[1]", "null", "[" * 100_000):
        assert head_in(text).number == -1


@pytest.mark.parametrize("number", [0, -1, 2**31, 1.0, True])
def test_a_summary_of_nobody_agrees_with_no_charges(number):
    assert _summary_in(json.dumps([7, "a", "b", "c", "d"])).number == 7
    assert _summary_in(json.dumps([number, "a", "b", "c", "d"])).number == 0
    assert _summary_in(json.dumps([7, "a", "b", "c", 1])).number == 0


def test_a_file_is_waited_for_and_stays_open_after_no_transaction(tmp_path):
    storage = DatabaseStorage(f"sqlite:///{tmp_path / 'ledger.db'}")
    with storage._engine().connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "journal_mode", "foreign_keys")
        }
    assert found == {"synchronous": 3, "journal_mode": "persist", "foreign_keys": 1}  # 3: EXTRA
    assert type(storage._engine().pool).__name__ == "NullPool"
