"""The compositions that can be taken apart, and what an instance must not have of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdpnoise.base.elementwise import function_remedy
from skdpnoise.base.exact_classes import ExactClasses
from skdpnoise.base.register import is_private, rule_of

try:
    from sklearn.callback import ProgressBar

    _BLIND_CALLBACKS = ExactClasses([(ProgressBar, None)])
except ImportError:  # scikit-learn below 1.9 has no callbacks
    _BLIND_CALLBACKS = ExactClasses()


CHANGED = "its parameters are not those of its fit: fit it again, or leave them as they were"
SPARSE = (
    "must have sparse_threshold=0: else whether its output is sparse depends on how many values "
    "are zero"
)
Children = tuple[tuple[str, Any], ...]
# What set_output, set_fit_request and set_callbacks keep on an instance.
_SET_BY_METHODS = frozenset({"_sklearn_output_config", "_metadata_request", "_skl_callbacks"})


@dataclass(frozen=True, slots=True)
class Inside:
    """The children of a composition, and a complaint about its own parameters."""

    children: Children
    complaint: str | None = None
    only_dense: bool = False  # every step must be known to have dense output


def _pipeline(pipeline: Pipeline, fitted: bool) -> Inside:
    if pipeline.memory is not None:
        return Inside(
            (), "must have memory=None: a cache returns steps fitted elsewhere, without a charge"
        )
    return _named(pipeline, "steps", pipeline.steps, 2)


def _union(union: FeatureUnion, fitted: bool) -> Inside:
    return _named(union, "transformer_list", union.transformer_list, 2)


def _columns(columns: ColumnTransformer, fitted: bool) -> Inside:
    now = fitted and "transformers_" in vars(columns)
    listed = columns.transformers_ if now else columns.transformers
    extra = frozenset({"remainder"} if now else ())
    inside = _named(columns, "transformers", listed, 3, extra)
    if inside.complaint is not None:
        return inside
    children = [(n, child) for n, child, where in listed if not (now and _is_empty(where))]
    if not now:
        children.append(("remainder", columns.remainder))
    complaint = None
    if any(callable(where) for _, _, where in columns.transformers):
        complaint = (
            "must name its columns: a function that selects them (make_column_selector too) looks "
            "at the data"
        )
    elif callable(columns.verbose_feature_names_out):
        complaint = "must have verbose_feature_names_out=True or False, not a function"
    elif now and (
        (columns.sparse_output_ and columns.sparse_threshold == 0) or not _as_fitted(columns)
    ):
        complaint = CHANGED
    elif columns.sparse_threshold != 0 and any(_may_be_sparse(child) for _, child in children):
        complaint = SPARSE
    return Inside(tuple(children), complaint, columns.sparse_threshold != 0)


def _as_fitted(columns: ColumnTransformer) -> bool:
    """Return whether a fitted ColumnTransformer has the steps that its parameters name."""
    listed = [name for name, *_ in columns.transformers]
    found = [name for name, *_ in columns.transformers_]
    return listed == found[: len(listed)] and set(found[len(listed) :]) <= {"remainder"}


def _target(regressor: TransformedTargetRegressor, fitted: bool) -> Inside:
    complaint = (
        function_remedy("func", regressor.func)
        or function_remedy("inverse_func", regressor.inverse_func)
        or (
            "must have check_inverse=False: the warning depends on the data"
            if regressor.check_inverse is not False
            else None
        )
    )
    own, transformer = vars(regressor), regressor.transformer
    now = fitted and "regressor_" in own
    children = [("regressor", own["regressor_"] if now else regressor.regressor)]
    if hasattr(regressor.regressor, "get_params") and is_classifier(regressor.regressor):
        complaint = complaint or "must have a regressor: labels that were computed may not be some"
    if regressor.regressor is None:
        complaint = complaint or "must have a private regressor=: None is LinearRegression"
    if now and "transformer_" in own:  # whatever the parameter says since
        made_of_functions = transformer is None and type(own["transformer_"]) is FunctionTransformer
        transformer = None if made_of_functions else own["transformer_"]
        if made_of_functions:
            found = own["transformer_"]
            complaint = (
                complaint
                or function_remedy("func", found.func)
                or function_remedy("inverse_func", found.inverse_func)
            )
    if transformer is not None:
        children.append(("transformer", transformer))
    return Inside(tuple(children), complaint)


# How each composition that can be taken apart is taken apart; exact classes.
INSIDE: ExactClasses[Callable[[Any, bool], Inside]] = ExactClasses(
    {
        Pipeline: _pipeline,
        FeatureUnion: _union,
        ColumnTransformer: _columns,
        TransformedTargetRegressor: _target,
    }.items()
)
# Private classes that hold steps of their own, which they pay for as a whole: the steps, fitted or
# as a fit would use them, and the labels of those for which a person vouches.
_Inner = Callable[[Any, bool], tuple[Children, Collection[str]]]
_INNER: ExactClasses[_Inner] = ExactClasses()


def register_inner(cls: type, inside: _Inner) -> None:
    """Have the steps that a private class holds looked at wherever it stands."""
    _INNER[cls] = inside


def inner_of(estimator: Any, *, fitted: bool = False) -> tuple[Children, Collection[str]]:
    """Return the steps that a private estimator holds, and the names that are vouched for."""
    inner = _INNER.get(type(estimator))
    return ((), ()) if inner is None else inner(estimator, fitted)


def _named(
    composition: Any,
    parameter: str,
    listed: Any,
    length: int,
    also_named: frozenset[str] = frozenset(),
) -> Inside:
    """Return the named steps of a composition, whose names must lead to one step each."""
    # In a tuple scikit-learn's set_params would not find the steps by their names.
    shaped = type(listed) is list and all(
        type(entry) in (list, tuple) and len(entry) == length and type(entry[0]) is str
        for entry in listed
    )
    if not shaped or not listed:
        return Inside((), f"must have {parameter}=, a list of names and steps")
    names = [entry[0] for entry in listed]
    # A fitted ColumnTransformer lists what it did with the remaining columns among the others.
    taken = set(composition.get_params(deep=False)) - also_named
    if len(set(names)) < len(names) or any("__" in n or n in taken for n in names):
        return Inside((), f"must have unlike names in {parameter}=, none with '__' or a parameter")
    return Inside(tuple((entry[0], entry[1]) for entry in listed))


def _may_be_sparse(step: Any) -> bool:
    """Return whether the output of a known step can be sparse where its input is not."""
    rule = rule_of(step)
    if rule is not None:
        return rule.sparse(step)
    inside = INSIDE.get(type(step))
    if inside is None or (type(step) is ColumnTransformer and not step.sparse_threshold):
        return False
    # Also where a later step would make it dense: then sparse_threshold=0 costs nothing.
    return any(_may_be_sparse(child) for _, child in inside(step, False).children)


def tampered(step: Any) -> str | None:
    """Return what an instance has that its class does not answer for."""
    names = getattr(type(step), "_get_param_names", None)  # of scikit-learn's estimators
    parameters = type(step).get_params(step, deep=False) if names is None else names()
    own = _replaced(step, known=_SET_BY_METHODS.union(parameters))
    if own:
        return f"has {', '.join(map(repr, own))} replaced on the instance: make a new one"
    return watched(step)


def _replaced(thing: Any, known: Collection[str] = ()) -> list[str]:
    """Return what its class defines and an object has anew: methods, and settings of the class."""
    return [name for name in vars(thing) if name not in known and hasattr(type(thing), name)]


def watched(step: Any) -> str | None:
    """Return which callbacks of an estimator see the data while it is fitted."""
    seeing = [
        type(callback).__name__
        for callback in vars(step).get("_skl_callbacks", ())
        if type(callback) not in _BLIND_CALLBACKS or _replaced(callback)
    ]
    if not seeing:
        return None
    return (
        f"has callbacks that see the data ({', '.join(seeing)}): remove them with set_callbacks(), "
        "since exact scores on private data are not private"
    )


def holds_private(step: Any) -> bool:
    """Return whether an object of any class has a private estimator among its parameters."""
    if not hasattr(step, "get_params") or isinstance(step, type):
        return False
    return any(is_private(value) for value in _within(step.get_params(deep=True).values()))


def named_estimators(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield an estimator, as "", and all that its parameters hold, with their names."""
    yield "", estimator
    for name, value in estimator.get_params(deep=True).items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield name, value


def private_estimators(estimator: Any) -> Iterator[tuple[str, Any]]:
    yield from ((name, one) for name, one in named_estimators(estimator) if is_private(one))


def _within(values: Any) -> Iterator[Any]:
    for value in values:
        yield value
        if isinstance(value, list | tuple | set | frozenset):
            yield from _within(value)
        elif isinstance(value, dict):
            yield from _within(value.values())


def _is_empty(where: Any) -> bool:
    """Return whether a selection of columns takes none: its step is then never fitted."""
    if isinstance(where, slice | str | int):
        return False
    selected = np.asarray(where)
    return not (selected.any() if selected.dtype == bool else selected.size)


def below(label: str, name: str) -> str:
    return "__".join(filter(None, (label, name)))
