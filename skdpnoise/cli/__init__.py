"""The command line: ``skdpnoise ledger``, ``skdpnoise audit`` and ``skdpnoise plan``."""

from skdpnoise.cli._main import main

__all__ = ["main"]
