"""The benchmarks are found by their file names."""

import pytest

from benchmarks import __main__ as front
from benchmarks._report import DEFAULT_OUT


def test_a_new_file_is_a_new_benchmark(tmp_path):
    (tmp_path / "speed.py").write_text('"""Measure speed.\n\nIn seconds.\n"""\n')
    (tmp_path / "bare.py").write_text("raise RuntimeError('listing must not import')\n")
    (tmp_path / "_report.py").write_text('"""Shared."""\n')
    assert front.discover(tmp_path) == {"bare": "", "speed": "Measure speed."}


def test_every_benchmark_of_the_project_has_a_summary():
    found = front.discover(DEFAULT_OUT.parent)
    assert {"dp_cd", "defaults", "speed", "sampler"} <= set(found)
    assert all(line.endswith(".") for line in found.values())


def test_help_lists_the_benchmarks(capsys):
    with pytest.raises(SystemExit) as stopped:
        front.main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    for name, line in front.discover().items():
        assert f"  {name}" in printed
        assert line in printed


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        front.main(["nothing"])
    assert stopped.value.code == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


@pytest.mark.slow
def test_every_benchmark_explains_its_options(capsys):
    lacking = {}
    for name in sorted(front.discover()):
        with pytest.raises(SystemExit) as stopped:
            front.main([name, "--help"])
        printed = capsys.readouterr().out
        options = [one for one in ("--data-dir", "--out", "--quick") if one not in printed]
        if options or stopped.value.code:
            lacking[name] = options
    assert lacking == {}
