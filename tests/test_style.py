"""ruff and mypy find nothing to say; every test has a case that `make test` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=" ".join
)
def test_the_checker_finds_nothing(command):
    pytest.importorskip(command[0])
    answer = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_only_cases_are_slow_and_never_a_whole_test():
    """`quick` of tests/_marks.py, which leaves a case of each test, is the only one to mark."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    marking = [path.name for path, text in sources.items() if "mark." + "slow" in text]
    assert marking == ["_marks.py"]
