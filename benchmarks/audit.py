"""Audits: what every estimator claims, and what replays and thousands of fits find.

Each row is written to a file of its own as it is done, keyed by its configuration and the commit,
so that a run that was stopped goes on where it was. The last table is a peer with a known fault, in
an environment of its own, which `--peer` makes (diffprivlib needs scikit-learn 1.7).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks import _audit_peer
from benchmarks._audit_cases import Case, data_of, rows
from benchmarks._kept import kept, last_commit, place
from benchmarks._remembered import remembered
from benchmarks._report import add_common_arguments, machine, print_table, save_json
from skdpnoise.inspection import audit
from skdpnoise.inspection.auditing.report import verdict_of

FALSE_ALARM = 0.01  # of all tables together
# Rounds over all rows: fits on each of two data sets; the first round replays.
ROUNDS = (0, 2000)
FITS_OF_MANY = 10_000  # a last round over three rows
_QUICK = 0.02  # part of the fits that `--quick` makes
_EXTRA_ROWS = 1  # the peer's


def commit() -> str:
    """Return the last commit of what the figures depend on, marked if there are changes since."""
    return last_commit("skdpnoise", "benchmarks/audit.py", "benchmarks/_audit_cases.py")


def plan(quick: bool) -> list[tuple[Case, float, str, int]]:
    """Return what is run: replays of every row, then fits in rounds of more and more."""
    scale = _QUICK if quick else 1.0
    found = [
        (*one, round(scale * n_fits))
        for n_fits in ROUNDS
        for one in rows()
        if not n_fits or "black_box" in one[0].method
    ]
    many = [one for one in rows() if one[0].many and one[1:] == (1.0, "replace_one")]
    return found + [(*one, round(scale * FITS_OF_MANY)) for one in many]


def row_alarm(quick: bool) -> float:
    """Return the false alarm of one row of one round, whichever are run."""
    tested = [n_fits for *_, n_fits in plan(quick) if n_fits]  # a replay has no false alarm
    return FALSE_ALARM / (len(tested) + _EXTRA_ROWS)


def measure(
    case: Case, epsilon: float, adjacency: str, n_fits: int, alarm: float
) -> dict[str, Any]:
    """Return the report of one row of one round."""
    X, y = data_of(case)
    estimator = case.make(epsilon, adjacency)
    start = time.perf_counter()
    with warnings.catch_warnings(), case.context(), remembered():
        warnings.simplefilter("ignore")
        report = audit(
            estimator,
            X,
            y,
            method="black_box" if n_fits else "replay",
            n_fits=n_fits or ROUNDS[-1],
            n_replays=case.n_replays,
            false_alarm=alarm,
            random_state=0,
            **case.claims,
        )
    return {
        **report.to_dict(),
        "name": case.name,
        "broken": case.broken,
        "n_fits": n_fits,
        "seconds": time.perf_counter() - start,
    }


def run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield all rows, those that are known already from their files."""
    folder, version = Path(args.out) / "audit", commit()
    planned, alarm = plan(args.quick), row_alarm(args.quick)
    unknown = []
    for number, row in enumerate(planned, 1):
        case, epsilon, adjacency, n_fits = row
        if args.only and not any(text in case.name for text in args.only):
            continue
        if args.replays and n_fits:
            continue
        key = {
            "name": case.name,
            "epsilon": epsilon,
            "adjacency": adjacency,
            "n_fits": n_fits,
            "row_alarm": alarm,
            "commit": version,
        }
        if place(folder, key).exists():
            yield json.loads(place(folder, key).read_text())
        elif not args.known:
            title = f"{number}/{len(planned)}"
            unknown.append(delayed(_measured)(title, folder, key, row))
    yield from Parallel(args.workers, return_as="generator_unordered", batch_size=1)(unknown)


def _measured(
    title: str, folder: Path, key: dict[str, Any], row: tuple[Case, float, str, int]
) -> Any:
    """Measure one row, say so, and keep it in a file."""
    case, epsilon, adjacency, n_fits = row
    what = f"{n_fits} fits" if n_fits else "replays"
    print(f"{title} {case.name}, epsilon={epsilon:g}, {adjacency}: {what}", flush=True)
    return kept(folder, key, lambda: {**measure(*row, key["row_alarm"]), "machine": machine()})


def merged(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one record for each row: its replay, the most fits; refuted if any round refutes."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(records, key=lambda row: row["n_fits"]):
        key = row["name"], row["epsilon"], row["adjacency"]
        known = best.get(key, {"results": [], "passed": True, "refuted": False, "seconds": 0.0})
        methods = {result["method"]: result for result in [*known["results"], *row["results"]]}
        best[key] = {
            **row,
            "results": list(methods.values()),
            "passed": row["passed"] and known["passed"],
            "refuted": row["refuted"] or known["refuted"],
            "seconds": row.get("seconds", 0.0) + known["seconds"],
        }
    names = ((case.name, epsilon, adjacency) for case, epsilon, adjacency in rows())
    order = {name: number for number, name in enumerate(names)}
    return sorted(
        best.values(),
        key=lambda row: order.get((row["name"], row["epsilon"], row["adjacency"]), len(order)),
    )


def summary(row: dict[str, Any]) -> list[Any]:
    """Return a line of the table: claimed beside found."""
    results = {result["method"]: result for result in row["results"]}
    replayed, box = results.get("replay", {}), results.get("black_box", {})
    problems = replayed.get("problems", [])
    told = replayed.get("epsilon")
    if problems:
        told = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return [
        row["name"],
        row["adjacency"],
        row["epsilon"],
        told,
        box.get("epsilon"),
        box.get("most_epsilon"),
        box.get("claimed_mu"),
        box.get("mu"),
        box.get("n_fits"),
        verdict_of(passed=row["passed"], refuted=row["refuted"]),
    ]


HEADERS = (
    "estimator",
    "neighbours",
    "claimed",
    "replay uses",
    "found >=",
    "most",
    "claimed mu",
    "mu >=",
    "fits",
    "verdict",
)


def show(records: Sequence[dict[str, Any]]) -> None:
    """Print the tables."""
    for title, broken in (("Sound estimators", False), ("Broken twins and a peer", True)):
        lines = [summary(row) for row in records if row["broken"] is broken]
        if lines:
            print_table(HEADERS, lines, title=title)
    print(
        f"A sound estimator is refuted somewhere in these tables with probability {FALSE_ALARM:g}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Audit; 1 if a sound estimator was refuted or a broken one was not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks audit", description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows whose name has this text")
    parser.add_argument("--replays", action="store_true", help="replays only")
    parser.add_argument("--known", action="store_true", help="show what is known; run nothing")
    parser.add_argument("--peer", action="store_true", help="make the peer's environment, run it")
    parser.add_argument(
        "--peer-python", type=Path, metavar="FILE", help="a Python that has diffprivlib already"
    )
    parser.add_argument("--workers", type=int, default=1, help="rows at a time (default: 1)")
    args = parser.parse_args(argv)
    records = list(run(args))
    if args.peer or args.peer_python:
        n_fits, alarm = 100 if args.quick else ROUNDS[-1], row_alarm(args.quick)
        records.append(_audit_peer.row(args.peer_python, n_fits, alarm, commit()))
    records = merged(records)
    show(records)
    save_json(
        args.out,
        "audit",
        {"commit": commit(), "false_alarm": FALSE_ALARM, "rows": records},
    )
    # A broken twin may need more than the replays, or the fits, that are there yet.
    wrong = [row["name"] for row in records if not row["broken"] and not row["passed"]]
    if not (args.replays or args.only or args.quick or args.known):
        wrong += [row["name"] for row in records if row["broken"] and row["passed"]]
    if wrong:
        print(f"not as they should be: {', '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong))
