"""The history keeps the ratios of whole runs, each once, and draws them."""

import copy
import json

import pytest

from benchmarks import history, speed


def run_of(commit="0123456789ab", date="2026-01-02T03:04:05+00:00", n=2_000_000, slower=1.0):
    """What `python -m benchmarks speed` saves, with made-up figures."""
    ratios = {name: slower * bar for name, (_, bar) in speed.BARS.items()}
    results = [
        {"loss": loss, "dtype": "float64", "standardised": standardised, "nanoseconds": {}} | ratios
        for loss in ("squared", "logistic")
        for standardised in (False, True)
    ]
    machine = {"processor": "x86_64", "cores": 2}
    return {
        "benchmark": "speed",
        "commit": commit,
        "date": date,
        "machine": machine,
        "n": n,
        "p": 20,
        "bars": {name: list(bar) for name, bar in speed.BARS.items()},
        "results": results,
        "parts": {"fits": {"PCA": [slower * 1.3, 1.3]}, "calibrations": {"count": [2.0, 5.0]}},
    }


@pytest.fixture
def keep(tmp_path):
    """Hand a run to the command, with a history of its own; return its exit status."""
    kept = tmp_path / "kept.json"
    kept.write_text("[]\n", encoding="utf-8")

    def command(run, *options):
        if run is not None:
            (tmp_path / "speed.json").write_text(json.dumps(run), encoding="utf-8")
        return history.main(["--out", str(tmp_path), "--history", str(kept), *options])

    command.kept = lambda: json.loads(kept.read_text(encoding="utf-8"))
    command.picture = tmp_path / "history.png"
    return command


def test_it_keeps_every_ratio_that_has_a_bar_and_no_nanosecond():
    assert set(history.RATIOS) == set(speed.BARS)
    point = history.point_of(run_of())
    assert set(point["ratios"]) == {
        "squared, float64",
        "squared, float64, standardised",
        "logistic, float64",
        "logistic, float64, standardised",
    }
    assert all(set(case) == set(speed.BARS) for case in point["ratios"].values())
    assert "nanoseconds" not in json.dumps(point)
    assert point["parts"] == run_of()["parts"]
    assert point["commit"] == "0123456789ab"
    assert point["machine"]["cores"] == 2


@pytest.mark.slow
def test_runs_are_kept_in_order_of_date_and_each_once(keep, capsys):
    later = run_of("b" * 12, "2026-03-01T00:00:00+00:00", slower=1.25)
    for run in (later, run_of("a" * 12), later):
        assert keep(run) == 0
    assert [point["commit"] for point in keep.kept()] == ["a" * 12, "b" * 12]
    assert keep.kept()[1]["ratios"]["squared, float64"]["private / plain"] == 1.25 * 1.15
    printed = capsys.readouterr().out
    assert "private / plain" in printed
    assert "PCA" in printed
    assert "x86_64, 2 cores" in printed


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"commit": "0123456789ab-dirty"}, "Commit, and run"),
        ({"commit": "not a git checkout"}, "nobody can check out"),
        ({"n": 200_000}, "without --quick"),
        ({"benchmark": "sampler"}, "not a run of `python -m benchmarks speed`"),
    ],
)
def test_a_run_that_cannot_be_compared_is_not_kept(keep, capsys, wrong, said):
    assert keep(run_of() | wrong) == 1
    assert said in capsys.readouterr().err
    assert keep.kept() == []


def test_without_a_run_it_says_how_to_make_one(keep, capsys):
    assert keep(None) == 1
    assert "python -m benchmarks speed" in capsys.readouterr().err


@pytest.mark.slow
def test_quick_draws_and_keeps_nothing(keep):
    pytest.importorskip("matplotlib")
    assert keep(None, "--quick") == 0
    assert not keep.picture.exists()
    other = copy.deepcopy(run_of("b" * 12, "2026-03-01T00:00:00+00:00"))
    other["machine"]["processor"] = "arm64"
    assert keep(run_of("a" * 12)) == keep(other) == 0
    keep.picture.unlink()
    assert keep(run_of("c" * 12, "2026-04-01T00:00:00+00:00"), "--quick") == 0
    assert len(keep.kept()) == 2
    assert keep.picture.stat().st_size > 10_000


def test_what_is_kept_can_be_drawn():
    points = json.loads(history.KEPT.read_text(encoding="utf-8"))
    assert points == sorted(points, key=lambda point: point["date"])
    for point in points:
        assert set(point["parts"]) == {"calibrations", "cold start", "fits", "growth"}
        assert all(set(case) == set(history.RATIOS) for case in point["ratios"].values())
        assert set(history.RATIOS) <= set(point["bars"])
