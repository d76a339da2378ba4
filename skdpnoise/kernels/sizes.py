"""Sizes of blocks, and what is worth a thread: they decide times and memory, and no result."""

from __future__ import annotations

TILE = 1 << 15  # entries that fit the second-level cache
BLOCK = 1 << 19  # entries that fit the last-level cache
FEWEST_ROWS, MOST_ROWS = 128, 8192  # of either
PER_THREAD = 1 << 17  # rows, or entries: handing fewer to a thread costs more than it saves
LARGE_FILE = 1 << 26  # bytes, from which what is mapped into memory is not copied


def rows_at_once(n_columns: int, entries: int = TILE) -> int:
    return min(MOST_ROWS, max(FEWEST_ROWS, entries // max(n_columns, 1)))
