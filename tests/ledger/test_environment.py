"""Where a ledger is kept: what is given wins, then the environment, then memory; paths stay put."""

from __future__ import annotations

import pickle

import pytest

from skdpnoise.ledger import LedgerStorageError, PrivacyLedger, UnknownDatasetError
from skdpnoise.privacy import PureLoss
from tests._cases import quick

VARIABLE = "SKDPNOISE_LEDGER"


def test_the_environment_names_the_storage_where_none_is_given(sqlite, monkeypatch):
    monkeypatch.setenv(VARIABLE, sqlite)
    PrivacyLedger("trips", 1.0, 0.0).charge("fit", PureLoss(0.25))
    for again in (
        PrivacyLedger("trips"),
        PrivacyLedger.open("trips"),
        PrivacyLedger.open("trips", sqlite),
    ):
        assert again.total().n_charges == 1
        assert again.storage.endswith("/budget.db")


def test_what_is_given_wins_over_the_environment(sqlite, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, sqlite)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    PrivacyLedger("trips", 1.0, 0.0, other)
    assert not (tmp_path / "budget.db").exists()
    assert PrivacyLedger("trips", 1.0, 0.0, storage="memory").storage is None
    assert not (tmp_path / "budget.db").exists()


@pytest.mark.parametrize("value", [None, "", "memory"])
def test_without_a_name_a_ledger_is_in_memory(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    ledger = PrivacyLedger("trips", 1.0, 0.0)
    assert ledger.storage is None
    assert "in memory" in repr(ledger)
    with pytest.raises(UnknownDatasetError, match="'trips'"):
        PrivacyLedger.open("trips")


def test_a_name_that_is_no_url_is_refused_and_its_password_not_shown(monkeypatch):
    for value in ("not-a-url", "nosuch://user:secret@host/budget"):
        monkeypatch.setenv(VARIABLE, value)
        with pytest.raises(LedgerStorageError, match=VARIABLE) as refusal:
            PrivacyLedger("trips", 1.0, 0.0)
        assert "secret" not in str(refusal.value)
    with pytest.raises(LedgerStorageError, match="'storage' parameter"):
        PrivacyLedger("trips", 1.0, 0.0, storage="not-a-url")


def test_a_ledger_in_memory_stays_there_when_it_is_pickled(sqlite, monkeypatch):
    monkeypatch.setenv(VARIABLE, sqlite)
    ledger = PrivacyLedger("trips", 1.0, 0.0, storage="memory")
    again = pickle.loads(pickle.dumps(ledger))
    with pytest.raises(LedgerStorageError, match="memory"):
        again.charge("fit", PureLoss(0.1))


@quick("sqlite:///sub/../budget.db", "sqlite+pysqlite:///budget.db")
@pytest.mark.parametrize(
    "storage",
    [
        "sqlite:///budget.db",
        "sqlite:///./budget.db",
        "sqlite:///sub/../budget.db",
        "sqlite:///file:budget.db?uri=true",
        "sqlite:///file:./budget.db?mode=rwc&uri=true",
        "sqlite+pysqlite:///budget.db",
    ],
)
def test_a_relative_path_is_resolved_once(storage, tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ledger = PrivacyLedger("trips", 1.0, 0.0, storage)
    packed = pickle.dumps(ledger)
    ledger.charge("fit", PureLoss(0.25))
    monkeypatch.chdir(tmp_path / "there")
    ledger.charge("fit", PureLoss(0.25))
    pickle.loads(packed).charge("fit", PureLoss(0.25))
    assert ledger.total().n_charges == 3
    assert [path.name for path in tmp_path.glob("*/*.db")] == ["budget.db"]
    assert (tmp_path / "here" / "budget.db").exists()
    for shown in (ledger.storage, repr(ledger)):
        assert f"{tmp_path}/here/budget.db" in shown


def test_one_file_is_one_ledger_by_whatever_path(tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    paths = ("budget.db", f"{tmp_path}/x/../budget.db", "file:budget.db?uri=true")
    ledgers = [PrivacyLedger("trips", 1.0, 0.0, f"sqlite:///{path}") for path in paths]
    assert len(set(ledgers)) == 1
