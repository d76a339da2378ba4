"""Ledgers of older versions are kept, and those of newer ones left alone."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from skdpnoise.accounting.composition import Composition
from skdpnoise.ledger import (
    LedgerSchemaError,
    LedgerStorageError,
    LedgerWarning,
    PrivacyLedger,
    encode_loss,
)
from skdpnoise.ledger.storage import _schema, reading
from skdpnoise.ledger.storage.base import Row
from skdpnoise.privacy import GaussianLoss, PureLoss

sqlalchemy = pytest.importorskip("sqlalchemy")

# As version 3 wrote them: a migration is tested against what is out there, not against itself.
VERSION_3 = """
CREATE TABLE skdpnoise_schema (version INTEGER NOT NULL);
INSERT INTO skdpnoise_schema VALUES (3);
CREATE TABLE skdpnoise_datasets (
    id INTEGER NOT NULL, name VARCHAR(255) NOT NULL, epsilon DOUBLE PRECISION NOT NULL,
    delta DOUBLE PRECISION NOT NULL, adjacency VARCHAR(32) NOT NULL, created VARCHAR(32) NOT NULL,
    unit VARCHAR(32) NOT NULL DEFAULT 'record', adaptive INTEGER NOT NULL DEFAULT 0, summary TEXT,
    head TEXT, PRIMARY KEY (id), UNIQUE (name));
INSERT INTO skdpnoise_datasets VALUES
    (7, 'trips', 1.0, 1e-6, 'add_remove', '2026-01-01T00:00:00.000000+00:00', 'record', 0, NULL,
     '[2, "3a95ae7e00bc0dcb4594d3654e9d661b804be30d56a047db584d9f7736acc191"]'),
    (8, 'empty', 2.0, 0.0, 'replace_one', '2026-01-01T00:00:00.000000+00:00', 'group', 1, NULL,
     '[0, ""]');
CREATE TABLE skdpnoise_charges (
    dataset INTEGER NOT NULL, number INTEGER NOT NULL, token VARCHAR(32) NOT NULL,
    time VARCHAR(32) NOT NULL, label TEXT NOT NULL, mechanism TEXT, estimator TEXT,
    loss TEXT NOT NULL, epsilon DOUBLE PRECISION NOT NULL, delta DOUBLE PRECISION NOT NULL,
    who TEXT, parameters TEXT NOT NULL, PRIMARY KEY (dataset, number), UNIQUE (token),
    FOREIGN KEY(dataset) REFERENCES skdpnoise_datasets (id));
INSERT INTO skdpnoise_charges VALUES
    (7, 1, 'aa', '2026-01-02T00:00:00.000000+00:00', 'first', 'iid_laplace', 'DPLogisticCD',
     '{"kind": "pure", "epsilon": 0.25}', 0.25, 0.0, 'someone', '{"alpha": 0.5}'),
    (7, 2, 'bb', '2026-01-03T00:00:00.000000+00:00', 'second', NULL, NULL,
     '{"kind": "gaussian", "mu": 0.1}', 0.4, 1e-7, NULL, '{}');
"""
# How it wrote the first of many charges down.
SUMMARY = {
    "format": 1,
    "count": 1,
    "pure": "0.25",
    "normal": "0",
    "basic_epsilon": "0.25",
    "basic_delta": "0",
    "since": "0.25",
    "anchor": None,
    "terms": [[{"curve": "randomised_response"}, [0.25], [1]]],
}


def make_version_3(url: str, *changes: str) -> None:
    """Write such tables into an empty database, and change them."""
    engine = sqlalchemy.create_engine(url)
    script = VERSION_3
    if engine.dialect.name == "postgresql":
        script = script.replace("id INTEGER", "id SERIAL")
    with engine.begin() as connection:
        for statement in [*script.split(";\n"), *changes]:
            if statement.strip():
                connection.exec_driver_sql(statement)
    engine.dispose()


def holds_what_version_3_held(ledger: PrivacyLedger) -> None:
    first, second = ledger.charges()
    assert (first.token, first.label, first.loss) == ("aa", "first", PureLoss(0.25))
    assert (first.estimator, first.parameters) == ("DPLogisticCD", {"alpha": 0.5})
    assert (second.loss, second.guarantee) == (GaussianLoss(0.1), (0.4, 1e-7))
    assert (ledger.unit, ledger.adaptive) == ("record", False)
    assert ledger.guarantee.adjacency == "add_remove"


@pytest.fixture
def empty(request) -> str:
    """URL of an empty database of each kind."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite")
        return
    # A schema of its own: other tests share the server.
    url = request.getfixturevalue("postgresql")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA old")
    yield f"{url}?options=-csearch_path%3Dold"
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA old CASCADE")
    engine.dispose()


# That an older ledger is brought up to date is told.
IN_SILENCE = pytest.mark.filterwarnings("ignore:The ledger in")


@IN_SILENCE
@pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)
def test_a_ledger_of_version_3_keeps_its_charges(empty):
    make_version_3(empty)
    ledger = PrivacyLedger("trips", storage=empty)
    holds_what_version_3_held(ledger)
    assert ledger.charge("third", PureLoss(0.1)).number == 3
    again = PrivacyLedger.open("trips", empty)
    assert again.total().basic == (0.75, 1e-7)
    group = PrivacyLedger("people", 1.0, 0.0, empty, unit="group", adaptive=True)
    assert (group.unit, group.adaptive) == ("group", True)


def columns(url: str) -> dict[str, set[tuple[str, bool]]]:
    engine = sqlalchemy.create_engine(url)
    inspector = sqlalchemy.inspect(engine)
    found = {
        table: {(column["name"], column["nullable"]) for column in inspector.get_columns(table)}
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return found


@IN_SILENCE
def test_a_migrated_ledger_has_the_tables_of_a_new_one(tmp_path):
    old, new = (f"sqlite:///{tmp_path / name}.db" for name in ("old", "new"))
    make_version_3(old)
    for url in (old, new):
        PrivacyLedger("others", 1.0, 0.0, url)
    assert columns(old) == columns(new)
    assert len(columns(new)) == 3


def test_there_is_a_migration_from_every_version():
    assert len(_schema.MIGRATIONS) == _schema.VERSION - _schema.FIRST


@pytest.mark.parametrize("version", [2, 1, 0, -1])
def test_a_ledger_from_before_the_first_release_is_left_alone(sqlite, version):
    make_version_3(sqlite, f"UPDATE skdpnoise_schema SET version = {version}")
    before = columns(sqlite)
    with pytest.raises(LedgerStorageError, match="not a whole number from 3 on"):
        PrivacyLedger.open("trips", sqlite)
    assert columns(sqlite) == before


@IN_SILENCE
def test_a_migration_that_fails_changes_nothing(sqlite, monkeypatch):
    make_version_3(sqlite)

    def fails(connection):
        _schema._to_5(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr(_schema, "MIGRATIONS", (_schema._to_4, fails))
    with pytest.raises(KeyboardInterrupt):
        PrivacyLedger("trips", storage=sqlite)
    monkeypatch.undo()
    assert ("seal", True) not in columns(sqlite)["skdpnoise_datasets"]
    holds_what_version_3_held(PrivacyLedger.open("trips", sqlite))


def test_a_ledger_of_a_newer_version_is_left_alone(sqlite):
    PrivacyLedger("trips", 1.0, 1e-6, sqlite).charge("fit", PureLoss(0.1))
    path = Path(sqlite.removeprefix("sqlite:///"))
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE skdpnoise_schema SET version = 99")
    connection.close()
    before = path.read_bytes()
    for given in ((), (1.0, 1e-6)):
        with pytest.raises(LedgerSchemaError, match=r"version 99.*up to 5.*Upgrade skdpnoise"):
            PrivacyLedger("trips", *given, storage=sqlite)
    with pytest.raises(LedgerSchemaError):
        PrivacyLedger("others", 1.0, 1e-6, storage=sqlite)
    assert path.read_bytes() == before


def test_a_ledger_of_version_3_is_read_and_its_budget_watched_from_then_on(sqlite):
    make_version_3(sqlite)
    with pytest.warns(LedgerWarning, match=r"schema version 3.*up to version 5.*compare") as seen:
        ledger = PrivacyLedger("trips", storage=sqlite)
    assert seen[0].filename == __file__
    holds_what_version_3_held(ledger)
    assert ledger.total().basic == (0.65, 1e-7)
    assert ledger.charge("third", PureLoss(0.1)).number == 3
    empty = PrivacyLedger.open("empty", sqlite)
    assert (empty.unit, empty.adaptive) == ("group", True)
    assert empty.charge("first", PureLoss(1.0)).number == 1
    connection = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE skdpnoise_datasets SET epsilon = 100")
    connection.close()
    for name in ("trips", "empty"):
        with pytest.raises(LedgerStorageError, match="not the one that"):
            PrivacyLedger.open(name, sqlite).charge("more", PureLoss(0.1))


@IN_SILENCE
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE skdpnoise_charges SET label = 'other' WHERE number = 1",
        "DELETE FROM skdpnoise_charges WHERE number = 2",
        "DELETE FROM skdpnoise_charges",
        "UPDATE skdpnoise_datasets SET head = NULL WHERE id = 7",
        """UPDATE skdpnoise_datasets SET head = '[0, ""]' WHERE id = 7""",
    ],
)
def test_what_was_changed_in_a_ledger_of_version_3_is_still_found(sqlite, change):
    make_version_3(sqlite, change)
    for _ in range(2):
        with pytest.raises(LedgerStorageError, match="not those that"):
            PrivacyLedger.open("trips", sqlite).total()


@IN_SILENCE
def test_a_summary_of_version_3_stays_a_witness(tmp_path):
    total = Composition()
    total.add(PureLoss(0.25), (0.25, 0.0))
    for name, squares in (("honest", str(total.squares)), ("changed", "0.001")):
        path = tmp_path / f"{name}.db"
        make_version_3(f"sqlite:///{path}")
        connection = sqlite3.connect(path)
        (row,) = connection.execute(
            f"SELECT {', '.join(Row._fields[:-1])} FROM skdpnoise_charges WHERE number = 1"
        ).fetchall()
        first, digest = Row(*row), reading.digest_after("", Row(*row))
        text = json.dumps({**SUMMARY, "squares": squares})
        summary = json.dumps([1, first.token, first.time, text, digest])
        with connection:
            query = "UPDATE skdpnoise_datasets SET summary = ? WHERE id = 7"
            connection.execute(query, (summary,))
        connection.close()
        ledger = PrivacyLedger.open("trips", f"sqlite:///{path}")
        if name == "honest":
            assert ledger.charge("third", PureLoss(0.1)).number == 3
            assert ledger.total().n_charges == 3
            continue
        with pytest.raises(LedgerStorageError, match="not those that"):
            ledger.charge("third", PureLoss(0.1))


def test_an_old_ledger_that_cannot_be_written_says_so_and_is_left_alone(sqlite):
    make_version_3(sqlite)
    path = Path(sqlite.removeprefix("sqlite:///"))
    before = path.read_bytes()
    with pytest.raises(LedgerStorageError, match=r"readonly.*bring an older ledger up to date"):
        PrivacyLedger.open("trips", f"{sqlite}?mode=ro")
    assert path.read_bytes() == before


@IN_SILENCE
def test_a_migrated_ledger_finds_what_is_changed_afterwards(sqlite):
    make_version_3(sqlite)
    PrivacyLedger.open("trips", sqlite)
    connection = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE skdpnoise_charges SET label = 'other' WHERE number = 2")
    connection.close()
    with pytest.raises(LedgerStorageError, match="not those that"):
        PrivacyLedger.open("trips", sqlite).total()


def test_stored_losses_are_read_as_they_were_written():
    # The text of version 3 above is what is written today.
    assert encode_loss(PureLoss(0.25)) in VERSION_3
    assert encode_loss(GaussianLoss(0.1)) in VERSION_3
