"""Files that changed, and the heavy checks that they ask for.

`changed.py targets` prints targets of the Makefile: all of them, or, where SKDPNOISE_GREEN names a
commit that is known to be good, those that the changes since ask for. `changed.py files` prints the
files that changed since that commit, else since the branch left `main`, else since the parent of
the last commit. Where git cannot say, as in a shallow clone, everything is taken as changed.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from oldest import TESTS

ROOT = Path(__file__).resolve().parents[1]
GREEN = "SKDPNOISE_GREEN"
ALL = ("Makefile", "pyproject.toml", ".ci/run", ".ci/changed.py", ".ci/oldest.py")
# Each target with the folders and files whose change asks for it, in the order in which they run.
TARGETS = {
    "test-docs": ("docs/", "examples/", "skdpnoise/", "tests/site/", "tests/_browser.py"),
    "dist": ("README.md", "MANIFEST.in", "skdpnoise/"),
    "test-oldest": ("skdpnoise/", "tests/_", "conftest.py", *(f"{name}/" for name in TESTS)),
    "test-torch": ("skdpnoise/", "tests/neural_network/", "conftest.py"),
    "mutants": ("skdpnoise/", "tests/", "benchmarks/mutants"),
}


def due(files: Iterable[str] | None) -> list[str]:
    """Return the targets that these files ask for; all of them where the files are not known."""
    if files is None:
        return list(TARGETS)
    names = list(files)
    return [
        target
        for target, places in TARGETS.items()
        if any(name.startswith((*places, *ALL)) for name in names)
    ]


def changed(root: Path = ROOT) -> list[str] | None:
    """Return the files that differ from the good commit, also uncommitted ones; None for any."""
    base = _good(root)
    if base is None:
        return None
    listed = _git(root, "diff", "--name-only", "--no-renames", "-z", base)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if listed is None or new is None:
        return None
    return sorted({name for name in (listed + new).split("\0") if name})


def _good(root: Path) -> str | None:
    if named := os.environ.get(GREEN):
        return _git(root, "rev-parse", "--quiet", "--verify", f"{named}^{{commit}}")
    head = _git(root, "rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        base = _git(root, "merge-base", "HEAD", main)
        if base and base != head:
            return base
    return _git(root, "rev-parse", "--quiet", "--verify", "HEAD~1")


def _git(root: Path, *words: str) -> str | None:
    """Return what git says, or None where it does not know, or is not there."""
    try:
        answer = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return answer.stdout.strip("\n") if answer.returncode == 0 else None


if __name__ == "__main__":
    if sys.argv[1] == "targets":
        words = due(changed() if os.environ.get(GREEN) else None)
    else:
        words = changed() or ["."]
    # No newline: Windows would end the last word with a carriage return.
    print(*words, end="")
