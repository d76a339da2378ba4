"""Results that are written to a file each as they are done, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._report import ROOT


def last_commit(*paths: str) -> str:
    """Return the last commit that touched the paths, marked if there are changes since."""
    found = _git("log", "-1", "--format=%H", "--", *paths)
    return f"{found}+changes" if _git("status", "--porcelain", "--", *paths) else found


def place(folder: Path, key: dict[str, Any]) -> Path:
    """Return the file of what is measured under this key."""
    text = json.dumps(key, sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def kept(folder: Path, key: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> Any:
    """Return what was measured under this key, from its file if there is one, else by measuring."""
    folder.mkdir(parents=True, exist_ok=True)
    path = place(folder, key)
    if not path.exists():
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({**key, **measure()}, indent=1))
        os.replace(partial, path)
    return json.loads(path.read_text())


def _git(*args: str) -> str:
    answer = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()
