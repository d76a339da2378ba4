"""What is returned counts nothing and stays listed; every other reservation counts in full."""

from __future__ import annotations

import itertools
import warnings

import pytest

from skdpnoise.accounting.declared import said_public
from skdpnoise.ledger import BudgetExceededError, LedgerStorageError, PrivacyLedger
from skdpnoise.ledger.storage import _schema
from skdpnoise.ledger.storage.memory import MemoryStorage
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import each_value, quick

DELTA = 1e-6
REASON = "ValueError: Input X contains NaN."


@pytest.fixture
def ledger(storage, dataset):
    """A ledger in each kind of storage."""
    return PrivacyLedger(dataset, 3.0, DELTA, storage or "memory")


def opened(ledger, storage):
    """The same ledger as another process opens it; in memory there is none."""
    return ledger if storage is None else PrivacyLedger.open(ledger.dataset, storage)


def test_what_is_returned_counts_nothing_and_stays_listed(ledger, storage):
    ledger.charge("before", PureLoss(1.0))
    reservation = ledger.reserve("fit", GaussianLoss(0.2), estimator="DPPipeline")
    assert ledger.total().n_charges == 2
    assert reservation.give_back(REASON)
    ledger.charge("after", PureLoss(1.5))
    for one in (ledger, opened(ledger, storage)):
        total = one.total()
        assert (total.n_charges, total.n_returned) == (2, 1)
        assert total.epsilon == pytest.approx(2.5, rel=1e-4)
        assert "returned, and not counted: 1" in str(total)
        reserved, returned = one.charges()[1:3]
        assert (reserved.returned, returned.returned) == (REASON, REASON)
        assert (reserved.returns, returned.returns) == (None, 2)
        assert str(returned) == f"3. fit (DPPipeline): 0.2-GDP; returned: {REASON}"
        history = one.history()
        assert history["returned"].fillna("").tolist() == ["", REASON, REASON, ""]
        assert history["spent"].tolist() == pytest.approx([1.0, 1.0, 1.0, 2.5], rel=1e-4)


def test_a_fit_that_was_returned_neither_has_a_seed_nor_declares_a_step(ledger, storage):
    def reserved(random_state, *steps):
        parameters = {"random_state": random_state, **said_public(steps)}
        return ledger.reserve("fit", PureLoss(0.1), parameters=parameters)

    reserved(None, "scale")
    bad = reserved(7, "scale", "fill")
    for one in (ledger, opened(ledger, storage)):
        assert (one.total().secure, one.total().declared) == (False, ("scale", "fill"))
    assert bad.give_back(REASON)
    for one in (ledger, opened(ledger, storage)):
        assert (one.total().secure, one.total().declared) == (True, ("scale",))
    reserved(7)
    assert not ledger.total().secure


def test_what_was_returned_may_be_spent_again(ledger):
    for _ in range(3):
        reservation = ledger.reserve("fit", PureLoss(2.5))
        with pytest.raises(BudgetExceededError):
            ledger.charge("other", PureLoss(1.0))
        assert reservation.give_back(REASON)
    ledger.charge("other", PureLoss(3.0))


def test_a_reservation_has_one_line_of_return(ledger, storage):
    reservation = ledger.reserve("fit", PureLoss(1.0))
    (charge,) = ledger.charges()
    assert reservation.give_back(REASON)
    assert not reservation.give_back(REASON)
    assert opened(ledger, storage)._return(charge, REASON)  # written once more, it is found
    assert len(ledger.charges()) == 2


def test_a_thousand_free_questions_leave_a_thousand_lines():
    ledger = PrivacyLedger("people", 1.0, DELTA, "memory")
    for _ in range(1000):
        assert ledger.reserve("fit", PureLoss(0.9)).give_back(REASON)
    assert ledger.total().n_returned == 1000
    assert ledger.total().epsilon == 0.0
    assert sum(charge.returns is not None for charge in ledger.charges()) == 1000


def test_only_so_many_are_returned_as_were_allowed(storage, dataset):
    where = storage or "memory"
    ledger = PrivacyLedger(dataset, 3.0, DELTA, where, most_returned=2)
    ends = [ledger.reserve("fit", PureLoss(0.5)).give_back(REASON) for _ in range(4)]
    assert ends == [True, True, False, False]
    assert (ledger.total().n_charges, ledger.total().n_returned) == (2, 2)


@pytest.mark.parametrize("most", [-1, 1.0, True, "2"])
def test_a_largest_number_is_a_whole_number(most):
    with pytest.raises(ValueError, match="'most_returned' parameter of PrivacyLedger must be None"):
        PrivacyLedger("people", 1.0, DELTA, "memory", most_returned=most)


def test_the_largest_number_is_what_was_set(sqlite, dataset):
    PrivacyLedger(dataset, 1.0, DELTA, sqlite, most_returned=2)
    with pytest.raises(ValueError, match=r"'most_returned'.* must be 2"):
        PrivacyLedger(dataset, 1.0, DELTA, sqlite, most_returned=3)
    ledger = PrivacyLedger.open(dataset, sqlite)
    assert [ledger.reserve("fit", PureLoss(0.1)).give_back(REASON) for _ in range(3)] == [
        True,
        True,
        False,
    ]


@pytest.mark.slow
def test_a_summary_counts_without_what_was_returned(sqlite, dataset):
    ledger = PrivacyLedger(dataset, 9.0, DELTA, sqlite)
    late = ledger.reserve("late", GaussianLoss(0.3))
    for k in range(70):
        reservation = ledger.reserve("fit", (PureLoss(0.01), GaussianLoss(0.01))[k % 2])
        if k % 3:
            assert reservation.give_back(REASON)
    before = PrivacyLedger.open(dataset, sqlite).total()
    assert (before.n_charges, before.n_returned) == (25, 46)
    assert late.give_back(REASON)  # what the summary has counted
    after = PrivacyLedger.open(dataset, sqlite).total()
    assert (after.n_charges, after.n_returned) == (24, 47)
    assert after.epsilon == pytest.approx(ledger.total().epsilon, rel=1e-9)
    assert after.epsilon < before.epsilon


BY_HAND = {
    "of nothing": "UPDATE skdpnoise_charges SET returned = 1 WHERE number = 2",
    "taken out": "DELETE FROM skdpnoise_charges WHERE number = 4",
    "of another": "UPDATE skdpnoise_charges SET returned = 2 WHERE number = 4",
    "of itself": "UPDATE skdpnoise_charges SET returned = 4 WHERE number = 4",
    "no more": "UPDATE skdpnoise_charges SET returned = NULL WHERE number = 4",
}


@pytest.mark.parametrize("change", BY_HAND.values(), ids=BY_HAND)
def test_lines_of_return_that_were_changed_are_found(sqlite, dataset, change):
    import sqlalchemy as sa

    ledger = PrivacyLedger(dataset, 3.0, DELTA, sqlite)
    for loss in (0.1, 0.2):
        ledger.charge("fit", PureLoss(loss))
    ledger.reserve("fit", PureLoss(0.3)).give_back(REASON)
    engine = sa.create_engine(sqlite)
    with engine.begin() as connection:
        connection.exec_driver_sql(change)
    engine.dispose()
    newcomer = PrivacyLedger.open(dataset, sqlite)
    with pytest.raises(LedgerStorageError, match="the ledger wrote"):
        newcomer.charge("fit", PureLoss(0.1))


def test_old_charges_are_kept_reservations(sqlite, dataset):
    import sqlalchemy as sa

    ledger = PrivacyLedger(dataset, 3.0, DELTA, sqlite)
    ledger.charge("fit", PureLoss(0.5))
    engine = sa.create_engine(sqlite)
    with engine.begin() as connection:  # as version 4 had it
        connection.exec_driver_sql("ALTER TABLE skdpnoise_datasets DROP COLUMN most_returned")
        connection.exec_driver_sql("ALTER TABLE skdpnoise_charges DROP COLUMN returned")
        connection.exec_driver_sql("UPDATE skdpnoise_schema SET version = 4")
    engine.dispose()
    assert _schema.VERSION == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = PrivacyLedger.open(dataset, sqlite)
    assert (again.total().n_charges, again.total().basic) == (1, (0.5, 0.0))
    assert again.reserve("fit", PureLoss(2.0)).give_back(REASON)
    assert again.total().basic == (0.5, 0.0)


def test_a_limit_that_was_raised_in_the_storage_is_found(sqlite, dataset):
    import sqlalchemy as sa

    PrivacyLedger(dataset, 1.0, DELTA, sqlite, most_returned=0)
    engine = sa.create_engine(sqlite)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE skdpnoise_datasets SET most_returned = 9")
    engine.dispose()
    with pytest.raises(LedgerStorageError, match="is not the one that the ledger wrote"):
        PrivacyLedger.open(dataset, sqlite).reserve("fit", PureLoss(0.1))


# All paths of a small model


class DiedError(BaseException):
    """The process has ended."""


class Faulty(MemoryStorage):
    """A storage whose next commits are answered, repeated after a lost answer, or the last."""

    def __init__(self):
        super().__init__()
        self.faults = []

    def attempt(self, work):
        fault = self.faults.pop(0) if self.faults else "answered"
        if fault == "died before":
            raise DiedError
        answer = work(0)
        if fault == "repeated":
            answer = work(1)
        if fault == "died after":
            raise DiedError
        return answer


def session(ledger, *, valid, faults):
    """Reserve, read, and return or draw; yield after each act what is true from then on."""
    storage = ledger._storage
    state = {"word": False, "returned": False, "open": False}
    storage.faults = [*faults[:1]]
    try:
        reservation = ledger.reserve("fit", PureLoss(0.4))
    except BudgetExceededError:
        storage.faults = []
        return
    except DiedError:
        state["open"] = None  # somebody may have written it
        yield state
        return
    state["open"] = True
    yield state
    yield state  # read
    if valid:
        reservation.keep()
        state["word"] = True
        yield state
        assert not reservation.give_back(REASON)
        return
    storage.faults = [*faults[1:]]
    try:
        state["returned"] = reservation.give_back(REASON)
    except DiedError:
        state["returned"] = None
    storage.faults = []
    yield state
    with pytest.raises(RuntimeError, match="was returned"):
        reservation.keep()


FAULTS = ["answered", "repeated", "died before", "died after"]
KINDS = [(True, [first]) for first in FAULTS]
KINDS += [(False, ["answered", second]) for second in FAULTS]
ORDERS = sorted(set(itertools.permutations("aaaabbbb")))[::3]


def check(ledger, states):
    """Nothing that was drawn is uncounted, and nothing is counted beyond the budget."""
    total = ledger.total()
    assert total.epsilon <= 0.5
    drawn = sum(state["word"] for state in states.values())
    sure = sum(state["open"] is True and state["returned"] is False for state in states.values())
    assert drawn <= total.n_charges
    assert sure <= total.n_charges
    for state in states.values():
        assert not (state["word"] and state["returned"] in (True, None))
    returns = [charge.returns for charge in ledger.charges() if charge.returns is not None]
    assert len(returns) == len(set(returns))


@quick("4-4")
@each_value(2)
@pytest.mark.parametrize("second", range(len(KINDS)))
@pytest.mark.parametrize("first", range(len(KINDS)))
def test_on_no_path_of_two_sessions_is_a_word_uncounted(first, second):
    """Every order of their acts, each of which may be the last one of its session."""
    for order in ORDERS:
        for ends in ((4, 4), (1, 4), (4, 2)):
            storage = Faulty()
            ledgers = {}
            for name in "ab":  # two processes, each with what it has read
                ledger = ledgers[name] = PrivacyLedger.__new__(PrivacyLedger)
                ledger._start("people", None, storage)
                ledger._budget = storage.open("people", {"epsilon": 0.5, "delta": 0.0})
            runs = {
                name: session(ledgers[name], valid=valid, faults=faults)
                for name, (valid, faults) in zip("ab", (KINDS[first], KINDS[second]), strict=True)
            }
            states, left = {}, dict(zip("ab", ends, strict=True))
            for name in order:
                if left[name] == 0:
                    continue  # its process has ended
                left[name] -= 1
                state = next(runs[name], None)
                if state is not None:
                    states[name] = state
                check(ledgers["a"], states)
            check(ledgers["b"], states)
