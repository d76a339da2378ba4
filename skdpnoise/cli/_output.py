"""Tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdpnoise.reporting.sheet import Sheet

FORMATS = ("csv", "json")

# `skdpnoise.ledger.storage.MEMORY`, written again because --help waits for no import.
MEMORY = "memory"
NO_MEMORY = (
    "argument --storage: a ledger in memory ends with the command. Name a file or a database, such "
    "as sqlite:///budget.db."
)


def taken_by(function: Callable[..., Any], args: Namespace) -> dict[str, Any]:
    names = signature(function).parameters
    return {name: one for name, one in vars(args).items() if name in names and one is not None}


def print_json(value: Any) -> None:
    print(json.dumps(jsonable(value), indent=2, allow_nan=False))


def jsonable(value: Any) -> Any:
    """Return plain values: times as text in ISO 8601, null for what is missing or not finite."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "item"):  # a scalar of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]], *, title: str) -> None:
    """Print a table: by rich where it is installed, else in plain aligned text."""
    texts = [[_cell(value) for value in row] for row in rows]
    right = [all(map(_is_number, column)) for column in zip(*rows, strict=True)]
    right = right or [False] * len(headers)
    title = printable(title)
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print("\n".join([title, *_plain(headers, texts, right)]))
        return
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for header, numeric in zip(headers, right, strict=True):
        table.add_column(header, justify="right" if numeric else "left")
    for row in texts:
        table.add_row(*row)
    # A pipe or a file has no width of its own: let no cell be folded there. What people wrote is
    # shown as it is, not as markup.
    width = None if sys.stdout.isatty() else 200
    Console(markup=False, emoji=False, highlight=False, width=width).print(table)


def print_sheet(sheet: Sheet) -> None:
    from skdpnoise.sampling.words import SEEDED

    if not sheet.secure:
        print(SEEDED)
    print_table(sheet.head, sheet.rows, title=sheet.headline)
    for name, text in sheet.facts:
        print(printable(f"{name}: {text}"))


def printable(text: str) -> str:
    """Return a text in which nothing can move the cursor or change colours of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value))


def _plain(headers: Sequence[str], texts: list[list[str]], right: list[bool]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in (headers, ["-" * width for width in widths], *texts)
    ]
