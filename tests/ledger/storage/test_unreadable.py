"""Whatever stands in a storage is read, or refused by name: no other error comes out of it."""

from __future__ import annotations

import math
import shutil
import sqlite3

import pytest

from skdpnoise.cli import main
from skdpnoise.ledger import BudgetExceededError, LedgerError, LedgerStorageError, PrivacyLedger
from skdpnoise.ledger.storage import _schema
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import quick

pytest.importorskip("sqlalchemy")

VALUES = [
    *(None, "", "{bad", "[]", "null", "x", "yesterday", "2026-01-01", "a\nb", "[" * 5000, b"\xff"),
    *(-1, 0, 7, 10**15, -0.5, 1e-320, 1e300, math.inf, -math.inf, "nan", '{"a": NaN}'),
]
LOSSES = [
    '{"kind": "pure"}',
    '{"kind": "pure", "epsilon": -1}',
    '{"kind": "pure", "epsilon": "x"}',
    '{"kind": "pure", "epsilon": NaN}',
    '{"kind": "gaussian", "mu": 1e999}',
    '{"kind": "other\\n"}',
    '{"kind": "numeric", "terms": 7}',
    '{"kind": "numeric", "terms": [[{"curve": "zzz"}, [1], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:laplace"}, [0.1], [-5]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:laplace"}, [-0.1], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:laplace"}, ["a"], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:laplace"}, [1, 2], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:laplace", "x": 1}, [1], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:discrete_laplace", "shape": -5}, [1], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "noise:discrete_laplace", "shape": "a"}, [1], [1]]]}',
    '{"kind": "numeric", "terms": [[[1], [1], [1]]]}',
    '{"kind": "numeric", "terms": [[{"curve": "repetition"}, [1], [1]]]}',
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file with three charges, and one with a summary."""
    pytest.importorskip("sqlalchemy")
    files = []
    for n in (3, 66):
        path = tmp_path_factory.mktemp("whole") / f"{n}.db"
        ledger = PrivacyLedger("trips", 1.0, 1e-6, f"sqlite:///{path}")
        for number in range(n):
            ledger.charge("fit", GaussianLoss(0.01) if number > 3 else PureLoss(0.01))
        files.append(path)
    return files


def columns():
    return [
        (table.name, column.name)
        for table in _schema.tables()[0].metadata.tables.values()
        for column in table.columns
    ]


def overwrite(path, table, column, value, which="1"):
    """Return whether SQLite takes the value there."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {which}", (value,))
    except (sqlite3.Error, OverflowError):
        return False
    finally:
        connection.close()
    return True


def ask_everything(path):
    """Do all that can be done; return what total and charge said, and the charges."""
    try:
        ledger = PrivacyLedger.open("trips", f"sqlite:///{path}")
    except LedgerError as error:
        return [error], None
    said = []
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        try:
            work()
        except (LedgerError, BudgetExceededError) as error:
            said.append(error)
    try:
        charges = ledger.charges()
        assert len(ledger.history()) == len(charges)
    except LedgerError as error:
        return [*said, error], None
    return said, charges


COMMANDS = [("show",), ("history",), ("export", "--json"), ("export",), ("show", "--json")]


def run_command(path, capsys, number):
    """Run one of the commands: it ends well, or with one line."""
    command, *more = COMMANDS[number % len(COMMANDS)]
    code = main(["ledger", command, "--storage", f"sqlite:///{path}", "--dataset", "trips", *more])
    err = capsys.readouterr().err
    assert (code, len(err.splitlines())) in ((0, 0), (1, 1)), (command, err)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), columns(), ids=str)
def test_no_value_of_any_column_gives_another_error_than_that_of_a_ledger(
    whole, tmp_path, capsys, table, column
):
    values = VALUES + (LOSSES if column == "loss" else [])
    path = tmp_path / "budget.db"
    which = "number = 2" if table == "skdpnoise_charges" else "1"
    for number, value in enumerate(values):
        shutil.copy(whole[0], path)
        if overwrite(path, table, column, value, which):
            ask_everything(path)
            run_command(path, capsys, number)


@pytest.mark.parametrize("column", ["loss", "epsilon", "parameters", "time", "token"])
def test_a_total_refuses_what_cannot_be_read_below_a_summary_too(whole, tmp_path, column):
    path = tmp_path / "budget.db"
    shutil.copy(whole[1], path)
    assert overwrite(path, "skdpnoise_charges", column, b"\xff", "number = 2")
    ledger = PrivacyLedger.open("trips", f"sqlite:///{path}")
    with pytest.raises(LedgerStorageError, match=r"cannot be read|not those that"):
        ledger.total()
    assert ledger.charges()[1].unreadable


UNREADABLE = [
    *(("loss", text) for text in ("{bad", "[]", "null", *LOSSES[:9])),
    *(("parameters", "{bad"), ("parameters", "[]"), ("time", "yesterday"), ("epsilon", "abc")),
    *(("epsilon", -100.0), ("delta", -0.5), ("delta", 1.0), ("epsilon", math.inf)),
]


@quick("delta--0.5", "loss-null", "time-yesterday")
@pytest.mark.parametrize(("column", "value"), UNREADABLE)
def test_a_charge_that_cannot_be_read_is_named_refused_and_shown(
    whole, tmp_path, capsys, column, value
):
    path = tmp_path / "budget.db"
    shutil.copy(whole[0], path)
    assert overwrite(path, "skdpnoise_charges", column, value, "number = 2")
    ledger = PrivacyLedger.open("trips", f"sqlite:///{path}")
    for work in (ledger.total, lambda: ledger.charge("fit", PureLoss(1e-6))):
        with pytest.raises(LedgerStorageError, match=r"Charge 2 of .*'trips'.*Nothing was charged"):
            work()
    first, second, third = ledger.charges()
    assert (first.unreadable, third.unreadable) == (None, None)
    assert (second.number, second.label, second.loss) == (2, "fit", None)
    assert "unreadable" in str(second)
    frame = ledger.history()
    assert frame["loss"][1].startswith("unreadable (")
    assert frame["spent"].tolist() == [frame["spent"][0], math.inf, math.inf]
    where = ["--storage", f"sqlite:///{path}", "--dataset", "trips"]
    for command, code in (("history", 0), ("export", 0), ("show", 1)):
        assert main(["ledger", command, *where]) == code
        out, err = capsys.readouterr()
        assert "unreadable" in out if code == 0 else "Charge 2" in err
    assert len(ledger.charges()) == 3


def test_a_charge_by_hand_cannot_lower_a_total(whole, tmp_path):
    path = tmp_path / "budget.db"
    shutil.copy(whole[0], path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            "INSERT INTO skdpnoise_charges SELECT dataset, 4, 'by hand', time, label, mechanism, "
            "estimator, loss, -100.0, -0.5, who, parameters FROM skdpnoise_charges WHERE number = 3"
        )
    connection.close()
    said, charges = ask_everything(path)
    assert len(said) == 2
    assert (
        charges[3].unreadable == "ValueError: epsilon must be in the range [0, inf), and is -100.0"
    )


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE skdpnoise_datasets SET epsilon = 'abc'",
        "UPDATE skdpnoise_datasets SET epsilon = -1",
        "UPDATE skdpnoise_datasets SET delta = 1",
        "UPDATE skdpnoise_datasets SET adjacency = 'zzz'",
        "UPDATE skdpnoise_datasets SET unit = 'zzz'",
        "UPDATE skdpnoise_datasets SET adaptive = 'x'",
        "UPDATE skdpnoise_schema SET version = 'x'",
        "UPDATE skdpnoise_schema SET version = -1",
        "DELETE FROM skdpnoise_schema",
        "INSERT INTO skdpnoise_schema VALUES (2)",
    ],
)
def test_a_budget_or_a_version_that_is_none_is_refused(whole, tmp_path, change):
    path = tmp_path / "budget.db"
    shutil.copy(whole[0], path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(change)
    connection.close()
    before = path.read_bytes()
    for work in (PrivacyLedger.open, lambda *where: PrivacyLedger(where[0], 1.0, 1e-6, where[1])):
        with pytest.raises(LedgerStorageError, match="cannot be read"):
            work("trips", f"sqlite:///{path}")
    assert path.read_bytes() == before
