"""Whatever is wrong with the request or the storage: a clear error, and nothing is lost."""

from __future__ import annotations

import pickle
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from skdpnoise.ledger import (
    BudgetChangedError,
    LedgerError,
    LedgerSchemaError,
    LedgerStorageError,
    PrivacyLedger,
    UnknownDatasetError,
)
from skdpnoise.ledger.storage import database
from skdpnoise.privacy import PureLoss

sqlalchemy = pytest.importorskip("sqlalchemy")

DELTA = 1e-6
LOSS = PureLoss(0.25)


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture
def spent(sqlite) -> str:
    """URL of a file in which half of a budget is spent."""
    ledger = PrivacyLedger("trips", 1.0, DELTA, sqlite)
    ledger.charge("fit", LOSS)
    ledger.charge("fit", LOSS)
    return sqlite


def half_is_spent(url: str) -> bool:
    total = PrivacyLedger.open("trips", url).total()
    return (total.n_charges, total.basic) == (2, (0.5, 0.0))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": 3}, "'dataset' parameter of PrivacyLedger must be a str .* Got 3 of type int"),
        ({"dataset": ""}, "'dataset' .* 1 to 255 characters. Got one of 0 instead"),
        ({"epsilon": 0.0}, "'epsilon' parameter of PrivacyLedger must be a float .*Got 0.0"),
        ({"epsilon": float("nan")}, "'epsilon' .* Got nan"),
        ({"epsilon": float("inf")}, "'epsilon' .* Got inf"),
        ({"epsilon": "1"}, "'epsilon' .* Got '1' of type str"),
        ({"epsilon": None}, "'epsilon' .* must be given along .* Got None"),
        ({"delta": None}, "'delta' .* must be given along .* Got None"),
        ({"delta": 1.0}, "'delta' .* Got 1.0"),
        ({"delta": -1e-9}, "'delta' .* Got -1e-09"),
        ({"adjacency": "near"}, "'adjacency' .*'replace_one', 'add_remove'.* Got 'near'"),
        ({"unit": "city"}, "'unit' .*'record', 'group'.* Got 'city'"),
        ({"adaptive": 1}, "'adaptive' .* must be of type bool. Got an object of type int"),
        ({"who": 1}, "'who' .* must be None or a str"),
    ],
)
def test_a_budget_that_is_none_is_refused(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        PrivacyLedger(**{"dataset": "trips", "epsilon": 1.0, "delta": DELTA, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cost": 0.5}, "'cost' .* must be a PrivacyLoss or a mechanism. Got float"),
        ({"label": None}, "'label' parameter of PrivacyLedger.charge must be a str"),
        ({"guarantee": (-1.0, 0.0)}, "'guarantee' .* Got -1.0"),
        ({"guarantee": (1.0, 2.0)}, "'guarantee' .* Got 2.0"),
        ({"guarantee": (float("nan"), 0.0)}, "'guarantee' .* Got nan"),
    ],
)
def test_a_charge_that_is_none_is_refused(given, message):
    ledger = PrivacyLedger("trips", 1.0, DELTA)
    with pytest.raises((ValueError, TypeError), match=message):
        ledger.charge(**{"label": "fit", "cost": LOSS, **given})
    assert ledger.total().n_charges == 0


def test_a_new_ledger_in_memory_needs_a_budget():
    with pytest.raises(UnknownDatasetError, match=r"epsilon and delta must be given .*'trips'"):
        PrivacyLedger("trips")


def test_an_unknown_data_set_is_not_created_by_the_way(spent, tmp_path):
    for attempt in (PrivacyLedger, lambda *a, **k: PrivacyLedger.open(*a, **k)):
        with pytest.raises(UnknownDatasetError, match=r"\('trips'\).*Got 'trip' instead.*epsilon="):
            attempt("trip", storage=spent)
        absent = f"sqlite:///{tmp_path / 'absent.db'}"
        with pytest.raises(UnknownDatasetError, match=r"there is no file .*absent.db"):
            attempt("trip", storage=absent)
        assert not path_of(absent).exists()
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(UnknownDatasetError, match=r"none yet"):
        PrivacyLedger.open("trip", f"sqlite:///{empty}")
    assert empty.stat().st_size == 0
    assert half_is_spent(spent)


def test_what_was_promised_may_be_said_again(spent):
    again = PrivacyLedger(
        "trips", 1, DELTA, spent, adjacency="replace_one", unit="record", adaptive=False
    )
    assert again.charge("fit", LOSS).number == 3


@pytest.mark.parametrize(
    "url", ["budget.db", "", "sqlite", "nosuchdatabase:///x", "sqlite:/budget.db:"]
)
def test_a_storage_that_is_no_url_is_named(url):
    with pytest.raises(LedgerStorageError, match=rf"sqlite:///budget.db.*Got {url!r} instead"):
        PrivacyLedger("trips", 1.0, DELTA, url)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true"]
)
def test_a_database_that_nobody_else_sees_is_refused(url):
    with pytest.raises(LedgerStorageError, match=r"storage=.memory. keeps a ledger in memory"):
        PrivacyLedger("trips", 1.0, DELTA, url)


def test_a_storage_of_another_type_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"'storage' .* of type PosixPath"):
        PrivacyLedger("trips", 1.0, DELTA, tmp_path / "budget.db")


def test_a_password_is_never_shown(postgresql):
    password = sqlalchemy.make_url(postgresql).password
    wrong = postgresql.replace(password, "not-it-either")
    with pytest.raises(LedgerStorageError) as caught:
        PrivacyLedger("trips", 1.0, DELTA, wrong)
    assert "authentication failed" in str(caught.value)
    assert "not-it-either" not in str(caught.value)
    with pytest.raises(LedgerStorageError) as caught:
        PrivacyLedger("trips", 1.0, DELTA, f"nosuch+driver://me:{password}@host/x")
    assert password not in str(caught.value)


def test_a_server_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(database.time, "sleep", lambda seconds: None)
    pytest.importorskip("psycopg")
    url = "postgresql://me:secret@127.0.0.1:1/x"
    with pytest.raises(LedgerStorageError, match=r"127.0.0.1.*cannot be used.*Nothing was changed"):
        PrivacyLedger("trips", 1.0, DELTA, url)


def test_without_sqlalchemy_the_extra_is_named(monkeypatch, sqlite):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ImportError, match=re.escape('pip install "skdpnoise[ledger]"')):
        PrivacyLedger("trips", 1.0, DELTA, sqlite)
    PrivacyLedger("trips", 1.0, DELTA).charge("fit", LOSS)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=re.escape("pip install skdpnoise[ledger]")):
        PrivacyLedger("trips", 1.0, DELTA, "postgresql+psycopg://me@127.0.0.1/x")


def test_a_read_only_file_can_be_read_but_not_charged(spent):
    # Permissions do not stop the superuser: the database is opened read-only instead.
    url = f"sqlite:///file:{path_of(spent)}?mode=ro&uri=true"
    ledger = PrivacyLedger("trips", 1.0, DELTA, url)
    assert ledger.total().n_charges == 2
    before = path_of(spent).read_bytes()
    with pytest.raises(LedgerStorageError, match=r"readonly.*make it writable.*Nothing"):
        ledger.charge("fit", LOSS)
    with pytest.raises(LedgerStorageError, match=r"readonly"):
        PrivacyLedger("others", 1.0, DELTA, url)
    assert path_of(spent).read_bytes() == before
    assert half_is_spent(spent)


MODES = [
    "sqlite:///{path}?mode={mode}",
    "sqlite:///{path}?mode={mode}&uri=true",
    "sqlite+pysqlite:///{path}?uri=1&mode={mode}",
    "sqlite:///file:{path}?mode={mode}",
    "sqlite:///file:{path}?mode={mode}&uri=true",
    "sqlite:///file://{path}?mode={mode}&uri=true",
]


@pytest.mark.parametrize("url", MODES)
def test_a_mode_that_is_asked_for_is_kept(spent, url, tmp_path):
    path = path_of(spent)
    before = path.read_bytes()
    ledger = PrivacyLedger.open("trips", url.format(path=path, mode="ro"))
    for reader in (ledger, pickle.loads(pickle.dumps(ledger))):
        assert reader.total().n_charges == len(reader.history()) == 2
        assert "mode=ro" in reader.storage
        with pytest.raises(LedgerStorageError, match="readonly"):
            reader.charge("fit", LOSS)
    assert path.read_bytes() == before
    writer = PrivacyLedger.open("trips", url.format(path=path, mode="rw"))
    assert writer.charge("fit", LOSS).number == 3
    assert PrivacyLedger.open("trips", url.format(path=path, mode="rwc")).total().n_charges == 3
    for mode in ("ro", "rw"):
        with pytest.raises(LedgerStorageError, match=r"unable to open.*the file must exist"):
            PrivacyLedger("trips", 1.0, DELTA, url.format(path=tmp_path / "absent.db", mode=mode))
    for mode in ("ro", "rw", "rwc"):
        with pytest.raises(UnknownDatasetError, match="no file"):
            PrivacyLedger.open("trips", url.format(path=tmp_path / "absent.db", mode=mode))
    assert {file.name for file in tmp_path.iterdir()} <= {"budget.db", "budget.db-journal"}


@pytest.mark.parametrize("mode", ["RO", "readonly", "ro&mode=rw", "ro%00"])
def test_a_mode_that_is_none_is_refused(spent, mode):
    for url in MODES:
        with pytest.raises(LedgerStorageError, match=r"mode|NUL"):
            PrivacyLedger.open("trips", url.format(path=path_of(spent), mode=mode))
    assert half_is_spent(spent)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///bud\0get.db",
        "sqlite:///budget.db\0",
        "sqlite:///file:bud%00get.db?uri=true",
        "sqlite:///bud\ud800get.db",
        "postgresql://me@host/bud\0get",
        "postgresql://me:%00@host/budget",
    ],
    ids=ascii,
)
def test_a_path_that_no_file_can_have_is_refused(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for attempt in (PrivacyLedger.open, lambda *where: PrivacyLedger(where[0], 1.0, 0.0, where[1])):
        with pytest.raises(LedgerStorageError, match="NUL, or with half of a surrogate pair"):
            attempt("trips", url)
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_a_question_mark_is_one(tmp_path):
    url = f"sqlite:///file:{tmp_path}/a%3Fb%23%25.db?uri=true"
    ledger = PrivacyLedger("trips", 1.0, DELTA, url)
    ledger.charge("fit", LOSS)
    assert pickle.loads(pickle.dumps(ledger)).total().n_charges == 1
    assert {path.name.removesuffix("-journal") for path in tmp_path.iterdir()} == {"a?b#%.db"}


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerStorageError, match=r"unable to open.*Its folder must exist"):
        PrivacyLedger("trips", 1.0, DELTA, f"sqlite:///{tmp_path / 'no' / 'budget.db'}")


def test_a_full_disk_loses_nothing(spent):
    ledger = PrivacyLedger.open("trips", spent)
    engine = ledger._storage._engine()
    limit = [0]

    @sqlalchemy.event.listens_for(engine, "connect")
    def no_more_pages(connection, _):
        if limit[0]:
            connection.execute(f"PRAGMA max_page_count = {limit[0]}")

    connection = sqlite3.connect(path_of(spent))
    limit[0] = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.close()
    large = {"filler": ["x" * 300] * 60}  # more than the pages there are have room for
    with pytest.raises(LedgerStorageError, match=r"full.*Free some space.*Nothing was changed"):
        ledger.charge("fit", LOSS, parameters=large)
    assert half_is_spent(spent)
    limit[0] = 0
    assert ledger.charge("fit", LOSS, parameters=large).number == 3
    assert ledger.total().n_charges == 3


def test_a_full_disk_at_the_commit_loses_nothing(spent, monkeypatch):
    ledger = PrivacyLedger.open("trips", spent)
    dialect = ledger._storage._engine().dialect
    kept = dialect.do_commit

    def full(connection):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(dialect, "do_commit", full)
    with pytest.raises(LedgerStorageError, match=r"full"):
        ledger.charge("fit", LOSS)
    monkeypatch.setattr(dialect, "do_commit", kept)
    assert half_is_spent(spent)
    assert ledger.charge("fit", LOSS).number == 3


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "budget.db"
    path.write_text("epsilon,delta\n1,1e-6\n" * 100)
    before = path.read_bytes()
    with pytest.raises(LedgerStorageError, match=r"not a database.*Name another file") as caught:
        PrivacyLedger("trips", 1.0, DELTA, f"sqlite:///{path}")
    assert caught.value.__cause__ is not None
    assert path.read_bytes() == before


def test_a_file_that_another_program_holds_is_waited_for_and_then_named(spent, monkeypatch):
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.05)
    ledger = PrivacyLedger.open("trips", spent)
    other = sqlite3.connect(path_of(spent), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert ledger.total().n_charges == 2  # reading is not held up
    with pytest.raises(LedgerStorageError, match=r"locked.*Another program.*Nothing was changed"):
        ledger.charge("fit", LOSS)
    other.execute("ROLLBACK")
    other.close()
    assert ledger.charge("fit", LOSS).number == 3


def test_an_older_copy_put_in_its_place_is_noticed(spent, tmp_path):
    ledger = PrivacyLedger.open("trips", spent)
    copy = tmp_path / "copy.db"
    shutil.copy(path_of(spent), copy)  # at rest one file holds everything
    ledger.charge("fit", LOSS)
    shutil.copy(copy, path_of(spent))
    with pytest.raises(LedgerStorageError, match=r"Charge 3.*no longer.*older copy"):
        ledger.charge("fit", LOSS)
    with pytest.raises(LedgerStorageError, match=r"older copy"):
        ledger.total()
    assert half_is_spent(spent)


def test_another_ledger_of_as_many_charges_put_in_its_place_is_noticed(spent, tmp_path):
    other = f"sqlite:///{tmp_path / 'other.db'}"
    PrivacyLedger("trips", 1.0, 1e-6, other).charge("fit", LOSS)
    PrivacyLedger.open("trips", other).charge("fit", LOSS)
    ledger = PrivacyLedger.open("trips", spent)
    assert ledger.total().n_charges == 2
    shutil.copy(path_of(other), path_of(spent))
    with pytest.raises(LedgerStorageError, match=r"Charge 2.*no longer.*was replaced"):
        ledger.charge("fit", LOSS)


def test_a_storage_that_was_emptied_is_noticed(spent):
    ledger = PrivacyLedger.open("trips", spent)
    connection = sqlite3.connect(path_of(spent))
    with connection:
        connection.execute("DELETE FROM skdpnoise_charges")
        connection.execute("DELETE FROM skdpnoise_datasets")
    connection.close()
    with pytest.raises(UnknownDatasetError, match=r"no longer in .*budget.db"):
        ledger.charge("fit", LOSS)


def test_all_errors_of_ledgers_have_one_base():
    for error in (
        BudgetChangedError,
        LedgerSchemaError,
        LedgerStorageError,
        UnknownDatasetError,
    ):
        assert issubclass(error, LedgerError)
        assert issubclass(error, ValueError)


@pytest.mark.parametrize("option", ["nolock=1", "vfs=unix-none", "immutable=1", "cache=shared"])
def test_options_of_sqlite_that_change_its_locks_are_refused(option, tmp_path):
    """Charges that do not wait for one another are lost."""
    url = f"sqlite:///file:{tmp_path / 'budget.db'}?{option}&uri=true"
    with pytest.raises(LedgerStorageError, match=option.partition("=")[0]):
        PrivacyLedger("rows", 1.0, 1e-6, url)
    assert list(tmp_path.iterdir()) == []
