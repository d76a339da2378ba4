"""ruff, mypy and codespell find nothing to say; contracts ask for abilities; runs are alike."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks._source_files import long_parameter_lists, source_files

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


def test_no_word_is_misspelt():
    answer = subprocess.run(
        [sys.executable, "-m", "codespell_lib"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stdout + answer.stderr


@pytest.mark.slow
def test_private_functions_outside_kernels_take_at_most_six_parameters():
    # Ruff's PLR0913 cannot tell them from public ones, whose parameters are scikit-learn's.
    assert dict(long_parameter_lists(source_files(ROOT))) == {}


def branches_on_a_class(source: str) -> list[str]:
    """What of a test asks which class of ours something is; what is asserted does not count."""
    tree = ast.parse(source)
    parts = list(ast.walk(tree))
    ours = {
        alias.asname or alias.name
        for node in parts
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skdpnoise")
        for alias in node.names
        if isinstance(cls := getattr(import_module(node.module), alias.name, None), type)
        and hasattr(cls, "fit")
    }
    for node in tree.body:  # lists of classes
        shown = isinstance(node, ast.Assign) and not any(
            isinstance(part, ast.Call | ast.Dict) for part in ast.walk(node.value)
        )
        if shown and not isinstance(node.value, ast.Name | ast.Attribute):
            ours |= names(*node.targets) if names(node.value) & ours else set()
    asserted = {
        id(part) for node in parts if isinstance(node, ast.Assert) for part in ast.walk(node)
    }
    return [ast.unparse(node) for node in parts if id(node) not in asserted and asks(node, ours)]


def names(*nodes: ast.AST) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def asks(node: ast.AST, ours: set[str]) -> bool:
    """Whether a piece of code compares with one of the classes, or with what a class is called."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        kind = node.func.id in ("isinstance", "issubclass") and bool(names(*node.args[1:]) & ours)
        return kind or node.func.id in ("is_classifier", "is_regressor")
    if not isinstance(node, ast.Compare):
        return False
    text = ast.unparse(node)
    return bool(names(node) & ours) or any(
        part in text for part in ("type(", ".__class__", ".__name__")
    )


def test_contracts_ask_what_an_estimator_can_do_and_not_which_it_is():
    paths = sorted((ROOT / "tests" / "contracts").glob("*.py"))
    found = {path.name: branches_on_a_class(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.slow
def test_words_are_the_same_in_every_run_or_an_error(pytester):
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini(f"[pytest]\npythonpath = {ROOT}")
    take = "from skdpnoise.sampling.words import SystemWords\n\n\ndef take():\n"
    pytester.makepyfile(
        test_it=f"{take}    return SystemWords().take(1)[0]\n\n\n"
        "def test_asked(the_same_words):\n    print('drew', take())\n\n\n"
        "def test_unasked():\n    take()\n"
    )
    example = ">>> from skdpnoise.sampling.words import SystemWords\n"
    pytester.maketxtfile(page=example + ">>> print(SystemWords().take(1)[0])\n-1")
    drawn = []
    for _ in range(2):
        run = pytester.runpytest_subprocess("-s", "-p", "no:xdist", "--doctest-glob=*.txt")
        run.assert_outcomes(passed=1, failed=2)  # the example shows what was drawn
        text = run.stdout.str()
        assert "UnaskedWords: words differ from run to run" in text
        drawn.append(re.findall(r"drew (\d+)|Got:\s+(\d+)", text))
    assert len(drawn[0]) == 2
    assert drawn[0] == drawn[1]
