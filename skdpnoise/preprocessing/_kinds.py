"""The kinds that the columns of a table have by its schema, and after the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdpnoise.data.fitted_kinds import NUMBER, kind_of_labels
from skdpnoise.data.kinds import Kind
from skdpnoise.preprocessing._blocks import ColumnBlock
from skdpnoise.preprocessing._schema import as_words

__all__ = ["fitted_kind", "kinds_by_schema"]


def kinds_by_schema(
    schema: Mapping[str, Any] | None, names: Sequence[Any], kinds: Sequence[Kind]
) -> list[Kind | None]:
    """Return the kinds that a schema asks of columns; None where any will do."""
    entries = schema or {}
    names = [name if isinstance(name, str) else f"x{name}" for name in names]
    return [_asked(entries.get(name), kind) for name, kind in zip(names, kinds, strict=True)]


def fitted_kind(block: ColumnBlock, kind: Kind) -> Kind | None:
    """Return the kind that a column must have after the fit, of its kind in the fit."""
    what = block.column.kind
    if what == "number":
        return kind if kind.name == "boolean" else NUMBER
    if what == "date":
        return _dates(kind)
    if what == "drop":
        return None
    if block.column.buckets and kind.name == "objects":  # of which only text is hashed
        return Kind("text")
    return kind if block.column.buckets else kind_of_labels(block.categories)


def _dates(kind: Kind) -> Kind:
    # Objects do not declare whether they have a time of day.
    return kind if kind.name == "date" else Kind("date", days=True)


def _asked(entry: Any, kind: Kind) -> Kind | None:
    words = as_words(entry)
    what = words.get("kind")
    if what == "number":
        return NUMBER
    if what == "date":
        return _dates(kind)
    listed = words.get("categories")
    if what not in ("category", "ordinal") or not isinstance(listed, list | tuple | np.ndarray):
        return None
    return kind_of_labels(listed.tolist() if isinstance(listed, np.ndarray) else listed)
