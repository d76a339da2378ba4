"""``skdpnoise plan``: the plan as a table and as JSON, and what ends it."""

from __future__ import annotations

import json
import sys

import pytest

from skdpnoise import DPLogisticCD, PrivacyLedger
from skdpnoise.cli import main
from skdpnoise.privacy import PureLoss

FACTORY = """
from skdpnoise import DPLogisticCD, DPStandardScaler

def make():
    return DPLogisticCD(epsilon=2.0, feature_bounds={"age": (17, 90)})
"""
SCHEMA = '{"age": [17, 90], "gain": "log", "job": [0, 1, 2], "open": null}'
QUICK = ["--n-fits", "1", "--epsilons", "0.5"]
MODEL = ["skdpnoise:DPLogisticCD", "--n-samples", "2000", *QUICK]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "planned", raising=False)
    monkeypatch.delenv("SKDPNOISE_LEDGER", raising=False)
    (tmp_path / "planned.py").write_text(FACTORY)
    (tmp_path / "schema.json").write_text(SCHEMA)


def planned(capsys, *arguments):
    assert main(["plan", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_table_shows_stages_and_lines_the_rest(capsys):
    assert main(["plan", *MODEL, "--n-features", "3", "--score", "0.6"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "Plan of DPLogisticCD: 2,000 rows of 3 columns, (epsilon=1, delta=1e-06)",
        "to be released",
        "gradients",
        "accuracy at epsilon=0.5: ",
        "best possible accuracy: ",
        "what this is: a simulation",
        "epsilon for a score of 0.6: 0.5",
    ):
        assert text in out
    assert out.count("gradients") == 1


@pytest.mark.slow
def test_json_is_what_the_function_returns(capsys):
    found = planned(capsys, *MODEL, "--n-features", "3", "--score", "0.6")
    plan = DPLogisticCD().plan(2_000, 3, epsilons=[0.5], n_fits=1)
    assert found == json.loads(json.dumps(plan.to_dict() | {"epsilon_for": plan.epsilon_for(0.6)}))


@pytest.mark.slow
def test_names_schemas_and_budgets_are_taken(capsys):
    budget = ["--epsilon", "3", "--delta", "0", "--classes", "3", "--signal", "0.9"]
    rows = ["planned:make", "--n-samples", "500", *QUICK]
    found = planned(capsys, *rows, "--names", "age", "income", *budget)
    assert (found["epsilon"], found["delta"], found["n_columns"]) == (3.0, 0.0, 2)
    assert found["signal"] == 0.9
    schema = ["--schema", "schema.json", "--scoring", "roc_auc", "--seed", "1"]
    found = planned(capsys, "skdpnoise:DPStandardScaler", "--n-samples", "500", *schema)
    assert found["n_columns"] == 4


@pytest.mark.slow
def test_a_ledger_is_asked_and_not_charged(capsys, tmp_path, monkeypatch):
    pytest.importorskip("sqlalchemy")
    storage = f"sqlite:///{tmp_path}/budget.db"
    ledger = PrivacyLedger("trips", epsilon=1.0, delta=1e-6, storage=storage)
    ledger.charge("before", PureLoss(0.4))
    of_ledger = ["--n-features", "2", "--dataset", "trips"]
    found = planned(capsys, *MODEL, *of_ledger, "--storage", storage)
    assert 0.5 < found["affordable"] < 1.0
    monkeypatch.setenv("SKDPNOISE_LEDGER", storage)
    assert planned(capsys, *MODEL, *of_ledger)["affordable"] == found["affordable"]
    assert len(ledger.charges()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["planned", "--n-samples", "9", "--n-features", "2"], "given as MODULE:FACTORY"),
        ([*MODEL, "--n-features", "2", "--dataset", "trips"], "--dataset needs --storage"),
        ([*MODEL, "--schema", "nothing.json"], "No such file"),
        ([*MODEL, "--n-features", "2", "--score", "0.99"], "'score' parameter of PrivacyPlan"),
        ([*MODEL, "--n-features", "0"], "'features' parameter of plan"),
        ([*MODEL, "--n-features", "2", "--epsilon", "-1"], "'epsilon' parameter"),
    ],
)
def test_errors_are_one_line_on_the_standard_error(arguments, message, capsys):
    assert main(["plan", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("skdpnoise: error: ")
    assert message in captured.err


def test_a_schema_that_is_a_list_is_refused(capsys, tmp_path):
    (tmp_path / "schema.json").write_text("[1, 2]")
    assert main(["plan", *MODEL, "--schema", "schema.json"]) == 1
    assert "must be a JSON object. Got a list" in capsys.readouterr().err


def test_the_shape_of_the_table_is_needed_once(capsys):
    for shape in ([], ["--n-features", "2", "--names", "a", "b"]):
        with pytest.raises(SystemExit):
            main(["plan", *MODEL, *shape])
        assert "--n-features" in capsys.readouterr().err
