"""The command line: ``skdpnoise ledger create|show|history|export``."""

from skdpnoise.cli._main import main

__all__ = ["main"]
