"""Peers side by side: scores over epsilon, bounds, adjacency, times and scikit-learn's checks.

Each peer runs in an environment of its own with pinned versions, which is made on the first run.
All get the same rows: 80/20 splits, for Adult the published division. Noise is fresh in every fit.
`--keep` keeps the figures in benchmarks/history/peers.json, with `--only` beside those of the
others, and writes docs/evidence/peers.md and the picture from them; `--page` does this again
without measuring.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks._kept import kept, last_commit
from benchmarks._peer_runs import MORE_CLASSES, REGRESSION, TWO_CLASSES
from benchmarks._peers_page import METHODS, OURS, page, score_rows
from benchmarks._peers_plot import save_plot
from benchmarks._report import ROOT, add_common_arguments, print_table, save_json
from benchmarks.many import adult, adult_groups, small, table
from skdpnoise.datasets import fetch_california

KEPT = ROOT / "benchmarks" / "history" / "peers.json"
PAGE = ROOT / "docs" / "evidence" / "peers.md"
PICTURE = ROOT / "docs" / "images" / "peers.png"
ENVIRONMENTS = Path.home() / ".cache" / "skdpnoise-peers"
EPSILONS, DELTA, SPLITS = (0.1, 0.3, 1.0, 3.0), 1e-6, 5
_CHECKS_OF = "scikit-learn==1.7.2"  # diffprivlib works with it; the same for all


class Peer(NamedTuple):
    """A script, what its environment holds, and how many splits it gets."""

    script: str
    pins: tuple[str, ...] = ()
    splits: int = SPLITS


PEERS = {
    OURS: Peer("_peer_ours"),  # in this environment
    "diffprivlib": Peer("_peer_diffprivlib", ("diffprivlib==0.6.6", _CHECKS_OF)),
    "OpenDP": Peer("_peer_opendp", ("opendp==0.16.0", _CHECKS_OF)),
    "interpret": Peer("_peer_interpret", ("interpret-core==0.7.8", _CHECKS_OF)),
    # This torch comes without the libraries of graphics cards, which are gigabytes.
    "Opacus": Peer("_peer_opacus", ("opacus==1.6.0", "torch==2.13.0", _CHECKS_OF), splits=2),
}
KINDS = {
    "California": REGRESSION,
    "Electricity": TWO_CLASSES,
    "Adult": TWO_CLASSES,
    "digits": MORE_CLASSES,
    "Spambase": TWO_CLASSES,
}


def divided(name: str, data_dir: Any, seed: int) -> dict[str, np.ndarray]:
    """Return train and test rows and targets, and bounds that peers are given.

    Bounds of Adult are those of its documentation and those of digits 0 and 16; all others are the
    smallest and largest training values.
    """
    if name == "Adult":
        X, X_test, y, y_test, bounds = adult(data_dir)
    elif name == "digits":
        from sklearn.datasets import load_digits

        X, X_test, y, y_test, _ = small(load_digits, seed)
        bounds = (np.zeros(X.shape[1]), np.full(X.shape[1], 16.0))
    else:
        regress = KINDS[name] == REGRESSION
        rows = fetch_california(data_home=data_dir, return_X_y=True) if regress else None
        X, y = rows or table(name, data_dir)
        labels = None if regress else y
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=0.2, random_state=seed, stratify=labels
        )
        bounds = (X.min(axis=0), X.max(axis=0))
    arrays = {"X": X, "X_test": X_test, "low": bounds[0], "high": bounds[1]}
    found = {name: np.asarray(array, dtype=float) for name, array in arrays.items()}
    return found | {"y": np.asarray(y), "y_test": np.asarray(y_test)}


def environment(folder: Path, name: str, pins: Sequence[str]) -> Path:
    """Return the Python of a peer's environment, made if it does not hold these versions."""
    place = folder / name.lower()
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    made = place / "pins.txt"
    if not made.exists() or made.read_text("utf-8").split() != list(pins):
        print(f"making an environment for {name}: {' '.join(pins)}", flush=True)
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=True)
        made.write_text("\n".join(pins), encoding="utf-8")
    return python


def ask(python: Path, script: str, question: Mapping[str, Any], data_dir: Any) -> Any:
    """Return the answer of a script that runs in another environment, in one thread."""
    threads = ("OMP", "OPENBLAS", "MKL", "NUMBA")
    one = {f"{name}_NUM_THREADS": "1" for name in threads}
    folder = {"SKDPNOISE_DATA": str(data_dir)} if data_dir else {}
    answer = subprocess.run(
        [python, "-W", "ignore", "-m", f"benchmarks.{script}"],
        input=json.dumps(question),
        cwd=ROOT,
        env={**os.environ, **one, **folder},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        raise RuntimeError((answer.stderr.strip().splitlines() or ["it said nothing"])[-1])
    return json.loads(answer.stdout.splitlines()[-1])


def version(peer: Peer) -> str:
    """Return what a peer's figures depend on, in short."""
    sources = [ROOT / "benchmarks" / f"{name}.py" for name in (peer.script, "_peer_runs")]
    text = "".join(source.read_text("utf-8") for source in sources) + " ".join(peer.pins)
    text += "" if peer.pins else last_commit("skdpnoise")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fits(peer: Peer, python: Path, data: str, seed: int, args: argparse.Namespace) -> list[Any]:
    """Return what every fit of a peer on one split gave, and keep it."""
    epsilons = EPSILONS[2:3] if args.quick else EPSILONS
    groups = adult_groups() if data == "Adult" else []
    question = {"ask": "scores", "epsilons": epsilons, "delta": DELTA}
    question["problem"] = {"name": data, "kind": KINDS[data], "groups": groups}

    def measure() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.npz"
            np.savez(file, **divided(data, args.data_dir, seed))
            answer = ask(python, peer.script, question | {"file": str(file)}, args.data_dir)
        return {"fits": answer}

    key = {"version": version(peer), "data": data, "seed": seed, "epsilons": epsilons}
    return kept(args.out / "peers", key, measure)["fits"]


def checks(peer: Peer, python: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Return how many of scikit-learn's checks the estimators of a peer pass."""

    def measure() -> dict[str, Any]:
        return {"checks": ask(python, peer.script, {"ask": "checks"}, args.data_dir)}

    return kept(args.out / "peers", {"version": version(peer), "ask": "checks"}, measure)["checks"]


def summary(data: str, found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a record for each method and ε: scores, median seconds, and what fits raised."""
    records = []
    for method, epsilon in dict.fromkeys((fit["method"], fit["epsilon"]) for fit in found):
        mine = [fit for fit in found if (fit["method"], fit["epsilon"]) == (method, epsilon)]
        done = [fit for fit in mine if "error" not in fit]
        errors = sorted({fit["error"] for fit in mine if "error" in fit})
        seconds = float(np.median([fit["seconds"] for fit in done])) if done else None
        records.append(
            {
                "data": data,
                "method": method,
                "epsilon": epsilon,
                "scores": [round(fit["score"], 4) for fit in done],
                "seconds": seconds and float(f"{seconds:.3g}"),
                "errors": errors,
            }
        )
    return records


def measured(args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all peers; one that cannot be installed or run is named with why."""
    results: list[Any] = []
    passed: dict[str, Any] = {}
    missing = {}
    for name in args.only or PEERS:
        peer, python = PEERS[name], Path(sys.executable)
        try:
            if peer.pins:
                python = environment(args.environments, name, peer.pins)
            for data in ("California", "digits") if args.quick else KINDS:
                print(f"{name}: {data}", flush=True)
                found = [
                    fit
                    for seed in range(1 if args.quick else peer.splits)
                    for fit in fits(peer, python, data, seed, args)
                ]
                results += summary(data, found)
            passed |= {} if args.quick else checks(peer, python, args)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            missing[name] = str(error)
            print(f"{name} is left out: {error}", flush=True)
    return {
        "protocol": __doc__,
        "delta": DELTA,
        "epsilons": sorted({one["epsilon"] for one in results}),
        "pins": {name: list(peer.pins) for name, peer in PEERS.items()},
        "splits": {name: peer.splits for name, peer in PEERS.items()},
        "results": results,
        "checks": passed,
        "missing": missing,
        "days": dict.fromkeys(args.only or PEERS, datetime.now(UTC).date().isoformat()),
    }


def beside(run: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run of some peers with what was kept of the others."""
    new = {*run["days"], *(["scikit-learn"] if OURS in run["days"] else [])}
    others = [one for one in before["results"] if METHODS[one["method"]].peer not in new]
    checks = {name: one for name, one in before["checks"].items() if name.split()[0] not in new}
    missing = {name: why for name, why in before["missing"].items() if name not in new}
    return run | {
        "epsilons": sorted({*run["epsilons"], *before["epsilons"]}),
        "results": [*run["results"], *others],
        "checks": run["checks"] | checks,
        "missing": run["missing"] | missing,
        "days": before["days"] | run["days"],
        "machine": (run if OURS in new else before)["machine"],
    }


def write(run: Mapping[str, Any]) -> None:
    """Write the page and draw the picture."""
    PAGE.write_text(page(run), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    save_plot(PICTURE, run)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print and save, or write the page from what was kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=__doc__)
    add_common_arguments(parser)
    parser.add_argument(
        "--environments", type=Path, default=ENVIRONMENTS, help="folder of the peers' environments"
    )
    parser.add_argument("--only", nargs="+", choices=list(PEERS), help="measure these alone")
    parser.add_argument("--keep", action="store_true", help="keep the figures, write the page")
    parser.add_argument("--page", action="store_true", help="write the page, measure nothing")
    args = parser.parse_args(argv)
    if args.page:
        write(json.loads(KEPT.read_text("utf-8")))
        return 0
    run = measured(args)
    for data in KINDS:
        headers, rows = score_rows(run, data)
        if rows:
            print_table(headers, rows, title=f"{data}, median scores on the test rows")
    saved = json.loads(save_json(args.out, "peers", run).read_text("utf-8"))
    if args.keep:
        if args.only:
            saved = beside(saved, json.loads(KEPT.read_text("utf-8")))
        KEPT.write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")
        write(saved)
    return 0
