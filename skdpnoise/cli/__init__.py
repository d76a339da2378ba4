"""The command line: ``skdpnoise ledger``, ``skdpnoise audit`` and ``skdpnoise plan``."""

from skdpnoise.cli._main import main
from skdpnoise.cli._versions import show_versions

__all__ = ["main", "show_versions"]
