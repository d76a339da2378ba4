"""Imports go one way: the syntax trees of the package are walked to keep it so."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks._source_files import SourceFile, borrowed, circles, import_graph

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "skdpnoise"

# A room may import the rooms of its own line here and of the lines above it.
LINE = (
    ("_utils",),
    ("privacy",),
    ("sensitivity",),
    ("sampling",),
    ("data",),
    ("noises",),
    ("mechanisms",),
    ("reporting",),
    ("accounting",),
    ("queries",),
    ("ledger",),
    ("planning",),
    ("base",),
    ("linear_model", "neural_network", "decomposition", "preprocessing"),
    ("compose",),
    ("metrics", "model_selection"),
    ("inspection",),
    ("datasets", "plotting"),
    ("cli",),
)
RANK = {room: rank for rank, rooms in enumerate(LINE) for room in rooms}
# Beside the line: it may be imported by queries and what is right of them, and imports none.
BESIDE = "kernels"
RANK[BESIDE] = RANK["queries"]
# `python -m skdpnoise` is the command line; only what stands right of the front door, which imports
# all other rooms, may ask it for the version.
# Other doors of rooms: names that stay.
DOORS = ("covariance", "estimators", "solvers", "sources")
RANK |= dict.fromkeys(DOORS, RANK["cli"])
RANK["__main__"] = RANK["__version__"] = RANK["cli"]
KERNELS_MAY_IMPORT = {"numpy", "scipy", "numba"}
# Everything else that is installed is imported inside the function that needs it. (scikit-learn
# requires joblib.)
AT_MODULE_LEVEL = {"numpy", "scipy", "sklearn", "joblib", "numba", PACKAGE}
HEAVY = {
    "matplotlib",
    "rich",
    "pandas",
    "polars",
    "pyarrow",
    "openml",
    "sqlalchemy",
    "psycopg",
    "dask",
    "torch",
    "dp_accounting",
    "opendp",
}


def imports(node: ast.AST, module: str, *, eager: bool = True) -> Iterator[tuple[str, bool]]:
    """Every imported dotted name below ``node``, and whether importing ``module`` imports it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, eager) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = child.module or ""
            if child.level:
                package = module.split(".")[: -child.level]
                source = ".".join([*package, source] if source else package)
            yield from ((f"{source}.{alias.name}", eager) for alias in child.names)
        else:
            yield from imports(child, module, eager=eager and not _is_deferred(child))


def _is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def violations(source: str, module: str) -> list[str]:
    """What breaks the import rule in ``source``, the text of the module of that dotted name."""
    room = module.split(".")[1]
    found = []
    if room not in RANK:
        return [f"{module}: {room} has no place in the line of rooms"]
    for name, eager in imports(ast.parse(source), module):
        top, *rest = name.split(".")
        if top != PACKAGE:
            if room == BESIDE and top not in KERNELS_MAY_IMPORT | set(sys.stdlib_module_names):
                found.append(f"{module} imports {name}: kernels know only numpy, scipy and numba")
            if eager and top not in AT_MODULE_LEVEL | set(sys.stdlib_module_names):
                found.append(f"{module} imports {name} at module level")
            continue
        other = rest[0] if rest else ""
        if other not in RANK:
            found.append(f"{module} imports {name}: name the room it comes from")
        elif room == BESIDE and other != BESIDE:
            found.append(f"{module} imports {name}: kernels import nothing of ours")
        elif RANK[other] > RANK[room]:
            found.append(f"{module} imports {name}: {other} stands right of {room}")
        elif room == other == "noises":
            found.extend(_between_families(module, name, rest))
    return found


def _between_families(module: str, name: str, rest: list[str]) -> list[str]:
    this = module.split(".")[2]
    free = ("_", "base", "registry")
    if this.startswith(free) or (len(rest) > 1 and rest[1].startswith(free)):
        return []  # __init__, private files and the registry are free; families may use them
    return [f"{module} imports {name}: noise files import no other"]


def _module_name(path: Path) -> str:
    # For a package the name of its __init__ file is kept, so that relative imports resolve.
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


FILES = sorted(
    path for path in (ROOT / PACKAGE).rglob("*.py") if path != ROOT / PACKAGE / "__init__.py"
)


def test_there_are_files_to_walk():
    rooms = {path.relative_to(ROOT / PACKAGE).parts[0] for path in FILES}
    assert {"privacy", "noises", "mechanisms", BESIDE, "linear_model", "preprocessing"} <= rooms


def test_only_the_doors_stand_outside_the_rooms():
    outside = sorted(path.name for path in (ROOT / PACKAGE).glob("*.py"))
    assert outside == sorted(["__init__.py", "__main__.py", *(f"{door}.py" for door in DOORS)])


@pytest.mark.slow
def test_no_file_is_borrowed_from_another_folder_and_no_imports_go_in_a_circle():
    files = [SourceFile(path, ROOT / PACKAGE) for path in FILES]
    assert borrowed(files) == []
    assert circles(import_graph(files)) == []


def test_imports_point_one_way():
    texts = {_module_name(path): path.read_text(encoding="utf-8") for path in FILES}
    assert [one for name, text in texts.items() for one in violations(text, name)] == []


def eager(path: Path) -> set[str]:
    """Dotted names that importing a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {name for name, at_once in imports(tree, _module_name(path)) if at_once}


def test_files_that_import_numba_are_imported_where_they_are_used():
    names = {path: eager(path) for path in FILES}
    kernels = {
        _module_name(path)
        for path, found in names.items()
        if any(name.partition(".")[0] == "numba" for name in found)
    }
    assert kernels
    assert [
        (_module_name(path), name)
        for path, found in names.items()
        for name in sorted(found)
        if any(name == kernel or name.startswith(f"{kernel}.") for kernel in kernels)
    ] == []


WRONG = [
    ("skdpnoise.privacy.loss", "import skdpnoise.mechanisms", "right of privacy"),
    ("skdpnoise.privacy.loss", "from skdpnoise import sensitivity", "right of privacy"),
    ("skdpnoise.privacy.loss", "from ..noises import gaussian", "right of privacy"),
    ("skdpnoise.privacy.__init__", "from ..noises import x", "right of privacy"),
    ("skdpnoise.noises.laplace", "def f():\n  import skdpnoise.ledger", "right of noises"),
    (
        "skdpnoise.ledger.a",
        "from skdpnoise.base.private_fit import validated",
        "right of ledger",
    ),
    (
        "skdpnoise.base.private_fit",
        "from skdpnoise import plotting",
        "right of base",
    ),
    (
        "skdpnoise.ledger.charge",
        "if TYPE_CHECKING:\n  from skdpnoise.linear_model import A",
        "right of ledger",
    ),
    ("skdpnoise.linear_model.a", "from skdpnoise import plotting", "right of linear_model"),
    ("skdpnoise.mechanisms.a", "from skdpnoise.kernels import f", "right of mechanisms"),
    ("skdpnoise.plotting.a", "from skdpnoise.cli import main", "right of plotting"),
    ("skdpnoise.inspection.a", "from skdpnoise import plotting", "right of inspection"),
    (
        "skdpnoise.model_selection.a",
        "from skdpnoise.inspection import audit",
        "right of model_selection",
    ),
    ("skdpnoise.plotting.a", "from skdpnoise import __version__", "right of plotting"),
    ("skdpnoise.linear_model.a", "import skdpnoise", "name the room"),
    ("skdpnoise.linear_model.a", "from skdpnoise import DPLogisticCD", "name the room"),
    ("skdpnoise.noises.laplace", "from skdpnoise.noises.gaussian import G", "no other"),
    ("skdpnoise.noises.laplace", "from skdpnoise.noises import gaussian", "no other"),
    ("skdpnoise.noises.laplace", "from . import gaussian", "no other"),
    ("skdpnoise.noises.laplace", "from .gaussian import G", "no other"),
    ("skdpnoise.kernels.cd", "from skdpnoise.privacy import x", "nothing of ours"),
    ("skdpnoise.kernels.cd", "def f():\n  import sklearn", "only numpy, scipy and numba"),
    ("skdpnoise.plotting.a", "import matplotlib.pyplot as plt", "at module level"),
    ("skdpnoise.datasets.a", "try:\n  import pandas\nexcept ImportError: 1", "module level"),
    ("skdpnoise.ledger.a", "class A:\n  import sqlalchemy", "at module level"),
    ("skdpnoise.utils.a", "import math", "no place in the line"),
]
RIGHT = [
    ("skdpnoise.linear_model.a", "from skdpnoise.kernels import coordinate_descent"),
    ("skdpnoise.model_selection.a", "from skdpnoise.linear_model import DPLogisticCD"),
    ("skdpnoise.cli.a", "from skdpnoise import __version__, ledger"),
    ("skdpnoise.inspection.a", "from skdpnoise.model_selection import DPGridSearchCV"),
    ("skdpnoise.linear_model.a", "from skdpnoise.privacy.loss import GaussianLoss"),
    ("skdpnoise.linear_model.a", "from skdpnoise.preprocessing import Scaler"),
    ("skdpnoise.linear_model.a", "from skdpnoise.base.private_fit import validated"),
    ("skdpnoise.noises.laplace", "from skdpnoise.noises.registry import register"),
    ("skdpnoise.noises.__init__", "from .gaussian import Gaussian"),
    ("skdpnoise.kernels.cd", "import math\nimport numba\nfrom skdpnoise.kernels import _sweep"),
    ("skdpnoise.plotting.a", "def plot():\n  import matplotlib.pyplot as plt"),
    ("skdpnoise.datasets.a", "if TYPE_CHECKING:\n  import pandas as pd"),
]


def test_the_walker_tells_wrong_imports_from_right_ones():
    # A walker that sees nothing would agree with everything.
    seen = [(case, violations(case[1], case[0])) for case in WRONG]
    assert [case for case, found in seen if len(found) != 1 or case[2] not in found[0]] == []
    assert [found for module, source in RIGHT for found in violations(source, module)] == []


@pytest.mark.slow
def test_the_package_itself_loads_nothing_optional():
    # scikit-learn loads pandas and rich where it finds them: what counts is what we add.
    code = (
        "import contextlib, sys, numba, scipy.special, scipy.io.arff, sklearn.linear_model\n"
        "with contextlib.suppress(ImportError): import sklearn.callback\n"
        f"before = set(sys.modules)\nfrom {PACKAGE} import *\n"
        f"print(*sorted({HEAVY!r} & (sys.modules.keys() - before)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == []
