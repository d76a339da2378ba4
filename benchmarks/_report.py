"""What all benchmarks share: common options, a table on the screen, a JSON file with versions."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DEFAULT_OUT = ROOT / "benchmarks" / "results"
_MEASURED_WITH = ("skdpnoise", "numpy", "scipy", "scikit-learn", "numba")


def add_common_arguments(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add ``--data-dir``, ``--out`` and ``--quick``, the options that every benchmark takes.

    Hand ``args.data_dir`` to the loaders as ``data_home``; it is None when the option is not
    given, and the loaders then read the environment variable ``SKDPNOISE_DATA`` themselves.

    Parameters
    ----------
    parser : argparse.ArgumentParser

    Returns
    -------
    argparse.ArgumentParser
        The same parser.
    """
    parser.add_argument(
        "--data-dir",
        type=_existing_folder,
        help="folder with cal_housing.data.gz and elecNormNew.arff.gz "
        "(default: the environment variable SKDPNOISE_DATA, else a download)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=DEFAULT_OUT,
        help="folder for JSON and PNG files (default: benchmarks/results)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small run that shows that everything works"
    )
    return parser


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str | None = None,
) -> None:
    """Print rows under headers: by rich when it is installed, else in plain aligned text.

    Parameters
    ----------
    headers : sequence of str of length n_columns
    rows : sequence of sequences of length n_columns
        Floats are shown with four significant digits, None as a dash; anything else by ``str``.
    title : str, default=None
        Printed above the table.
    """
    texts = [[_cell(value) for value in row] for row in rows]
    if any(len(row) != len(headers) for row in texts):
        raise ValueError(f"every row must have {len(headers)} cells, one for each header.")
    numeric = [
        all(_is_number(row[column]) for row in rows) and bool(rows)
        for column in range(len(headers))
    ]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(_plain_table(headers, texts, numeric, title))
        return
    table = Table(title=title, title_justify="left")
    for header, right in zip(headers, numeric, strict=True):
        table.add_column(header, justify="right" if right else "left")
    for row in texts:
        table.add_row(*row)
    # A pipe or a log file has no width of its own: let no cell be folded there.
    console = Console(markup=False, width=None if sys.stdout.isatty() else 200)
    console.print(table)


def save_json(out_dir: str | Path, name: str, payload: Mapping[str, Any]) -> Path:
    """Write ``payload`` with time, commit, versions and machine to ``out_dir/name.json``.

    Parameters
    ----------
    out_dir : str or Path
        Made when it does not exist.
    name : str
        Name of the benchmark, without an ending.
    payload : mapping
        Numbers, strings, lists and mappings; numpy scalars and arrays are converted.
        Non-finite numbers are stored as null.

    Returns
    -------
    Path
        The file written.
    """
    path = Path(out_dir) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        **payload,
    }
    path.write_text(json.dumps(_jsonable(record), indent=2, allow_nan=False) + "\n")
    print(f"saved {path}")
    return path


def commit() -> str:
    """Return the commit of this checkout, marked if there are changes since."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "git is not installed"
    return done.stdout.strip() or "not a git checkout"


def machine() -> dict[str, Any]:
    """Versions and hardware that a measured number depends on."""
    versions = {}
    for package in _MEASURED_WITH:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        **versions,
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def _existing_folder(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return path


def _is_number(value: object) -> bool:
    return value is None or (
        isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _plain_table(
    headers: Sequence[str],
    texts: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    title: str | None,
) -> str:
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]

    def line(cells: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(aligned).rstrip()

    rule = "  ".join("-" * width for width in widths)
    lines = [line(headers), rule, *map(line, texts)]
    return "\n".join([title, *lines] if title else lines)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _jsonable(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return _jsonable(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
