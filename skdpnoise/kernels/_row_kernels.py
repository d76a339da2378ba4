"""Which loops over rows are used: numpy's, until compiled ones pay."""

from __future__ import annotations

from types import ModuleType

from skdpnoise.kernels import _plain_rows

# Entries that a process leaves to numpy, in all: at 35 ns each it loses a second by them, more than
# it takes to load loops that were compiled before, and less than to compile them.
_PLAIN_ENTRIES = 1 << 25


class Kernels:
    """The choice between both, by the entries that one process has left to numpy."""

    def __init__(self) -> None:
        self.passed = 0

    def __call__(self, n_entries: int) -> ModuleType:
        """Return the functions of rows for so many entries more."""
        self.passed += n_entries
        if self.passed <= _PLAIN_ENTRIES:
            return _plain_rows
        from skdpnoise.kernels import _rows

        return _rows


kernels = Kernels()
