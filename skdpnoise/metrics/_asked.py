"""The keywords of all scores and curves, their releases, and what every result states."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.terms import Function, OfOne, Terms, takes_terms
from skdpnoise.data.table import Table
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.metrics._records import Both, Vector, judged, scored
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.queries import noisy_histogram, private_mean
from skdpnoise.queries.aggregates import PrivateEstimate
from skdpnoise.sampling.words import with_caveat

Cells = Callable[[Both], tuple[NDArray[np.intp], NDArray[np.intp]]]
"""From records to the row and the column of the cell of each, negative of none."""

R = TypeVar("R")

# Standard deviations of its noise that a number of records must reach; ratios to fewer are hidden.
SEEN = 3.0


class How(OfOne, total=False):
    noise: str
    same_rows: bool


def takes_how(score: Function) -> Function:
    """Show the keywords of a score in its signature, and shared texts in its docstring."""
    return takes_terms(shared_texts(score), terms=How, noise="auto", same_rows=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked(Terms):
    noise: str = "auto"
    same_rows: bool = False

    @classmethod
    def how(cls, owner: str, guarantee: PrivacyGuarantee | LossBudget | None, how: How) -> Asked:
        told: dict[str, Any] = dict(how)
        own = {name: told.pop(name) for name in ("noise", "same_rows") if name in told}
        terms: Any = cls.of(owner, guarantee, told)
        found: Asked = replace(terms, **own)
        return found

    def mean(self, values: Any, low: Any, high: Any, **weights: Any) -> PrivateEstimate:
        return private_mean(values, low, high, **self._keywords, **weights)

    def counts(
        self, records: Table[Both], cells: Cells, shape: tuple[int, int]
    ) -> tuple[Vector, AdditiveMechanism]:
        """Return noisy counts of cells in rows and columns, of which one record is in one."""
        session = replace(self, owner="noisy_histogram").charging()
        query = GroupedSum(shape[0] * shape[1], partial(_cell_numbers, cells, shape[1]))
        found = session.tally("cells", query, records, self.guarantee, self.noise)
        made: AdditiveMechanism = found.mechanism
        return found.values.reshape(shape), made

    def sums(self, sums: Vector) -> tuple[Vector, AdditiveMechanism]:
        """Return noisy sums by cells, between which one record is divided."""
        noisy, made = noisy_histogram(sums.reshape(-1), **self._keywords)
        return noisy.reshape(sums.shape), made

    def public_total(self, records: Table[Both]) -> int | None:
        return len(records) if self.adjacency == "replace_one" else None

    def result(self, kind: Callable[..., R], made: AdditiveMechanism, **numbers: Any) -> R:
        facts = {"mechanism": made, "same_rows": bool(self.same_rows)}
        return self.stated(kind(**numbers, **facts, adjacency=self.adjacency))

    @property
    def _keywords(self) -> dict[str, Any]:
        known = {"guarantee": self.guarantee, "adjacency": self.adjacency, "noise": self.noise}
        return known | {"random_state": self.rng, "ledger": self.ledger}


def _cell_numbers(cells: Cells, n_columns: int, both: Both) -> NDArray[np.intp]:
    rows, columns = cells(both)
    return np.where((rows < 0) | (columns < 0), -1, rows * n_columns + columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScoreResult:
    """The facts that every score and curve states beside its numbers."""

    mechanism: AdditiveMechanism
    adjacency: Adjacency
    same_rows: bool = False
    secure: bool = True
    guarantee: PrivacyGuarantee | None = None

    @property
    def privacy(self) -> PrivacyLoss:
        """Loss of the result by itself."""
        return self.mechanism.privacy_loss()

    @abstractmethod
    def _found(self) -> str: ...

    def __str__(self) -> str:
        where = (
            "the model was fitted to the same records: what it cost comes on top"
            if self.same_rows
            else "of records that the model was not fitted to"
        )
        text = f"{self._found()} ({self.privacy}, {self.adjacency}; {where})"
        return with_caveat(text, secure=self.secure)


def in_bins(wanted: Any, edges: Vector, both: Both) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    positive, scores = judged(wanted, both)
    return positive.astype(np.intp), np.searchsorted(edges, scores, side="right")


def counted_by_bin(
    asked: Asked, y_true: Any, y_score: Any, pos_label: Any, edges: Vector
) -> tuple[tuple[Vector, AdditiveMechanism], tuple[float, float]]:
    """Return noisy counts by label and bin of the score, and the area with its standard error."""
    records, wanted = scored(asked.owner, y_true, y_score, "y_score", pos_label)
    noisy, made = asked.counts(records, partial(in_bins, wanted, edges), (2, edges.size + 1))
    deviation = float(made.standard_deviation[0])
    return (noisy, made), area_under(noisy, deviation, asked.public_total(records))


def area_under(noisy: Vector, deviation: float, total: int | None) -> tuple[float, float]:
    """Return the area under the ROC curve of noisy counts by bin, and its standard error."""
    # Rows are other and positive records; where their total is public, its noise is taken out.
    if total is not None:
        noisy = noisy + (total - noisy.sum()) / noisy.size
    others, wanted = noisy
    n_others, n_wanted = max(others.sum(), 1.0), max(wanted.sum(), 1.0)
    below = (np.cumsum(others) - 0.5 * others) / n_others
    above = (wanted.sum() - np.cumsum(wanted) + 0.5 * wanted) / n_wanted
    area = float(np.clip(wanted @ below / n_wanted, 0.0, 1.0))
    slopes = np.concatenate([(above - area) / n_others, (below - area) / n_wanted])
    if total is not None:
        slopes = slopes - slopes.mean()
    if min(others.sum(), wanted.sum()) < SEEN * math.sqrt(wanted.size) * deviation:
        return area, 1.0
    return area, min(float(np.linalg.norm(slopes)) * deviation, 1.0)
