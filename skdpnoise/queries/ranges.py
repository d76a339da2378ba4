"""Ranges of columns, public or estimated privately, that later releases are clipped to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.privacy import Adjacency, LossBudget, PrivacyGuarantee, check_real
from skdpnoise.privacy.checks import check_adjacency
from skdpnoise.queries._aggregation import as_table
from skdpnoise.queries._ledgers import LedgerLike, check_ledger, spend
from skdpnoise.queries._releases import Charge, Releases, uncharged
from skdpnoise.queries._unbounded import SEARCH_SHARES, find_bins
from skdpnoise.queries.location_scale import check_bounds
from skdpnoise.queries.record_count import COUNT_SHARE, release_record_count
from skdpnoise.sampling import random_words

__all__ = ["STEPS", "Choice", "Ranges", "find_ranges", "stage_losses"]

STEPS = 4  # releases: magnitude, coarse and fine location, and what comes after

Choice = Callable[[int, Adjacency, int], tuple[str, LossBudget]]
"""From columns, neighbouring relation and releases to the noise and the loss of all releases."""


def stage_losses(budget: LossBudget, *, counts: bool, searches: bool) -> list[LossBudget]:
    """Return what each stage may cost, whatever the stages before it release."""
    # `counts` and `searches` say whether the number of records and the ranges of some columns are
    # bought. Together the stages cost no more than the budget.
    rest, stages = 1.0, []
    if counts:
        stages.append(budget.share(COUNT_SHARE))
        rest -= COUNT_SHARE
    if searches:
        stages += [budget.share(rest * part) for part in SEARCH_SHARES]
        rest *= 1.0 - sum(SEARCH_SHARES)
    return [*stages, budget if rest == 1.0 else budget.share(rest)]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Where the values of each column are, and what is left to release more about them."""

    # shape (n_samples, n_columns): the private values, in floating point
    table: NDArray[np.floating]
    # center, unit: shape (n_columns,): in the units of the columns: middle and half width of public
    # bounds; else a location, and a power of two about one standard deviation
    center: NDArray[np.float64]
    unit: NDArray[np.float64]
    bounded: NDArray[np.bool_]  # shape (n_columns,): whether the bounds are public
    # shape (n_columns,): false where the noise drowned a column, or it is constant
    found: NDArray[np.bool_]
    n_samples: float  # number of records, public or estimated privately; at least 1
    budget: LossBudget  # what is left
    releases: Releases  # noise, neighbouring relation, randomness and account


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a query on columns is asked for beside the values, as its caller gave it."""

    owner: str
    guarantee: PrivacyGuarantee | LossBudget
    adjacency: Adjacency | None
    bounds: tuple[ArrayLike, ArrayLike] | None
    n_samples: float | None
    random_state: Any
    charge: Charge | None
    ledger: LedgerLike | None


def find_ranges(values: ArrayLike, asked: Asked, choose: Choice) -> Ranges:
    """Return public ranges where there are some; estimate others with a part of the budget."""
    # Columns without bounds are searched for their magnitude and location as
    # skdpnoise.queries.private_location_scale says, steps 1 and 2; the number of records is bought
    # under "add_remove" unless one is given. The shares of the budget never add up to more than the
    # whole, whatever is released.
    owner, guarantee, n_samples = asked.owner, asked.guarantee, asked.n_samples
    check_ledger(owner, asked.ledger)
    array, _ = as_table(owner, values)
    if len(array) == 0:
        raise ValueError(f"The 'values' parameter of {owner} must not be empty.")
    # Floats stay as they are: a copy of large data would be as large again.
    table = array if array.dtype.kind == "f" else array.astype(np.float64)
    n_columns = table.shape[1]
    stated = guarantee.adjacency if isinstance(guarantee, PrivacyGuarantee) else "replace_one"
    relation = check_adjacency(owner, stated if asked.adjacency is None else asked.adjacency)
    low, high = check_bounds(owner, asked.bounds, n_columns)
    bounded = np.isfinite(low) & np.isfinite(high)
    noise, budget = choose(n_columns, relation, 1 if bounded.all() else STEPS)
    rng, charge = random_words(asked.random_state), asked.charge or uncharged
    releases = Releases(noise, relation, rng, charge)
    if n_samples is not None:
        n_samples = check_real(owner, "n_samples", n_samples)
    secure = rng.secure
    spend(
        asked.ledger, owner, budget, guarantee, adjacency=relation, mechanism=noise, secure=secure
    )
    rest = 1.0
    if n_samples is None and relation == "add_remove":
        rest -= COUNT_SHARE
        n_samples = release_record_count(len(table), budget, noise, releases.rng, releases.charge)
    elif n_samples is None:
        n_samples = float(len(table))
    center, unit = np.zeros(n_columns), np.ones(n_columns)
    # Halves are taken before the sum, so that the widest bounds do not overflow.
    center[bounded] = 0.5 * low[bounded] + 0.5 * high[bounded]
    unit[bounded] = 0.5 * high[bounded] - 0.5 * low[bounded]
    found = bounded.copy()
    searched = np.flatnonzero(~bounded)
    if searched.size:
        shares = [budget.share(rest * part) for part in SEARCH_SHARES]
        center[searched], unit[searched], found[searched] = find_bins(
            table, searched, (shares[0], shares[1], shares[2]), releases
        )
        rest *= 1.0 - sum(SEARCH_SHARES)
    return Ranges(
        table,
        center,
        unit,
        bounded,
        found,
        max(n_samples, 1.0),
        budget if rest == 1.0 else budget.share(rest),
        releases,
    )
