"""Methods of fitted steps over partitions: of some rows at a time, whenever they are read.

A step that learns nothing is fitted to the rows that are read first, where they are, and what it
makes of a row is made whenever that row is read. Private steps read partitions themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import isfunction, signature
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from skdpnoise._utils.checks import pandas_for
from skdpnoise._utils.silence import silence
from skdpnoise.base.register import is_private
from skdpnoise.base.steps import all_private
from skdpnoise.data.computed import DATA, is_computed, reading
from skdpnoise.data.sources import RowSource, as_sources, by_storage, method_by_storage

__all__ = ["OverParts", "OverPartsMixin", "answered", "without_seeds"]

_SETTINGS = ("assume_finite", "transform_output")

# Methods of which each row of the result is made of one row of X alone.
_METHODS = (
    *("transform", "inverse_transform", "mahalanobis", "decision_function"),
    *("predict", "predict_proba", "predict_log_proba"),
)


_ANSWERS = tuple(name for name in _METHODS if name not in ("inverse_transform", "mahalanobis"))


class OverPartsMixin:
    """Lets methods of single rows take rows in parts, and return such, computed when they are read.

    Examples
    --------
    >>> from skdpnoise import DPMinMaxScaler
    >>> from skdpnoise.data import scan_batches
    >>> rows = scan_batches(lambda: (np.full((2, 1), 5.0 * i) for i in range(3)))
    >>> DPMinMaxScaler(feature_bounds=(0, 10)).fit_transform(rows).shape
    (6, 1)
    """

    # A further step can be fitted to what they return. What computes is a copy of the estimator
    # that has neither its ledger nor its report.

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)  # of scikit-learn: it wraps what transform returns
        for name in (*_METHODS, "fit_transform"):
            owner = next((one for one in cls.__mro__ if name in vars(one)), None)
            if owner is None or (owner is not cls and issubclass(owner, OverPartsMixin)):
                continue  # what is inherited takes parts already
            method = vars(owner)[name]
            if isfunction(method):
                answered = (
                    _fit_transformed if name == "fit_transform" else partial(_answered, method)
                )
                setattr(cls, name, method_by_storage(method, answered))


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One method of a fitted step, applied to some rows as it would be where it was asked for."""

    # Other threads and processes have a context and settings of their own: there a step might
    # refuse a value that another one computed, after the charge, or warn of one.
    step: Any
    method: str
    arguments: dict[str, Any]
    computed: frozenset[str]
    settings: dict[str, Any]  # of scikit-learn

    @classmethod
    def of(cls, step: Any, method: str, estimator: Any = None, **arguments: Any) -> _Answer:
        """Return what calls a method of a step, which stands for an estimator."""
        known = get_config()
        computed = DATA if is_computed("X", estimator) else frozenset()
        return cls(step, method, arguments, computed, {name: known[name] for name in _SETTINGS})

    def __call__(self, rows: Any) -> Any:
        with reading(self.computed), silence(), config_context(**self.settings):
            return getattr(self.step, self.method)(rows, **self.arguments)


def _fit_transformed(estimator: Any, X: RowSource, y: Any = None, **params: Any) -> Any:
    return estimator.fit(X, y, **params).transform(X)


def _answered(
    method: Callable[..., Any], estimator: Any, source: RowSource, *args: Any, **options: Any
) -> RowSource:
    check_is_fitted(estimator)
    name, owner, bare = method.__name__, type(estimator).__name__, _bare(estimator)
    _, _, *others = signature(method).bind(estimator, source, *args, **options).arguments.items()
    if source.ndim != 2:
        raise ValueError(
            f"{owner}.{name} expected a table, got one column of rows in parts. Select it by a "
            "list of its name."
        )
    n_columns = source.tail[0]
    known = bare.__dict__.setdefault("n_features_in_", n_columns)  # by what needs no fit
    expected = len(bare.get_feature_names_out()) if name == "inverse_transform" else int(known)
    if n_columns != expected:
        raise ValueError(
            f"X has {n_columns} features, but {owner} is expecting {expected} features as input."
        )
    if source.columns is not None and name != "inverse_transform":
        names = pandas_for("a table in parts").DataFrame(columns=list(source.columns))
        _check_feature_names(bare, names, reset=False)
    answer = _Answer.of(bare, name, estimator, **dict(others))
    return source.map(answer, *_tail(answer, n_columns))


def _tail(answer: _Answer, n_columns: int) -> tuple[int, ...]:
    """Return the shape of what an estimator makes of one row: of a made-up one."""
    if answer.method == "transform":  # of text, perhaps
        return (len(answer.step.get_feature_names_out()),)
    return _shape_of_one(answer, np.zeros((1, n_columns)))


def _bare(estimator: Any) -> Any:
    """Return a copy that answers for rows, and knows nothing of how it was paid for."""
    state = {name: one for name, one in vars(estimator).items() if "callback" not in name}
    for stated in ("privacy_", "_report"):
        state.pop(stated, None)
    # What is done in place would be done in every pass.
    fixed = {"ledger": None, "random_state": None, "copy": True}
    state.update({name: value for name, value in fixed.items() if name in state})
    # Which may be set for this thread alone. Frames in parts are those of pandas.
    output = _get_output_config("transform", estimator)["dense"]
    frames = "default" if output == "default" else "pandas"
    bare = object.__new__(type(estimator))
    bare.__dict__.update(state, _sklearn_output_config={"transform": frames})
    return bare


class OverParts(BaseEstimator):
    """A step that learns nothing, over rows in parts."""

    def __init__(self, step: Any) -> None:
        self.step = step

    def fit(self, X: Any, y: Any = None) -> OverParts:
        """Fit the step to the rows that are read first."""
        self.fitted_ = as_sources(X=X)["X"].first(self.step.fit)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        return _applied(self.fitted_, "transform", as_sources(X=X)["X"])


def answered(owner: str, model: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a method of a fitted model says; of rows in parts, when they are read."""
    X, *_ = (*args, kwargs.get("X"))
    return by_storage(
        X,
        lambda _: getattr(model, method)(*args, **kwargs),
        partial(_answered_by_steps, owner, model, method),
    )


def _answered_by_steps(owner: str, model: Any, method: str, rows: RowSource) -> Any:
    if method not in _ANSWERS:
        raise TypeError(
            f"{owner}.{method} needs all rows in memory: give an array or a frame. For scores of "
            "rows in parts give predict(X), which takes them, to a private score of "
            "skdpnoise.metrics."
        )
    steps = [step for _, step in model.steps] if type(model) is Pipeline else [model]
    for place, step in enumerate(steps):
        asked = method if place == len(steps) - 1 else "transform"
        if step is None or isinstance(step, str):
            continue
        rows = getattr(step, asked)(rows) if is_private(step) else _applied(step, asked, rows)
    return rows


def _applied(step: Any, method: str, rows: RowSource) -> RowSource:
    """Return what a step that is not private makes of rows, when they are read."""
    answer = _Answer.of(without_seeds(step), method)
    return rows.map(answer, *rows.first(partial(_shape_of_one, answer)))


def _shape_of_one(answer: _Answer, rows: Any) -> tuple[int, ...]:
    return tuple(np.shape(answer(rows))[1:])


def without_seeds(model: Any) -> Any:
    """Return a copy of a fitted model that knows neither seeds nor ledgers."""
    # From a seed everybody could draw the same noise.
    bare = deepcopy(model)
    for step in all_private(bare, fitted=None):
        for name in {"ledger", "random_state"} & set(vars(step)):
            setattr(step, name, None)
    return bare
