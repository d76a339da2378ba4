"""``skdpnoise audit``: the report as a table and as JSON, and what ends it."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from skdpnoise.cli import main

FACTORY = """
from skdpnoise import DPLogisticCD, DPStandardScaler

class Unpaid(DPStandardScaler):
    def fit(self, X, y=None):
        super().fit(X)
        self.mean_ = X.mean(axis=0)
        return self

def make():
    return DPLogisticCD(epsilon=2.0, feature_bounds=(-3, 3))

def unpaid():
    return Unpaid(feature_bounds=(-3, 3))

def text():
    return "no estimator"

ready = DPStandardScaler(feature_bounds=(-3, 3))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "audited", raising=False)
    (tmp_path / "audited.py").write_text(FACTORY)
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = [f"{a},{b},{'yes' if a > 0 else 'no'}" for a, b in X.tolist()]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,label", *rows]))
    numbers = [f"{a},{b}" for a, b in X.tolist()]
    (tmp_path / "numbers.csv").write_text("\n".join(["a,b", *numbers]))


LABELLED = ["--data", "table.csv", "--target", "label", "--seed", "0"]
PLAIN = ["--data", "numbers.csv", "--seed", "0"]


@pytest.mark.slow
def test_a_table_shows_claimed_beside_found(capsys):
    assert main(["audit", "audited:make", *LABELLED, "--n-fits", "20"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "DPLogisticCD claims (epsilon=2",
        "replay",
        "black_box",
        "nothing found",
        "not private unless the data are public",
        "20 fits on each data set",
    ):
        assert text in out


def test_what_is_refuted_ends_with_one_and_is_told_in_json(capsys):
    code = main(["audit", "audited:unpaid", *PLAIN, "--method", "replay", "--json"])
    assert code == 1
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is False
    assert "mean_" in report["results"][0]["problems"][0]


def test_a_broken_declaration_ends_with_one_and_is_told_as_such(capsys):
    assert main(["audit", "tests._audit:Histogram", *PLAIN, "--method", "replay"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "but a declaration is BROKEN" in out
    assert "REFUTED" not in out


@pytest.mark.slow
def test_a_claim_can_be_given_and_an_object_that_is_ready_taken(capsys):
    options = ["--epsilon", "3", "--delta", "0.01", "--adjacency", "replace_one", "--json"]
    assert main(["audit", "audited:ready", *PLAIN, "--method", "replay", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["epsilon"], report["delta"]) == (3.0, 0.01)
    assert main(["audit", "skdpnoise:DPStandardScaler", *PLAIN, "--method", "replay"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audited", *PLAIN], "must be given as MODULE:FACTORY"),
        (["audited:", *PLAIN], "must be given as MODULE:FACTORY"),
        (["audited:nothing", *PLAIN], "the module 'audited' has no 'nothing'"),
        (["audited:text", *PLAIN], "made an object of type str, which is no estimator"),
        (["not_there:make", *PLAIN], "No module named 'not_there'"),
        (["audited:make", "--data", "no.csv"], "No such file"),
        (["audited:make", "--data", "table.csv", "--target", "no"], "has no column 'no'"),
        (["audited:make", "--data", "table.csv"], "these columns are not numbers: 'label'"),
        (["audited:make", *LABELLED, "--n-fits", "3"], "'n_fits' parameter of audit"),
    ],
)
def test_errors_are_one_line_on_the_standard_error(arguments, message, capsys):
    assert main(["audit", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("skdpnoise: error: ")
    assert message in captured.err


def test_a_ledger_is_still_asked_where_it_is(monkeypatch, capsys):
    monkeypatch.delenv("SKDPNOISE_LEDGER", raising=False)
    with pytest.raises(SystemExit):
        main(["ledger", "show"])
    assert "--storage" in capsys.readouterr().err
