"""What is imported and compiled, and when: nothing before it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import skdpnoise
from skdpnoise.cli import _main
from skdpnoise.ledger.privacy_ledger import STORAGE

ROOT = Path(__file__).resolve().parents[1]

# scikit-learn imports pandas where it finds it; nothing of ours may, before there is a frame.
NO_PANDAS = "import sys; sys.modules['pandas'] = None\n"


def run(code: str) -> list[str]:
    """Words that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def homes() -> dict[str, str]:
    """The package that each name is imported from for type checkers."""
    tree = ast.parse(Path(skdpnoise.__file__).read_text("utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_names_are_those_that_type_checkers_see():
    found = homes()
    assert {*found, "__version__"} == set(skdpnoise.__all__)
    assert {name: f"skdpnoise.{room}" for name, room in skdpnoise._HOMES.items()} == found
    for name, room in found.items():
        assert name in import_module(room).__all__
        assert getattr(skdpnoise, name) is getattr(import_module(room), name)


def test_packages_are_attributes_and_other_names_are_not():
    assert {*skdpnoise.__all__, "mechanisms", "plotting", "queries"} <= set(dir(skdpnoise))
    assert "mechanisms" not in skdpnoise.__all__
    assert skdpnoise.mechanisms is import_module("skdpnoise.mechanisms")
    assert not hasattr(skdpnoise, "__wrapped__")
    with pytest.raises(AttributeError, match=r"'skdpnoise' has no attribute 'DPNothing'"):
        skdpnoise.__getattr__("DPNothing")


def test_the_package_imports_nothing_but_itself():
    code = (
        "import sys; before = set(sys.modules); import skdpnoise\n"
        "added = {name.partition('.')[0] for name in sys.modules.keys() - before}\n"
        "print(*(added - sys.stdlib_module_names))"
    )
    assert run(code) == ["skdpnoise"]


def test_numba_and_pandas_wait_until_a_fit_needs_them():
    # Few records need nothing compiled but the sweeps of a classifier.
    code = (
        f"{NO_PANDAS}import importlib, pkgutil, warnings, numpy as np, skdpnoise\n"
        "def alone(name):\n"
        "    if 'numba' in sys.modules: sys.exit(f'{name} imports numba')\n"
        "for name in skdpnoise.__all__:\n"
        "    getattr(skdpnoise, name); alone(name)\n"
        "for one in pkgutil.walk_packages(skdpnoise.__path__, 'skdpnoise.'):\n"
        "    if one.ispkg: importlib.import_module(one.name); alone(one.name)\n"
        "del sys.modules['pandas']; warnings.simplefilter('ignore')\n"
        "X = np.random.default_rng(0).normal(size=(2000, 3)); y = X.sum(axis=1)\n"
        "for name in ('DPCoordinateDescentRegressor', 'DPPCA', 'DPStandardScaler'):\n"
        "    getattr(skdpnoise, name)(random_state=0).fit(X, y); alone(name)\n"
        "skdpnoise.DPLogisticCD(random_state=0).fit(X, y > 0); print('numba' in sys.modules)\n"
    )
    assert run(code) == ["True"]


def test_the_help_of_the_command_imports_no_library():
    code = (
        "import sys; from skdpnoise.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*({'numpy', 'sklearn', 'numba', 'pandas'} & sys.modules.keys()))"
    )
    words = run(code)
    assert words[:2] == ["usage:", "skdpnoise"]
    assert not {"numpy", "sklearn", "numba", "pandas"} & set(words)


def test_the_command_reads_the_variable_of_the_ledger():
    assert _main.STORAGE == STORAGE
