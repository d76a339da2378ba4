"""How much is read and held at once: it decides times and memory, and no result."""

from __future__ import annotations

BATCH, FEWEST_ROWS = 1 << 19, 1 << 10  # entries that fit the last-level cache, and rows at least
HELD = 1 << 21  # numbers, of rows or columns, that are held beside a table: 16 megabytes
BUFFER = 1 << 16  # bytes that are read from a file, or kept in memory and not in a file
KEPT = 4  # of what was looked up last, for the next one
SUMS = 16  # of parts, that wait to be added for each job
FEW_COLUMNS = 4  # as much as it takes a thread to be handed a batch; and of which a copy is small
