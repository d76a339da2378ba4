"""ruff and mypy find nothing to say; `make test` runs a part of every file of tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.size import SourceFile, exported, long_parameter_lists

ROOT = Path(__file__).resolve().parents[1]
pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    "command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=" ".join
)
def test_the_checker_finds_nothing(command):
    pytest.importorskip(command[0])
    answer = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_private_functions_outside_kernels_take_at_most_six_parameters():
    package = ROOT / "skdpnoise"
    files = [SourceFile(path, package) for path in sorted(package.rglob("*.py"))]
    # Ruff's PLR0913 cannot tell them from public ones, whose parameters are scikit-learn's.
    assert dict(long_parameter_lists(files, exported(files))) == {}


def test_make_test_covers_every_file_of_tests():
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tests = [
            [ast.unparse(mark) for mark in node.decorator_list]
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        assert any("pytest.mark.slow" not in marks for marks in tests), path.name


def test_as_many_cases_are_quick_as_the_marker_says_evenly_spread(pytester):
    conftest = ROOT / "tests" / "conftest.py"
    pytester.makeconftest(conftest.read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n  slow\n  quick")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.quick(2)
        @pytest.mark.parametrize("k", range(8))
        def test_k(k):
            print(f"case {k}")

        class TestOther:
            @pytest.mark.quick(3)
            @pytest.mark.parametrize("k", range(2))
            def test_k(self, k):
                pass
        """
    )
    quick = pytester.runpytest_subprocess("-m", "not slow", "-s", "-p", "no:xdist")
    quick.assert_outcomes(passed=4, deselected=6)
    quick.stdout.fnmatch_lines(["*case 2*", "*case 6*"])
    pytester.runpytest_subprocess("-m", "slow").assert_outcomes(passed=6, deselected=4)
