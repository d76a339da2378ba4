"""Audits try missing values and unseen categories, and frames of pandas and polars alike."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from benchmarks._remembered import remembered
from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, DPPipeline, DPStandardScaler
from skdpnoise.inspection import audit
from tests._cases import each_value, quick

RNG = np.random.default_rng(0)
N = 40
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.normal(size=N), "c": RNG.choice(["u", "v"], N)}
)
NUMBERS = FRAME[["a", "b"]]
ADJACENCIES = ["replace_one", "add_remove"]
AS = {
    "array": lambda frame: frame.to_numpy(),
    "objects": lambda frame: frame.to_numpy(object),
    "frame": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "polars": pl.from_pandas,
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), remembered():
        warnings.simplefilter("ignore")
        yield


@quick("array-replace_one")
@each_value(1)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", AS)
def test_what_an_estimator_refuses_wherever_it_stands_is_left_out_and_named(kind, adjacency):
    scaler = DPStandardScaler(adjacency=adjacency)
    report = audit(scaler, AS[kind](NUMBERS), method="replay")
    assert report.passed, report
    names = "0, 1" if kind in ("array", "objects") else "'a', 'b'"
    assert f"in columns {names}, refused before anything is charged" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["left_out"] == list(report.left_out)
    assert all(text in report._repr_html_() for text in ("left out", "DPStandardScaler"))


def mixed(adjacency, model):
    encoder = OneHotEncoder(categories=[["u", "v"]], handle_unknown="ignore", sparse_output=False)
    filled = DPPipeline(
        [
            ("f", SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)),
            ("s", DPStandardScaler(adjacency=adjacency)),
        ],
        adjacency=adjacency,
    )
    scaler = DPStandardScaler(adjacency=adjacency)
    parts = ColumnTransformer([("n", filled, ["a"]), ("s", scaler, ["b"]), ("c", encoder, ["c"])])
    model = model.set_params(adjacency=adjacency)
    return DPPipeline([("parts", parts), ("model", model)], adjacency=adjacency)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["frame", "polars", "nullable"])
def test_frames_of_numbers_and_texts_are_audited_with_missing_and_unseen_values(kind, adjacency):
    X = AS[kind](FRAME)
    labels = np.where(FRAME["a"] > 0, "yes", "no")
    target = pl.Series(labels) if kind == "polars" else pd.Series(labels)
    report = audit(mixed(adjacency, DPLogisticCD(n_passes=1)), X, target, method="replay")
    assert report.passed, report
    # The imputer and the encoder take what the second column's scaler refuses.
    assert all("in columns 'b'" in text for text in report.left_out)
    assert report.left_out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["frame", "polars"])
def test_a_black_box_looks_at_frames_of_numbers_and_texts(kind):
    model = mixed("replace_one", DPCoordinateDescentRegressor(n_passes=1, solver="gradient"))
    X = AS[kind](FRAME)
    target = FRAME["b"].to_numpy() if kind == "frame" else pl.Series(FRAME["b"].to_list())
    other = AS[kind](pd.concat([FRAME[:-1], FRAME[:1]], ignore_index=True))
    settings = {"method": "black_box", "n_fits": 20, "random_state": 0}
    assert audit(model, X, target, neighbours=(other, target), **settings).passed


def test_one_run_takes_frames_of_numbers_and_says_that_it_takes_no_texts():
    settings = {"method": "one_run", "n_canaries": 10, "score": lambda model, X, *rest: np.ones(10)}
    for kind in ("frame", "polars"):
        assert audit(DPStandardScaler(), AS[kind](NUMBERS), **settings).passed
        with pytest.raises(ValueError, match="a column of X does not hold numbers"):
            audit(DPStandardScaler(), AS[kind](FRAME), **settings)


class Looking(DPStandardScaler):
    """Tells what it saw of missing or unseen values, in a way of its choice."""

    def __init__(self, way="", epsilon=1.0, adjacency="replace_one"):
        super().__init__(epsilon, adjacency=adjacency)
        self.way = way

    def fit(self, X, y=None):
        table = np.asarray(X, dtype=object)
        cells = table[:, 0].tolist()
        missing = [cell != cell or cell is None or cell is pd.NA for cell in map(plain, cells)]
        if self.way == "refuses far" and any(missing) and missing[-1]:
            raise ValueError("Something is missing.")
        if self.way == "warns" and any(missing):
            warnings.warn("Something is missing.", stacklevel=2)
        numbers = np.array([[0.0 if m else float(c)] for m, c in zip(missing, cells, strict=True)])
        super().fit(numbers)
        if self.way == "counts":
            self.n_missing_ = sum(missing)
        if self.way == "refuses late" and any(missing):
            raise ValueError("Something is missing.")
        if self.way == "kinds":
            self.n_kinds_ = len(set(table[:, -1].tolist()))
        return self


def plain(cell):
    return None if cell is pd.NA else cell


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", AS)
@pytest.mark.parametrize("way", ["counts", "warns", "refuses far", "refuses late"])
def test_what_only_a_missing_value_shows_is_found(way, kind, adjacency):
    X = AS[kind](NUMBERS)
    settings = {"method": "replay", "random_state": 0}
    assert audit(Looking(adjacency=adjacency), X, **settings).passed
    report = audit(Looking(way, adjacency=adjacency), X, **settings)
    assert not report.passed
    assert "missing value in column" in str(report) or "NaN in column" in str(report)


@each_value(1)
@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", ["objects", "frame", "category", "polars", "enum"])
def test_what_only_an_unseen_category_shows_is_found(kind, adjacency):
    categories = pl.col("c").cast(pl.Enum(["u", "v"]))
    frame = {
        "category": lambda: FRAME.astype({"c": "category"}),
        "enum": lambda: pl.from_pandas(FRAME).with_columns(categories),
    }
    X = frame[kind]() if kind in frame else AS[kind](FRAME)
    assert audit(Looking(adjacency=adjacency), X, method="replay").passed
    report = audit(Looking("kinds", adjacency=adjacency), X, method="replay")
    assert "n_kinds_ (a duplicate" in str(report)


class Somebodys(BaseEstimator):
    """Publishes noise, and refuses missing values, or tells that there is one."""

    def __init__(self, way="refuses", epsilon=1.0, random_state=None):
        self.way = way
        self.epsilon = epsilon
        self.random_state = random_state

    def fit(self, X, y=None):
        if self.way == "refuses" and np.isnan(X).any():
            raise ValueError("Input contains NaN.")
        self.noise_ = np.random.default_rng(self.random_state).laplace()
        if self.way == "counts":
            self.n_missing_ = int(np.isnan(X).sum())
        return self


@pytest.mark.slow
def test_a_black_box_leaves_out_what_is_refused_and_sees_what_is_not():
    settings = {"n_fits": 60, "adjacency": "replace_one", "random_state": 0}
    X = NUMBERS.to_numpy()
    kept = audit(Somebodys(), X, **settings)
    assert kept.passed
    assert kept.left_out[0].startswith("a NaN in columns 0, 1, refused")
    told = audit(Somebodys("counts"), X, **settings)
    assert not told.passed
    assert "a NaN in column" in told.results[0].neighbours


def test_missing_values_in_the_data_are_no_difference_between_neighbours():
    X = NUMBERS.to_numpy().copy()
    X[3] = np.nan
    other = X.copy()
    other[7] = 0.0
    report = audit(Looking(), X, neighbours=(other, None), method="replay", random_state=0)
    assert report.passed
