"""Sizes of blocks, and what is worth a thread: they decide times and memory, and no result."""

from __future__ import annotations

from collections.abc import Iterator

TILE = 1 << 15  # entries that fit the second-level cache
BLOCK = 1 << 19  # entries that fit the last-level cache
FEWEST_ROWS, MOST_ROWS = 128, 8192  # of either
PER_THREAD = 1 << 17  # rows, or entries: handing fewer to a thread costs more than it saves
# Entries that numpy gets before compiled loops are loaded: a second is lost by them, which is more
# than it takes to load loops that were compiled before, and less than to compile them.
INTERPRETED = 1 << 25
LARGE_FILE = 1 << 26  # bytes, from which what is mapped into memory is not copied


def rows_at_once(n_columns: int, entries: int = TILE) -> int:
    return min(MOST_ROWS, max(FEWEST_ROWS, entries // max(n_columns, 1)))


def in_blocks(n_rows: int) -> Iterator[slice]:
    """Yield the places of some rows at a time; of no rows, an empty slice."""
    for begin in range(0, max(n_rows, 1), MOST_ROWS):
        yield slice(begin, begin + MOST_ROWS)
