r"""A person with many rows: how many rows of each group a release may see, and which.

**Guarantee.** Let a mechanism be private with respect to one row, and let it see at most m rows of
each group: all rows of small groups, and of larger ones m that are chosen uniformly without
replacement, with coins that are independent between groups. Then it is private for groups, at
m-fold loss:

- *Replace one.* Neighbours have the same groups, which are public, and differ in the values of the
  rows of one of them. For every outcome of the coins the same rows are kept, so that the kept data
  differ in at most m rows: they are m replacements apart.
- *Add or remove.* Neighbours differ in one group with all its rows. The coins of the other groups
  are independent of it, so that they can be given the same outcome: then the kept data differ in
  the at most m kept rows of that group, and are m additions apart.

For every such outcome a pure loss ε per row becomes mε (Dwork and Roth, Theorem 2.2), and a
μ-Gaussian one mμ (Dong, Roth and Su, Theorem 2.14). The coins are secret, and mixtures of outputs
that are (e, δ(e))-close are (e, δ(e))-close, since the hockey-stick divergence is jointly convex.

No coins need be drawn where no group is too large: fresh words are independent of earlier ones.

References
----------
Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 2.2. Dong, Roth
and Su, "Gaussian differential privacy", arXiv:1905.02383, Theorem 2.14.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdpnoise.sampling import RandomWords

__all__ = ["GroupedRows", "group_codes", "sample_rows"]

# Classes whose equal objects have equal hashes, and subclasses that change neither.
_LABELS = {
    "builtins": ("str", "bytes", "int", "bool", "float", "complex", "tuple", "frozenset"),
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "enum": ("Enum",),
    "fractions": ("Fraction",),
    "pandas": ("Timestamp", "Timedelta", "Period", "Interval"),
    "uuid": ("UUID",),
}
# Hashed as what they equal in Python. Numpy's other numbers and dates are not.
_LIKE_PYTHON: tuple[type, ...] = (
    *(np.bool_, np.float64, np.complex128, np.str_, np.bytes_),
    *(np.dtype(code).type for code in "bhilqBHILQ"),
)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Which rows belong together, and how many of each group may be used."""

    # shape (n_rows,): number of each row's group; None where each row stands for itself
    codes: NDArray[np.intp] | None
    most: int  # the most rows of a group that are kept
    n_rows: int  # number of rows

    @property
    def n_kept(self) -> int:
        """Number of rows that will be kept: known before any coin is tossed."""
        if self.codes is None:
            return self.n_rows
        return int(np.minimum(np.bincount(self.codes), self.most).sum())

    def keep(self, rng: RandomWords, *tables: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return the kept rows of each table, in their order; the tables themselves if all are."""
        if self.codes is None or self.n_kept == self.n_rows:
            return tables
        rows = sample_rows(self.codes, self.most, rng)
        return tuple(
            np.asarray(table[rows], order="F" if table.flags.f_contiguous else "C")
            if isinstance(table, np.ndarray)
            else table[rows]  # sparse
            for table in tables
        )


def sample_rows(codes: NDArray[np.intp], most: int, rng: RandomWords) -> NDArray[np.intp]:
    """Choose at most so many rows of each group, uniformly and independently between groups."""
    # Each row of a group that is too large gets a random word, and those with the smallest words
    # are kept. Distinct words are in every order with the same probability, so that the choice is
    # exactly uniform; a group in which two words are equal draws all of them again.
    crowded = np.bincount(codes) > most
    rows = np.flatnonzero(crowded[codes])
    kept = np.flatnonzero(~crowded[codes])
    if rows.size == 0:
        return kept
    group, drawn = codes[rows], rng.take(rows.size).copy()
    while True:
        order = np.lexsort((drawn, group))
        ordered, keys = group[order], drawn[order]
        ties = ordered[1:][(ordered[1:] == ordered[:-1]) & (keys[1:] == keys[:-1])]
        if ties.size == 0:
            break
        again = np.isin(group, ties)
        drawn[again] = rng.take(int(np.count_nonzero(again)))
    place = np.arange(rows.size) - np.searchsorted(ordered, ordered)
    return np.sort(np.concatenate([kept, rows[order[place < most]]]))


def group_codes(owner: str, groups: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the number of each row's group, or say what is wrong with the labels."""
    expected = f"The 'groups' parameter of {owner} must be an array-like of shape ({n_rows},)"
    read = True
    try:
        labels = _as_array(groups)
        shape = np.shape(labels)
        found = _numbered(np.asarray(labels)) if shape == (n_rows,) else None
    except MemoryError:
        raise
    except Exception:
        read = False
    if not read:  # outside the handler, so that an error that quotes a label is not attached
        raise TypeError(
            f"{expected} of labels that can be hashed by their value: numbers, strings, dates, or "
            "tuples of these. Got labels that cannot, or are not known to be."
        )
    if found is None:
        given = f"shape {shape}" if shape else f"an object of type {type(groups).__name__}"
        raise ValueError(
            f"{expected}, one label for each row of X that is fitted, in their order. Got {given} "
            "instead. Of a frame, give one column, such as frame['person']."
        )
    masked = np.ma.isMaskedArray(labels) and np.ma.getmaskarray(labels).any()
    codes, missing = found
    if masked or missing:
        raise ValueError(
            f"{expected} without missing labels: rows of unknown people cannot be bounded. Leave "
            "these rows out, or give each of them a group of its own."
        )
    return codes


def _numbered(labels: NDArray[Any]) -> tuple[NDArray[np.intp], bool]:
    """Return the place of each label among the different ones, and whether one is missing."""
    if labels.dtype.kind in "biufcmM":
        _, first, places = np.unique(labels, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[places], bool((labels != labels).any())
    kinds = set(map(type, labels.flat))
    if len(kinds) == 1 and issubclass(next(iter(kinds)), np.number | np.datetime64):
        return _numbered(np.array(labels.tolist()))
    seen: dict[Any, int] = {}
    codes = [seen.setdefault(label, len(seen)) for label in labels.tolist()]
    known = _known_laws()
    parts = [part for label in seen for part in _parts(label)]
    missing = any(map(_is_missing, parts))
    by_value = all((type(p).__hash__, type(p).__eq__) in known or _is_missing(p) for p in parts)
    # Text equals nothing else, and is left out.
    kinds = {_kind_of(p) for p in parts if not isinstance(p, str | bytes | tuple | frozenset)}
    if not by_value or len(kinds) > 1:
        raise TypeError("labels that may be hashed by identity: equal ones would be two groups")
    return np.array(codes, dtype=np.intp), missing


def _known_laws() -> set[tuple[Any, Any]]:
    """Return the pairs of hash and comparison by which equal labels are one group."""
    # Of classes in modules that are loaded: there is no object of any other.
    modules = ((sys.modules.get(name), names) for name, names in _LABELS.items())
    classes = [getattr(module, name) for module, names in modules if module for name in names]
    return {(kind.__hash__, kind.__eq__) for kind in [*classes, *np.sctypeDict.values()]}


def _parts(label: Any) -> Iterator[Any]:
    """Yield a label, and all that is in it if it is a tuple or a set."""
    yield label
    if isinstance(label, tuple | frozenset):
        for part in label:
            yield from _parts(part)


def _kind_of(label: Any) -> Any:
    """Return numpy's type of a label that is hashed in its own way, and None for others."""
    own = isinstance(label, np.generic) and not isinstance(label, _LIKE_PYTHON)
    return label.dtype if own else None


def _is_missing(label: Any) -> bool:
    """Return whether a label does not equal itself: it would name no group."""
    if type(label).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    # pyarrow's scalars say themselves whether they hold a value.
    return getattr(label, "is_valid", True) is False or bool(label != label)


def _as_array(groups: Any) -> Any:
    """Return labels as frames and arrays hold them, and a list without mixing its types."""
    if isinstance(groups, np.ndarray):
        return groups
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        return None
    if hasattr(groups, "to_numpy"):
        return groups.to_numpy()
    if hasattr(groups, "__array__"):
        return np.asarray(groups)
    if not isinstance(groups, list | tuple):
        return None
    # One by one: numpy would make strings of 1 and "a", and a matrix of tuples.
    return np.fromiter(groups, dtype=object, count=len(groups))
