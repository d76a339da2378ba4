"""One run that releases: every integer meets its noise here, after it was charged for.

A session charges, samples, sums and adds, in this order. What is summed and how far one record
moves it are one object, a :class:`Query`, so that the two cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdpnoise.data.table import Table, in_units
from skdpnoise.mechanisms.calibrate import calibrate
from skdpnoise.privacy import Adjacency, LossBudget
from skdpnoise.sampling import RandomWords
from skdpnoise.sampling.observer import plus_noise
from skdpnoise.sensitivity import SensitivityProfile

__all__ = ["Charge", "Drawn", "Query", "Released", "Session"]

Charge = Callable[[str, Any], None]
"""Takes a label and the mechanism that will release, before it samples."""


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

    def add(self, integers: Any, noise: Any = None) -> Any:
        """Return integers plus their noise, in grid steps; plus a part of it if one is given."""
        return plus_noise(self.mechanism, integers, self.noise if noise is None else noise)

    def in_units(self, integers: Any, noise: Any = None) -> NDArray[np.float64]:
        """Return integers plus their noise, in the units of the query."""
        return in_units(self.add(integers, noise), self.mechanism.grid_size)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Noisy sums, which are public, and what released them."""

    values: NDArray[np.float64]
    mechanism: Any

    @property
    def standard_deviation(self) -> NDArray[np.float64]:
        """Of the noise of each sum."""
        return np.asarray(self.mechanism.standard_deviation)


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """The terms on which one run releases."""

    rng: RandomWords
    adjacency: Adjacency
    charge: Charge
    prefix: str = ""  # of labels

    def under(self, prefix: str) -> Session:
        """Return the session with labels that begin so."""
        return replace(self, prefix=self.prefix + prefix)

    def draw(self, label: str, mechanism: Any) -> Drawn:
        """Charge for all releases of a mechanism, and sample their noise."""
        self.charge(self.prefix + label, mechanism)
        return Drawn(mechanism, mechanism.sample(self.rng))

    def release(
        self, label: str, query: Query, table: Table[Any], loss: LossBudget, noise: str
    ) -> Released:
        """Release the noisy sums of a query once, for such a loss."""
        mechanism = calibrate(noise, query.sensitivity(self.adjacency), loss)
        drawn = self.draw(label, mechanism)
        sums = table.total(query.step(mechanism.grid_size), label)
        return Released(drawn.in_units(sums, drawn.noise[0]), mechanism)
