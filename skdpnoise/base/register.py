"""The register of classes that may stand beside a private model, each by itself and none by name.

A class is known if it is **exactly** (``type(x) is C``) one that was registered: a subclass may
learn what its parent does not, and a name or a tag says nothing about what ``fit`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from skdpnoise.base.exact_classes import Condition, ExactClasses, Reads, Rule, Sparse, T

_private: ExactClasses[None] = ExactClasses()
_public: ExactClasses[Rule] = ExactClasses()


def register_private(cls: type[T]) -> type[T]:
    """Make a class known as private: whatever its ``fit`` learns from the data is charged.

    Used as a decorator. With it the author of the class guarantees: ``fit`` releases nothing that
    is not charged to ``ledger`` beforehand, and ``privacy_`` is a
    :class:`~skdpnoise.ledger.PrivacyReport` of all of it. It should not fail for any value, since
    the step in front of it may compute anything. To take a share of the budget of a
    :class:`DPPipeline` or a search it needs the parameters `epsilon`, `delta`, `adjacency`,
    `ledger`, `noise` and `random_state`. All estimators of this package are registered. Their
    subclasses are not: if you override a method, register the subclass.

    Parameters
    ----------
    cls : type
        The exact class; its subclasses are not meant.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        If this is no class with ``fit`` and ``get_params``, or one that is registered as public.

    Examples
    --------
    >>> from skdpnoise import DPLogisticCD
    >>> from skdpnoise.compose import register_private, taken_apart
    >>> @register_private
    ... class Renamed(DPLogisticCD):
    ...     "The same model by another name."
    >>> [part.kind for part in taken_apart(Renamed(), owner="Example", parameter="estimator")]
    ['private']
    """
    _check_class("register_private", cls)
    if _rule(cls) is not None:
        raise TypeError(f"{cls.__name__} is registered as public: it learns nothing.")
    _private[cls] = None
    return cls


def register_public(
    cls: type[T],
    condition: Condition,
    *,
    sparse: Sparse | None = None,
    reads: Callable[[Any], Reads] | None = None,
) -> type[T]:
    """Make a class known that learns nothing from the data under a condition.

    It is a statement about the exact class: under the condition, two data sets with the same
    columns leave the same fitted state and the same types of output, and no message, warning or
    error quotes a value. Errors that only say that a value is missing, or not finite, are allowed
    as scikit-learn's ``check_array`` raises them: for what a user passes, and not where another
    step computed the values, which is where ``assume_finite`` is set.

    Parameters
    ----------
    cls : type
        The exact class; its subclasses are not meant.
    condition : callable
        Takes an estimator; returns None if it learns nothing and says nothing, else a sentence that
        says what to change.
    sparse : callable or None, default=None
        Takes an estimator; returns whether its output can be sparse where its input is not. None:
        it never is.
    reads : callable or None, default=None
        Takes an estimator; returns what it does with columns that are not of a numeric type:
        "objects" if no value in them makes it fail, "values" if it turns them into numbers as
        ``check_array`` does and fails for a text, "types" if it lets each value do what it can.
        Columns of objects are refused before the last always, and before the second where another
        step computed them, whatever they hold. None: "values".

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        If this is no class with ``fit`` and ``get_params``, or one that is registered as private.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from skdpnoise.compose import register_public, taken_apart
    >>> class Doubled(TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         return self
    ...
    ...     def transform(self, X):
    ...         return 2 * X
    >>> _ = register_public(Doubled, lambda estimator: None)
    >>> [part.kind for part in taken_apart(Doubled(), owner="Example", parameter="estimator")]
    ['public']
    """
    _check_class("register_public", cls)
    if cls in _private:
        raise TypeError(f"{cls.__name__} is registered as private: it charges what it learns.")
    rule = Rule(condition)
    if sparse is not None:
        rule = replace(rule, sparse=sparse)
    if reads is not None:
        rule = replace(rule, reads=reads)
    _public[cls] = rule
    return cls


def is_private(estimator: Any) -> bool:
    """Return whether an object is exactly of a class that is charged for what it learns."""
    return type(estimator) in _private


def rule_of(estimator: Any) -> Rule | None:
    """Return the rule of an object's exact class, if it is registered as public."""
    return _rule(type(estimator))


def related(estimator: Any) -> tuple[str, str] | None:
    """Return kind and name of a registered class from which an unregistered one is derived."""
    for parent in type(estimator).__mro__[1:]:
        if parent in _private:
            return "private", parent.__name__
        if _rule(parent) is not None:
            return "public", parent.__name__
    return None


def _rule(cls: type) -> Rule | None:
    """Return the rule of a class that is registered as public, or is one of scikit-learn's."""
    if str(cls.__module__).startswith("skdpnoise."):
        return _public.get(cls)
    return _public.get(cls) or _of_sklearn().get(cls)


@cache
def _of_sklearn() -> ExactClasses[Rule]:
    from skdpnoise.base.public_transformers import RULES  # not before: it imports many others

    return ExactClasses(RULES)


def _check_class(owner: str, cls: Any) -> None:
    if not (isinstance(cls, type) and hasattr(cls, "fit") and hasattr(cls, "get_params")):
        raise TypeError(
            f"The 'cls' parameter of {owner} must be a class with fit and get_params. Got "
            f"{cls!r} instead."
        )
