"""Dividing the records by chance, and the units of a target, estimated from a part of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdpnoise.model_selection._runs import Parts, Problem, Target, noisy_count, noisy_mean
from skdpnoise.privacy import Adjacency, LossBudget, PureLoss
from skdpnoise.queries import private_location_scale
from skdpnoise.sampling import RandomWords, permutation
from skdpnoise.sampling.observer import note_charge

REFERENCE = 0.1  # of the records, where the units of a target must be bought
_UNITS = 0.6  # of the budget of that part for location and scale; the rest for the variance
_COUNT = 0.05  # and of that, for the number of its records where that is private
_FLOOR = 0.05  # a variance below it would be noise
HIDDEN = (
    "The noise hides the scale of the target, so that candidates are compared in units of 1, which "
    "may tell them apart badly. Public 'target_bounds', more records or a larger epsilon help."
)


def divide(
    n_samples: int,
    validation: float,
    reference: float,
    adjacency: Adjacency,
    rng: RandomWords,
    groups: NDArray[np.intp] | None = None,
) -> Parts:
    """Divide rows into training, validation and reference part, by coins that see no data."""
    # If the number of rows is public (replace one, no groups), parts have exact sizes. Else each
    # row, or each group of rows, falls into a part by a coin of its own: neighbouring data sets,
    # with the same coins, differ in one part only.
    if groups is None and adjacency == "replace_one":
        first = max(1, round(validation * n_samples))
        second = first + (max(1, round(reference * n_samples)) if reference else 0)
        place = np.zeros(n_samples, dtype=np.intp)
        order = permutation(rng, n_samples)
        place[order[:first]], place[order[first:second]] = 1, 2
    else:
        codes = np.arange(n_samples) if groups is None else groups
        coins = np.ldexp(rng.take(int(codes.max()) + 1).astype(np.float64), -64)[codes]
        place = 1 + np.searchsorted(np.cumsum([validation, reference]), coins, side="right")
        place[place == 3] = 0
    return Parts(*(np.flatnonzero(place == k) for k in range(3)))


def release_units(
    problem: Problem, y: NDArray[np.float64], budget: LossBudget
) -> tuple[Target, bool]:
    """Release location and scale of the target, unless public, and its variance, for R²."""
    # The records are those of the reference part, which has the whole budget to itself. Whether
    # there are any does not count: how many they are may be private.
    adjacency, rng = problem.adjacency, problem.rng
    known, rest, hidden = problem.known, budget, False
    if known is None:
        rest = budget.share(1.0 - _UNITS)
        n_samples = noisy_count(y.size, budget.share(_COUNT), adjacency, rng)
        found = private_location_scale(
            [y],
            budget.share(_UNITS - _COUNT),
            noise="iid_laplace" if isinstance(budget, PureLoss) else "iid_gaussian",
            adjacency=adjacency,
            n_samples=n_samples,
            random_state=rng,
            charge=lambda label, one: note_charge(f"units of the target: {label}", one),
        )
        hidden = not found.found[0]
        units = (0.0, 1.0) if hidden else (float(found.location[0]), float(found.scale[0]))
        known = Target(*units)
    squares = ((np.asarray(y, dtype=np.float64) - known.location) / known.scale) ** 2
    losses = problem.scoring.rounded(squares)
    label = "variance of the target"
    variance = noisy_mean(losses, rest, adjacency, rng, label) * problem.scoring.limit
    return Target(known.location, known.scale, max(variance, _FLOOR)), hidden
