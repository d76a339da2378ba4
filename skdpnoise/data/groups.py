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

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.context import within
from skdpnoise.data.missing import is_missing
from skdpnoise.data.redaction import check_collected
from skdpnoise.data.sizes import HELD
from skdpnoise.data.table import InMemory, Partitioned, Table
from skdpnoise.sampling import RandomWords, SystemWords
from skdpnoise.sampling.keyed import new_key, words_of_rows

Leaf = TypeVar("Leaf")

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


def sample_rows(codes: NDArray[np.intp], most: int, rng: RandomWords) -> NDArray[np.intp]:
    """Choose at most so many rows of each group, uniformly and independently between groups."""
    return choose_rows(codes, most, RowWords(new_key(rng)))


class RowWords:
    """A secret word for each row by its number, so that parts of the rows choose as all of them."""

    def __init__(self, key: bytes, first: int = 0) -> None:
        self._key, self._first, self._round = key, first, 0

    def __call__(self, rows: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return fresh words for rows, in ascending order."""
        key = self._key + self._round.to_bytes(8, "little")
        self._round += 1
        begin = self._first + int(rows[0])
        words = words_of_rows(key, begin, self._first + int(rows[-1]) + 1)
        found: NDArray[np.uint64] = words[rows - rows[0]]
        return found


def choose_rows(
    codes: NDArray[np.intp], most: int, draw: Callable[[NDArray[np.intp]], NDArray[np.uint64]]
) -> NDArray[np.intp]:
    """Choose at most so many rows of each group by words that a function draws for rows."""
    # Each row of a group that is too large gets a random word, and those with the smallest words
    # are kept. Distinct words are in every order with the same probability, so that the choice is
    # exactly uniform; a group in which two words are equal draws all of them again.
    crowded = np.bincount(codes) > most
    rows = np.flatnonzero(crowded[codes])
    kept = np.flatnonzero(~crowded[codes])
    if rows.size == 0:
        return kept
    group, drawn = codes[rows], draw(rows).copy()
    while True:
        order = np.lexsort((drawn, group))
        ordered, keys = group[order], drawn[order]
        ties = ordered[1:][(ordered[1:] == ordered[:-1]) & (keys[1:] == keys[:-1])]
        if ties.size == 0:
            break
        again = np.isin(group, ties)
        drawn[again] = draw(rows[again])
    place = np.arange(rows.size) - np.searchsorted(ordered, ordered)
    return np.sort(np.concatenate([kept, rows[order[place < most]]]))


def words_of_groups(key: bytes, labels: Any, codes: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return a secret word for each row, a keyed hash of the label that its group has first."""
    found = _as_array(labels)
    first_rows = np.unique(codes, return_index=True)[1]
    return _hashes(key, np.asarray(found)[first_rows])[codes]


def _hashes(key: bytes, labels: NDArray[Any]) -> NDArray[np.uint64]:
    """Return keyed hashes of labels: the same of a number, or a text, of any type."""
    texts = (str(label).encode("utf-8", "surrogatepass") for label in labels.tolist())
    digests = (hashlib.blake2b(text, digest_size=8, key=key).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Generic[Leaf]):
    """Rows, which of them belong together, and how many of each group may be used."""

    rows: Table[Leaf]  # all of them
    n_kept: int  # rows that will be kept: known before any coin is tossed
    n_groups: int | None = None  # None where each row stands for itself
    most: int = 1  # rows of a group that are kept
    codes: NDArray[np.intp] | None = None  # in memory the number of each row's group
    labels: Any = None  # in memory, of all rows
    per_partition: tuple[int, ...] = ()  # else how many rows of each partition are kept

    @classmethod
    def of_labels(cls, owner: str, rows: InMemory[Leaf], most: int, labels: Any) -> Groups[Leaf]:
        codes = group_codes(owner, labels, rows.n_rows)
        n_kept = int(np.minimum(np.bincount(codes), most).sum())
        return cls(rows, n_kept, int(codes.max(initial=-1)) + 1, most, codes, labels)

    @classmethod
    def in_partitions(cls, owner: str, rows: Partitioned[Any], most: int) -> Self:
        """Scan all labels, the table "groups"; refuse a group that lies in several partitions."""
        # Keyed hashes of labels are compared where the parts come together, some at a time. With a
        # chance of n²/2^65 different labels have the same, and data are refused in vain.
        if "groups" not in rows.needs:
            return cls(rows, len(rows))
        with within(reservation=None):  # it hides labels, and nothing depends on it
            key = SystemWords().take(2).tobytes()
        labels = rows.only("groups").map(_labels_of_tables)
        n_rounds, n_groups = 1 + len(rows) // HELD, 0
        for one in range(n_rounds):
            take = partial(_count_and_hash, owner, most, key, (one, n_rounds))
            found = labels.joined(take, _counts_and_repeats, "labels of groups", by_part=True)
            n_groups += int(found[-2])
            if found[-1]:
                raise ValueError(
                    f"The 'groups' parameter of {owner} has labels whose rows lie in several "
                    "parts, where nobody could bound how many of them are used. Bring all rows of "
                    "a group into one part: sort the files by these labels, or shuffle a frame of "
                    "dask with shuffle(on=...)."
                )
        counted = iter(found[:-2].tolist())  # of parts that have rows
        counts = tuple(next(counted) if n_rows else 0 for n_rows in rows.rows.n_rows)
        return cls(rows, sum(counts), n_groups, most, per_partition=counts)

    def kept(self, rng: RandomWords) -> Groups[Leaf]:
        """Return the kept rows, in their order; all rows, and no coin is tossed, if all are."""
        rows: Any = self.rows
        if self.n_kept == self.rows.n_rows:
            return self
        if self.codes is None:
            keep = partial(_kept, self.most, new_key(rng))
            return replace(self, rows=rows.sampled(keep, self.per_partition))
        numbers = sample_rows(self.codes, self.most, rng)
        labels, codes = _as_array(self.labels)[numbers], self.codes[numbers]
        return replace(self, rows=rows.rows(numbers), codes=codes, labels=labels)


def check_labels(owner: str, labels: Any) -> None:
    """Refuse labels of some rows that cannot be compared with those of other parts."""
    group_codes(owner, labels, len(labels))
    found = np.asarray(labels)
    if found.dtype.kind not in "iu" and not all(isinstance(label, str) for label in found.flat):
        raise TypeError(
            f"The 'groups' parameter of {owner} must have whole numbers or text as labels of rows "
            "that lie in parts."
        )


def _labels_of_tables(tables: dict[str, Any]) -> Any:
    return tables["groups"]


def _kept(most: int, key: bytes, labels: Any, first: int) -> NDArray[np.bool_]:
    codes = group_codes("fit", labels, len(labels))
    chosen = np.zeros(codes.size, dtype=bool)
    chosen[choose_rows(codes, most, RowWords(key, first))] = True
    return chosen


def _count_and_hash(
    owner: str, most: int, key: bytes, turn: tuple[int, int], labels: Any, first: int
) -> NDArray[np.uint64]:
    """Return how many rows of a part are kept, and hashes of its labels that have their turn."""
    codes, found = group_codes(owner, labels, len(labels)), np.asarray(labels)
    first_rows = np.unique(codes, return_index=True)[1]
    hashes = _hashes(key, found[first_rows])
    place, n_turns = turn
    kept = int(np.minimum(np.bincount(codes), most).sum())
    mine = hashes[hashes % np.uint64(n_turns) == place]
    return np.concatenate([np.array([kept], dtype=np.uint64), mine])


def _counts_and_repeats(parts: list[NDArray[np.uint64]]) -> NDArray[np.int64]:
    """Return how many rows of each part are kept, and of labels all and those that repeat."""
    hashes = np.sort(np.concatenate([part[1:] for part in parts]))
    repeats = int(np.count_nonzero(hashes[1:] == hashes[:-1]))
    counts = [int(part[0]) for part in parts]
    return np.array([*counts, hashes.size, repeats], dtype=np.int64)


def group_codes(owner: str, groups: Any, n_rows: int) -> NDArray[np.intp]:
    expected = f"The 'groups' parameter of {owner} must be an array-like of shape ({n_rows},)"
    check_collected(owner, "groups", type(groups))
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
    missing = any(map(is_missing, parts))
    by_value = all((type(p).__hash__, type(p).__eq__) in known or is_missing(p) for p in parts)
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
