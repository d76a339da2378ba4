"""Compiled sources, and a cache of numba that ends with any change of them."""

from __future__ import annotations

import hashlib
import re
import shutil
from importlib.metadata import version
from pathlib import Path

_MAKES_KERNELS = re.compile(r"^ *from (numba|skdpnoise\.sampling\.kernels) import", re.MULTILINE)
_TAKEN = re.compile(r"^ *from (skdpnoise[\w.]*) import", re.MULTILINE)


def compiled_sources(root: Path) -> list[Path]:
    """Return the files that compiled code may hold something of: loops, and what they import.

    numba's cache of a loop knows the date of the loop's own file alone: not that a function or a
    constant has changed that the loop took from another file.
    """
    paths = sorted((root / "skdpnoise").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    kernels = {path for path, text in texts.items() if _MAKES_KERNELS.search(text)}
    taken = {name for path in kernels for name in _TAKEN.findall(texts[path])}
    return sorted(
        kernels | {root / f"{name.replace('.', '/')}.py" for name in taken} & texts.keys()
    )


def cache_folder(root: Path, process: str) -> Path:
    """Return the folder of one process for what is compiled of these files as they are now.

    What it has compiled of other texts is removed.
    """
    digest = hashlib.sha256()
    for path in compiled_sources(root):
        digest.update(path.read_bytes())
    folder = root / "skdpnoise" / "__pycache__"
    begin = f"numba-{version('numba')}-{process}-"
    mine = folder / f"{begin}{digest.hexdigest()[:16]}"
    for other in folder.glob(f"{begin}*"):
        if other != mine:
            shutil.rmtree(other, ignore_errors=True)
    return mine
