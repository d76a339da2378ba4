"""The benchmark of audits: what it plans, that it goes on where it stopped, what it prints."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from benchmarks import audit as benchmark
from benchmarks._audit_cases import ADJACENCIES, BROKEN, EPSILONS, SOUND
from benchmarks._remembered import remembered
from skdpnoise import DPLassoPath, DPStandardScaler
from skdpnoise.mechanisms import AdditiveMechanism, calibrate


def test_every_estimator_is_planned_at_every_epsilon_under_both_relations_in_every_round():
    plan = benchmark.plan(quick=False)
    for case in SOUND:
        rows = [row for row in plan if row[0] is case]
        extra = 1 if case.many else 0
        assert len(rows) == len(benchmark.ROUNDS) * 6 + extra
        assert {row[1:3] for row in rows} == {(e, a) for e in EPSILONS for a in ADJACENCIES}
        assert min(row[3] for row in rows) == 0  # the replays
        assert max(row[3] for row in rows) == (10_000 if case.many else 2000)
    assert sum(case.many for case in SOUND) == 3
    assert {case.name for case in BROKEN} <= {row[0].name for row in plan}
    # The false alarms of all rows of all rounds, and the peer's, add up to that of the table.
    tested = sum(row[3] > 0 for row in plan)
    total = benchmark.row_alarm(quick=False) * (tested + 1)
    assert total == pytest.approx(benchmark.FALSE_ALARM)


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_and_shows_what_is_known(tmp_path, monkeypatch, capsys):
    case = SOUND[6]
    plan = [(case, 1.0, "replace_one", 20), (BROKEN[1], 1.0, "replace_one", 0)]
    monkeypatch.setattr(benchmark, "plan", lambda quick: plan)
    options = ["--quick", "--out", str(tmp_path)]
    assert benchmark.main([*options, "--known"]) == 0
    assert benchmark.main([*options, "--only", case.name]) == 0
    first = capsys.readouterr().out
    assert "1/2 standard scaler" in first
    assert "unpaid mean" not in first
    measured = []
    measure = benchmark.measure
    monkeypatch.setattr(
        benchmark, "measure", lambda *args: measured.append(args[0].name) or measure(*args)
    )
    assert benchmark.main(options) == 0
    assert measured == ["unpaid mean"]
    assert "REFUTED" in capsys.readouterr().out
    saved = json.loads((tmp_path / "audit.json").read_text())
    assert saved["machine"]["cores"] >= 1
    assert saved["commit"]
    assert {row["name"]: row["passed"] for row in saved["rows"]} == {
        case.name: True,
        "unpaid mean": False,
    }


def test_a_sound_estimator_that_is_refuted_is_an_error():
    rows = [
        {
            "name": "x",
            "epsilon": 1.0,
            "adjacency": "a",
            "n_fits": n,
            "passed": n == 1,
            "broken": False,
            "refuted": n == 2,
            "results": [{"method": "black_box", "n_fits": n}],
        }
        for n in (1, 2)
    ]
    (row,) = benchmark.merged(rows)
    assert row["passed"] is False
    assert row["results"] == [{"method": "black_box", "n_fits": 2}]


def test_what_is_remembered_is_what_is_computed_and_is_forgotten_again():
    X = np.random.default_rng(0).normal(size=(60, 1))
    models = [
        DPStandardScaler(feature_bounds=(-3, 3), random_state=0),
        DPLassoPath(alphas=1, random_state=0),
    ]

    def fitted():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [str(model.fit(X, X[:, 0]).privacy_) for model in models]

    loss = AdditiveMechanism.privacy_loss
    expected = fitted()
    with remembered():
        assert AdditiveMechanism.privacy_loss is not loss
        assert [fitted(), fitted()] == [expected, expected]
    assert AdditiveMechanism.privacy_loss is loss
    assert calibrate.__module__ == "skdpnoise.mechanisms.calibrate"
