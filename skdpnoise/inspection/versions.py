"""Installed versions, for whoever reports a fault."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

__all__ = ["show_versions"]


def show_versions() -> None:
    """Print the versions of everything that a fit may depend on.

    To be pasted into a report of a fault. It names no folder, no machine and no user.

    Examples
    --------
    >>> import skdpnoise
    >>> skdpnoise.show_versions()
    skdpnoise: ...
    python: ...
    system: ...
    <BLANKLINE>
    numpy: ...
    """
    print(f"skdpnoise: {_version('skdpnoise')}")
    print(f"python: {platform.python_version()} ({platform.python_implementation()})")
    print(f"system: {platform.system()}, {platform.machine()}\n")
    for name in _dependencies():
        print(f"{name}: {_version(name)}")


def _dependencies() -> Iterator[str]:
    """Yield the names of what is required, and then of what extras for users may add."""
    seen = {"skdpnoise"}
    for line in sorted(requires("skdpnoise") or (), key=lambda line: "extra ==" in line):
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        extra = re.search(r"extra == .(\w+)", line)
        if name not in seen and (extra is None or extra[1] not in ("test", "docs", "all")):
            seen.add(name)
            yield name


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
