"""Every table and figure of the i.n.i.d. and flipped Huber papers, with ours beside them.

A printed reference agrees if ours gives its digits, rounded or cut (the verdict says which); a
closed form agrees to the relative tolerance that the JSON file states; claims are yes or no.
Laplace noise is pure unless said to be tight, which means the exact loss of the composition.
Calibrated scales are rounded to the safe side, by about one part in a million.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmarks import _paper_joint, _paper_noises, _paper_profiles
from benchmarks._paper_checks import Check, Section
from benchmarks._paper_plots import save_plots
from benchmarks._report import add_common_arguments, print_table, save_json


def sections(base: float, quick: bool) -> list[Callable[[], Section]]:
    """Return what makes each section."""
    return [
        lambda: _paper_profiles.errors(base, quick),
        lambda: _paper_profiles.reductions(base),
        lambda: _paper_profiles.families(base, quick),
        _paper_noises.plane,
        lambda: _paper_noises.flipped_huber(quick),
        lambda: _paper_noises.tight_laplace(quick),
        _paper_joint.capping,
        lambda: _paper_joint.correlated(quick),
        _paper_joint.closed_forms,
    ]


def show(section: Section) -> None:
    """Print a section."""
    print(f"\n{section.title}")
    for title, headers, rows in section.tables:
        print_table(headers, rows, title=title)
    shown = section.checks if section.shown is None else section.shown
    if shown:
        rows = [_row(check) for check in shown]
        print_table(["item", "reference", "ours", "difference", "agrees"], rows)
    print(f"{section.n_agree} of {len(section.checks)} agree")
    if section.shown is not None:
        for check in section.checks:
            if not check.agrees:
                print("  does not agree: " + "  ".join(map(str, _row(check))))


def _row(check: Check) -> list[object]:
    difference = None if check.difference is None else f"{check.difference:+.2g}"
    return [
        check.item,
        check.reference,
        f"{check.ours:.9g}",
        difference,
        check.verdict,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; always return 0: the JSON file holds the verdicts."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_arguments(parser)
    parser.add_argument(
        "--base",
        type=float,
        default=2.0,
        help="base of the exponential profile, greater than 1 (default: 2)",
    )
    args = parser.parse_args(argv)
    if not 1.0 < args.base <= 1e3:
        parser.error("--base must be greater than 1 and at most 1000")

    started = time.perf_counter()
    results = []
    for make in sections(args.base, args.quick):
        begun = time.perf_counter()
        section = make()
        show(section)
        print(f"{time.perf_counter() - begun:.1f} s", flush=True)
        results.append(section)
    seconds = time.perf_counter() - started
    checks = [check for section in results for check in section.checks]
    n_agree = sum(check.agrees for check in checks)
    print(f"\n{n_agree} of {len(checks)} agree; {seconds:.0f} s")
    for check in checks:
        if not check.agrees:
            print(f"  does not: {check.item}: {check.reference}, ours {check.ours:.6g}")
    save_json(
        args.out,
        "paper",
        {
            "protocol": __doc__,
            "quick": args.quick,
            "base": args.base,
            "seconds": seconds,
            "n_checks": len(checks),
            "n_agree": n_agree,
            "sections": {
                section.name: {
                    "title": section.title,
                    "checks": [asdict(check) for check in section.checks],
                    "tables": [
                        {"title": title, "headers": headers, "rows": rows}
                        for title, headers, rows in section.tables
                    ],
                    "curves": section.curves,
                }
                for section in results
            },
        },
    )
    save_plots(args.out, {section.name: section.curves for section in results})
    return 0
