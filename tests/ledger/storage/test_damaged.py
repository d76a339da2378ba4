"""A damaged file is refused by name, or tells just what it told before; no other error comes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from skdpnoise.cli import main
from skdpnoise.ledger import LedgerError, LedgerStorageError, PrivacyLedger
from skdpnoise.privacy import PureLoss
from tests._cases import each_value

sqlalchemy = pytest.importorskip("sqlalchemy")

PAGE = 4096  # bytes; the first page holds the schema
QUICK = 16  # blocks of the first page


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """A file with three charges."""
    path = tmp_path_factory.mktemp("whole") / "budget.db"
    ledger = PrivacyLedger("trips", 1.0, 1e-6, f"sqlite:///{path}")
    for number in range(3):
        ledger.charge(f"fit {number}", PureLoss(0.1))
    return path.read_bytes()


def flipped(whole: bytes, position: int, mask: int) -> bytes:
    changed = bytearray(whole)
    changed[position] ^= mask
    return bytes(changed)


def is_refused_or_the_same(content: bytes, path: Path) -> bool:
    """Open, add up, list and charge a file with this content; return whether it was refused."""
    for beside in path.parent.glob(f"{path.name}-*"):
        beside.unlink()
    path.write_bytes(content)
    url = f"sqlite:///{path}"
    try:
        ledger = PrivacyLedger.open("trips", url)
        total = ledger.total()
    except LedgerError:
        return True
    assert (total.n_charges, total.basic) == (3, (0.3, 0.0))
    assert (total.guarantee.epsilon, total.guarantee.delta) == (1.0, 1e-6)
    assert (ledger.unit, ledger.adaptive) == ("record", False)
    return False


def positions_of_names(whole: bytes) -> list[int]:
    """Return where an error of SQLite quotes what stands there."""
    names = (b"sqlite_autoindex_skd", b"CREATE TABLE skdpnoise_c", b"skdpnoise_datasets")
    return [whole.index(name) + k for name in names for k in (-3, 0, 7)]


def test_a_damaged_name_in_the_schema_is_an_error_of_the_ledger(whole, tmp_path):
    found = [
        is_refused_or_the_same(flipped(whole, position, 0xFF), tmp_path / "budget.db")
        for position in positions_of_names(whole)
    ]
    assert sum(found) > 4


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, PAGE, PAGE // QUICK))
def test_every_byte_of_the_schema_page_may_be_flipped(whole, tmp_path, start):
    for position in range(start, start + PAGE // QUICK):
        mask = 0xFF if position % 2 else 1 << (position // 2 % 8)
        is_refused_or_the_same(flipped(whole, position, mask), tmp_path / "budget.db")


@pytest.mark.slow
def test_flipped_bytes_of_other_pages_change_nothing_unseen(whole, tmp_path):
    held = [k for k in range(PAGE, len(whole)) if whole[k]]
    found = [
        is_refused_or_the_same(flipped(whole, k, 1 << (k % 8)), tmp_path / "budget.db")
        for k in held[::3]
    ]
    assert sum(found) > len(found) // 2


def test_a_file_that_was_cut_off_is_refused(whole, tmp_path):
    path = tmp_path / "budget.db"
    for length in (0, 1, 100, PAGE // 2, PAGE, len(whole) // 2):
        assert is_refused_or_the_same(whole[:length], path)


def flipped_around_names(whole: bytes) -> list[bytes]:
    position = whole.index(b"sqlite_autoindex_skd")
    return [flipped(whole, position + k, 0xFF) for k in range(-16, 8)]


def raises_of_a_codec(content: bytes, path: Path) -> bool:
    """Return whether SQLite's own error cannot be decoded."""
    path.write_bytes(content)
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = PERSIST")
    except UnicodeDecodeError:
        return True
    except sqlite3.Error:
        return False
    finally:
        connection.close()
    return False


def test_a_codec_is_never_heard_whatever_is_asked(whole, tmp_path, capsys):
    path = tmp_path / "budget.db"
    url = f"sqlite:///{path}"
    works = (
        lambda: PrivacyLedger.open("trips", url),
        lambda: PrivacyLedger("trips", storage=url),
        lambda: PrivacyLedger("others", 1.0, 1e-6, url),
    )
    found = [content for content in flipped_around_names(whole) if raises_of_a_codec(content, path)]
    assert found
    for content in found[:3]:
        path.write_bytes(content)
        for work in works:
            with pytest.raises(LedgerStorageError, match="Nothing was"):
                work()
        assert main(["ledger", "show", "--storage", url]) == 1
        assert capsys.readouterr().err.startswith("skdpnoise: error: The ledger in sqlite:///")


@each_value(1)
@pytest.mark.parametrize("fault", [UnicodeDecodeError("utf-8", b"x", 0, 1, "no"), MemoryError()])
@pytest.mark.parametrize("where", ["do_execute", "do_commit", "do_begin"])
def test_whatever_a_driver_raises_is_an_error_of_the_ledger(
    database, dataset, monkeypatch, fault, where
):
    ledger = PrivacyLedger(dataset, 1.0, 1e-6, database)
    dialect = ledger._storage._engine().dialect

    def fails(*_, **__):
        raise fault

    monkeypatch.setattr(dialect, where, fails)
    with pytest.raises(LedgerStorageError, match=r"cannot be used.*Nothing was changed") as caught:
        ledger.charge("fit", PureLoss(0.1))
    assert caught.value.__cause__ is fault
    monkeypatch.undo()
    assert ledger.total().n_charges == 0
