"""Taking a composition apart: which steps pay, which learn nothing, and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.pipeline import FeatureUnion, Pipeline

from skdpnoise.compose._public import function_remedy
from skdpnoise.compose._register import is_private, rule_of
from skdpnoise.compose._remedies import remedy_for

__all__ = [
    "Part",
    "UnpaidStepError",
    "fitted_parts",
    "held_by",
    "holds_private",
    "private_parts",
    "register_inner",
    "taken_apart",
]

try:
    from sklearn.callback import ProgressBar

    _BLIND_CALLBACKS: tuple[type, ...] = (ProgressBar,)
except ImportError:  # scikit-learn below 1.9 has no callbacks
    _BLIND_CALLBACKS = ()

_NOT_FITTED = ("passthrough", "drop")


class UnpaidStepError(ValueError):
    """Raised where a step beside a private model is not known to pay for what it reads.

    The message names every such step with its class, the reason and the remedy. Nothing was fitted,
    and nothing charged.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdpnoise import DPLogisticCD
    >>> from skdpnoise.compose import taken_apart
    >>> steps = make_pipeline(StandardScaler(), DPLogisticCD())
    >>> try:
    ...     taken_apart(steps, owner="Example", parameter="estimator")
    ... except UnpaidStepError as error:
    ...     print(*error.refused)
    'standardscaler' (StandardScaler): learns from the data unpaid, use DPStandardScaler
    """

    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One step of a composition that nothing more is to be taken out of.

    Parameters
    ----------
    label : str
        The prefix of its parameters, ``label + "__epsilon"``; "" is the estimator itself.
    estimator : estimator, str or None
        The step: an estimator, "passthrough", "drop" or None.
    kind : {"private", "public", "declared"}
        Whether it pays for what it learns, learns nothing under the rule of its class, or is said
        to learn nothing by the user.

    Examples
    --------
    >>> from skdpnoise import BoundsClipper
    >>> part = Part("clip", BoundsClipper(), "public")
    >>> part.label, part.prefix, Part("", BoundsClipper(), "public").prefix
    ('clip', 'clip__', '')
    """

    label: str
    estimator: Any
    kind: Literal["private", "public", "declared"]

    @property
    def prefix(self) -> str:
        """What the names of its parameters begin with in the whole."""
        return f"{self.label}__" if self.label else ""


_Children = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class _Inside:
    """What a composition holds, and what is wrong with its own parameters."""

    children: _Children
    complaint: str | None = None


def taken_apart(
    estimator: Any,
    *,
    owner: str,
    parameter: str,
    public: Collection[str] = (),
    fitted: bool = False,
    unknown: Literal["raise", "ignore"] = "raise",
) -> tuple[Part, ...]:
    """Return the parts of a composition, or refuse it with every step that is not known to be safe.

    Taken apart, to any depth, are exactly ``Pipeline`` without `memory`, ``ColumnTransformer``
    without functions as columns and whose output type does not depend on values, ``FeatureUnion``
    and ``TransformedTargetRegressor``. A private part is of a class that is registered by
    :func:`register_private`, a public one of a class whose condition holds
    (:func:`register_public`). Everything else is refused: other meta-estimators too, for they learn
    something themselves.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.
    owner, parameter : str
        Who asks, and for which of its parameters: for messages.
    public : collection of str, default=()
        Names of steps for which a person vouches that they learn nothing private: the label of a
        part or its last component, if only one part has it. A private part stays private.
    fitted : bool, default=False
        Whether to look at the fitted steps, rather than at those that a fit would use.
    unknown : {"raise", "ignore"}, default="raise"
        What to do about names in `public` that lead to no step.

    Returns
    -------
    tuple of Part
        In the order of the steps; private ones as often as they occur.

    Raises
    ------
    UnpaidStepError
        If a step is neither private nor public, and nobody vouches for it.
    ValueError
        If a name in `public` leads to no step, or to several.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> from skdpnoise import DPLogisticCD
    >>> steps = make_pipeline(StandardScaler(), Normalizer(), DPLogisticCD())
    >>> for part in taken_apart(
    ...     steps, owner="Example", parameter="estimator", public=["standardscaler"]
    ... ):
    ...     print(part.label, part.kind)
    standardscaler declared
    normalizer public
    dplogisticcd private
    """
    walk = _Walk(owner, fitted)
    walk.vouch("", (("", estimator),), public, unknown)
    walk.visit("", estimator)
    walk.check(parameter)
    return tuple(walk.parts)


def fitted_parts(
    estimators: Collection[Any], *, owner: str, parameter: str, public: Collection[str] = ()
) -> tuple[Part, ...]:
    """Return the fitted parts of several estimators, each with its number before its labels."""
    numbered = tuple((f"{index + 1}", estimator) for index, estimator in enumerate(estimators))
    children = numbered if len(numbered) > 1 else tuple(("", child) for _, child in numbered)
    walk = _Walk(owner, fitted=True)
    walk.vouch("", children, public)
    for name, child in children:
        walk.visit(name, child)
    walk.check(parameter)
    return tuple(walk.parts)


class _Walk:
    """One walk through a composition: what it found, and what it refuses."""

    def __init__(self, owner: str, fitted: bool) -> None:
        self.owner, self.fitted = owner, fitted
        self.parts: list[Part] = []
        self.refused: list[tuple[str, str, str]] = []
        self.labels: list[str] = []
        self.vouched: set[str] = set()

    def vouch(
        self, label: str, children: _Children, public: Collection[str], unknown: str = "raise"
    ) -> None:
        """Note for which of the steps below a person vouches."""
        _check_public(self.owner, public)
        if not public:
            return
        names = _Walk(self.owner, self.fitted)
        for name, child in children:
            names.visit(_below(label, name), child)
        labels = [found for found in names.labels if found != label]
        for name in public:
            found = _meant(self.owner, name, label, labels)
            if found is None and unknown == "raise":
                raise ValueError(
                    f"The 'public' parameter of {self.owner} must hold names of steps. Got "
                    f"{name!r}, which is none of {sorted(set(labels))}."
                )
            self.vouched |= {found} - {None}

    def visit(self, label: str, step: Any, *, alone: bool = False) -> None:
        """Add the parts of a step; `alone` where what is private pays as part of something else."""
        self.labels.append(label)
        if step is None or (type(step) is str and step in _NOT_FITTED):
            self.parts.append(Part(label, step, "public"))
        elif is_private(step):
            self._private(label, step, alone=alone)
        elif label in self.vouched and holds_private(step):
            self._refuse(label, step, "holds private steps: vouch for single steps in it by name")
        elif label in self.vouched:
            self.parts.append(Part(label, step, "declared"))
        elif type(step) in _INSIDE:
            inside = _INSIDE[type(step)](step, self.fitted)
            self._refuse(label, step, _tampered(step) or inside.complaint)
            for name, child in inside.children:
                self.visit(_below(label, name), child, alone=alone)
        else:
            self._leaf(label, step)

    def check(self, parameter: str) -> None:
        """Raise with every step that is refused, if there is one."""
        if not self.refused:
            return
        refused = [
            f"{label!r} ({name}): {remedy}" if label else f"{name}: {remedy}"
            for label, name, remedy in self.refused
        ]
        error = UnpaidStepError(
            f"The {parameter!r} parameter of {self.owner} must hold steps that pay for what they "
            f"read, or learn nothing. Refused: {'; '.join(refused)}. If you know that a step "
            "learns nothing private, vouch for it by its name in 'public'."
        )
        error.refused = tuple(refused)
        raise error

    def _private(self, label: str, step: Any, *, alone: bool) -> None:
        self._refuse(label, step, _tampered(step))
        if not alone:
            self.parts.append(Part(label, step, "private"))
        if type(step) in _INNER and not self.fitted:
            children, public = _INNER[type(step)](step)
            self.vouch(label, children, public)
            for name, child in children:
                self.visit(_below(label, name), child, alone=True)

    def _leaf(self, label: str, step: Any) -> None:
        rule = rule_of(step)
        complaint = remedy_for(step) if rule is None else _tampered(step) or rule.condition(step)
        self._refuse(label, step, complaint)
        if complaint is None:
            self.parts.append(Part(label, step, "public"))

    def _refuse(self, label: str, step: Any, remedy: str | None) -> None:
        if remedy is not None and (label, type(step).__name__, remedy) not in self.refused:
            self.refused.append((label, type(step).__name__, remedy))


def _pipeline(pipeline: Pipeline, fitted: bool) -> _Inside:
    if pipeline.memory is not None:
        return _Inside(
            (), "must have memory=None: a cache takes fitted steps from a folder, unpaid"
        )
    return _named(pipeline, "steps", pipeline.steps, 2)


def _union(union: FeatureUnion, fitted: bool) -> _Inside:
    return _named(union, "transformer_list", union.transformer_list, 2)


def _columns(columns: ColumnTransformer, fitted: bool) -> _Inside:
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
    elif columns.sparse_threshold != 0 and any(_may_be_sparse(child) for _, child in children):
        complaint = (
            "must have sparse_threshold=0: else whether its output is sparse depends on how many "
            "values are zero"
        )
    return _Inside(tuple(children), complaint)


def _target(regressor: TransformedTargetRegressor, fitted: bool) -> _Inside:
    complaint = (
        function_remedy("func", regressor.func)
        or function_remedy("inverse_func", regressor.inverse_func)
        or (
            "must have check_inverse=False: the warning depends on the data"
            if regressor.check_inverse is not False
            else None
        )
    )
    end = "_" if fitted and "regressor_" in vars(regressor) else ""
    children = [("regressor", getattr(regressor, f"regressor{end}"))]
    if regressor.regressor is None:
        complaint = complaint or "must have a private regressor=: None is LinearRegression"
    if regressor.transformer is not None:
        children.append(("transformer", getattr(regressor, f"transformer{end}")))
    return _Inside(tuple(children), complaint)


# How each composition that can be taken apart is taken apart; exact classes.
_INSIDE: dict[type, Callable[[Any, bool], _Inside]] = {
    Pipeline: _pipeline,
    FeatureUnion: _union,
    ColumnTransformer: _columns,
    TransformedTargetRegressor: _target,
}
# Private classes that hold steps of their own, which they pay for as a whole: the steps, and those
# for which a person vouches.
_Inner = Callable[[Any], tuple[_Children, Collection[str]]]
_INNER: dict[type, _Inner] = {}


def register_inner(cls: type, inside: _Inner) -> None:
    """Have the steps that a private class holds looked at wherever it stands."""
    _INNER[cls] = inside


def private_parts(estimator: Any, *, fitted: bool = False) -> list[Part]:
    """Return the private parts of a composition, whatever else is in it."""
    walk = _Walk("", fitted)
    walk.visit("", estimator)
    return [part for part in walk.parts if part.kind == "private"]


def held_by(estimator: Any) -> tuple[Any, ...]:
    """Return the steps that a private estimator holds."""
    inner = _INNER.get(type(estimator))
    return () if inner is None else tuple(child for _, child in inner(estimator)[0])


def _named(
    composition: Any,
    parameter: str,
    listed: Any,
    length: int,
    also_named: frozenset[str] = frozenset(),
) -> _Inside:
    """Return the named steps of a composition, whose names must lead to one step each."""
    shaped = type(listed) in (list, tuple) and all(
        type(entry) in (list, tuple) and len(entry) == length and type(entry[0]) is str
        for entry in listed
    )
    if not shaped or not listed:
        return _Inside((), f"must have {parameter}=, a list of names and steps")
    names = [entry[0] for entry in listed]
    # A fitted ColumnTransformer lists what it did with the remaining columns among the others.
    taken = set(composition.get_params(deep=False)) - also_named
    if len(set(names)) < len(names) or any("__" in n or n in taken for n in names):
        return _Inside((), f"must have unlike names in {parameter}=, none with '__' or a parameter")
    return _Inside(tuple((entry[0], entry[1]) for entry in listed))


def _may_be_sparse(step: Any) -> bool:
    """Return whether a step's output can be sparse where its input is not."""
    if step is None or isinstance(step, str) or is_private(step):
        return False
    rule = rule_of(step)
    if rule is not None:
        return rule.sparse(step)
    if type(step) is ColumnTransformer and step.sparse_threshold == 0:
        return False
    if type(step) in _INSIDE:
        # Also where a later step would make it dense: then sparse_threshold=0 costs nothing.
        return any(_may_be_sparse(child) for _, child in _INSIDE[type(step)](step, False).children)
    return True


def _tampered(step: Any) -> str | None:
    """Return what an instance has that its class does not answer for."""
    own = [name for name in vars(step) if callable(getattr(type(step), name, None))]
    if own:
        return f"has {', '.join(map(repr, own))} replaced on the instance: make a new one"
    seeing = [
        type(callback).__name__
        for callback in vars(step).get("_skl_callbacks", ())
        if type(callback) not in _BLIND_CALLBACKS
    ]
    if seeing:
        return (
            f"has callbacks that see the data ({', '.join(seeing)}): remove them with "
            "set_callbacks(), scores on private data are not paid for"
        )
    return None


def holds_private(step: Any) -> bool:
    """Return whether an object of any class has a private estimator among its parameters."""
    if not hasattr(step, "get_params") or isinstance(step, type):
        return False
    return any(is_private(value) for value in _within(step.get_params(deep=True).values()))


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


def _below(label: str, name: str) -> str:
    return f"{label}__{name}" if label else name


def _check_public(owner: str, public: Any) -> None:
    if isinstance(public, str) or not all(isinstance(name, str) and name for name in public):
        raise ValueError(
            f"The 'public' parameter of {owner} must be a collection of names of steps. Got "
            f"{public!r} instead."
        )


def _meant(owner: str, name: str, label: str, labels: list[str]) -> str | None:
    """Return the label of the one step that a name leads to, below a label."""
    if _below(label, name) in labels:
        return _below(label, name)
    found = sorted({known for known in labels if known.rpartition("__")[2] == name})
    if len(found) > 1:
        raise ValueError(
            f"The 'public' parameter of {owner} must say which step is meant. Got {name!r}, which "
            f"could be any of {found}: give the whole name."
        )
    return found[0] if found else None
