"""The page of peers, made from the figures that `python -m benchmarks peers --keep` kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks._report import ROOT

OURS, ORDINARY = "skdpnoise", "non-private"
PURE = f"{OURS}, bounds, δ = 0"
Run = Mapping[str, Any]


class Facts(NamedTuple):
    """What a method promises, and what it is told."""

    peer: str
    adjacency: str
    delta: str
    told: str


_NOT_STATED = "not stated"
METHODS = {
    ORDINARY: Facts("scikit-learn", "–", "–", "–"),
    OURS: Facts(OURS, "replace one", "1e-6", "none; Adult: a schema"),
    "skdpnoise, bounds": Facts(OURS, "replace one", "1e-6", "given"),
    "skdpnoise, bounds, add/remove": Facts(OURS, "add/remove", "1e-6", "given"),
    PURE: Facts(OURS, "replace one", "0", "given"),
    "diffprivlib LinearRegression": Facts("diffprivlib", _NOT_STATED, "0", "given"),
    "diffprivlib LogisticRegression": Facts("diffprivlib", _NOT_STATED, "0", "given, and a norm"),
    "diffprivlib GaussianNB": Facts("diffprivlib", _NOT_STATED, "0", "given"),
    "diffprivlib RandomForestClassifier": Facts("diffprivlib", _NOT_STATED, "0", "given"),
    "OpenDP ridge": Facts("OpenDP", "add/remove", "1e-6", "given, and a norm"),
    "interpret DP-EBM": Facts("interpret", "not stated; noise of add/remove", "1e-6", "given"),
    "Opacus linear": Facts("Opacus", "add/remove", "1e-6", "given"),
    "Opacus network": Facts("Opacus", "add/remove", "1e-6", "given"),
    "Opacus linear, best rate": Facts("Opacus", "add/remove", "1e-6", "given; rate by test rows"),
}
DATA = {
    "California": "California housing, R²",
    "Electricity": "Electricity, accuracy",
    "Adult": "Adult, accuracy",
    "digits": "Digits, accuracy",
    "Spambase": "Spambase, accuracy",
}
WITHOUT_ESTIMATORS = [
    ["OpenDP", "has no estimator for several columns"],
    ["Opacus", "has no estimators: it trains modules of torch"],
]
_TEXT = ROOT / "benchmarks" / "peers.txt"


def figures(run: Run, data: str) -> dict[str, dict[float, Mapping[str, Any]]]:
    """Return the record of each method and ε on a data set, in the order of the table."""
    found: dict[str, dict[float, Mapping[str, Any]]] = {}
    for one in run["results"]:
        if one["data"] == data:
            found.setdefault(one["method"], {})[one["epsilon"]] = one
    return {method: found[method] for method in METHODS if method in found}


def median(record: Mapping[str, Any] | None) -> float | None:
    """Return the median score of the fits that gave one."""
    return float(np.median(record["scores"])) if record and record["scores"] else None


def score_rows(run: Run, data: str) -> tuple[list[str], list[list[Any]]]:
    """Return headers, and the median scores of each method."""
    rows = [
        [method, *(median(records.get(epsilon)) for epsilon in run["epsilons"])]
        for method, records in figures(run, data).items()
    ]
    return ["method", *(f"ε = {one:g}" for one in run["epsilons"])], rows


def better(run: Run, *, pure: bool = False) -> list[list[Any]]:
    """Return where the best peer has a higher median than our default model, and more of ours.

    With `pure`: the best peer without a δ, and our model without one.
    """
    mine, more = (PURE, []) if pure else (OURS, [f"{OURS}, bounds", f"{OURS}, bounds, add/remove"])
    peers = [
        method
        for method, facts in METHODS.items()
        if facts.peer not in (OURS, "scikit-learn") and (facts.delta == "0" or not pure)
    ]
    rows = []
    for data in DATA:
        table = figures(run, data)
        for epsilon in run["epsilons"]:
            found = {method: median(records.get(epsilon)) for method, records in table.items()}
            ours = found.get(mine)
            scores = {one: score for one in peers if (score := found.get(one)) is not None}
            best = max(scores, key=lambda method: scores[method], default=None)
            if ours is not None and best is not None and scores[best] > ours:
                rows.append([data, epsilon, best, scores[best], ours, *map(found.get, more)])
    return rows


def shown(score: float | None) -> str:
    """Return a score as the tables show it."""
    if score is None:
        return "–"
    return "below −1" if score < -1.0 else f"{score:.3f}".replace("-", "−")


def score_table(run: Run, data: str) -> str:
    """Return the table of a data set; the highest private score of a column is bold."""
    headers, rows = score_rows(run, data)
    texts = []
    for method, *scores in rows:
        cells = []
        for column, score in enumerate(scores, start=1):
            others = [row[column] for row in rows if row[0] != ORDINARY and row[column] is not None]
            record = figures(run, data)[method].get(run["epsilons"][column - 1])
            text = shown(score) + (" †" if record and record["errors"] else "")
            top = method != ORDINARY and score is not None and score == max(others)
            cells.append(f"**{text}**" if top else text)
        texts.append([method, *cells])
    return lines(headers, texts)


def lines(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    every = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in every)


def failures(run: Run) -> str:
    """Return what fits raised, each once."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in run["results"]:
        for error in one["errors"]:
            found.setdefault((one["method"], one["data"], error), []).append(f"{one['epsilon']:g}")
    texts = [
        f"- {method} on {data} at ε = {', '.join(epsilons)}: `{error}`\n"
        for (method, data, error), epsilons in found.items()
    ]
    head = "† Some fits gave no model, or predictions that are no numbers:\n\n"
    return head + "".join(texts) + "\n" if texts else ""


def seconds(run: Run, method: str, data: str) -> str:
    """Return the median time of a fit over all ε."""
    records = figures(run, data).get(method, {}).values()
    found = [one["seconds"] for one in records if one["seconds"]]
    return f"{np.median(found):.2g}" if found else "–"


def _version(run: Run, peer: str) -> str:
    """Return the version that is pinned, or that of this environment."""
    pins = run["pins"].get(peer)
    return pins[0].partition("==")[2] if pins else str(run["machine"][peer])


def promises(run: Run) -> str:
    """Return the table of guarantees, bounds and times."""
    rows = []
    for method, facts in METHODS.items():
        times = [seconds(run, method, data) for data in ("California", "Adult", "digits")]
        if any(one != "–" for one in times):
            rows.append([method, _version(run, facts.peer), *facts[1:], *times])
    headers = ["method", "version", "adjacency", "δ", "bounds"]
    return lines(headers + [f"s, {data}" for data in ("California", "Adult", "digits")], rows)


def checks(run: Run) -> str:
    """Return the table of scikit-learn's checks."""
    rows = [
        [name, f"{one['passed']} of {one['passed'] + one['failed']}"]
        for name, one in run["checks"].items()
    ]
    return lines(["estimator", "checks passed"], [*rows, *WITHOUT_ESTIMATORS])


def where_better(run: Run, *, pure: bool = False) -> str:
    """Return the table of where a peer is better than our model."""
    rows = better(run, pure=pure)
    cases = len(DATA) * len(run["epsilons"])
    which = "without a δ " if pure else ""
    if not rows:
        return f"In none of {cases} cases: no peer {which}is above our model.\n"
    table = [[row[0], f"{row[1]:g}", row[2], *map(shown, row[3:])] for row in rows]
    ours = (
        ["ours, δ = 0"] if pure else ["ours, defaults", "ours, bounds", "ours, bounds, add/remove"]
    )
    headers = ["data", "ε", "best peer", "its score", *ours]
    told = f"In {len(rows)} of {cases} cases the best peer {which}is above our model:\n\n"
    return told + lines(headers, table)


def days(run: Run) -> str:
    """Return when the peers were measured."""
    found: dict[str, list[str]] = {}
    for peer, day in run["days"].items():
        found.setdefault(day, []).append(peer)
    if len(found) == 1:
        return f"on {next(iter(found))}"
    return ", ".join(f"on {day} ({', '.join(peers)})" for day, peers in sorted(found.items()))


def page(run: Run) -> str:
    """Return the text of the page."""
    machine = run["machine"]
    scores = [f"### {title}\n\n{score_table(run, data)}" for data, title in DATA.items()]
    return _TEXT.read_text("utf-8").format(
        days=days(run),
        better=where_better(run),
        better_pure=where_better(run, pure=True),
        splits=run["splits"][OURS],
        opacus_splits=run["splits"]["Opacus"],
        scores="\n".join(scores),
        failures=failures(run),
        promises=promises(run),
        machine=f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}",
        ours=machine["scikit-learn"],
        checks=checks(run),
        missing="".join(f"\n{name} is left out: {why}\n" for name, why in run["missing"].items()),
    )
