"""Kinds of what is true and of what is said of it: text and numbers are never equal.

What compares them, and a kind that hangs on a value: a declared type says what a column is. A
column of objects, or a list, declares none, and is of the kind of most of its entries. So one odd
record decides nothing, unless kinds are mixed by halves: it is wrong by itself, as all records of
a column of one kind were where truth and predictions are of two.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from skdpnoise._utils.checks import complaint
from skdpnoise.data.cells import cells_of, is_missing
from skdpnoise.data.fitted_kinds import kinds_in
from skdpnoise.data.kinds import OBJECTS, Kind, kind_of

__all__ = ["Held", "check_kinds", "kinds_held", "plain_entry"]

_KINDS = {str: "text", bytes: "bytes", int: "number", float: "number", bool: "number"}
_DECLARED = {"text": "text", "number": "number", "boolean": "number"}
_WORDS = {"text": "text", "number": "numbers", "bytes": "bytes"}
_OTHER = "objects of another kind, such as dates,"
_CONVERSIONS = {
    "text": "numpy.asarray({0}).astype(str)",
    "number": "numpy.asarray({0}, dtype=float)",
    "bytes": "numpy.asarray({0}).astype(bytes)",
}

Held = dict[str, tuple[Counter[str], ...]]
"""How many entries are of each kind, by tables and their columns."""


def plain_entry(value: Any) -> Any:
    """Return a label or number of a record as a plain one; NaN of anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if type(plain) in _KINDS else math.nan


def kinds_held(tables: dict[str, Any]) -> Held:
    """Return how many entries of tables are of each kind."""
    return {name: _by_column(values) for name, values in tables.items()}


def _by_column(values: Any) -> tuple[Counter[str], ...]:
    if isinstance(values, list | tuple):
        rows = [one if isinstance(one, list | tuple | np.ndarray) else [one] for one in values]
        return tuple(map(_of_entries, zip_longest(*rows)))
    arrow = getattr(values, "type", None)  # of a column of Arrow
    kinds = kinds_in(values) if arrow is None else (kind_of(arrow),)
    return tuple(
        Counter({_DECLARED[kind.name]: len(values)})
        if kind.name in _DECLARED
        else _of_entries(cells_of(values, place))
        for place, kind in enumerate(kinds or (OBJECTS,))
    )


def _of_entries(entries: Any) -> Counter[str]:
    """Return how many entries are of each kind, missing ones left out."""
    listed = entries.tolist() if isinstance(entries, np.ndarray) else entries
    plain = (one.item() if isinstance(one, np.generic) else one for one in listed)
    return Counter(_KINDS.get(type(one), "other") for one in plain if not is_missing(one))


def check_kinds(
    owner: str, held: Sequence[Held], kinds: tuple[Kind | None, Kind | None] | None
) -> None:
    """Refuse what is true, or said of it, if it is of another kind than it is compared with."""
    # `kinds` are those that parameters ask for; where there are none both must be alike.
    found = {name: _kinds_of([one[name] for one in held]) for name in held[0]} if held else {}
    asked = [None if kind is None else _DECLARED.get(kind.name) for kind in kinds or (None, None)]
    if kinds is None and found:
        asked[1] = next(iter(next(iter(found.values()))), None)
    for (name, columns), wanted in zip(found.items(), asked, strict=False):
        for kind in columns:
            if kind == "other" or (wanted is not None and kind != wanted):
                must = f"hold {_WORDS[wanted or 'number']}, as what it is compared with"
                remedy = f"Convert it first, as in {_CONVERSIONS[wanted or 'number'].format(name)}."
                raise TypeError(complaint(owner, name, must, _WORDS.get(kind, _OTHER), remedy))


def _kinds_of(parts: Sequence[tuple[Counter[str], ...]]) -> list[str]:
    """Return the kind of most entries of each column, of those where there is one."""
    columns = (sum(some, Counter()) for some in zip_longest(*parts, fillvalue=Counter()))
    return [
        kind
        for held in columns
        for kind, number in held.most_common(1)
        if 2 * number > held.total()
    ]
