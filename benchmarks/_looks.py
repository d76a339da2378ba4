"""How methods look in pictures: as in those of the examples."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

METHODS: dict[str, dict[str, Any]] = run_path(
    str(Path(__file__).resolve().parents[1] / "examples" / "_style.py")
)["METHODS"]
