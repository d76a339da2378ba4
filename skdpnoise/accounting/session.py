"""One run that releases: every integer meets its noise here, after it was charged for.

A session charges, samples, sums and adds, in this order. What is summed and how far one record
moves it are one object, a :class:`Query`, so that the two cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdpnoise.accounting.account import Account
from skdpnoise.accounting.budget import COUNT_SHARE
from skdpnoise.accounting.report import PrivacyReport
from skdpnoise.data.table import Table, in_units
from skdpnoise.mechanisms.additive import AdditiveMechanism
from skdpnoise.mechanisms.calibrate import calibrate, shared_budget
from skdpnoise.mechanisms.grid_sizes import exact_integers, exact_numbers
from skdpnoise.mechanisms.vectors import add_steps
from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, PrivacyLoss
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import adder, note_charge, plus_noise
from skdpnoise.sensitivity import SensitivityProfile, clipped_sum

__all__ = ["Charge", "Drawn", "FitSession", "Query", "Released", "Session", "no_charge"]

Charge = Callable[[str, Any], None]
"""Takes a label and the mechanism that will release, before it samples."""

Counts = tuple[Sequence[int], Callable[[], Sequence[Any]]]
"""How many records have each category of a column, and what returns these categories."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Noise that was charged for and sampled; integers have still to meet it."""

    mechanism: Any
    noise: NDArray[Any]  # in grid steps

    @property
    def adder(self) -> Callable[[int, int], int]:
        """Adds one part of the noise to one integer, many times over."""
        return Session.adding(self.mechanism)

    def add(self, integers: Any, noise: Any = None) -> Any:
        """Return integers plus their noise, in grid steps; plus a part of it if one is given."""
        noise = self.noise if noise is None else noise
        return Session.meeting(self.mechanism, integers, noise)

    def in_units(self, integers: Any, noise: Any = None) -> NDArray[np.float64]:
        """Return integers plus their noise, in the units of the query."""
        return in_units(self.add(integers, noise), self.mechanism.grid_size)

    def on(self, values: Any) -> NDArray[np.float64]:
        """Return exact values, rounded to grid steps as a whole, plus their noise."""
        rows = exact_numbers(values).reshape(self.noise.shape)
        noisy = add_steps(rows, self.noise, self.mechanism.grid_size, self.mechanism)
        return noisy.reshape(np.shape(values))

    def on_fractions(self, values: Sequence[Fraction]) -> NDArray[np.float64]:
        """Return fractions of one release, rounded to grid steps as a whole, plus their noise."""
        steps = exact_integers(values, self.mechanism.grid_size.tolist())
        return self.in_units(steps, self.noise[0])


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

    @staticmethod
    def adding(mechanism: Any) -> Callable[[int, int], int]:
        """Return what adds noise that was charged for to one integer, many times over."""
        return adder(mechanism)

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

    def released(self, label: str, query: Query, table: Table[Any], mechanism: Any) -> Released:
        """Release the noisy sums of a query once, with noise that was calibrated for it."""
        drawn = self.draw(label, mechanism)
        sums = table.total(query.step(mechanism.grid_size), label)
        return Released(drawn.in_units(sums, drawn.noise.reshape(np.shape(sums))), mechanism)

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
        drawn = self.draw(label, mechanism)
        counts = table.total(query.step(np.ones(mechanism.grid_size.shape[-1])), label)
        return Released(drawn.on(np.ravel(counts)), mechanism)

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
