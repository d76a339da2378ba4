"""Facts for compositions: how a private estimator spends its budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["PrivateTags", "tags_of"]


@dataclass(frozen=True, slots=True)
class PrivateTags:
    """Returned by `__private_tags__`, as scikit-learn's tags are."""

    reads_labels: bool = False  # columns of categories, of which each is what its type says
    samples_records: bool = False  # so that its loss is no Gaussian one
    reveals_by_chance: bool = False  # perhaps what only one record has
    normal_noise: str = "inid_gaussian"  # what "auto" becomes in a composition
    weight: float = 1.0  # of its share of the budget of a composition
    declares: tuple[str, ...] = ()  # parameters that are code of the user's


def tags_of(estimator: Any) -> PrivateTags:
    """Return the tags of an estimator by its class; of one that has none, the defaults."""
    tags: PrivateTags = getattr(type(estimator), "__private_tags__", _untagged)(estimator)
    return tags


def _untagged(estimator: Any) -> PrivateTags:
    return PrivateTags()
