"""Which loops over rows are used: numpy's, until compiled ones pay."""

from __future__ import annotations

from types import ModuleType

from skdpnoise.kernels import _plain_rows

# Entries that a process leaves to numpy, in all: at 35 ns each it loses a second by them, more than
# it takes to load loops that were compiled before, and less than to compile them.
_PLAIN_ENTRIES = 1 << 25
_passed = {"entries": 0}


def kernels(n_entries: int) -> ModuleType:
    """Return the functions of rows for so many entries more."""
    _passed["entries"] += n_entries
    if _passed["entries"] <= _PLAIN_ENTRIES:
        return _plain_rows
    from skdpnoise.kernels import _rows

    return _rows
