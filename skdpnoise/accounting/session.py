"""One run that releases: every integer meets its noise here, after it was charged for.

A session charges, samples, sums and adds, in this order. What is summed and how far one record
moves it are one object, a :class:`Query`, so that the two cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting.account import Account
from skdpnoise.accounting.budget import COUNT_SHARE
from skdpnoise.accounting.gaps import GapsOfPresent
from skdpnoise.accounting.report import PrivacyReport
from skdpnoise.data.table import Table, in_units
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate, shared_budget
from skdpnoise.mechanisms.grid_sizes import exact_integers, exact_numbers
from skdpnoise.mechanisms.vectors import add_steps
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import RandomWords, secret_pairs
from skdpnoise.sampling.integers import secret_rows
from skdpnoise.sampling.keyed import secret_key
from skdpnoise.sampling.observer import note_charge, plus_noise
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum

__all__ = ["Charge", "Drawn", "FitSession", "Query", "Released", "Search", "Session"]
__all__ += ["no_charge"]

Charge = Callable[[str, Any], None]
"""Takes a label and the mechanism that will release, before it samples."""

Found = TypeVar("Found")
Search = Generator[Callable[[Table[Any]], Any], Any, Found]
"""Yields one method of a session after the other, such as ``partial(session.release, label, query,
loss=loss, noise=noise)``, gets what it releases of a table, and returns what it finds."""

Counts = tuple[Sequence[int], Callable[[], Sequence[Any]] | None]
"""How many records have each category of a column, and for an audit what returns these."""


def no_charge(label: str, mechanism: Any) -> None:
    """Charge nothing: the caller does the accounting."""


class Query(Protocol):
    """A sum over records, made from one bound: its integers, and how far a record moves them."""

    def sensitivity(self, adjacency: Adjacency) -> SensitivityProfile:
        """Return the most that one record changes the sums."""
        ...

    def step(self, grid_size: NDArray[np.float64]) -> Callable[[Any], NDArray[Any]]:
        """Return what sums the contributions of some rows, each rounded to grid steps."""
        ...


@dataclass(slots=True, eq=False)
class Drawn:
    """Noise that was charged for and sampled; each number of it meets one integer, and no other."""

    mechanism: Any
    noise: NDArray[Any]  # in grid steps
    _met: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self._met = np.zeros(self.noise.shape, dtype=bool)

    def add(self, integers: Any, at: Any = ...) -> Any:
        """Return integers plus their noise, in grid steps: all of it, or that at an index."""
        noise = self._taken(at)
        if not isinstance(integers, int):
            noise = noise.reshape(np.shape(integers))
        return Session.meeting(self.mechanism, integers, noise)

    def in_units(self, integers: Any, at: Any = ..., divisor: float = 1.0) -> NDArray[np.float64]:
        """Return integers plus their noise, in the units of the query, over a divisor."""
        return in_units(self.add(integers, at), self.mechanism.grid_size / divisor)

    def on(self, values: Any) -> NDArray[np.float64]:
        """Return exact values, rounded to grid steps as a whole, plus their noise."""
        noise, rows = self._taken(...), exact_numbers(values).reshape(self.noise.shape)
        noisy = add_steps(rows, noise, self.mechanism.grid_size, self.mechanism)
        return noisy.reshape(np.shape(values))

    def on_fractions(self, values: Sequence[Fraction]) -> NDArray[np.float64]:
        """Return fractions of one release, rounded to grid steps as a whole, plus their noise."""
        return self.in_units(exact_integers(values, self.mechanism.grid_size.tolist()))

    def _taken(self, at: Any) -> Any:
        """Return noise that has met no integer yet, and will not again."""
        # The difference of two sums with the same noise would be without any. A copy is what a list
        # of places gives, and these may repeat.
        met = self._met[at]
        if met.any() or (isinstance(met, np.ndarray) and met.base is None):
            raise RuntimeError(
                "Noise that was drawn and charged for once was to be added a second time, or at a "
                "list of places. Nothing is released: draw, and charge for, another one, and give "
                "places by numbers and slices."
            )
        self._met[at] = True
        return self.noise[at]


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Noisy sums, which are public, and what released them."""

    values: NDArray[np.float64]
    mechanism: Any

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        return np.asarray(self.mechanism.standard_deviation)


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """The terms on which one run releases."""

    rng: RandomWords
    adjacency: Adjacency
    charge: Charge = no_charge
    prefix: str = ""  # of labels

    @classmethod
    def of_whole(cls, rng: RandomWords, adjacency: Adjacency) -> Session:
        """Return the session of a whole that was charged at once; who observes it is told."""
        return cls(rng, adjacency, note_charge)

    @staticmethod
    def meeting(mechanism: Any, integers: Any, noise: Any) -> Any:
        return plus_noise(mechanism, integers, noise)

    def under(self, prefix: str) -> Session:
        return replace(self, prefix=self.prefix + prefix)

    @property
    def terms(self) -> dict[str, Any]:
        """Keywords by which a query of several releases samples and charges as the session does."""
        return {"adjacency": self.adjacency, "random_state": self.rng, "charge": self.spend}

    def spend(self, label: str, mechanism: Any) -> None:
        """Charge for all releases of a mechanism, under the prefix of the session."""
        self.charge(self.prefix + label, mechanism)

    def draw(self, label: str, mechanism: Any) -> Drawn:
        """Charge for all releases of a mechanism, and sample their noise."""
        self.spend(label, mechanism)
        return Drawn(mechanism, mechanism.sample(self.rng))

    def each(self, label: str, mechanism: Any) -> Callable[[], Drawn]:
        """Charge for all releases of a mechanism; return what samples the noise of the next."""
        self.spend(label, mechanism)
        left = iter(range(mechanism.n_releases))

        def sample() -> Drawn:
            if next(left, None) is None:
                raise RuntimeError(
                    f"{label!r} was charged for {mechanism.n_releases} releases, and one more was "
                    "asked for. Nothing is sampled."
                )
            return Drawn(mechanism, mechanism.sample(self.rng))

        return sample

    def add(self, label: str, mechanism: Any, values: Any) -> NDArray[np.float64]:
        """Release exact values that were summed already, plus the noise of one release."""
        return self.draw(label, mechanism).on(values)

    def released(
        self, label: str, query: Query, table: Table[Any], mechanism: Any, divisor: float = 1.0
    ) -> Released:
        """Release the noisy sums of a query once, with noise that was calibrated for it."""
        drawn = self.draw(label, mechanism)
        sums = table.total(query.step(mechanism.grid_size), label)
        return Released(drawn.in_units(sums, divisor=divisor), mechanism)

    def release(
        self,
        label: str,
        query: Query,
        table: Table[Any],
        loss: LossBudget | PrivacyGuarantee,
        noise: str,
    ) -> Released:
        """Release the noisy sums of a query once, for such a loss."""
        mechanism = calibrate(noise, query.sensitivity(self.adjacency), loss)
        return self.released(label, query, table, mechanism)

    def tally(
        self,
        label: str,
        query: Query,
        table: Table[Any],
        loss: LossBudget | PrivacyGuarantee,
        noise: str,
    ) -> Released:
        """Release sums of whole numbers, such as counts, which are rounded once they are summed."""
        mechanism = calibrate(noise, query.sensitivity(self.adjacency), loss)
        return self.tallied(label, query, table, [mechanism])[0]

    def tallied(
        self,
        label: str,
        query: Any,
        table: Table[Any],
        mechanisms: Sequence[Any],
        most_pairs: int = 0,
    ) -> list[Released]:
        """Release whole numbers of a query, or of each of its columns by a mechanism of its own."""
        # Of records, or of the differences of so many secret pairs of them. A column may have fewer
        # numbers than others.
        step, rows = self._paired(
            query, np.ones(mechanisms[0].grid_size.shape[-1]), most_pairs, table
        )
        drawn = [self.draw(label, one) for one in mechanisms]
        counts = _counted(label, query, step, table, rows)
        columns = np.reshape(counts, (len(drawn), -1))
        return [
            Released(one.on(row[: one.mechanism.sensitivity.n_coordinates]), one.mechanism)
            for one, row in zip(drawn, columns, strict=True)
        ]

    def summed(
        self, label: str, query: Any, drawn: Drawn, at: int, most_pairs: int, table: Table[Any]
    ) -> Any:
        """Release sums of a query with the noise of one of several releases, in grid steps."""
        grid_size = np.broadcast_to(drawn.mechanism.grid_size, drawn.noise.shape)[at]
        step, rows = self._paired(query, grid_size, most_pairs, table)
        return drawn.add(_counted(label, query, step, table, rows).ravel(), at)

    def _paired(
        self, query: Any, grid_size: Any, most_pairs: int, table: Table[Any]
    ) -> tuple[Any, Any]:
        """Return the step of a query, and the rows or pairs that it takes together, if it does."""
        step = query.step(grid_size)
        if not most_pairs:
            return step, None
        if query.missing is None:
            return step, secret_pairs(self.rng, table.n_rows, most_pairs)
        rows = secret_rows(self.rng, table.n_rows, 2 * most_pairs)
        return GapsOfPresent(step, query.missing, secret_key(self.rng)), rows

    @staticmethod
    def answer(search: Search[Found], table: Table[Any]) -> Found:
        """Return what a search finds, which sees of a table only what it lets a session release."""
        released: Any = None
        while True:
            try:
                release = search.send(released)
            except StopIteration as end:
                return cast(Found, end.value)
            released = release(table)

    def number(self, table: Table[Any], loss: LossBudget | None, noise: str) -> float:
        """Return the number of records: a public one, or a noisy one under "add_remove"."""
        if self.adjacency == "replace_one":
            return float(table.n_rows)
        assert loss is not None
        return self.count(table.n_rows, loss, noise)

    def count(
        self, n_records: int, loss: LossBudget, noise: str, label: str = "number of records"
    ) -> float:
        """Release a noisy number of records, which one record moves by 1."""
        mechanism = calibrate(noise, clipped_sum(0.0, 1.0), loss)
        return float(self.add(label, mechanism, np.array([n_records]))[0])

    def choose(self, label: str, mechanism: Any, utilities: Any, *, charged: Any = None) -> int:
        """Release the place of one candidate, chosen by private utilities."""
        # `charged` has the loss of a choice whose own is not the least that it can be charged for.
        self.spend(label, mechanism if charged is None else charged)
        return int(mechanism.select(utilities, self.rng))

    def repetitions(self, law: Any) -> int:
        """Sample how many runs there are, for which a whole was charged by their law."""
        return int(law.sample(self.rng))

    def cells(
        self, label: str, mechanism: Any, columns: Iterable[Counts]
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
        """Release which counts of each column reach a threshold, and these with noise."""
        self.spend(label, mechanism)
        return (mechanism.shown(counts, self.rng, names) for counts, names in columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FitSession(Session):
    """The terms on which one fit releases, and the account that it charges."""

    account: Account
    n_records: float = math.nan  # public, or estimated privately by `counted`

    @classmethod
    def charging(cls, account: Account, rng: RandomWords) -> FitSession:
        return cls(rng, account.guarantee.adjacency, account.charge, account=account)

    @property
    def guarantee(self) -> PrivacyGuarantee:
        return self.account.guarantee

    @property
    def rows_per_group(self) -> int:
        """The most rows of a group; 1 where records are protected."""
        return self.account.rows_per_group or 1

    def reserve(self, stages: Sequence[PrivacyLoss], noise: str | None, **facts: Any) -> None:
        """Fix all losses, and charge the ledger for the whole fit; see :meth:`Account.spend`."""
        self.account.spend(stages, noise, **facts)

    def reserve_for(self, query: Query, noise: str, n_releases: int = 1) -> AdditiveMechanism:
        """Reserve the whole guarantee for releases of one query; return their noise."""
        profile, rows = query.sensitivity(self.adjacency), self.rows_per_group
        name, budget = shared_budget(noise, profile, self.guarantee, n_releases, rows)
        mechanism = calibrate(name, profile, budget, n_releases=n_releases)
        self.reserve([budget], mechanism.noise)
        return mechanism

    def counted(self, n_rows: int, noise: str, total: LossBudget) -> FitSession:
        """Return the session with the number of records, which costs a share under add/remove."""
        if self.adjacency == "replace_one":
            return replace(self, n_records=float(n_rows))
        found = max(2.0, self.count(n_rows, total.share(COUNT_SHARE), noise))
        self.account.n_records = found
        return replace(self, n_records=found)

    def of_groups(self) -> Session:
        return Session(self.rng, self.adjacency, partial(self.account.charge, of_groups=True))

    def report(self, *, empty: bool = False) -> PrivacyReport:
        owner = type(self.account.estimator).__name__
        return self.account.report(owner, secure=self.rng.secure, empty=empty)


def _counted(label: str, query: Any, step: Any, table: Table[Any], rows: Any) -> Any:
    """Return the integers that values count for, or some rows together, such as pairs."""
    if rows is None:
        return table.total(step, label)
    return table.gathered(rows, query.columns, step, label)
