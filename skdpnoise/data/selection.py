"""Sources of some of the rows: those that secret coins chose, for fits that read them anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from skdpnoise.data.partitions import Choose, Keep, RowMask, kept_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowSelection:
    """Which rows of each part are left."""

    counts: tuple[int, ...]  # rows of each part that are
    first: tuple[int, ...]  # number of the first row of each part, of all rows
    first_kept: tuple[int, ...]  # the same, of the rows that are kept of groups
    keep: Keep | None
    choose: Choose | None
    labels: Any  # of groups: a RowSource, or None

    @classmethod
    def of(cls, rows: Any, labels: Any) -> RowSelection:
        """Return the selection that choices left of rows that were scanned."""
        first, kept = (tuple(accumulate(n, initial=0)) for n in (rows.n_rows, rows.n_kept))
        return cls(rows.n_taken, first, kept, rows.keep, rows.choose, labels)

    def mask(self, part: int, labels: Sequence[Any]) -> RowMask:
        kept = None if self.keep is None else kept_of(self.keep, labels, self.first[part])
        return RowMask(kept, self.choose, self.first_kept[part])


def selected_rows(sources: dict[str, Any], rows: Any) -> dict[str, Any]:
    selection = RowSelection.of(rows, sources.get("groups"))
    readers: dict[int, Any] = {}  # columns of one source are those of one source again
    found = {}
    for name, source in sources.items():
        reader = source.reader
        if id(reader) not in readers:
            readers[id(reader)] = reader.sifted(selection)
        found[name] = type(source)(readers[id(reader)], source.taking, source.tail)
    return found
