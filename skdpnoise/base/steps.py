"""Which steps of a composition are private, which learn nothing, and which are refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from sklearn import config_context

from skdpnoise._utils.context import within
from skdpnoise._utils.numbers import strange_type
from skdpnoise.base.compositions import (
    CHANGED,
    INSIDE,
    SPARSE,
    Children,
    below,
    holds_private,
    inner_of,
    tampered,
)
from skdpnoise.base.costs import carries_loss, cost_of, hides, result_remedy
from skdpnoise.base.exact_classes import Rule
from skdpnoise.base.register import is_private, rule_of
from skdpnoise.base.remedies import remedy_for
from skdpnoise.data.computed import DATA
from skdpnoise.privacy import Adjacency

_NOT_FITTED = ("passthrough", "drop")
_VOUCH = " If you know that a step learns nothing private, list its name in 'public'."


class UnpaidStepError(ValueError):
    """Raised where a step beside a private model may learn from the data without privacy.

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
    'standardscaler' (StandardScaler): learns from the data without privacy: use DPStandardScaler
    """

    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One step of a composition that contains no further steps.

    Parameters
    ----------
    label : str
        The prefix of its parameters, ``label + "__epsilon"``; "" is the estimator itself.
    estimator : estimator, str or None
        The step: an estimator, "passthrough", "drop" or None.
    kind : {"private", "public", "declared"}
        Whether it is charged for what it learns, learns nothing under the rule of its class, or is
        declared by the user to learn nothing.

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
        """The beginning of the names of its parameters in the whole."""
        return f"{self.label}__" if self.label else ""


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
    (:func:`register_public`). Everything else is refused, also other meta-estimators, since they
    learn something themselves.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.
    owner, parameter : str
        Who asks, and for which of its parameters: for messages.
    public : collection of str, default=()
        Names of steps of which the user says that they learn nothing private: the label of a
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
        If a step is neither private nor public, and not listed in `public`.
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
    terms: dict[str, Any] = {"owner": owner, "parameter": parameter, "public": public}
    return parts_of((("", estimator),), **terms, fitted=fitted, unknown=unknown)


def parts_of(
    children: Children,
    *,
    owner: str,
    parameter: str,
    public: Collection[str] = (),
    fitted: bool = True,
    unknown: Literal["raise", "ignore"] = "raise",
) -> tuple[Part, ...]:
    walk = _StepWalk(owner, fitted)
    walk.vouch("", children, public, unknown)
    for name, child in children:
        walk.visit(name, child)
    walk.check(parameter)
    return tuple(walk.parts)


class _StepWalk:
    """One walk through a composition: what it found, and what it refuses."""

    def __init__(self, owner: str, fitted: bool) -> None:
        self.owner, self.fitted = owner, fitted
        self.parts: list[Part] = []
        self.refused: list[tuple[str, str, str]] = []
        self.can_be_vouched = False  # for one of them at least
        self.labels: list[str] = []
        self.vouched: set[str] = set()

    def vouch(
        self, label: str, children: Children, public: Collection[str], unknown: str = "raise"
    ) -> None:
        """Note for which of the steps below a person vouches."""
        _check_public(self.owner, public)
        if not public:
            return
        names = _StepWalk(self.owner, self.fitted)
        for name, child in children:
            names.visit(below(label, name), child)
        labels = [found for found in names.labels if found != label]
        for name in public:
            found = _meant(self.owner, name, label, labels)
            if found is None and unknown == "raise":
                raise ValueError(
                    f"The 'public' parameter of {self.owner} must hold names of steps. Got "
                    f"{name!r}, which is none of {sorted(set(labels))}."
                )
            if found is not None:
                self.vouched.add(found)

    def visit(self, label: str, step: Any, *, alone: bool = False) -> None:
        """Add the parts of a step; `alone` where what is private is charged as part of another."""
        self.labels.append(label)
        if step is None or (type(step) is str and step in _NOT_FITTED):
            self.parts.append(Part(label, step, "public"))
        elif is_private(step):
            self._private(label, step, alone=alone)
        elif self.fitted and cost_of(step) is not None:
            self._paid(label, step, alone=alone)
        elif label in self.vouched and holds_private(step):
            self._refuse(label, step, "holds private steps: vouch for single steps in it by name")
        elif label in self.vouched and self._spent(step):
            self._refuse(label, step, self._unknown(step))
        elif label in self.vouched:
            self.parts.append(Part(label, step, "declared"))
        elif (look := INSIDE.get(type(step))) is not None:
            inside = look(step, self.fitted)
            complaint = tampered(step) or inside.complaint
            if complaint is None and inside.only_dense and self._vouched_below(label):
                complaint = SPARSE  # nobody knows what the output of such a step is
            self._refuse(label, step, complaint)
            for name, child in inside.children:
                self.visit(below(label, name), child, alone=alone)
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
            f"The {parameter!r} parameter of {self.owner} must hold private steps, or steps that "
            f"learn nothing from the data. Refused: {'; '.join(refused)}."
            + _VOUCH
            * self.can_be_vouched
        )
        error.refused = tuple(refused)
        raise error

    def _private(self, label: str, step: Any, *, alone: bool) -> None:
        self._refuse(label, step, tampered(step))
        self._paid(label, step, alone=alone)

    def _paid(self, label: str, step: Any, *, alone: bool) -> None:
        """Add what is charged for, and look at what it holds."""
        if not alone:
            self.parts.append(Part(label, step, "private"))
        children, public = inner_of(step, fitted=self.fitted)
        self.vouch(label, children, public)
        for name, child in children:
            self.visit(below(label, name), child, alone=True)

    def _leaf(self, label: str, step: Any) -> None:
        rule = rule_of(step)
        if rule is None:
            complaint: str | None = self._unknown(step)
        else:
            complaint = tampered(step) or _conditional(step, rule)
            if complaint is None and self.fitted and rule.changed(step):
                complaint = CHANGED
        self._refuse(label, step, complaint)
        if complaint is None:
            self.parts.append(Part(label, step, "public"))

    def _vouched_below(self, label: str) -> bool:
        return any(name.startswith(f"{label}__" if label else "") for name in self.vouched)

    def _spent(self, step: Any) -> bool:
        """Return whether a fitted step, or what else is to be counted, may have cost privacy."""
        return self.fitted and (carries_loss(step) or hides(step) is not None)

    def _refuse(self, label: str, step: Any, remedy: str | None) -> None:
        if remedy is not None and (label, type(step).__name__, remedy) not in self.refused:
            self.refused.append((label, type(step).__name__, remedy))
            self.can_be_vouched |= self._is_step(step) and not self._spent(step)

    def _is_step(self, step: Any) -> bool:
        """Return False of what is to be counted and was never fitted, such as a number."""
        return not self.fitted or hasattr(step, "fit")

    def _unknown(self, step: Any) -> str:
        return remedy_for(step) if self._is_step(step) else result_remedy(step)


def private_parts(estimator: Any, *, fitted: bool = False) -> list[Part]:
    walk = _StepWalk("", fitted)
    walk.visit("", estimator)
    return [part for part in walk.parts if part.kind == "private"]


def all_private(estimator: Any, *, fitted: bool | None = False) -> Iterator[Any]:
    """Yield the private steps of a composition at any depth, in the order of `private_parts`."""
    # Fitted ones, what they are made from, or both where `fitted` is None; some more than once.
    for kind in (False, True) if fitted is None else (fitted,):
        for part in private_parts(estimator, fitted=kind):
            yield part.estimator
            for _, step in inner_of(part.estimator, fitted=kind)[0]:
                yield from all_private(step, fitted=fitted)


def relation_of(estimator: Any) -> Adjacency:
    """Return for which neighbours an estimator is private: where it leaves that open, its steps."""
    own: Adjacency | None = estimator.adjacency
    if own is not None:
        return own
    asked = {getattr(one, "adjacency", None) for one in all_private(estimator)}
    return "add_remove" if "add_remove" in asked else "replace_one"


def _conditional(step: Any, rule: Rule) -> str | None:
    """Return what must change for a step to learn nothing."""
    complaint = rule.condition(step)
    if complaint is not None:
        return complaint
    # A number of a class by somebody else may equal what a rule asks for, and be another one later.
    for name, value in step.get_params(deep=False).items():
        strange = strange_type(value)
        if strange is not None:
            return f"must have {name}= as plain data. It holds an object of type {strange}"
    return None


def _check_public(owner: str, public: Any) -> None:
    if isinstance(public, str) or not all(isinstance(name, str) and name for name in public):
        raise ValueError(
            f"The 'public' parameter of {owner} must be a collection of names of steps. Got "
            f"{public!r} instead."
        )


def _meant(owner: str, name: str, label: str, labels: list[str]) -> str | None:
    """Return the label of the one step that a name leads to, below a label."""
    if below(label, name) in labels:
        return below(label, name)
    found = sorted({known for known in labels if known.rpartition("__")[2] == name})
    if len(found) > 1:
        raise ValueError(
            f"The 'public' parameter of {owner} must say which step is meant. Got {name!r}, which "
            f"could be any of {found}: give the whole name."
        )
    return found[0] if found else None


@contextmanager
def after_charge(model: Any) -> Iterator[None]:
    """Let no step of a composition that was charged refuse a value."""
    # A private step of another author may count on scikit-learn to look; only its own fit does.
    with (
        within(is_charged=True, computed=DATA),
        config_context(assume_finite=not is_private(model) or all_ours(model)),
    ):
        yield


def all_ours(model: Any) -> bool:
    private = (type(part.estimator) for part in private_parts(model))
    return all(step.__module__.startswith("skdpnoise.") for step in private)
