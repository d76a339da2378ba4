"""Seeded fits give the numbers, reports and charges that they gave when the house was rebuilt.

`python -m tests.test_same_numbers` writes what they give now: whoever does so says in the commit
which of them changed, and why.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

from skdpnoise import (
    DPLogisticRegression,
    DPOneHotEncoder,
    DPPipeline,
    DPRidge,
    DPTableVectorizer,
    PrivacyWarning,
)
from skdpnoise.ledger import PrivacyReport
from tests._same_bits import cut, fitted, source_of
from tests.contracts._register import ENTRIES, Entry, Notebook

KEPT = Path(__file__).with_name("same_numbers.json")
N, NAMES = 400, ["a", "b", "c"]
BOUNDS = ([-3.0, -5.0, -1.0], [3.0, 40.0, 3.0])
ADJACENCIES = ("replace_one", "add_remove")
pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpnoise.PrivacyWarning"),
    pytest.mark.usefixtures("the_same_words"),  # by which labels of groups are compared
]


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(41)
    X = rng.normal([0.0, 20.0, 1.0], [1.0, 4.0, 0.3], size=(N, 3))
    frame = pd.DataFrame(X, columns=NAMES)
    signal = X[:, 0] + 0.1 * (X[:, 1] - 20.0)
    frame["numbers"] = 5.0 + signal + rng.normal(size=N)
    frame["counts"] = rng.poisson(np.exp(0.3 * signal)).astype(float)
    frame["labels"] = (signal + rng.logistic(size=N) > 0.0).astype(int)
    frame["town"] = np.array(["Ulm", "Bonn", "Kiel"])[np.digitize(signal, [-0.7, 0.7])]
    frame["person"] = np.arange(N) // 2
    return frame


FRAME = _frame()
TABLE = {"a": (-3, 3), "b": "number", "town": "category"}
OTHERS = {
    "table": (
        DPPipeline([("table", DPTableVectorizer(TABLE)), ("model", DPLogisticRegression())]),
        ["a", "b", "town"],
        "labels",
    ),
    "towns": (DPOneHotEncoder(), ["town"], None),
    "within bounds": (DPRidge(feature_bounds=BOUNDS, target_bounds=(0, 10)), NAMES, "numbers"),
    "three classes": (DPLogisticRegression(feature_bounds=BOUNDS), NAMES, "town"),
    "balanced": (DPLogisticRegression(class_weight="balanced"), NAMES, "labels"),
    "pure": (DPRidge(delta=0.0), NAMES, "numbers"),
    "persons": (DPRidge(rows_per_group=2), NAMES, "numbers"),
}
REGISTER = {entry.name: entry for entry in ENTRIES if not entry.by_torch}


def _cases() -> list[tuple[str, str]]:
    listed = [(name, adjacency) for name, one in REGISTER.items() for adjacency in one.adjacencies]
    return listed + [(name, adjacency) for name in OTHERS for adjacency in ADJACENCIES]


def _prepared(name: str, adjacency: str) -> tuple[BaseEstimator, list[str], str | None]:
    settings = {"adjacency": adjacency, "epsilon": 4.0, "ledger": Notebook(), "random_state": 1}
    if name in OTHERS:
        model, columns, target = OTHERS[name]
        return clone(model).set_params(**settings), columns, target
    entry: Entry = REGISTER[name]
    return entry.estimator(**(settings if entry.spends else {})), NAMES, entry.target


def _fit(name: str, adjacency: str, frame: Any) -> BaseEstimator:
    estimator, columns, target = _prepared(name, adjacency)
    groups = {"groups": frame["person"]} if name == "persons" else {}
    y = () if target is None else (frame[target],)
    return estimator.fit(frame[columns], *y, **groups)


def _found(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield numbers and texts that a fit set, with their names."""
    if isinstance(value, BaseEstimator):
        value = fitted(value)
    if isinstance(value, pd.DataFrame):
        value = value.to_dict("list")
    if isinstance(value, PrivacyReport):
        yield name, str(value)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _found(value[key], f"{name}.{key}")
    elif isinstance(value, list | tuple) and any(not np.isscalar(one) for one in value):
        for place, one in enumerate(value):
            yield from _found(one, f"{name}.{place}")
    elif isinstance(value, list | tuple | np.ndarray | int | float):
        array = np.asarray(value)
        yield name, array.astype(np.float64) if array.dtype.kind in "biuf" else str(array.tolist())


def _projected(array: np.ndarray) -> list[float]:
    """Return the size of an array; of its values, none too large, the length and a weighted sum."""
    values = np.arcsinh(np.nan_to_num(array.ravel()))
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=values.size)
    return [float(values.size), float(np.linalg.norm(values)), float(values @ weights)]


def told(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what is kept of a fit: numbers, and digests of what is said and charged."""
    found = dict(_found(estimator))
    texts = [f"{name}: {value}" for name, value in found.items() if isinstance(value, str)]
    ledger = getattr(estimator, "ledger", None)
    charges = [] if ledger is None else [sorted(map(repr, one.items())) for one in ledger.charges]
    numbers = {n: _projected(value) for n, value in found.items() if isinstance(value, np.ndarray)}
    return {
        "numbers": numbers,
        "texts": hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16],
        "charges": hashlib.sha256(repr(charges).encode()).hexdigest()[:16],
    }


def agree(found: dict[str, Any], kept: dict[str, Any]) -> None:
    """Fail unless numbers are equal but for the last digits, and texts and charges are equal."""
    assert found["numbers"].keys() == kept["numbers"].keys()
    for name, (size, length, total) in kept["numbers"].items():
        close = {"rtol": 1e-6, "atol": 1e-6 * length, "err_msg": name}
        np.testing.assert_allclose(found["numbers"][name], [size, length, total], **close)
    assert (found["texts"], found["charges"]) == (kept["texts"], kept["charges"])


# That a fit in parts is the one in memory is asked of every entry in contracts/test_storages.py.
@pytest.mark.parametrize("storage", ["memory", pytest.param("parts", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "adjacency"), _cases())
def test_a_seeded_fit_gives_what_it_gave(name, adjacency, storage):
    half = N // 2  # after all rows of a person
    parts = [FRAME[:half], FRAME[half:]] if name == "persons" else cut(FRAME, 3)
    frame = FRAME if storage == "memory" else source_of(parts)
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    agree(told(_fit(name, adjacency, frame)), kept[f"{name}, {adjacency}"])


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", PrivacyWarning)
    made = {f"{name}, {how}": told(_fit(name, how, FRAME)) for name, how in _cases()}
    KEPT.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{len(made)} fits in {KEPT}")
