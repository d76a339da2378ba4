"""Peers: the page is what the kept figures give, and failures and better peers are shown."""

import io
import json

import numpy as np
import pytest

from benchmarks import _peers_page, peers
from benchmarks._peer_runs import REGRESSION, TWO_CLASSES, Problem, measured, serve
from benchmarks._peers_page import METHODS, better, failures, page, score_rows, score_table

ROWS = np.linspace(-1.0, 3.0, 20).reshape(10, 2)


def problem(kind=TWO_CLASSES, y=None):
    y = np.arange(10) % 2 if y is None else y
    return Problem("made up", kind, ROWS, ROWS, y, y, ROWS.min(axis=0), ROWS.max(axis=0))


def record(method, epsilon, *scores, data="Adult", errors=()):
    return {
        "data": data,
        "method": method,
        "epsilon": epsilon,
        "scores": list(scores),
        "seconds": 0.25,
        "errors": list(errors),
    }


def run_of(*results):
    """What `python -m benchmarks peers` saves, with made-up figures."""
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {
            "processor": "x",
            "cores": 2,
            "python": "3.11.0",
            "scikit-learn": "1.9",
            "skdpnoise": "0.1",
        },
        "epsilons": [0.1, 1.0],
        "pins": {name: list(peer.pins) for name, peer in peers.PEERS.items()},
        "splits": {name: peer.splits for name, peer in peers.PEERS.items()},
        "results": list(results),
        "checks": {"skdpnoise DPLogisticRegression": {"passed": 9, "failed": 1, "names": ["one"]}},
        "missing": {"OpenDP": "no wheel"},
        "days": dict.fromkeys(peers.PEERS, "2026-01-02"),
    }


RUN = run_of(
    record("non-private", 0.1, 0.9),
    record("non-private", 1.0, 0.9),
    record("OpenDP ridge", 0.1, 0.5, 0.7, 0.6),
    record("OpenDP ridge", 1.0, 0.85),
    record("skdpnoise", 0.1, 0.55),
    record("skdpnoise", 1.0, 0.88),
    record("skdpnoise, bounds", 0.1, 0.65),
    record("skdpnoise, bounds, add/remove", 0.1, 0.58),
    record("diffprivlib GaussianNB", 0.1, errors=["ValueError: no"]),
    record("diffprivlib LinearRegression", 1.0, -7.0, data="California"),
)


def test_the_page_is_what_the_kept_figures_give():
    run = json.loads(peers.KEPT.read_text(encoding="utf-8"))
    assert peers.PAGE.read_text(encoding="utf-8") == page(run)
    assert {one["method"] for one in run["results"]} <= METHODS.keys()
    assert {one["data"] for one in run["results"]} == peers.KINDS.keys()
    assert not run["commit"].endswith("-dirty")


def test_rows_are_medians_in_the_order_of_the_methods():
    headers, rows = score_rows(RUN, "Adult")
    assert headers == ["method", "ε = 0.1", "ε = 1"]
    assert rows == [
        ["non-private", 0.9, 0.9],
        ["skdpnoise", 0.55, 0.88],
        ["skdpnoise, bounds", 0.65, None],
        ["skdpnoise, bounds, add/remove", 0.58, None],
        ["diffprivlib GaussianNB", None, None],
        ["OpenDP ridge", 0.6, 0.85],
    ]


def test_the_best_private_score_is_bold_and_a_failure_is_marked_and_explained():
    text = score_table(RUN, "Adult")
    assert "| skdpnoise, bounds | **0.650** | – |" in text
    assert "| skdpnoise | 0.550 | **0.880** |" in text
    assert "| non-private | 0.900 | 0.900 |" in text
    assert "| diffprivlib GaussianNB | – † | – |" in text
    assert "GaussianNB on Adult at ε = 0.1: `ValueError: no`" in failures(RUN)
    assert "below −1" in score_table(RUN, "California")
    assert failures(run_of(record("skdpnoise", 0.1, 0.5))) == ""


def test_a_better_peer_is_named_first():
    assert better(RUN) == [["Adult", 0.1, "OpenDP ridge", 0.6, 0.55, 0.65, 0.58]]
    text = page(RUN)
    first = "| Adult | 0.1 | OpenDP ridge | 0.600 | 0.550 | 0.650 | 0.580 |"
    assert first in text.partition("## Scores")[0]
    assert "| skdpnoise DPLogisticRegression | 9 of 10 |" in text
    assert "OpenDP is left out: no wheel" in text
    assert "In none of 10 cases" in page(run_of(record("skdpnoise", 0.1, 0.5)))


def test_without_a_delta_peers_are_compared_with_our_model_without_one():
    pure = record("skdpnoise, bounds, δ = 0", 0.1, 0.4)
    run = run_of(*RUN["results"], pure, record("diffprivlib LogisticRegression", 0.1, 0.45))
    assert better(run, pure=True) == [
        ["Adult", 0.1, "diffprivlib LogisticRegression", 0.45, 0.4],
    ]
    assert "| Adult | 0.1 | diffprivlib LogisticRegression | 0.450 | 0.400 |" in page(run)
    assert better(RUN, pure=True) == []


def test_some_peers_are_measured_anew_beside_what_was_kept_of_the_others():
    new = run_of(record("OpenDP ridge", 1.0, 0.9)) | {
        "days": {"OpenDP": "2026-03-04"},
        "machine": {"skdpnoise": "0.2"},
        "missing": {},
        "checks": {},
    }
    both = peers.beside(new, RUN)
    assert both["machine"] == RUN["machine"]
    assert both["checks"] == RUN["checks"]
    assert both["missing"] == {}
    assert both["epsilons"] == [0.1, 1.0]
    methods = {one["method"] for one in RUN["results"]}
    assert {one["method"] for one in both["results"]} == methods
    assert [one["scores"] for one in both["results"] if one["method"] == "OpenDP ridge"] == [[0.9]]
    assert "on 2026-01-02 (skdpnoise, diffprivlib, interpret, Opacus), on 2026-03-04 (Op" in page(
        both
    )
    ours = run_of(record("skdpnoise", 1.0, 0.5), record("non-private", 1.0, 0.8)) | {
        "days": {"skdpnoise": "2026-03-04"},
        "checks": {},
    }
    after = peers.beside(ours, RUN)
    assert sum(one["method"] == "non-private" for one in after["results"]) == 1
    assert after["checks"] == {}
    assert after["machine"] == ours["machine"]


def test_every_peer_is_in_the_table_of_guarantees():
    assert {facts.peer for facts in METHODS.values()} == peers.PEERS.keys() | {"scikit-learn"}
    assert _peers_page.DATA.keys() == peers.KINDS.keys()


@pytest.mark.parametrize("name", [*peers.PEERS][1:])
def test_scripts_that_run_elsewhere_import_nothing_of_ours_but_what_they_share(name):
    script = f"{peers.PEERS[name].script}.py"
    for file in (script, "_peer_runs.py"):
        text = (peers.ROOT / "benchmarks" / file).read_text(encoding="utf-8")
        assert "skdpnoise" not in text
    assert text.count("from benchmarks") == 0


def test_columns_are_mapped_by_bounds_and_targets_back():
    one = problem(REGRESSION, y=np.linspace(5.0, 9.0, 10))
    mapped = one.unit(np.array([[-9.0, 9.0]]))
    np.testing.assert_array_equal(mapped, [[0.0, 1.0]])
    assert one.norm == pytest.approx(np.sqrt(2.0))
    np.testing.assert_allclose(one.target(one.centred_target()), one.y)
    assert one.score(one.y) == 1.0
    assert one.score(np.full(10, 7.0)) == pytest.approx(0.0)
    assert problem().score(np.zeros(10)) == 0.5


def test_a_fit_that_fails_is_a_result():
    def fails(*_):
        raise ValueError("too few\nrows")

    assert measured(problem(), fails, 1.0, 0.0) == {"error": "ValueError: too few"}
    no_number = measured(
        problem(REGRESSION), lambda *_: lambda X: np.full(len(X), np.inf), 1.0, 0.0
    )
    assert "not finite" in no_number["error"]
    found = measured(problem(), lambda *_: lambda X: np.zeros(len(X)), 1.0, 0.0)
    assert found["score"] == 0.5
    assert found["seconds"] >= 0.0


def test_a_question_is_answered_on_the_last_line(tmp_path, monkeypatch, capsys):
    arrays = {"X": ROWS, "X_test": ROWS, "low": ROWS.min(axis=0), "high": ROWS.max(axis=0)}
    np.savez(tmp_path / "rows.npz", **arrays, y=np.arange(10) % 2, y_test=np.arange(10) % 2)
    question = {
        "ask": "scores",
        "file": str(tmp_path / "rows.npz"),
        "problem": {"name": "made up", "kind": TWO_CLASSES, "groups": []},
        "epsilons": [0.1, 1.0],
        "delta": 1e-6,
    }
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(question)))

    def fit(problem, epsilon, delta):
        return lambda X: np.full(len(X), epsilon)

    serve({"one": {TWO_CLASSES: fit}, "other": {REGRESSION: fit}}, {})
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(one["method"], one["epsilon"], one["score"]) for one in answer] == [
        ("one", 0.1, 0.0),
        ("one", 1.0, 0.5),
    ]
    records = peers.summary("Adult", answer)
    assert [(one["epsilon"], one["scores"]) for one in records] == [(0.1, [0.0]), (1.0, [0.5])]


def test_an_environment_with_the_right_versions_is_used_again(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise AssertionError("it installs")

    monkeypatch.setattr("venv.create", fails)
    (tmp_path / "opendp").mkdir()
    (tmp_path / "opendp" / "pins.txt").write_text("a==1\nb==2")
    python = peers.environment(tmp_path, "OpenDP", ("a==1", "b==2"))
    assert python.is_relative_to(tmp_path / "opendp")
    with pytest.raises(AssertionError, match="it installs"):
        peers.environment(tmp_path, "OpenDP", ("a==1", "b==3"))
