"""Methods of fitted estimators over partitions: of some rows at a time, whenever they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from inspect import isfunction, signature
from typing import Any

import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from skdpnoise._utils.checks import pandas_for
from skdpnoise._utils.redaction import silence
from skdpnoise.data.computed import DATA, is_computed, reading
from skdpnoise.data.sources import RowSource, by_storage

__all__ = ["OverPartsMixin"]

# Methods of which each row of the result is made of one row of X alone.
_METHODS = (
    *("transform", "inverse_transform", "mahalanobis", "decision_function"),
    *("predict", "predict_proba", "predict_log_proba"),
)


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
                setattr(cls, name, _over(method))


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """One method of a fitted estimator, applied to some rows."""

    estimator: Any
    method: str
    arguments: dict[str, Any]
    computed: frozenset[str]  # as where it was asked for: other threads would not know it

    def __call__(self, rows: Any) -> Any:
        with reading(self.computed), silence():  # of names of columns, for every batch
            return getattr(self.estimator, self.method)(rows, **self.arguments)


def _over(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that takes rows in parts too."""
    name = method.__name__
    answered = _fit_transformed if name == "fit_transform" else partial(_answered, method)

    @wraps(method)
    def run(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        return by_storage(X, partial(method, self), partial(answered, self), *args, **options)

    return run


def _fit_transformed(estimator: Any, X: RowSource, y: Any = None, **params: Any) -> Any:
    return estimator.fit(X, y, **params).transform(X)


def _answered(
    method: Callable[..., Any], estimator: Any, source: RowSource, *args: Any, **options: Any
) -> RowSource:
    """Return what a method makes of rows, when they are read."""
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
    computed = DATA if is_computed("X", estimator) else frozenset()
    answer = _Answer(bare, name, dict(others), computed)
    return source.map(answer, *_tail(answer, n_columns))


def _tail(answer: _Answer, n_columns: int) -> tuple[int, ...]:
    """Return the shape of what an estimator makes of one row: of a made-up one."""
    if answer.method == "transform":  # of text, perhaps
        return (len(answer.estimator.get_feature_names_out()),)
    return tuple(np.shape(answer(np.zeros((1, n_columns))))[1:])


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
