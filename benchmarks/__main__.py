"""Run one benchmark: ``python -m benchmarks NAME [options]``."""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

_FOLDER = Path(__file__).parent


def discover(folder: Path = _FOLDER) -> dict[str, str]:
    """Name and first docstring line of every benchmark in ``folder``, without importing any."""
    summaries = {}
    for path in sorted(folder.glob("[!_]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        summaries[path.stem] = text.partition("\n")[0]
    return summaries


def main(argv: Sequence[str] | None = None) -> int:
    """Hand the options after the name to ``main(argv)`` of that benchmark."""
    summaries = discover()
    width = max(map(len, summaries), default=0)
    listing = "\n".join(f"  {name:<{width}}  {line}" for name, line in summaries.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run one benchmark; it prints a table and saves a JSON file.",
        epilog=f"benchmarks:\n{listing}\n\n"
        "`python -m benchmarks NAME --help` lists the options of one benchmark.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=list(summaries), metavar="NAME", help="which benchmark")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="handed to the benchmark")
    args = parser.parse_args(argv)
    # Benchmarks can be repeated: they set seeds, and run on public data.
    warnings.filterwarnings("ignore", "NOT PRIVATE")
    benchmark = importlib.import_module(f"benchmarks.{args.name}")
    return benchmark.main(args.options) or 0


if __name__ == "__main__":
    sys.exit(main())
