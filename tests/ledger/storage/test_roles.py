"""The grants of the page about databases are enough to charge in PostgreSQL, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skdpnoise.ledger import LedgerStorageError, PrivacyLedger, UnknownDatasetError, _verified
from skdpnoise.privacy import GaussianLoss, PureLoss

sa = pytest.importorskip("sqlalchemy")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "ledger_database.md"
GRANTS = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
ROLE = "analyst"
CHARGES, DATASETS, SCHEMA = (f"skdpnoise_{name}" for name in ("charges", "datasets", "schema"))
BUDGET = "name, epsilon, delta, adjacency, created"
FORBIDDEN = [
    *(
        f"UPDATE {DATASETS} SET {column} = {column}"
        for column in ("id", "name", "epsilon", "delta")
    ),
    *(f"UPDATE {DATASETS} SET {column} = {column}" for column in ("adjacency", "unit", "adaptive")),
    *(f"UPDATE {DATASETS} SET {column} = {column}" for column in ("seal", "created")),
    f"INSERT INTO {DATASETS} ({BUDGET}) VALUES ('x', 9, 0, 'x', '')",
    *(f"UPDATE {CHARGES} SET {column} = {column}" for column in ("loss", "epsilon", "label")),
    *(f"UPDATE {CHARGES} SET {column} = {column}" for column in ("number", "dataset", "time")),
    f"UPDATE {SCHEMA} SET version = 3",
    f"INSERT INTO {SCHEMA} VALUES (3)",
    *(f"DELETE FROM {table}" for table in (CHARGES, DATASETS, SCHEMA)),
    *(f"TRUNCATE {table} CASCADE" for table in (CHARGES, DATASETS, SCHEMA)),
    *(f"DROP TABLE {table} CASCADE" for table in (CHARGES, DATASETS, SCHEMA)),
    *(f"ALTER TABLE {table} RENAME TO x" for table in (CHARGES, DATASETS, SCHEMA)),
    f"ALTER TABLE {DATASETS} DROP COLUMN seal",
    f"ALTER TABLE {CHARGES} OWNER TO {ROLE}",
    f"CREATE RULE none AS ON INSERT TO {CHARGES} DO INSTEAD NOTHING",
    f"CREATE TRIGGER none BEFORE INSERT ON {CHARGES} FOR EACH ROW EXECUTE FUNCTION "
    "suppress_redundant_updates_trigger()",
    "SET ROLE tester",
]


def do(url: str, *statements: str) -> None:
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@pytest.fixture
def analyst(postgresql, dataset) -> Iterator[str]:
    """URL with which a role that was granted what the page says opens a ledger of two charges."""
    ledger = PrivacyLedger(dataset, 1.0, 1e-6, postgresql)
    for _ in range(2):
        ledger.charge("fit", PureLoss(0.1))
    assert len(GRANTS) == 1
    grants = [statement for statement in GRANTS[0].split(";") if statement.strip()]
    do(postgresql, f"CREATE ROLE {ROLE} LOGIN PASSWORD 'theirs'", *grants)
    url = sa.make_url(postgresql).set(username=ROLE, password="theirs")
    yield url.render_as_string(hide_password=False)
    do(postgresql, f"DROP OWNED BY {ROLE}", f"DROP ROLE {ROLE}")


def test_the_role_charges_as_everybody_does(analyst, postgresql, dataset, monkeypatch):
    monkeypatch.setattr(_verified, "_SUMMARISE", 4)
    theirs = PrivacyLedger.open(dataset, analyst, who="analyst")
    assert theirs.total().n_charges == 2
    for number in (3, 4, 5):  # the second with a summary
        loss = GaussianLoss(0.01) if number % 2 else PureLoss(0.4)
        assert theirs.charge("fit", loss).number == number
    with theirs._storage.transaction(dataset, write=False) as transaction:
        assert transaction.summarised() is not None
    assert len(theirs.history()) == 5
    assert PrivacyLedger.open(dataset, postgresql).total().n_charges == 5
    with pytest.raises(LedgerStorageError, match=r"permission denied.*page about ledgers"):
        PrivacyLedger(f"{dataset} too", 9.0, 0.0, analyst)
    with pytest.raises(UnknownDatasetError):
        PrivacyLedger.open(f"{dataset} too", analyst)


def test_the_role_can_do_nothing_else(analyst, postgresql, dataset):
    done = []
    do(analyst, f"GRANT ALL ON {CHARGES}, {DATASETS}, {SCHEMA} TO {ROLE}")  # warns, grants nothing
    for statement in FORBIDDEN:
        try:
            do(analyst, statement)
            done.append(statement)
        except sa.exc.ProgrammingError as error:
            if error.orig.sqlstate != "42501":  # insufficient privilege
                done.append((statement, str(error)))
    assert not done
    total = PrivacyLedger.open(dataset, postgresql).total()
    assert (total.n_charges, total.guarantee.epsilon) == (2, 1.0)


def test_what_the_role_may_write_hides_no_charge(analyst, postgresql, dataset):
    for column in ("summary", "head"):
        query = f"UPDATE skdpnoise_datasets SET {column} = '[0, \"\"]' WHERE name = '{dataset}'"
        do(analyst, query)
        with pytest.raises(LedgerStorageError, match="not those that"):
            PrivacyLedger.open(dataset, postgresql).charge("fit", PureLoss(0.1))
