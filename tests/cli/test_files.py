"""No command writes over a ledger, nor over any other file unless it is told to."""

from __future__ import annotations

import ast
import os
import sqlite3
import stat
from pathlib import Path

import pytest

import skdpnoise.cli
from skdpnoise import PrivacyLedger
from skdpnoise.cli import main
from skdpnoise.cli._files import new_file
from skdpnoise.privacy import PureLoss
from tests._cases import each_value, quick

pytest.importorskip("sqlalchemy")

BESIDE = ("", "-journal", "-wal", "-shm")
URLS = (
    "sqlite:///{folder}/budget.db",
    "sqlite:///{folder}/sub/../budget.db",
    "sqlite:///budget.db",
    "sqlite:///./budget.db",
    "sqlite+pysqlite:///budget.db",
    "sqlite:///budget.db?mode=ro",
    "sqlite:///budget.db?uri=true&mode=rw",
    "sqlite:///file:budget.db?uri=true",
    "sqlite:///file:{folder}/budget.db?mode=ro&uri=true",
    "sqlite:///file://localhost{folder}/budget%2Edb?uri=true",
    "sqlite:///link.db",
    "sqlite:///hard.db",
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Folder with a ledger of four charges, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger("trips", 1.0, 1e-6, "sqlite:///budget.db")
    for _ in range(4):
        ledger.charge("fit", PureLoss(0.2))
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.db").symlink_to("budget.db")
    os.link("budget.db", "hard.db")
    return tmp_path


def export(*arguments: str, url: str = "sqlite:///budget.db") -> int:
    return main(["ledger", "export", "--storage", url, "--dataset", "trips", *arguments])


def targets(folder: Path, ending: str, *, linked: bool) -> list[str]:
    """Return ways to name the file of the ledger, or one that SQLite keeps beside it."""
    name = f"budget.db{ending}"
    named = [name, f"./sub/../{name}", str(folder / name), f"link.db{ending}", f"hard.db{ending}"]
    (folder / "other.csv").symlink_to(name)
    if (folder / name).exists() and not linked:
        os.link(name, "another.csv")
        named.append("another.csv")
    return [*named, "other.csv"]


@quick("sqlite:///./budget.db--shm")
@each_value(1)
@pytest.mark.parametrize("ending", BESIDE)
@pytest.mark.parametrize("url", URLS)
def test_the_ledger_is_never_written_over_however_it_is_named(folder, capsys, url, ending):
    held = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    # Of a ledger that is opened by a hard link, the journal has the name of that link.
    for target in targets(folder, ending, linked="hard" in url and ending != ""):
        for force in ([], ["--force"]):  # of an existing file too it is said what it is
            code = export("--out", target, *force, url=url.format(folder=folder))
            out, err = capsys.readouterr()
            assert (code, out) == (1, "")
            assert "belongs to a database" in err
            assert len(err.splitlines()) == 1
    assert PrivacyLedger.open("trips", "sqlite:///budget.db").total().n_charges == 4
    assert not list(folder.glob("skdpnoise-*"))
    assert held == {name: (folder / name).read_bytes() for name in held}


@pytest.mark.parametrize("ending", BESIDE)
def test_no_other_database_is_written_over(folder, capsys, ending):
    PrivacyLedger("others", 1.0, 1e-6, "sqlite:///others.db").charge("fit", PureLoss(0.5))
    assert export("--out", f"others.db{ending}", "--force") == 1
    assert "belongs to a database" in capsys.readouterr().err
    assert PrivacyLedger.open("others", "sqlite:///others.db").total().n_charges == 1


def test_a_file_that_exists_is_replaced_by_force_only(folder, capsys):
    target = folder / "charges.csv"
    target.write_text("mine")
    target.chmod(0o640)
    assert export("--out", "charges.csv") == 1
    assert "charges.csv exists. Name another file, or add --force" in capsys.readouterr().err
    assert target.read_text() == "mine"
    assert export("--out", "charges.csv", "--force") == 0
    assert target.read_text().startswith("number,time,")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert export("--out", "new.csv", "--force") == 0
    assert (folder / "new.csv").read_bytes() == target.read_bytes()
    assert not list(folder.glob("skdpnoise-*"))


def test_a_link_stays_and_what_it_points_to_is_written(folder):
    (folder / "sub" / "real.csv").write_text("old")
    (folder / "charges.csv").symlink_to("sub/real.csv")
    assert export("--out", "charges.csv") == 1
    assert export("--out", "charges.csv", "--force") == 0
    assert (folder / "charges.csv").is_symlink()
    assert (folder / "sub" / "real.csv").read_text().startswith("number,")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_no_file_is_refused(folder, capsys, force):
    os.mkfifo("pipe")
    for target, reason in (
        ("sub", "is no file"),
        ("pipe", "is no file"),
        (os.devnull, "is no file"),
        ("nowhere/charges.csv", "there is no folder"),
        ("budget.db/charges.csv", "there is no folder"),
    ):
        assert export("--out", target, *force) == 1
        assert reason in capsys.readouterr().err
    assert Path(os.devnull).exists()


@pytest.mark.parametrize("force", [False, True])
def test_a_fault_halfway_leaves_everything_as_it_was(tmp_path, force):
    target = tmp_path / "charges.csv"
    if force:
        target.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_file(target, None, force=force) as file:
        file.write("half")
        raise KeyboardInterrupt
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == (
        [("charges.csv", "old")] if force else []
    )


def test_a_file_that_another_program_made_meanwhile_stays(tmp_path):
    target = tmp_path / "charges.csv"
    with pytest.raises(FileExistsError), new_file(target, None, force=False) as file:
        file.write("mine")
        target.write_text("theirs")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


def test_a_new_file_may_be_read_by_whom_the_system_lets_read_files(tmp_path):
    with new_file(tmp_path / "charges.csv", None, force=False) as file:
        file.write("x")
    (tmp_path / "plain").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


WRITERS = {"write_text", "write_bytes", "open", "touch", "rename", "mkstemp", "to_csv", "copyfile"}
WRITERS |= {"move", "link", "symlink", "unlink", "mkdir", "NamedTemporaryFile", "savefig"}


def test_all_commands_write_files_by_one_function():
    found = set()
    for path in Path(skdpnoise.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = getattr(node.func, "attr", getattr(node.func, "id", ""))
                known = ast.unparse(node.func) in ("PrivacyLedger.open", "os.open")
                if called in WRITERS and not known:
                    found.add(path.name)
    assert found == {"_files.py"}


def test_force_is_for_files_only(folder, capsys):
    with pytest.raises(SystemExit) as ended:
        export("--force")
    assert ended.value.code == 2
    assert "--force: not allowed without --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["ledger", "export", "--storage", "sqlite:///a.db", "--dataset", "x", "--out", "a\0b"],
        ["audit", "skdpnoise:DPStandardScaler", "--data", "a\0b"],
        ["plan", "skdpnoise:DPStandardScaler", "--n-samples", "9", "--schema", "a\0b"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_path_with_a_nul_is_refused_by_name(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert f"argument {arguments[-2]}: no path can have a NUL" in err


@each_value(1)
@pytest.mark.parametrize("command", ["create", "show", "history", "export"])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_ledger_in_memory_is_refused_with_the_remedy(command, by, monkeypatch, capsys):
    arguments = ["ledger", command, "--dataset", "trips"]
    arguments += ["--epsilon", "1", "--delta", "0"] if command == "create" else []
    if by == "option":
        arguments += ["--storage", "memory"]
    else:
        monkeypatch.setenv("SKDPNOISE_LEDGER", "memory")
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "ends with the command. Name a file or a database, such as sqlite:///budget.db" in err


def test_a_plan_against_a_ledger_in_memory_is_refused_with_the_remedy(capsys):
    arguments = ["plan", "skdpnoise:DPStandardScaler", "--n-samples", "100", "--n-features", "2"]
    assert main([*arguments, "--dataset", "trips", "--storage", "memory"]) == 1
    assert "ends with the command. Name a file or a database" in capsys.readouterr().err


def test_a_budget_that_was_changed_is_not_shown(folder, capsys):
    connection = sqlite3.connect("budget.db")
    with connection:
        connection.execute("UPDATE skdpnoise_datasets SET epsilon = 100")
    connection.close()
    for command in (["show"], ["show", "--json", "--dataset", "trips"]):
        assert main(["ledger", *command, "--storage", "sqlite:///budget.db"]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert "The budget of the data set 'trips'" in err
