"""Which loops over rows are used: numpy's, until compiled ones pay."""

from __future__ import annotations

from types import ModuleType

from skdpnoise.kernels import _plain_rows
from skdpnoise.kernels.sizes import INTERPRETED


class Kernels:
    """The choice between both, by the entries that one process has left to numpy."""

    def __init__(self) -> None:
        self.passed = 0

    def __call__(self, n_entries: int) -> ModuleType:
        """Return the functions of rows for so many entries more."""
        self.passed += n_entries
        if self.passed <= INTERPRETED:
            return _plain_rows
        from skdpnoise.kernels import _rows

        return _rows


kernels = Kernels()
