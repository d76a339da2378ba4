"""No process overspends, loses or doubles a charge, however it ends."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from skdpnoise.ledger import BudgetExceededError, LedgerStorageError, PrivacyLedger
from skdpnoise.noises import get_noise
from skdpnoise.privacy import GaussianLoss, NumericLoss, PureLoss

sqlalchemy = pytest.importorskip("sqlalchemy")

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, ATTEMPTS = 8, 200
EPSILON, DELTA = 5.0, 1e-6
LOSS = PureLoss(0.05)
KILLS = 100


@contextlib.contextmanager
def workers(count: int, work: Callable[[int], None]) -> Iterator[list]:
    """Run ``work(k)`` in forked processes; whoever is left at the end is killed."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("this system cannot fork")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_guarded, args=(work, k)) for k in range(count)]
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.join()


def _guarded(work: Callable[[int], None], k: int) -> None:
    try:
        work(k)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # not the parent's handlers of an orderly end


def finished(processes: list) -> None:
    """Wait until all have ended in order."""
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def log(path: Path, line: str) -> None:
    """Append a line in one call: it is there as a whole, or not at all."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode() + b"\n")
    finally:
        os.close(descriptor)


def logged(path: Path) -> list[str]:
    """Return all lines."""
    return path.read_text().split() if path.exists() else []


def how_many_fit(loss, epsilon: float = EPSILON) -> int:
    """Return how many equal charges one process makes."""
    ledger = PrivacyLedger("alone", epsilon, DELTA)
    for count in range(PROCESSES * ATTEMPTS):
        try:
            ledger.charge("alone", loss)
        except BudgetExceededError:
            return count
    raise AssertionError("the budget is too large for this test")


@pytest.mark.slow
def test_eight_processes_spend_exactly_what_one_would(database, dataset, tmp_path):
    path = tmp_path / "accepted"

    def work(k: int) -> None:
        # All create the data set, and on SQLite the file, at the same time.
        ledger = PrivacyLedger(dataset, EPSILON, DELTA, database, who=f"worker {k}")
        for _ in range(ATTEMPTS):
            with contextlib.suppress(BudgetExceededError):
                log(path, ledger.charge("fit", LOSS).token)

    with workers(PROCESSES, work) as processes:
        finished(processes)
    ledger = PrivacyLedger.open(dataset, database)
    charges, total = ledger.charges(), ledger.total()
    expected = how_many_fit(LOSS)
    assert 0 < expected < PROCESSES * ATTEMPTS
    assert len(charges) == total.n_charges == expected
    assert sorted(charge.token for charge in charges) == sorted(logged(path))
    assert [charge.number for charge in charges] == list(range(1, expected + 1))
    assert sorted(charge.time for charge in charges) == [charge.time for charge in charges]
    assert total.epsilon <= EPSILON
    assert total.loss.delta(EPSILON) <= DELTA
    assert len({charge.who for charge in charges}) > 1


@pytest.mark.slow
def test_losses_of_all_kinds_from_many_processes_stay_within_the_budget(sqlite, dataset, tmp_path):
    path = tmp_path / "accepted"

    def work(k: int) -> None:
        ledger = PrivacyLedger(dataset, 2.0, DELTA, sqlite)
        rng = np.random.default_rng(k)
        for shift in rng.uniform(0.02, 0.2, 30):
            laplace = NumericLoss(((get_noise("laplace"), float(shift), 1),))
            kinds = (laplace, GaussianLoss(shift), PureLoss(shift))
            with contextlib.suppress(BudgetExceededError):
                log(path, ledger.charge("fit", kinds[rng.integers(3)]).token)

    with workers(4, work) as processes:
        finished(processes)
    ledger = PrivacyLedger.open(dataset, sqlite)
    charges, total = ledger.charges(), ledger.total()
    assert sorted(charge.token for charge in charges) == sorted(logged(path))
    composed = NumericLoss(tuple(term for c in charges for term in c.loss.numeric().terms))
    assert composed.delta(2.0) <= DELTA
    assert total.epsilon == pytest.approx(composed.epsilon(DELTA), rel=1e-3)
    assert total.epsilon <= 2.0
    assert total.left < 0.2  # what is left is smaller than what was asked for last


def integrity(database: str) -> None:
    """Check that the file is whole."""
    connection = sqlite3.connect(database.removeprefix("sqlite:///"))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        connection.close()


def reports_are_kept(ledger: PrivacyLedger, path: Path) -> set[str]:
    """Check that what was reported is written, and whole; return the tokens that are there."""
    reported = set(logged(path))  # before looking: others may still be charging
    charges = ledger.charges()
    written = {charge.token for charge in charges}
    assert len(written) == len(charges)
    assert reported <= written
    assert [charge.number for charge in charges] == list(range(1, len(charges) + 1))
    assert all(charge.parameters == {"filler": "x" * 200} for charge in charges)
    return written


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "kills"), [("sqlite", 100), ("postgresql", 30)])
def test_killed_workers_leave_whole_charges_only(kind, kills, dataset, tmp_path, request):
    database = request.getfixturevalue(kind)
    path = tmp_path / "accepted"
    PrivacyLedger(dataset, 1e4, DELTA, database)
    rng = random.Random(0)

    def work(_: int) -> None:
        ledger = PrivacyLedger.open(dataset, database)
        while True:
            charge = ledger.charge("fit", LOSS, parameters={"filler": "x" * 200})
            log(path, charge.token)

    n_written, n_unreported = 0, 0
    for _ in range(kills // 2):
        with workers(2, work) as processes:
            for process in processes:
                time.sleep(rng.uniform(0.0, 0.06))
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                ledger = PrivacyLedger.open(dataset, database)
                written = reports_are_kept(ledger, path)
        total = ledger.total()
        assert total.n_charges == len(written) >= n_written
        assert total.basic[0] == pytest.approx(0.05 * len(written), rel=1e-12)
        if kind == "sqlite":
            integrity(database)
        # A worker may die between its commit and its report: one charge each.
        unreported = len(written) - len(set(logged(path)))
        assert n_unreported <= unreported <= n_unreported + 2
        n_written, n_unreported = len(written), unreported
    assert n_written > kills // 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_who_is_killed_around_a_commit_has_charged_wholly_or_not_at_all(
    database, dataset, tmp_path, when
):
    path = tmp_path / "accepted"
    ledger = PrivacyLedger(dataset, 3 * 0.05, 0.0, database)

    def work(_: int) -> None:
        mine = PrivacyLedger.open(dataset, database)
        kept = mine._storage.transaction

        @contextlib.contextmanager
        def transaction(*args, **keywords):
            with kept(*args, **keywords) as inner:
                yield inner
                if keywords["write"] and when == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
            if keywords["write"]:
                os.kill(os.getpid(), signal.SIGKILL)

        mine._storage.transaction = transaction
        log(path, mine.charge("killed", LOSS).token)

    with workers(1, work) as (process,):
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
    spent = int(when == "after")
    assert logged(path) == []
    assert ledger.total().n_charges == spent
    started = time.monotonic()
    for number in range(spent, 3):  # nothing is locked, and no charge counts twice
        assert ledger.charge("next", LOSS).number == number + 1
    assert time.monotonic() - started < 10.0
    with pytest.raises(BudgetExceededError):
        ledger.charge("too much", LOSS)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_processes_that_ask_at_once_get_no_more_than_the_budget(database, dataset, tmp_path, count):
    path = tmp_path / "accepted"
    PrivacyLedger(dataset, 5 * 0.05, 0.0, database)

    def work(k: int) -> None:
        ledger = PrivacyLedger.open(dataset, database)
        for _ in range(5):
            with contextlib.suppress(BudgetExceededError):
                log(path, ledger.charge("fit", LOSS).token)

    with workers(count, work) as processes:
        finished(processes)
    ledger = PrivacyLedger.open(dataset, database)
    assert ledger.total().n_charges == len(logged(path)) == 5
    assert ledger.total().epsilon == pytest.approx(0.25)


@pytest.mark.slow
def test_killed_makers_of_a_file_leave_one_that_opens(dataset, tmp_path):
    rng = random.Random(1)
    for number in range(15):
        database = f"sqlite:///{tmp_path / f'budget{number}.db'}"

        def work(_: int, database: str = database) -> None:
            PrivacyLedger(dataset, 1.0, DELTA, database).charge("fit", LOSS)

        with workers(2, work):
            time.sleep(rng.uniform(0.0, 0.06))
        ledger = PrivacyLedger(dataset, 1.0, DELTA, database)
        assert ledger.total().n_charges <= 2
        integrity(database)


def test_an_open_ledger_survives_a_fork(database, dataset):
    ledger = PrivacyLedger(dataset, 10.0, DELTA, database)
    ledger.charge("parent", LOSS)  # there is an open connection to cross the fork

    def work(_: int) -> None:
        for _ in range(3):
            ledger.charge("child", LOSS)

    with workers(2, work) as processes:
        ledger.charge("parent", LOSS)
        finished(processes)
    assert ledger.total().n_charges == 8


def test_an_open_ledger_may_be_used_by_many_threads(storage, dataset):
    ledger = PrivacyLedger(dataset, 0.5, 0.0, storage)
    accepted, failures = [], []

    def work() -> None:
        for _ in range(5):
            try:
                accepted.append(ledger.charge("fit", LOSS).token)
            except BudgetExceededError:
                pass
            except BaseException as error:  # a thread would swallow it
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(accepted) == 10
    assert sorted(accepted) == sorted(charge.token for charge in ledger.charges())
    assert ledger.total().epsilon == 0.5


@pytest.mark.slow
def test_a_pickled_ledger_charges_from_a_fresh_process(database, dataset, tmp_path):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, database, who="someone")
    ledger.charge("here", LOSS)
    path = tmp_path / "ledger.pickle"
    path.write_bytes(pickle.dumps(ledger))
    code = (
        "import pathlib, pickle, sys\n"
        "from skdpnoise.privacy import PureLoss\n"
        "ledger = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "print(ledger.charge('there', PureLoss(0.05)).number, ledger.who)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == ["2", "someone"]
    assert [charge.label for charge in ledger.charges()] == ["here", "there"]


def test_a_ledger_in_memory_refuses_another_process(dataset):
    ledger = PrivacyLedger(dataset, 1.0, DELTA)

    def work(_: int) -> None:
        with pytest.raises(LedgerStorageError, match="sqlite:///"):
            ledger.charge("child", LOSS)

    with workers(1, work) as processes:
        finished(processes)
    arrived = pickle.loads(pickle.dumps(ledger))
    for use in (arrived.total, arrived.charges, lambda: arrived.charge("there", LOSS)):
        with pytest.raises(LedgerStorageError, match="sqlite:///"):
            use()
    assert ledger.total().n_charges == 0


def test_a_charge_whose_answer_was_lost_is_not_doubled(database, dataset, monkeypatch):
    ledger = PrivacyLedger(dataset, 1.0, DELTA, database)
    broken = sqlalchemy.exc.OperationalError("COMMIT", {}, Exception("database is locked"))
    kept = ledger._storage.transaction
    lost = iter([True])

    @contextlib.contextmanager
    def transaction(*args, **keywords):
        with kept(*args, **keywords) as inner:
            yield inner
        if keywords["write"] and next(lost, False):
            raise broken  # after the commit

    monkeypatch.setattr(ledger._storage, "transaction", transaction)
    charge = ledger.charge("once", LOSS)
    assert next(lost, "used") == "used"
    assert [c.token for c in ledger.charges()] == [charge.token]
    assert ledger.charge("again", LOSS).number == 2
