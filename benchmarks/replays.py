"""Replays over tables: what one odd cell moves, in every container, kind of column and encoder.

Each neighbour has one record replaced, or one more, whose cell is missing, of another type, unseen,
or far away: the first record, one in the middle, or the last. A pipeline is fitted to both tables
with its released numbers frozen: everything that is published must agree, no release may move by
more than is declared for it, and all together must cost no more than is claimed. A neighbour that
is refused before anything is charged is counted as such, and the refusal must name the column.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from benchmarks._odd_records import (
    BESIDE,
    COLUMN,
    CONTAINERS,
    PLACES,
    USUAL,
    Container,
    place_of,
    tables,
)
from benchmarks._remembered import remembered
from benchmarks._report import add_common_arguments, print_table, save_json
from skdpnoise import DPOneHotEncoder, DPOrdinalEncoder, DPPipeline, DPRidge, DPTableVectorizer
from skdpnoise.data import RowSource
from skdpnoise.inspection.auditing._claims import clone_for_audit, fit_quietly
from skdpnoise.inspection.auditing._neighbours import Neighbours
from skdpnoise.inspection.auditing._replay import replay
from skdpnoise.inspection.auditing.transcript import Transcript
from skdpnoise.privacy import PrivacyGuarantee

EPSILON, DELTA = 1.0, 1e-3
FEWEST = 2000  # neighbours of a whole run
_QUICK = ("int", "text")
_LONG = 240  # characters of an example
_MANY = 1.0 + 1e-9  # floating-point error of a norm


@dataclass(frozen=True, slots=True)
class Front:
    """A transformer of tables to numbers, in front of a model."""

    name: str
    make: Callable[[list[Any], Any], Any]  # from the usual values and the name of the column
    alone: bool = False  # whether it takes the one column only


FRONTS = (
    Front("table", lambda values, name: DPTableVectorizer()),
    Front(
        "table, buckets",
        lambda values, name: DPTableVectorizer(
            {name: {"kind": "category", "buckets": 4, "nullable": True}}
        ),
    ),
    Front(
        "table, listed",
        lambda values, name: DPTableVectorizer(
            {name: {"kind": "category", "categories": values, "nullable": True}}
        ),
    ),
    Front("one-hot", lambda values, name: DPOneHotEncoder(), alone=True),
    Front("one-hot, listed", lambda values, name: DPOneHotEncoder(categories=[values]), alone=True),
    Front(
        "ordinal, listed", lambda values, name: DPOrdinalEncoder(categories=[values]), alone=True
    ),
)


@dataclass
class Tally:
    """Counts and maxima over the neighbours of one kind of column in one container."""

    container: str
    kind: str
    replayed: int = 0
    refused: int = 0
    unnamed: int = 0  # refused, and the column is not named
    epsilon: float = 0.0  # the largest that was used
    share: float = 0.0  # of what is declared
    failed: int = 0  # neighbours with a problem
    examples: list[str] = field(default_factory=list)

    def refuse(self, label: str, texts: Sequence[str], column: str) -> None:
        """Count a neighbour that is refused, in these words."""
        self.refused += 1
        unnamed = [text for text in texts if not names_column(text, column)]
        if unnamed:
            self.unnamed += 1
            self.examples.append(f"refused without its name: {unnamed[0]} ({label})"[:_LONG])


def pipeline(front: Front, kind: str, name: Any, adjacency: str, parts: bool = False) -> Any:
    """Return a model behind what reads the table."""
    steps = [
        ("front", front.make(USUAL[kind], name)),
        ("model", DPRidge(solver="gram", adjacency=adjacency, target_bounds=(-1.0, 1.0))),
    ]
    if parts:  # rows in parts are handed on by our own pipeline only
        return DPPipeline(steps, epsilon=EPSILON, delta=DELTA, adjacency=adjacency)
    half = {"epsilon": EPSILON / 2.0, "delta": DELTA / 2.0, "adjacency": adjacency}
    return Pipeline([(step, part.set_params(**half)) for step, part in steps])


def data_of(front: Front, table: Any, others: list[float]) -> tuple[Any, Any]:
    """Return X and y of one table, and the numbers beside its column."""
    if isinstance(table, np.ndarray):
        return (table[:, :1] if front.alone else table), np.array(others)
    names = [COLUMN] if front.alone else [COLUMN, BESIDE]
    return table[names], table[BESIDE] if isinstance(table, RowSource) else np.array(others)


def refusal(estimator: Any, data: tuple[Any, Any]) -> str | None:
    """Return what a fit raises before it charges or releases anything."""
    transcript = Transcript()
    _, _, raised = transcript.watch(fit_quietly, clone_for_audit(estimator, 0), *data)
    return None if transcript.charges or transcript.meetings else raised


def names_column(text: str, name: str) -> bool:
    """Return whether a refusal says which column it is about."""
    return name in text or "column 0" in text


def look(tally: Tally, estimator: Any, neighbours: Neighbours, name: str) -> None:
    """Replay one pair of neighbours, the larger one first, and add what is found."""
    label, pair = neighbours.label, (neighbours.first, neighbours.second)
    adjacency = estimator.get_params()["model__adjacency"]
    claim = PrivacyGuarantee(EPSILON, DELTA, adjacency)
    try:
        found = replay(estimator, [neighbours], claim, np.random.SeedSequence(0), 1, _nobody)
        raises = found is not None and any("raises an error" in text for text in found.problems)
    except ValueError:  # both fits were refused
        found, raises = None, True
    if raises:
        refused = [text for text in (refusal(estimator, data) for data in pair) if text is not None]
        if len(refused) == len(pair) and len(set(refused)) == 1:
            return  # it takes no such columns, whatever they hold
        if refused:
            tally.refuse(label, refused, name)
            return
    tally.replayed += 1
    if found is None:
        return  # nothing is released of such a table
    tally.epsilon = max(tally.epsilon, found.epsilon or 0.0)
    tally.share = max([tally.share, *(share for _, share in found.shares)])
    if not found.passed:
        tally.failed += 1
        tally.examples.append("; ".join([*found.problems, *found.broken])[:_LONG])


def _nobody(count: int) -> None:
    """Listen to no progress."""


def measured(
    container: Container,
    kind: str,
    adjacencies: Sequence[str],
    places: Sequence[str] = PLACES,
    fronts: Sequence[Front] = FRONTS,
) -> Tally:
    """Return what the neighbours of one kind of column in one container show.

    Each value is put in each place; the fronts take turns in the places.
    """
    tally = Tally(container.name, kind)
    name = "x0" if "numpy" in container.name and "pandas" not in container.name else COLUMN
    fronts = [front for front in fronts if front.alone or not container.alone]
    if kind == "date":  # dates are no categories
        fronts = [front for front in fronts if "listed" not in front.name]
    for turn, (adjacency, where) in enumerate(product(adjacencies, places)):
        with tempfile.TemporaryDirectory() as folder:
            found = tables(container, kind, adjacency, Path(folder), where)
            for number, (odd, usual, other) in enumerate(found, turn):
                if other is None:
                    continue
                for front in fronts[number % len(places) :: len(places)]:
                    label = f"{front.name}, {adjacency}, {odd!r:.20} in the {where} row"
                    if isinstance(other, Exception):
                        tally.refuse(label, [str(other)], name)
                        continue
                    pair = [data_of(front, *table) for table in (usual, other)]
                    if adjacency == "add_remove":
                        pair.reverse()
                    parts = isinstance(usual[0], RowSource)
                    estimator = pipeline(front, kind, name, adjacency, parts)
                    place = place_of(where, len(pair[0][0]))
                    look(tally, estimator, Neighbours(label, *pair, place=place), name)
    return tally


def plan(quick: bool) -> Iterator[tuple[Container, str]]:
    """Yield containers, and kinds of columns that they can hold."""
    for container in CONTAINERS:
        for kind in _QUICK if quick else USUAL:
            if kind == "category" and container.name.partition(",")[0] == "numpy":
                continue  # arrays have no categories
            yield container, kind


def main(argv: Sequence[str] | None = None) -> int:
    """Replay, print and save; 1 if anything exceeds what is charged, or a refusal has no name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks replays", description=__doc__)
    add_common_arguments(parser)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="containers with this text")
    parser.add_argument("--examples", type=int, default=1, help="of what is wrong, for each row")
    args = parser.parse_args(argv)
    found = []
    with warnings.catch_warnings(), remembered():
        warnings.simplefilter("ignore")
        for container, kind in plan(args.quick):
            if args.only and not any(text in container.name for text in args.only):
                continue
            adjacencies = ("replace_one",) if args.quick else ("replace_one", "add_remove")
            found.append(measured(container, kind, adjacencies))
            print(found[-1], file=sys.stderr, flush=True)
    headers = ["container", "column", "replayed", "refused", "unnamed", "ε used", "share", "wrong"]
    rows = [
        [t.container, t.kind, t.replayed, t.refused, t.unnamed, t.epsilon, t.share, t.failed]
        for t in found
    ]
    print_table(headers, rows, title=f"Neighbours of one odd cell, ε = {EPSILON:g} claimed")
    total = sum(tally.replayed + tally.refused for tally in found)
    wrong = [tally for tally in found if tally.failed or tally.unnamed]
    for tally in wrong:
        for text in tally.examples[: args.examples]:
            print(f"{tally.container}, {tally.kind}: {text}")
    largest = max((max(tally.share, tally.epsilon / EPSILON) for tally in found), default=0.0)
    print(
        f"{total} neighbours, {sum(t.refused for t in found)} of them refused; the largest change "
        f"is {largest:.6g} of what is charged; {sum(t.failed for t in found)} are found wrong, "
        f"{sum(t.unnamed for t in found)} refused without the name of the column."
    )
    save_json(args.out, "replays", {"rows": [vars(tally) for tally in found]})
    few = total < FEWEST and not (args.quick or args.only)
    return int(bool(wrong) or largest > _MANY or few)
