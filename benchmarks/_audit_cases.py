"""Estimators that the audit looks at, sound ones and broken ones, each with data that tell most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from skdpnoise import (
    DPPCA,
    DPCoordinateDescentRegressor,
    DPCovariance,
    DPGridSearchCV,
    DPLassoPath,
    DPLogisticCD,
    DPMinMaxScaler,
    DPPipeline,
    DPPoissonRegressor,
    DPRandomizedSearchCV,
    DPRobustScaler,
    DPStandardScaler,
)
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.privacy import TruncatedNegativeBinomial

EPSILONS = (0.5, 1.0, 4.0)
ADJACENCIES = ("replace_one", "add_remove")
DELTA = 0.1  # so large that noise is small, and an audit of few fits sees something
_SHORT = TruncatedNegativeBinomial(eta=1.0, gamma=0.3)
_NOISE = {"noise": "inid_gaussian"}
_X = {"feature_bounds": (-2.0, 2.0)}
_Y = {"target_bounds": (-2.0, 2.0)}
# One pass and few coordinates: the budget sits in few numbers, where an attack sees it best.
_PASS = {"n_passes": 1, "clip": 0.2, "fit_intercept": False, **_NOISE, **_X}
_BALL = {"row_norm": 0.5, "fit_intercept": False, **_NOISE, **_X, **_Y}
_OF_SEARCHES = 5  # replays: their secret coins choose what is fitted
_ROWS = {"row_norm": 1.0, **_NOISE}


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    make: Callable[..., Any]
    data: str = "line"
    n_replays: int = 2
    many: bool = False  # audited by five times as many fits
    broken: bool = False
    method: tuple[str, ...] = ("replay", "black_box")
    context: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext)
    claims: dict[str, Any] = field(default_factory=dict)


def _settings(**fixed: Any) -> Callable[..., dict[str, Any]]:
    return lambda epsilon, adjacency: {
        "epsilon": epsilon,
        "delta": DELTA,
        "adjacency": adjacency,
        **fixed,
    }


def _made(kind: Any, **fixed: Any) -> Callable[..., Any]:
    return lambda epsilon, adjacency: kind(**_settings(**fixed)(epsilon, adjacency))


def _search(kind: Any, **fixed: Any) -> Callable[..., Any]:
    def make(epsilon: float, adjacency: str) -> Any:
        inner = DPLogisticCD(adjacency=adjacency, **_PASS)
        return kind(inner, {"alpha": [0.0, 0.05]}, **_settings(**fixed)(epsilon, adjacency))

    return make


def _pipeline(*, of_scaler: Any, of_model: Any) -> Callable[..., Any]:
    def make(epsilon: float, adjacency: str) -> Any:
        scaler = DPStandardScaler(adjacency=adjacency, **of_scaler)
        model = DPLogisticCD(adjacency=adjacency, **of_model)
        return DPPipeline([("scaler", scaler), ("model", model)], **_settings()(epsilon, adjacency))

    return make


SOUND = (
    Case(
        "regressor, descent", _made(DPCoordinateDescentRegressor, solver="gradient", **_PASS, **_Y)
    ),
    Case("regressor, gram", _made(DPCoordinateDescentRegressor, solver="gram", **_BALL), many=True),
    Case("classifier", _made(DPLogisticCD, **_PASS), many=True),
    Case("lasso path", _made(DPLassoPath, alphas=1, l1_ratio=0.0, **_BALL)),
    Case("PCA", _made(DPPCA, n_components=None, center=False, **_ROWS), "plane"),
    Case("covariance", _made(DPCovariance, assume_centered=True, **_ROWS), "plane"),
    Case("standard scaler", _made(DPStandardScaler, **_X), many=True),
    # With public bounds it releases nothing.
    Case("min-max scaler", _made(DPMinMaxScaler), "column"),
    Case("robust scaler", _made(DPRobustScaler, **_X)),
    Case("pipeline", _pipeline(of_scaler=_X, of_model=_PASS)),
    Case("grid search", _search(DPGridSearchCV, strategy="noisy_max"), n_replays=_OF_SEARCHES),
    Case(
        "randomised search",
        _search(DPRandomizedSearchCV, n_iter=2, strategy="repeated", repetitions=_SHORT),
        n_replays=_OF_SEARCHES,
    ),
    Case("counts", _made(DPPoissonRegressor, target_bounds=(0.0, 4.0), **_PASS), "counted line"),
)
# Default settings on raw data, where scales and locations are bought first: replayed only.
DEFAULTS = tuple(
    Case(f"{name}, nothing public", make, data, method=("replay",))
    for name, make, data in (
        ("regressor, descent", _made(DPCoordinateDescentRegressor, solver="gradient"), "cloud"),
        ("regressor, gram", _made(DPCoordinateDescentRegressor, solver="gram"), "cloud"),
        ("classifier", _made(DPLogisticCD), "labels"),
        ("counts", _made(DPPoissonRegressor), "counts"),
        ("lasso path", _made(DPLassoPath), "cloud"),
        ("PCA", _made(DPPCA), "cloud"),
        ("covariance", _made(DPCovariance), "cloud"),
        ("standard scaler", _made(DPStandardScaler), "cloud"),
        ("min-max scaler", _made(DPMinMaxScaler), "cloud"),
        ("robust scaler", _made(DPRobustScaler), "cloud"),
        ("pipeline", _pipeline(of_scaler={}, of_model={}), "labels"),
    )
)


# Broken twins


class UnpaidMean(DPStandardScaler):
    """A scaler that publishes the mean without noise."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> UnpaidMean:
        """Fit, and put the exact mean in the place of the private one."""
        super().fit(X, y, groups, **params)
        self.mean_ = np.mean(X, axis=0)
        return self


class SwappedGrid(ClassifierMixin, BaseEstimator):
    """A search whose winner is fitted again as an ordinary model, under the search's guarantee."""

    def __init__(self, search: Any, epsilon: float, delta: float, adjacency: str) -> None:
        self.search = search
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency

    def fit(self, X: Any, y: Any) -> SwappedGrid:
        """Search, and swap."""
        self.search.fit(X, y)
        self.privacy_ = self.search.privacy_
        self.classes_ = self.search.classes_
        self.best_estimator_ = LogisticRegression().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict by the ordinary model."""
        return self.best_estimator_.predict(X)


def _swapped(epsilon: float, adjacency: str) -> SwappedGrid:
    search = _search(DPGridSearchCV, strategy="noisy_max")(epsilon, adjacency)
    return SwappedGrid(search, epsilon, DELTA, adjacency)


def _encoded(epsilon: float, adjacency: str) -> Any:
    classifier = DPLogisticCD(**_settings(**_PASS)(epsilon, adjacency))
    return make_pipeline(TargetEncoder(cv=2), classifier)


def _half_noise() -> AbstractContextManager[Any]:
    """Halve all noise, where what is published follows it: models that are noise are drawn in."""
    sample = AdditiveMechanism.sample
    return patch.object(AdditiveMechanism, "sample", lambda *args, **kw: sample(*args, **kw) // 2)


BROKEN = (
    Case("halved noise", _made(DPStandardScaler, **_X), broken=True, context=_half_noise),
    Case("unpaid mean", _made(UnpaidMean, **_X), broken=True),
    Case("grid that swaps in an ordinary model", _swapped, n_replays=_OF_SEARCHES, broken=True),
    Case(
        "TargetEncoder in front",
        _encoded,
        broken=True,
        claims={"epsilon": 1.0, "delta": DELTA, "adjacency": "replace_one"},
    ),
)


def rows() -> Iterator[tuple[Case, float, str]]:
    """Yield what the table consists of: what tells most comes first."""
    yield from ((case, 1.0, "replace_one") for case in BROKEN)
    for epsilon in sorted(EPSILONS, key=lambda e: abs(e - 1.0)):
        for adjacency in ADJACENCIES:
            yield from ((case, epsilon, adjacency) for case in (*SOUND, *DEFAULTS))


def data_of(case: Case) -> tuple[Any, Any]:
    """Return the records that stay."""
    if case.data in ("cloud", "labels", "counts"):
        rng = np.random.default_rng(0)
        X = rng.normal([10.0, -3.0], [1.0, 20.0], size=(400, 2))
        y = X[:, 0] + rng.normal(size=400)
        if case.data == "counts":
            return X, rng.poisson(np.exp(0.3 * (y - 7.0))).astype(float)
        return X, (y > 10.0).astype(int) if case.data == "labels" else y
    if case.data == "column":
        return np.random.default_rng(0).normal(size=(200, 1)), None
    line = np.tile([[-1.0], [-1.0], [1.0], [1.0]], (15, 1))
    target = np.tile([-1.0, 1.0], 30)
    if case.data == "line":
        return line, target
    if case.data == "counted line":
        return line, 2.0 + target
    return 0.5 * np.hstack([line, target[:, np.newaxis]]), None
