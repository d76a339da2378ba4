"""From the user's units to standardised columns, privately or by public bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skdpnoise.base.advice import (
    SEE_TARGET,
    cause_of_hiding,
    named,
    note_hidden,
    warn_last,
    warn_of_hidden_target,
)
from skdpnoise.base.private_fit import PrivateRun
from skdpnoise.data.table import mapped, total
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._records import LIMIT, Rate, Settings, Standardisation
from skdpnoise.mechanisms import calibrate
from skdpnoise.queries import private_location_scale
from skdpnoise.queries.location_scale import LocationScale
from skdpnoise.queries.searched_location import SearchedLocation, search_location
from skdpnoise.sensitivity import clipped_sum, histogram_counts

Run = PrivateRun[Budget]
"""What every stage of a linear fit needs that releases something."""

# A target within bounds is hidden if the noise of its mean is more than this part of its scale;
# bounds are wide from so many times ±3 scales on.
_HIDDEN, _HIDDEN_BETWEEN_TIGHT_BOUNDS, _WIDE = 0.25, 0.3, 2.0
_LEAST_RATE = 1e-9  # a smaller scale is what a search finds where nearly all counts are 0
_LEAST_FOUND = 1e-29  # magnitudes end at 2**-100: a scale about there is an end, and not found
# Of counts, in scales. By Markov's inequality a mean is at least 1/14 of the quantile of 13/14.
_LEAST_MEAN = 1.0 / 16.0
_NOISY = 0.15  # the noise of a location that is worth a warning, in scales


def standardise(
    settings: Settings, run: Run, table: np.ndarray, bounds: np.ndarray, *, target: bool = False
) -> Standardisation:
    """Release locations and scales of features or target; public bounds save most of the budget."""
    # Nothing within public bounds is clipped yet: a rare value may be what a column is about.
    part, prefix = (run.budget.target, "target: ") if target else (run.budget.features, "")
    ends = bounds[0], bounds[1]
    found = private_location_scale(
        table, part, bounds=ends, pooled=settings.joint, **_terms(run, prefix)
    )
    if not found.found.all():
        _warn(settings, run, found)
        note_hidden("the target" if target else settings.owner, ~found.found)
    widest = np.maximum(bounds[1] - found.location, found.location - bounds[0]) / LIMIT
    wide = np.where(np.isfinite(widest), np.maximum(found.scale, widest), found.scale)
    limit = LIMIT * wide / found.scale
    standard = Standardisation(found.location, found.scale, found.found, limit)
    return standard if settings.fit_intercept else standard.through_origin()


def _terms(run: Run, prefix: str) -> dict[str, Any]:
    """Return what a query needs to release something for this fit."""
    return {
        "noise": run.budget.noise,
        "adjacency": run.budget.adjacency,
        "n_samples": run.n_samples,
        "random_state": run.rng,
        "charge": lambda label, mechanism: run.account.charge(prefix + label, mechanism),
    }


def standardise_target(
    settings: Settings, run: Run, y: np.ndarray, bounds: np.ndarray
) -> tuple[Standardisation, Run]:
    """Release location and scale of the target; return them, and the run with what is left."""
    # A target without bounds is searched for. So is one whose bounds turn out to be much wider than
    # its spread, from what was meant for features and model: whether that is so is decided by
    # released numbers.
    standard, run, found = _located(settings, run, y, bounds)
    _warn_of_constant(settings, run, found)
    return standard, run


def _located(
    settings: Settings, run: Run, y: np.ndarray, bounds: np.ndarray
) -> tuple[Standardisation, Run, SearchedLocation | None]:
    """Return what the target's scaling within bounds or its search released, and what is left."""
    if run.budget.first == "scaling":
        standard = standardise(settings, run, mapped(y, as_column, 1), bounds, target=True)
        if not _is_hidden(standard, run, bounds):
            return standard, run, None
        run = replace(run, budget=run.budget.with_search(run.n_samples))
    found = search_location(
        y,
        run.budget.search,
        bounds=(float(bounds[0, 0]), float(bounds[1, 0])),
        **_terms(run, "target: "),
    )
    facts = found.location, found.scale, found.found, LIMIT
    standard = Standardisation(*(np.array([fact]) for fact in facts))
    return (standard if settings.fit_intercept else standard.through_origin()), run, found


def _is_hidden(standard: Standardisation, run: Run, bounds: np.ndarray) -> bool:
    """Whether the noise of the target's mean within these bounds is much of its scale."""
    # In halves of the interval: sums in units of very narrow bounds would leave the doubles.
    one_sum = clipped_sum(-1.0, 1.0, run.budget.adjacency)
    mechanism = calibrate(run.budget.noise, one_sum, run.budget.target.share(0.5))
    half = 0.5 * (bounds[1] - bounds[0])
    most = _HIDDEN if standard.reach[0] > _WIDE else _HIDDEN_BETWEEN_TIGHT_BOUNDS
    noise = mechanism.standard_deviation[0] / run.n_samples * half[0]
    return not noise <= most * standard.scale[0]


def release_log_odds(
    run: Run, outputs: Sequence[np.ndarray], weights: np.ndarray | float = 1.0
) -> np.ndarray:
    """Release how many records are in each class; return the log-odds of every output."""
    # Without an intercept they are 0, and nothing is released.
    if run.budget.first == "nothing":
        return np.zeros(len(outputs))
    counts = release_class_counts(run, outputs) * weights
    others = counts.sum() - counts
    return np.asarray(np.log(counts / others)[-len(outputs) :])


def release_class_counts(run: Run, outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Release how many records are in each class: no fewer than the noise is wide."""
    # A record is one count (skdpnoise.sensitivity.histogram_counts): of two classes, the output's
    # and the other; of more, its own.
    found = [int(total(output, _count_positive, "classes")) for output in outputs]
    positive = np.array(found, dtype=np.int64)
    if positive.size == 1:
        positive = np.array([len(outputs[0]) - positive[0], positive[0]])
    sensitivity = histogram_counts(positive.size, run.budget.adjacency)
    mechanism = calibrate(run.budget.noise, sensitivity, run.budget.search)
    run.account.charge("class shares", mechanism)
    counts = mechanism.release(positive, run.rng)
    return np.maximum(counts, max(0.5, float(mechanism.standard_deviation[0])))


def as_column(values: np.ndarray) -> np.ndarray:
    """Return a vector as a table of one column."""
    return values[:, np.newaxis]


def _count_positive(output: np.ndarray) -> np.ndarray:
    return np.asarray(np.count_nonzero(output > 0))


def release_rate(
    settings: Settings, run: Run, y: np.ndarray, bounds: np.ndarray | None
) -> tuple[Rate, Run]:
    """Release mean and scale of counts, as of any target; return them and the rest of the run."""
    # Where the search finds that nearly all are alike, they are scaled as a feature is: by
    # magnitudes, which see what is rare. Without an intercept the unit is 1. A mean that the noise
    # made smaller than counts of such a scale have is set to the least of these.
    assert bounds is not None
    always = replace(settings, fit_intercept=True)  # the mean is wanted in any case
    found, run, search = _located(always, run, y, bounds)
    seen = bool(found.used[0] and found.scale[0] >= _LEAST_RATE)
    another = None if seen else run.budget.with_another_look()
    if another is not None:
        part, budget = another
        terms = _terms(run, "target: ")
        rare = private_location_scale(mapped(y, as_column, 1), part, bounds=(0.0, np.inf), **terms)
        run = replace(run, budget=budget)
        seen = bool(rare.found[0] and rare.scale[0] >= _LEAST_FOUND)
        if seen:
            facts = rare.location, rare.scale, rare.found, np.full(1, LIMIT)
            found, search = Standardisation(*facts), None
    if not seen:
        if search is None or search.found:  # of a scale that is none
            error = found.scale[0] if search is None else search.error
            search = SearchedLocation(0.0, float(error), 1.0, found=False)
        found = replace(found, scale=np.ones(1), used=np.zeros(1, dtype=bool))
    _warn_of_constant(settings, run, search)
    least = found.scale * np.where(found.used, _LEAST_MEAN, 0.5 / run.n_samples)
    center = np.maximum(found.center, least) if settings.fit_intercept else np.ones(1)
    return Rate(np.zeros(1), replace(found, center=center)), run


def _warn_of_constant(settings: Settings, run: Run, found: SearchedLocation | None) -> None:
    """Say how noisy the location that a search found is, by released numbers and public ones."""
    if found is None or (found.found and found.error <= _NOISY * found.scale):
        return
    name, epsilon = settings.owner, run.account.guarantee.epsilon
    only = "one constant" if settings.fit_intercept else "0 everywhere"
    if found.hidden:
        warn_of_hidden_target(f"{name} predicts {only}, which tells nothing of the target", epsilon)
        return
    about = (
        f"at epsilon={epsilon:g} the noise on the location of the target has a standard deviation "
        f"of about {found.error:.2g} in its units"
    )
    if found.found:
        about += f", of a scale of {found.scale:.2g}"
    else:
        name += f" predicts {only}: the target is constant, or its scale is hidden;"
    warn_last(f"{name} {about}. {SEE_TARGET}")


def _warn(settings: Settings, run: Run, found: LocationScale) -> None:
    """Say which columns are left out, and why."""
    epsilon = run.account.guarantee.epsilon
    cause = cause_of_hiding(epsilon, typical_found=found.typical_found)
    warn_last(
        f"{settings.owner} leaves out {named(run.account.estimator, ~found.found)}: {cause}. More "
        "records, a larger epsilon or public bounds (feature_bounds) would help."
    )
