"""The command that audits an estimator."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdpnoise.cli._estimators import load_estimator
from skdpnoise.cli._files import path_of
from skdpnoise.cli._output import print_json, print_table

if TYPE_CHECKING:
    from skdpnoise.inspection import AuditReport

__all__ = ["METHODS", "add_arguments", "run"]

METHODS = ("replay", "black_box", "one_run")
_HEADERS = ("method", "claimed epsilon", "found", "most it could show", "verdict")
_ENDING = """
The estimator is made by a function without arguments, or a class, of a module that Python can
import; the current folder is searched first. Its code runs on this machine: name nothing that you
do not trust. (Pickles are not read: opening one runs code too, that nobody sees.) The table is a
CSV file with a header, numbers only but for the target. The report is not private unless the table
is public. The command ends with 1 if something was found against the claim.
"""


def add_arguments(commands: Any) -> None:
    parser: ArgumentParser = commands.add_parser(
        "audit",
        help="what an estimator claims, beside what replays and many fits find",
        description="Audit what an estimator claims.",
        epilog=_ENDING,
    )
    parser.add_argument("estimator", metavar="MODULE:FACTORY", help="what makes the estimator")
    parser.add_argument(
        "--data", type=path_of, required=True, metavar="FILE", help="a table of public records, CSV"
    )
    parser.add_argument("--target", metavar="COLUMN", help="column of the target or labels")
    parser.add_argument(
        "--method", nargs="+", choices=METHODS, default="auto", help="default: what applies"
    )
    parser.add_argument("--n-fits", type=int, default=1000, help="on each of two data sets")
    parser.add_argument("--n-canaries", type=int, default=1000, help="of the one run")
    parser.add_argument("--epsilon", type=float, help="claimed, if the estimator does not say")
    parser.add_argument("--delta", type=float, help="claimed, if the estimator does not say")
    parser.add_argument(
        "--adjacency",
        choices=["replace_one", "add_remove"],
        help="which data sets are neighbours, if the estimator does not say",
    )
    parser.add_argument(
        "--false-alarm", type=float, default=1e-3, help="that a sound estimator is refuted"
    )
    parser.add_argument(
        "--seed", type=int, dest="random_state", metavar="SEED", help="of everything"
    )
    parser.add_argument("--n-jobs", type=int, help="processes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=("_audit", "run"), parser=parser)


def run(args: Namespace) -> int:
    """Audit, and print the report; 1 if the claim was refuted, or a declaration is broken."""
    from skdpnoise.inspection import audit

    estimator = load_estimator(args.estimator)
    X, y = _read(args.data, args.target)
    names = ("method", "epsilon", "delta", "adjacency", "n_fits", "n_canaries", "false_alarm")
    options = {name: getattr(args, name) for name in (*names, "random_state", "n_jobs")}
    progress = sys.stderr.isatty() and not args.json
    report = audit(estimator, X, y, progress=progress, **options)
    if args.json:
        print_json(report.to_dict())
    else:
        _show(report)
    return 0 if report.passed else 1


def _read(path: Path, target: str | None) -> tuple[Any, Any]:
    from skdpnoise._utils.checks import pandas_for

    table = pandas_for("skdpnoise audit").read_csv(path)
    y = None
    if target is not None:
        if target not in table.columns:
            raise ValueError(f"the table has no column {target!r} for --target.")
        y = table.pop(target).to_numpy()
    other = [name for name, kind in table.dtypes.items() if kind.kind not in "iufb"]
    if other:
        raise ValueError(f"these columns are not numbers: {', '.join(map(repr, other))}.")
    return table.to_numpy(dtype=float), y


def _show(report: AuditReport) -> None:
    from skdpnoise.inspection.auditing.report import verdict_of

    rows = [
        (
            result.method,
            f"{report.claim.epsilon:g}",
            result.found,
            result.most or "no limit",
            verdict_of(passed=result.passed, refuted=result.refuted),
        )
        for result in report.results
    ]
    title, *lines = str(report).splitlines()
    print_table(_HEADERS, rows, title=title)
    for line in lines:
        if not line.startswith(tuple(f"  {result.method}:" for result in report.results)):
            print(line.strip())
