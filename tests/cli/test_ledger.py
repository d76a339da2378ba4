"""The command line creates, shows, lists and exports ledgers, for people and for programs."""

import builtins
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skdpnoise import PrivacyLedger, __version__
from skdpnoise.cli import main
from skdpnoise.ledger import decode_loss
from skdpnoise.privacy import GaussianLoss, PureLoss
from tests._cases import quick

pytest.importorskip("sqlalchemy")

ROOT = Path(__file__).resolve().parents[2]
LOSSES = (GaussianLoss(0.1 / 3.0), PureLoss(0.25), GaussianLoss(0.2))


@pytest.fixture
def storage(tmp_path, monkeypatch):
    """A storage with one data set and three charges."""
    monkeypatch.delenv("SKDPNOISE_LEDGER", raising=False)
    url = f"sqlite:///{tmp_path}/budget.db"
    ledger = PrivacyLedger("trips", epsilon=2.0, delta=1e-6, storage=url, who="ana")
    for index, loss in enumerate(LOSSES):
        ledger.charge(f"release {index}", loss, estimator="Counts", parameters={"clip": 3.0})
    return url


@pytest.fixture
def run(storage, capsys):
    """Run a command on that storage; return its exit code, output and errors."""

    def run_command(name, *arguments, dataset="trips", where=storage):
        options = [] if dataset is None else ["--dataset", dataset]
        code = main(["ledger", name, "--storage", where, *options, *arguments])
        return code, *capsys.readouterr()

    return run_command


def without_rich(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_create_sets_a_budget_that_the_library_opens(run, storage):
    code, out, err = run(
        *("create", "--epsilon", "1.5", "--delta", "0", "--unit", "group", "--adaptive"),
        *("--adjacency", "add_remove"),
        dataset="people",
    )
    assert (code, err) == (0, "")
    assert out.startswith("created 'people': epsilon=1.5, delta=0, add_remove, ")
    assert "one group" in out
    assert "may be chosen by looking" in out
    ledger = PrivacyLedger.open("people", storage)
    assert (ledger.guarantee.epsilon, ledger.guarantee.delta) == (1.5, 0.0)
    assert ledger.guarantee.adjacency == "add_remove"
    assert (ledger.unit, ledger.adaptive) == ("group", True)


def test_create_says_how_many_reservations_may_be_returned(run, storage):
    budget = ("create", "--epsilon", "1", "--delta", "0")
    code, out, _ = run(*budget, "--most-returned", "1", dataset="people")
    assert (code, "at most 1 reservations may be returned" in out) == (0, True)
    assert json.loads(run("show", "--json", dataset="people")[1])["most_returned"] == 1
    ledger = PrivacyLedger.open("people", storage)
    kept = [ledger.reserve(f"fit {k}", PureLoss(0.25)).give_back("no rows") for k in range(2)]
    assert kept == [True, False]
    code, _, err = run(*budget, "--most-returned", "0", dataset="people")
    assert (code, "The 'most_returned' parameter" in err) == (1, True)
    with pytest.raises(SystemExit, match="2"):
        run(*budget, "--most-returned", "-1", dataset="people")


def test_create_makes_the_file_and_takes_the_defaults_of_the_library(run, tmp_path):
    where = f"sqlite:///{tmp_path}/other.db"
    code, out, _ = run("create", "--epsilon", "1", "--delta", "1e-6", "--json", where=where)
    facts = json.loads(out)
    assert code == 0
    assert facts["created"] is True
    assert facts["adjacency"] == "replace_one"
    assert (facts["unit"], facts["adaptive"], facts["charges"]) == ("record", False, 0)
    assert (tmp_path / "other.db").exists()


def test_creating_again_changes_nothing_and_another_budget_is_refused(run, storage):
    code, out, _ = run("create", "--epsilon", "2", "--delta", "1e-6")
    assert code == 0
    assert out.startswith("there already: 'trips'")
    code, out, _ = run("create", "--epsilon", "2", "--delta", "1e-6", "--json")
    assert json.loads(out)["created"] is False
    for wrong in (
        ["--epsilon", "3", "--delta", "1e-6"],
        ["--epsilon", "2", "--delta", "1e-6", "--unit", "group"],
        ["--epsilon", "2", "--delta", "1e-6", "--adaptive"],
    ):
        code, out, err = run("create", *wrong)
        assert (code, out) == (1, "")
        assert err.startswith("skdpnoise: error: The ")
        assert "as it was set" in err
    assert PrivacyLedger.open("trips", storage).total().n_charges == 3


def test_show_tells_the_three_totals_and_what_is_left(run, storage):
    code, out, _ = run("show", "--json")
    facts, total = json.loads(out), PrivacyLedger.open("trips", storage).total()
    assert code == 0
    assert facts["spent"]["tight"] == total.epsilon
    assert facts["spent"]["basic"] == {"epsilon": total.basic[0], "delta": total.basic[1]}
    assert facts["spent"]["adaptive"] == total.adaptive_epsilon
    assert (facts["left"], facts["charges"]) == (total.left, 3)
    code, out, _ = run("show")
    assert code == 0
    for text in ("Ledger of trips", "epsilon=2, delta=1e-06", "one record", f"{total.left:.4g}"):
        assert text in out


def test_what_is_left_follows_the_rule_that_decides(run, storage):
    ledger = PrivacyLedger("looks", epsilon=1.0, delta=1e-6, storage=storage, adaptive=True)
    for _ in range(30):
        ledger.charge("small", PureLoss(0.03))
    facts = json.loads(run("show", "--json", dataset="looks")[1])
    assert facts["spent"]["tight"] < 0.8 < facts["spent"]["adaptive"]
    assert facts["left"] == pytest.approx(1.0 - facts["spent"]["adaptive"])
    out = run("show", dataset="looks")[1]
    assert "may be chosen by looking at results" in out
    assert f"left {facts['left']:.4g}" in out


def test_show_without_a_data_set_lists_all_of_them(run, storage):
    PrivacyLedger("alpha", epsilon=1.0, delta=0.0, storage=storage)
    code, out, _ = run("show", "--json", dataset=None)
    assert code == 0
    assert [facts["dataset"] for facts in json.loads(out)] == ["alpha", "trips"]
    code, out, _ = run("show", dataset=None)
    assert code == 0
    assert out.index("alpha") < out.index("trips")


def test_an_empty_file_has_no_data_sets(run, tmp_path):
    (tmp_path / "empty.db").touch()
    where = f"sqlite:///{tmp_path}/empty.db"
    assert run("show", "--json", dataset=None, where=where)[:2] == (0, "[]\n")
    code, out, _ = run("show", dataset=None, where=where)
    assert code == 0
    assert "no data sets" in out


def test_history_is_the_frame_of_the_library(run, storage):
    frame = PrivacyLedger.open("trips", storage).history()
    code, out, _ = run("history", "--json")
    records = json.loads(out)
    assert code == 0
    assert list(records[0]) == list(frame.columns)
    for name in ("number", "label", "epsilon", "delta", "loss", "spent", "who", "parameters"):
        assert [record[name] for record in records] == frame[name].tolist()
    assert [record["mechanism"] for record in records] == [None] * 3
    assert records[0]["time"] == frame["time"][0].isoformat()
    assert records[0]["time"].endswith("+00:00")


def test_what_was_returned_says_so_in_every_form(run, storage):
    ledger = PrivacyLedger.open("trips", storage)
    assert ledger.reserve("a fit", PureLoss(0.01)).give_back("X contains NaN")
    reasons = ["", "", "", "X contains NaN", "X contains NaN"]
    rows = csv.DictReader(io.StringIO(run("export", "--format", "csv")[1]))
    assert [row["returned"] for row in rows] == reasons
    for out in (run("history")[1], run("history", "--last", "2")[1]):
        assert "returned" in out
        assert out.count("X contains NaN") == 2
    facts = json.loads(run("show", "--json")[1])
    assert (facts["charges"], facts["returned"]) == (3, 1)


def test_history_can_be_cut_to_the_last_charges(run):
    code, out, _ = run("history", "--last", "2", "--json")
    assert code == 0
    assert [record["number"] for record in json.loads(out)] == [2, 3]
    assert len(json.loads(run("history", "--last", "99", "--json")[1])) == 3
    code, out, _ = run("history", "--last", "1")
    assert "release 2" in out
    assert "release 1" not in out


def test_a_history_without_charges_is_a_table_without_rows(run):
    run("create", "--epsilon", "1", "--delta", "0", dataset="new")
    code, out, err = run("history", dataset="new")
    assert (code, err) == (0, "")
    assert "number" in out
    assert run("history", "--json", dataset="new")[1] == "[]\n"
    assert len(run("export", dataset="new")[1].splitlines()) == 1


def test_an_export_holds_losses_to_the_last_bit(run):
    code, out, _ = run("export", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert tuple(decode_loss(row["exact_loss"]) for row in rows) == LOSSES
    assert [json.loads(row["parameters"]) for row in rows] == [{"clip": 3.0}] * 3
    assert len({row["token"] for row in rows}) == 3
    code, out, _ = run("export", "--format", "json")
    exported = json.loads(out)
    assert code == 0
    assert exported["epsilon"] == 2.0
    losses = [decode_loss(json.dumps(row["exact_loss"])) for row in exported["history"]]
    assert tuple(losses) == LOSSES
    assert run("export", "--json")[1] == out


def test_the_ending_of_the_file_is_its_format(run, tmp_path):
    code, out, _ = run("export", "--out", str(tmp_path / "charges.json"))
    assert code == 0
    assert out == f"wrote 3 charges to {tmp_path / 'charges.json'}\n"
    assert len(json.loads((tmp_path / "charges.json").read_text())["history"]) == 3
    code, out, _ = run("export", "--out", str(tmp_path / "charges.txt"), "--json")
    assert json.loads(out) == {
        "file": str(tmp_path / "charges.txt"),
        "format": "csv",
        "charges": 3,
    }
    assert (tmp_path / "charges.txt").read_text().startswith("number,time,label,")


def test_a_file_that_cannot_be_written_is_an_error(run, tmp_path):
    code, out, err = run("export", "--out", str(tmp_path / "nowhere" / "charges.csv"))
    assert (code, out) == (1, "")
    assert err.startswith("skdpnoise: error: ")
    assert "nowhere" in err


@pytest.mark.parametrize("name", ["show", "history", "export"])
def test_an_unknown_data_set_is_an_error_without_a_traceback(run, name):
    code, out, err = run(name, dataset="unknown")
    assert (code, out) == (1, "")
    assert err.startswith("skdpnoise: error: ")
    assert "'trips'" in err
    assert "Traceback" not in err


def test_reading_never_makes_a_file(run, tmp_path):
    where = f"sqlite:///{tmp_path}/typing_error.db"
    for dataset in ("trips", None):
        code, out, err = run("show", dataset=dataset, where=where)
        assert (code, out) == (1, "")
        assert "no file" in err
    assert not (tmp_path / "typing_error.db").exists()


@pytest.mark.parametrize("dataset", ["trips", None])
def test_what_is_no_ledger_is_an_error(run, tmp_path, dataset):
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    for where in (f"sqlite:///{tmp_path}/notes.txt", "budget.db", "sqlite://"):
        code, out, err = run("show", dataset=dataset, where=where)
        assert (code, out) == (1, "")
        assert err.startswith("skdpnoise: error: ")


def test_an_impossible_budget_is_an_error(run):
    code, _, err = run("create", "--epsilon", "-1", "--delta", "0", dataset="new")
    assert code == 1
    assert "'epsilon' parameter" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["ledger"],
        ["ledger", "spend"],
        ["ledger", "history", "--storage", "sqlite:///a.db"],
        ["ledger", "history", "--dataset", "a"],
        ["ledger", "history", "--dataset", "a", "--storage", "sqlite:///a.db", "--last", "0"],
        ["ledger", "create", "--dataset", "a", "--storage", "sqlite:///a.db", "--epsilon", "1"],
        ["ledger", "create", "--dataset", "a", "--storage", "u", "--epsilon", "x", "--delta", "0"],
        ["ledger", "export", "--dataset", "a", "--storage", "u", "--format", "xml"],
        ["ledger", "export", "--dataset", "a", "--storage", "u", "--format", "csv", "--json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_two(arguments, monkeypatch, capsys):
    monkeypatch.delenv("SKDPNOISE_LEDGER", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("usage: skdpnoise")


def test_the_environment_names_the_storage_and_the_option_wins(storage, monkeypatch, capsys):
    monkeypatch.setenv("SKDPNOISE_LEDGER", storage)
    assert main(["ledger", "show", "--dataset", "trips", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["charges"] == 3
    monkeypatch.setenv("SKDPNOISE_LEDGER", "sqlite:///elsewhere.db")
    assert main(["ledger", "show", "--storage", storage, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


@pytest.mark.parametrize("name", ["show", "history"])
def test_without_rich_the_same_is_plain_text(run, monkeypatch, name):
    pytest.importorskip("rich")
    _, rich, _ = run(name)
    without_rich(monkeypatch)
    code, plain, _ = run(name)
    assert code == 0
    assert plain.isascii()
    assert rich != plain
    assert set(plain.split()) - {"-" * len(word) for word in plain.split()} <= set(rich.split())


@pytest.mark.slow
def test_what_a_label_says_cannot_steer_a_terminal(run, storage, monkeypatch):
    label = "[bold]x[/bold] :smile: \x1b[31mred\nline"
    PrivacyLedger.open("trips", storage).charge(label, PureLoss(0.01))
    shown = "[bold]x[/bold] :smile: \\x1b[31mred\\nline"
    assert shown in run("history")[1]
    assert json.loads(run("history", "--json")[1])[-1]["label"] == label
    without_rich(monkeypatch)
    assert shown in run("history")[1]


def test_infinity_is_null_in_json_and_has_a_name_in_tables(run, storage):
    from skdpnoise.mechanisms import calibrate
    from skdpnoise.privacy import PrivacyGuarantee
    from skdpnoise.sensitivity import SensitivityProfile

    mechanism = calibrate(
        "iid_truncated_laplace", SensitivityProfile([1.0]), PrivacyGuarantee(0.5, 1e-7)
    )
    ledger = PrivacyLedger.open("trips", storage)
    ledger.charge("neither pure nor Gaussian", mechanism)
    assert ledger.total().adaptive_epsilon == float("inf")
    assert json.loads(run("show", "--json")[1])["spent"]["adaptive"] is None
    assert "epsilon=inf" in run("show")[1]


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"skdpnoise {__version__}\n"


@pytest.mark.slow
def test_a_process_says_its_errors_and_ends_with_one_and_its_pipe_may_be_closed(storage):
    environment = {**os.environ, "SKDPNOISE_LEDGER": storage}

    def start(*arguments, **options):
        command = [sys.executable, "-m", "skdpnoise", "ledger", *arguments]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, **options
        )

    with start("show", "--dataset", "unknown", stdout=subprocess.PIPE) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert err.startswith("skdpnoise: error: ")
    assert len(err.splitlines()) == 1
    reader, writer = os.pipe()
    os.close(reader)
    with start("show", "--dataset", "trips", stdout=writer) as process:
        os.close(writer)
        err = process.communicate()[1]
    assert (process.returncode, err) == (1, "")


def test_a_seeded_charge_is_told_first(run, storage):
    first = "NOT PRIVATE: random_state is set"
    assert first not in run("show")[1]
    ledger = PrivacyLedger.open("trips", storage)
    ledger.charge("fit", PureLoss(0.1), parameters={"random_state": 7})
    assert run("show")[1].splitlines()[0] == first
    assert run("show", dataset=None)[1].splitlines()[0] == f"{first} in fits to trips"
    assert json.loads(run("show", "--json")[1])["secure"] is False


FORMULAS = ["=1+1", "+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "= 1,2"]
FORMULAS += ["x\r=1", "x\n=1", 'x",=1']


@quick("-1+cmd")
@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_in_a_csv_file_is_a_formula(run, storage, text):
    name = f"{text} data"
    ledger = PrivacyLedger(name, 1.0, 0.0, storage, who=text)
    given = {text: text, "negative": -1.5}
    ledger.charge(text, PureLoss(0.25), mechanism=text, estimator=text, parameters=given)
    code, out, _ = run("export", "--format", "csv", dataset=name)
    (row,) = csv.DictReader(io.StringIO(out, newline=""))
    assert code == 0
    starts = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    assert not [cell for cell in row.values() if cell.startswith(starts)]
    shown = text if text.startswith(("'", "x")) else f"'{text}"
    assert [row[key] for key in ("label", "mechanism", "estimator", "who")] == [shown] * 4
    # Nothing is lost: numbers are numbers, parameters are JSON, and JSON has the text itself.
    assert float(row["epsilon"]) == 0.25
    assert json.loads(row["parameters"]) == given
    (record,) = json.loads(run("export", "--format", "json", dataset=name)[1])["history"]
    assert record["label"] == text


def test_create_shows_the_whole_path_of_a_relative_storage(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trips = ["--dataset", "trips", "--epsilon", "1", "--delta", "0"]
    assert main(["ledger", "create", "--storage", "sqlite:///budget.db", *trips]) == 0
    assert f"in sqlite:///{tmp_path}/budget.db" in capsys.readouterr().out
    monkeypatch.setenv("SKDPNOISE_LEDGER", f"sqlite:///{tmp_path}/budget.db")
    PrivacyLedger("trips").charge("fit", PureLoss(0.5))
    assert main(["ledger", "show", "--dataset", "trips", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == 0.5
