"""Results that are written to a file each as they are done, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from joblib import Memory

from benchmarks._report import ROOT

F = TypeVar("F", bound=Callable[..., Any])


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


def resumed(out: Path, function: F, *, ignore: Sequence[str] = ()) -> F:
    """Return the function with its results kept on disk, so that a stopped run goes on.

    Results are those of one commit of the package and the benchmarks; where files have changed
    since, nothing is kept. Parameters to be ignored change nothing, such as a pool of workers.
    """
    version = last_commit("skdpnoise", "benchmarks")
    if not version or version.endswith("+changes"):
        return function
    memory = Memory(out / "kept" / version[:12], verbose=0)
    return cast(F, memory.cache(function, ignore=list(ignore)))


def _git(*args: str) -> str:
    answer = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()
