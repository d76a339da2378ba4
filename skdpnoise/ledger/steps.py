"""What compositions of estimators are made of, and which parts learn nothing from the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.utils import get_tags

__all__ = ["innermost", "learns_nothing"]


def innermost(estimator: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the innermost fitted estimators of a composition, with names that lead to them.

    Parameters
    ----------
    estimator : estimator
        Pipelines, ColumnTransformers and FeatureUnions are taken apart, to any depth.
    name : str
        Its own name.

    Yields
    ------
    tuple of (str, estimator)

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> [name for name, _ in innermost(make_pipeline("passthrough", "drop"), "Pipeline")]
    ['passthrough', 'drop']
    """
    children = None
    for attribute in ("steps", "transformers_", "transformer_list"):  # fitted ones first
        if not isinstance(estimator, str) and hasattr(estimator, attribute):
            children = [(child[0], child[1]) for child in getattr(estimator, attribute)]
            break
    if children is None:
        yield name, estimator
        return
    # The outermost composition needs no name: there is only one.
    prefix = "" if name == type(estimator).__name__ else f"{name}__"
    for label, child in children:
        yield from innermost(child, f"{prefix}{label}")


def learns_nothing(estimator: Any) -> bool:
    """Return whether a step reads nothing from the data when it is fitted.

    Parameters
    ----------
    estimator : estimator, str or None
        One that needs no ``fit``, an encoder whose categories are given, "passthrough" or "drop".

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> learns_nothing(OneHotEncoder()), learns_nothing(OneHotEncoder(categories=[["a", "b"]]))
    (False, True)
    """
    if estimator is None or isinstance(estimator, str):  # "passthrough", "drop"
        return True
    if hasattr(estimator, "categories"):
        given = not isinstance(estimator.categories, str)
        counted = (getattr(estimator, n, None) for n in ("min_frequency", "max_categories"))
        return given and all(value is None for value in counted)
    return not get_tags(estimator).requires_fit
