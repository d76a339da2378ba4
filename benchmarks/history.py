"""Keep the ratios of a run of `speed` beside those of earlier commits, and draw them.

Nanoseconds of two machines cannot be compared. Ratios of times within one run can, with care: a
point of the picture shows which machine it was measured on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._history_plot import save_plot
from benchmarks._report import ROOT, add_common_arguments, print_table

KEPT = ROOT / "benchmarks" / "history" / "speed.json"
RATIOS = ("private / plain", "numpy / private", "1 thread / 2 threads", "extra memory / X")
_LEAST_ROWS = 1_000_000  # a shorter run fits in caches, and its ratios are others

Point = dict[str, Any]


def point_of(run: Mapping[str, Any]) -> Point:
    """Return what is kept of a run: its ratios, and where and on which commit they were measured.

    Beside the ratios of passes these are the figures, and bars, of all other parts. A run that
    shows nothing of a commit is refused: one of changed files, or a short one.
    """
    if run.get("benchmark") != "speed":
        raise ValueError("the file is not a run of `python -m benchmarks speed`.")
    commit = run["commit"]
    if commit.endswith("-dirty") or " " in commit:
        raise ValueError(
            f"the run was made on {commit!r}, which nobody can check out. Commit, and run "
            "`python -m benchmarks speed` again."
        )
    if run["n"] < _LEAST_ROWS:
        raise ValueError(
            f"the run has {run['n']:,} rows, too few to compare. Run `python -m benchmarks speed` "
            "without --quick."
        )
    return {
        **{name: run[name] for name in ("commit", "date", "n", "p", "bars")},
        # Which build of a system it was is nothing to compare.
        "machine": {name: fact for name, fact in run["machine"].items() if name != "platform"},
        "ratios": {_label(r): {name: r[name] for name in RATIOS} for r in run["results"]},
        "parts": run["parts"],
    }


def appended(kept: Sequence[Point], point: Point) -> list[Point]:
    """Return the kept points with one more, in order of date; a point is kept once."""
    others = [one for one in kept if one["date"] != point["date"]]
    return sorted([*others, point], key=lambda one: str(one["date"]))


def main(argv: Sequence[str] | None = None) -> int:
    """Append the last run of ``speed`` to the history, print it, and draw ``history.png``."""
    args = _parser().parse_args(argv)
    points: list[Point] = json.loads(args.history.read_text(encoding="utf-8"))
    if not args.quick:
        run = args.out / "speed.json"
        if not run.exists():
            print(f"there is no {run}: run `python -m benchmarks speed` first", file=sys.stderr)
            return 1
        try:
            point = point_of(json.loads(run.read_text(encoding="utf-8")))
        except ValueError as error:
            print(f"{run} is not kept: {error}", file=sys.stderr)
            return 1
        points = appended(points, point)
        text = json.dumps(points, indent=1, ensure_ascii=False, allow_nan=False)
        args.history.write_text(text + "\n", encoding="utf-8")
        print(f"kept in {args.history}: {len(points)} points; commit this file")
    if not points:
        print("nothing is kept yet", file=sys.stderr)
        return 0
    print_table(
        ["date", "commit", "machine", "ratio", "least", "greatest"],
        [
            [point["date"][:10], point["commit"], machine_of(point), name, min(values), max(values)]
            for point in points
            for name, values in _by_ratio(point).items()
        ],
        title="Ratios of every kept run, over losses, types and standardisation",
    )
    print_table(
        ["part", "what", "figure", "bar"],
        [
            [part, what, figure, bar]
            for part, figures in points[-1]["parts"].items()
            for what, (figure, bar) in figures.items()
        ],
        title="The other parts of the last kept run",
    )
    args.out.mkdir(parents=True, exist_ok=True)
    save_plot(args.out / "history.png", points, RATIOS, [machine_of(point) for point in points])
    return 0


def machine_of(point: Point) -> str:
    """Return the hardware of a point in a few words."""
    machine = point["machine"]
    return f"{machine['processor']}, {machine['cores']} cores"


def _by_ratio(point: Point) -> dict[str, list[float]]:
    """Every ratio of a point, over its cases."""
    return {name: [case[name] for case in point["ratios"].values()] for name in RATIOS}


def _label(result: Mapping[str, Any]) -> str:
    standardised = ", standardised" if result["standardised"] else ""
    return f"{result['loss']}, {result['dtype']}{standardised}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks history",
        description="Append OUT/speed.json, the last run of `python -m benchmarks speed`, to the "
        "kept history, and draw all of it as OUT/history.png. With --quick only draw.",
    )
    add_common_arguments(parser)
    parser.add_argument(
        "--history",
        type=Path,
        default=KEPT,
        help="file with the kept points (default: benchmarks/history/speed.json)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
