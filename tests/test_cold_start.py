"""What is imported and compiled, and when: nothing before it is used."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import skdpnoise
from skdpnoise import compose
from skdpnoise.cli import _main
from skdpnoise.ledger.storage import STORAGE

ROOT = Path(__file__).resolve().parents[1]

# scikit-learn imports pandas where it finds it; nothing of ours may, before there is a frame.
NO_PANDAS = """
import sys
class NoPandas:
    def find_spec(name, *_):
        if name.partition(".")[0] == "pandas": raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoPandas)
"""


def run(code: str) -> list[str]:
    """Words that a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def homes(package: ModuleType = skdpnoise) -> dict[str, str]:
    """The module that each name is imported from for type checkers."""
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
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
    of_extras = set(import_module("skdpnoise.neural_network").__all__)  # imported by name alone
    assert {*found, "__version__"} == set(skdpnoise.__all__) | of_extras
    assert of_extras.isdisjoint(skdpnoise.__all__)
    assert of_extras <= set(dir(skdpnoise))
    assert {name: f"skdpnoise.{room}" for name, room in skdpnoise._HOMES.items()} == found
    for name, room in found.items():
        assert name in import_module(room).__all__
        assert getattr(skdpnoise, name) is getattr(import_module(room), name)


@pytest.mark.slow
def test_compositions_are_imported_when_they_are_asked_for():
    found = homes(compose)
    assert {name: f"skdpnoise.compose.{home}" for name, home in compose._HOMES.items()} == found
    assert set(found) < set(compose.__all__)
    for name, module in found.items():
        assert getattr(compose, name) is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match=r"'skdpnoise\.compose' has no attribute 'DPNothing'"):
        compose.__getattr__("DPNothing")
    code = (
        "import sys; from skdpnoise import DPLogisticCD\n"
        "print(*(name for name in ('skdpnoise.compose._pipeline', "
        "'skdpnoise.base.public_transformers', 'sklearn.impute', "
        "'sklearn.feature_extraction') if name in sys.modules))"
    )
    assert run(code) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("register_private(OneHotEncoder)", "is registered as public"),
        ("taken_apart(OneHotEncoder(), **of)", "give categories="),
        (
            "register_public(OneHotEncoder, lambda encoder: None); "
            "print('found', taken_apart(OneHotEncoder(), **of)[0].kind)",
            "found public",
        ),
        (
            "taken_apart(type('Mine', (OneHotEncoder,), {})(), **of)",
            "is a subclass of OneHotEncoder",
        ),
    ],
)
def test_what_is_known_of_other_classes_is_known_before_anything_else_was_asked(call, said):
    code = (
        "from sklearn.preprocessing import OneHotEncoder\n"
        "from skdpnoise.compose import UnpaidStepError, taken_apart\n"
        "from skdpnoise.compose import register_private, register_public\n"
        f"of = {{'owner': 'x', 'parameter': 'y'}}\ntry: {call}\n"
        "except (TypeError, UnpaidStepError) as error: print(error)"
    )
    assert said in " ".join(run(code))


def test_packages_are_attributes_and_other_names_are_not():
    assert {*skdpnoise.__all__, "mechanisms", "plotting", "queries"} <= set(dir(skdpnoise))
    assert {*skdpnoise.compose.__all__, "__name__"} <= set(dir(skdpnoise.compose))
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


@pytest.mark.slow
def test_numba_and_pandas_wait_until_a_fit_needs_them():
    # Few records need nothing compiled but the sweeps of coordinates.
    code = (
        f"{NO_PANDAS}import importlib, pkgutil, warnings, numpy as np, skdpnoise\n"
        "def alone(name):\n"
        "    if 'numba' in sys.modules: sys.exit(f'{name} imports numba')\n"
        "for name in skdpnoise.__all__:\n"
        "    getattr(skdpnoise, name); alone(name)\n"
        "for one in pkgutil.walk_packages(skdpnoise.__path__, 'skdpnoise.'):\n"
        "    if one.ispkg: importlib.import_module(one.name); alone(one.name)\n"
        "warnings.simplefilter('ignore')\n"
        "X = np.random.default_rng(0).normal(size=(2000, 3)); y = X.sum(axis=1)\n"
        "for name in ('DPCoordinateDescentRegressor', 'DPPCA', 'DPStandardScaler'):\n"
        "    getattr(skdpnoise, name)(random_state=0).fit(X, y); alone(name)\n"
        "skdpnoise.DPLogisticCD(random_state=0).fit(X, y > 0); alone('DPLogisticCD')\n"
        "skdpnoise.DPLogisticCD(solver='coordinate', random_state=0).fit(X, y > 0)\n"
        "print('numba' in sys.modules)\n"
    )
    assert run(code) == ["True"]


WITHOUT_PANDAS = f"""
{NO_PANDAS}
import warnings, numpy as np, polars as pl, skdpnoise as dp
from skdpnoise.cli import main
from skdpnoise.datasets import fetch_california
from skdpnoise.inspection import audit
from skdpnoise.plotting import AllocationDisplay, LedgerDisplay
import matplotlib; matplotlib.use("Agg")
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
y, people = X.sum(axis=1), [f"p{{i // 2}}" for i in range(400)]
labels = np.where(y > 0, "yes", "no").astype(object)
ledger = dp.PrivacyLedger("trips", 50.0, 1e-3, "sqlite:///" + sys.argv[1])
plain, tables = dp.DPCoordinateDescentRegressor(), [X, pl.DataFrame(X, schema=list("abc"))]
for table in tables:
    model = dp.DPCoordinateDescentRegressor(random_state=0, ledger=ledger).fit(table, y)
    dp.DPPCA(random_state=0).set_output(transform="polars").fit_transform(tables[1])
    dp.DPLogisticCD(random_state=0, rows_per_group=2).fit(table, labels, groups=people)
    dp.DPGridSearchCV(plain, {{"alpha": [0.0, 0.1]}}, random_state=0).fit(table, y)
mixed = tables[1].with_columns(kind=pl.Series(["u", "v"] * 200))
steps = make_column_transformer(
    (OneHotEncoder(categories=[["u", "v"]], sparse_output=False), ["kind"]), remainder="passthrough"
)
dp.DPPipeline([("read", steps), ("model", plain)], public=["read"]).fit(mixed, y).predict(mixed)
AllocationDisplay.from_estimator(model); LedgerDisplay.from_ledger(ledger)
str(model.privacy_), model.privacy_._repr_html_(), ledger._repr_html_(), str(ledger.total())
audit(dp.DPStandardScaler(), X, method="replay", n_replays=2, random_state=0)
assert main(["ledger", "history", "--dataset", "trips", "--storage", ledger.storage]) == 0

def needs(call, *args, **options):
    try:
        call(*args, **options)
    except ImportError as error:
        assert 'pip install "skdpnoise[pandas]"' in str(error), error
    else:
        raise AssertionError(call)

needs(ledger.history)
count = len(ledger.charges())
needs(dp.DPPCA(ledger=ledger).set_output(transform="pandas").fit, X)
assert len(ledger.charges()) == count
assert main(["audit", "skdpnoise:DPStandardScaler", "--data", __file__]) == 1
print("pandas" not in sys.modules)
"""


@pytest.mark.slow
def test_without_pandas_all_but_its_frames_work_and_these_name_the_extra(tmp_path):
    script = tmp_path / "without.py"
    script.write_text(WITHOUT_PANDAS, "utf-8")
    done = subprocess.run(
        [sys.executable, script, tmp_path / "budget.db"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "True"
    assert "skdpnoise audit needs pandas" in done.stderr


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
