"""Every storage keeps the same promises: one budget per data set, whole charges, in their order."""

from __future__ import annotations

import gc
import weakref

import pytest

from skdpnoise.ledger import BudgetChangedError, UnknownDatasetError
from skdpnoise.ledger.storage import storage_of
from skdpnoise.ledger.storage.base import Row, Storage, StoredBudget, digest_of

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CHANGES = [
    {"epsilon": 2.0},
    {"delta": 1e-5},
    {"adjacency": "add_remove"},
    {"unit": "group"},
    {"adaptive": True},
]


@pytest.fixture
def kept(storage) -> Storage:
    """Each kind of storage in turn."""
    return storage_of(storage or "memory")


def row(number: int, dataset: str) -> Row:
    time = f"2026-01-0{number}T00:00:00.000000+00:00"
    token = digest_of(dataset, number)[:32]
    return Row(number, token, time, f"fit {number}", None, "DPModel", "{}", 0.25, 0.0, "me", "{}")


def written(kept: Storage, dataset: str, count: int) -> list[Row]:
    """Open a data set and write so many charges, each in a transaction of its own."""
    kept.open(dataset, BUDGET)
    rows = [row(number, dataset) for number in range(1, count + 1)]
    for each in rows:
        with kept.transaction(dataset, write=True) as transaction:
            transaction.write(each, f"digest {each.number}", None)
    return rows


def test_a_budget_is_set_once_and_found_again(kept, dataset):
    budget = kept.open(dataset, BUDGET)
    assert budget == StoredBudget(1.0, 1e-6, "replace_one", "record", False)
    assert kept.open(dataset, {}) == kept.open(dataset, BUDGET) == budget
    with kept.transaction(dataset, write=False) as transaction:
        assert (transaction.budget, transaction.seal) == (budget, budget.seal(dataset))
        assert transaction.head == (0, digest_of(transaction.seal, transaction.seal))
        assert transaction.summarised() is None


@pytest.mark.parametrize("changed", CHANGES, ids=lambda changed: next(iter(changed)))
def test_what_was_promised_does_not_change(kept, dataset, changed):
    ((name, value),) = changed.items()
    budget = kept.open(dataset, BUDGET)
    with pytest.raises(BudgetChangedError, match=rf"'{name}' .* must be .*Got {value!r} instead"):
        kept.open(dataset, {**BUDGET, **changed})
    assert kept.open(dataset, {}) == budget


def test_an_unknown_data_set_is_named_beside_those_that_are_known(kept, dataset):
    with pytest.raises(UnknownDatasetError):
        kept.open(dataset, {})
    kept.open(dataset, BUDGET)
    with pytest.raises(UnknownDatasetError, match="Got 'no such'") as refusal:
        kept.open("no such", {})
    # A database may hold those of other tests, of which only some are named.
    assert any(repr(name) in str(refusal.value) for name in kept.names())


def test_names_are_sorted(kept, dataset):
    for ending in ("b", "a"):
        kept.open(f"{dataset} {ending}", BUDGET)
    ours = [name for name in kept.names() if name.startswith(f"{dataset} ")]
    assert ours == [f"{dataset} a", f"{dataset} b"]


def test_charges_come_back_whole_and_in_their_order(kept, dataset):
    rows = written(kept, dataset, 3)
    with kept.transaction(dataset, write=False) as transaction:
        assert [*transaction.rows(None)] == [*transaction.rows()] == rows
        assert [*transaction.rows(1)] == rows[1:]
        assert [*transaction.rows(3)] == []
        assert transaction.head == (3, "digest 3")
        assert transaction.find(rows[1].token) == rows[1]
        assert transaction.find("no such") is None


def test_a_transaction_that_raises_leaves_nothing(kept, dataset):
    rows = written(kept, dataset, 1)
    with (
        pytest.raises(RuntimeError, match="in between"),
        kept.transaction(dataset, write=True) as transaction,
    ):
        transaction.write(row(2, dataset), "digest 2", None)
        assert [*transaction.rows()] == [*rows, row(2, dataset)]
        raise RuntimeError("in between")
    with kept.transaction(dataset, write=False) as transaction:
        assert ([*transaction.rows()], transaction.head) == (rows, (1, "digest 1"))
        assert transaction.find(row(2, dataset).token) is None


def test_data_sets_of_one_storage_do_not_touch(kept, dataset):
    rows = written(kept, dataset, 2)
    others = written(kept, f"{dataset} too", 1)
    for name, known in ((dataset, rows), (f"{dataset} too", others)):
        with kept.transaction(name, write=False) as transaction:
            assert [*transaction.rows()] == known
            assert transaction.head.number == len(known)


def test_work_is_done_once_where_nothing_is_in_the_way(kept, dataset):
    kept.open(dataset, BUDGET)
    assert kept.attempt(lambda number: (number, dataset)) == (0, dataset)
    with pytest.raises(KeyError):
        kept.attempt(lambda number: {}[number])


def test_a_storage_that_nobody_holds_is_closed_at_once(storage, dataset):
    kept = storage_of(storage or "memory")
    kept.open(dataset, BUDGET)
    seen = weakref.ref(kept)
    gc.disable()
    try:
        del kept
        assert seen() is None
    finally:
        gc.enable()
