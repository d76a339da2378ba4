"""From the user's units to standard ones, by public bounds or private locations and scales."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from skdpnoise.accounting.queries import GroupedSum
from skdpnoise.accounting.session import FitSession, Search
from skdpnoise.base.advice import (
    SEE_TARGET,
    cause_of_hiding,
    named,
    note_hidden,
    warn_last,
    warn_of_hidden_target,
)
from skdpnoise.data.table import Table
from skdpnoise.kernels.second_moments import clipped_row_sums
from skdpnoise.kernels.sizes import MOST_ROWS
from skdpnoise.linear_model import _rules as rules
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._records import LinearSchema, Rate, Rows, Settings
from skdpnoise.linear_model._standard_units import LIMIT, RowScaling, Standardisation
from skdpnoise.mechanisms import calibrate
from skdpnoise.privacy import LossBudget
from skdpnoise.queries.location_scale import LEAST_SCALE, LocationScale, locate
from skdpnoise.queries.ranges import TYPICAL, Ranges
from skdpnoise.queries.searched_location import SearchedLocation, search_location
from skdpnoise.sensitivity import (
    RowBounds,
    SensitivityProfile,
    clipped_rows,
    clipped_sum,
)

_LEAST_RATE = 1e-9  # a smaller scale is what a search finds where nearly all counts are 0
_LEAST_MEAN = 1.0 / 14.0  # of counts, in their quantile of 13/14: Markov's inequality
_LEAST_FOUND = 1e-29  # magnitudes end at 2**-100: a scale about there is an end, and not found


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A fit that releases: its settings and public facts, its session and what is left to spend."""

    settings: Settings
    schema: LinearSchema
    session: FitSession
    budget: FitBudget

    @property
    def n_samples(self) -> float:
        """Number of records, public or released."""
        return self.session.n_records

    def located(
        self, n_columns: int, bounds: Any, loss: LossBudget, prefix: str = "", *, pooled: bool
    ) -> Search[LocationScale]:
        """Search for locations and scales of columns, under labels that begin so."""
        ranges = Ranges("private_location_scale", n_columns, bounds, pooled=pooled)
        session, noise = self.session.under(prefix), self.budget.noise
        return locate(ranges, session, noise, loss, self.n_samples)

    def searched(self, y: Table[Any], bounds: tuple[float, float]) -> SearchedLocation:
        """Release location and scale of a target, if there is enough for both."""
        budget, session = self.budget, self.session.under("target: ")
        return search_location(y, budget.search, bounds, budget.noise, self.n_samples, session)


def standardise(run: Run, bounds: np.ndarray, *, target: bool = False) -> Search[Standardisation]:
    """Find locations and scales of features or target; public bounds save most of the budget."""
    # Nothing within public bounds is clipped yet: a rare value may be what a column is about.
    part, prefix = (run.budget.target, "target: ") if target else (run.budget.features, "")
    n_columns, pooled = bounds.shape[1], run.settings.whole
    found = yield from run.located(n_columns, (bounds[0], bounds[1]), part, prefix, pooled=pooled)
    if not found.found.all():
        _warn(run, found)
        note_hidden("the target" if target else run.settings.owner, ~found.found)
    widest = np.maximum(bounds[1] - found.location, found.location - bounds[0]) / LIMIT
    wide = np.where(np.isfinite(widest), np.maximum(found.scale, widest), found.scale)
    limit = LIMIT * wide / found.scale
    standard = Standardisation(found.location, found.scale, found.found, limit)
    return standard if run.settings.fit_intercept else standard.through_origin()


def standardise_target(run: Run, y: Table[Any], bounds: np.ndarray) -> tuple[Standardisation, Run]:
    """Release location and scale of the target; return them, and the run with what is left."""
    # A target without bounds is searched for. So is one whose bounds turn out to be much wider than
    # its spread, from what was meant for features and model: whether that is so is decided by
    # released numbers.
    standard, run, found = _located(run, y, bounds)
    _warn_of_constant(run, found)
    return standard, run


def _located(
    run: Run, y: Table[Any], bounds: np.ndarray
) -> tuple[Standardisation, Run, SearchedLocation | None]:
    """Return what the target's scaling within bounds or its search released, and what is left."""
    if run.budget.first == "scaling":
        column = y.map(_as_column, 1)
        standard = run.session.answer(standardise(run, bounds, target=True), column)
        if not _is_hidden(standard, run, bounds):
            return standard, run, None
        run = replace(run, budget=run.budget.with_search(run.n_samples))
    found = run.searched(y, (float(bounds[0, 0]), float(bounds[1, 0])))
    facts = found.location, found.scale, found.found, LIMIT
    standard = Standardisation(*(np.array([fact]) for fact in facts))
    return (standard if run.settings.fit_intercept else standard.through_origin()), run, found


def _is_hidden(standard: Standardisation, run: Run, bounds: np.ndarray) -> bool:
    """Return True if the noise of the target's mean within these bounds is much of its scale."""
    # In halves of the interval: sums in units of very narrow bounds would leave the doubles.
    one_sum = clipped_sum(-1.0, 1.0, run.budget.adjacency)
    mechanism = calibrate(run.budget.noise, one_sum, run.budget.target.share(0.5))
    half = 0.5 * (bounds[1] - bounds[0])
    noise = mechanism.standard_deviation[0] / run.n_samples * half[0]
    return not noise <= rules.TARGET.hidden * standard.scale[0]


def release_log_odds(
    run: Run, table: Table[Rows], n_outputs: int, weights: np.ndarray | float = 1.0
) -> np.ndarray:
    """Release how many records are in each class; return the log-odds of every output."""
    # Without an intercept they are 0, and nothing is released.
    if run.budget.first == "nothing":
        return np.zeros(n_outputs)
    counts = release_class_counts(run, table, n_outputs) * weights
    others = counts.sum() - counts
    return np.asarray(np.log(counts / others)[-n_outputs:])


def release_class_counts(run: Run, table: Table[Rows], n_outputs: int) -> np.ndarray:
    """Release how many records are in each class: no fewer than the noise is wide."""
    query = GroupedSum(max(2, n_outputs), _class_codes)
    budget, label = run.budget, "class shares"
    found = run.session.tally(label, query, table, budget.search, budget.noise)
    return np.maximum(found.values, max(0.5, float(found.standard_deviation[0])))


def _class_codes(rows: Rows) -> np.ndarray:
    """Return the number of the class of every row; of two, the second has the only output."""
    first = rows.outputs[0] > 0
    return first.astype(np.intp) if len(rows.outputs) == 1 else np.argmax(rows.outputs, axis=0)


def _as_column(values: np.ndarray) -> np.ndarray:
    return values[:, np.newaxis]


def release_rate(run: Run, y: Table[Any], bounds: np.ndarray | None) -> tuple[Rate, Run]:
    """Release mean and scale of counts, as of any target; return them and the rest of the run."""
    # Where the search finds that nearly all are alike, they are scaled as a feature is: by
    # magnitudes, which see what is rare. Without an intercept the unit is 1. A mean that the noise
    # made smaller than counts of such a scale have is set to the least of these.
    assert bounds is not None
    settings = run.settings  # the mean is wanted in any case
    always = replace(run, settings=replace(settings, fit_intercept=True))
    found, after, search = _located(always, y, bounds)
    run = replace(after, settings=settings)
    seen = bool(found.used[0] and found.scale[0] >= _LEAST_RATE)
    another = None if seen else run.budget.with_another_look()
    if another is not None:
        part, budget = another
        column, ends = y.map(_as_column, 1), (0.0, np.inf)
        search_again = run.located(1, ends, part, "target: ", pooled=False)
        rare = run.session.answer(search_again, column)
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
    _warn_of_constant(run, search)
    least = found.scale * np.where(found.used, _LEAST_MEAN, 0.5 / run.n_samples)
    center = np.maximum(found.center, least) if run.settings.fit_intercept else np.ones(1)
    return Rate(np.zeros(1), replace(found, center=center)), run


def _warn_of_constant(run: Run, found: SearchedLocation | None) -> None:
    """Say how noisy the location that a search found is, by released numbers and public ones."""
    if found is None or (found.found and found.error <= rules.TARGET.hidden * found.scale):
        return
    name, epsilon = run.settings.owner, run.settings.epsilon
    only = "one constant" if run.settings.fit_intercept else "0 everywhere"
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


def _warn(run: Run, found: LocationScale) -> None:
    """Say which columns are left out, and why."""
    cause = cause_of_hiding(run.settings.epsilon, typical_found=found.typical_found)
    columns = named(run.session.account.estimator, ~found.found)
    remedy = "More records, a larger epsilon or public bounds (feature_bounds) would help."
    warn_last(f"{run.settings.owner} leaves out {columns}: {cause}. {remedy}")


def standardise_features(run: Run, table: Table[Rows]) -> Standardisation:
    """Release what must be known of the features, for gradients of whole rows or of columns."""
    X = table.map(attrgetter("X"), run.schema.n_columns)
    groups, within = run.schema.column_groups, run.schema.bounds
    if not run.settings.whole:
        return run.session.answer(standardise(run, within), X)
    grouped, p = groups != NO_GROUP, groups.size
    if run.schema.sparse:  # zeros stay zeros
        largest = np.abs(within).max(axis=0)
        standard = Standardisation(np.zeros(p), largest, largest > 0.0, np.ones(p))
        return _of_groups(standard, np.full(p, TYPICAL), groups)
    if run.budget.centred:
        standard = _scale_bounded_rows(run, X, within, groups)
    elif grouped.any():
        facts = np.zeros(p), np.ones(p), np.ones(p, dtype=bool), np.ones(p)
        alone, standard = np.flatnonzero(~grouped), Standardisation(*facts)
        if alone.size:
            some = X.map(partial(_columns_of, alone), alone.size)
            found = run.session.answer(standardise(run, within[:, alone]), some)
            for field_ in fields(Standardisation):
                getattr(standard, field_.name)[alone] = getattr(found, field_.name)
    else:
        standard = run.session.answer(standardise(run, within), X)
    # By its deviation alone a column that is hardly ever 1 would have very long rows, by half of
    # its bounds alone one that is far from them would hardly count: scales are between.
    bounds = np.where(grouped, [[-np.inf], [np.inf]], within)
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    known = np.isfinite(half) & standard.used
    part = np.where(known, np.clip(standard.scale / np.where(known, half, 1.0), 0.0, 1.0), 1.0)
    scale, limit = standard.scale / np.sqrt(part), standard.limit * np.sqrt(part)
    softened = replace(standard, scale=scale, limit=limit)
    return _of_groups(softened, np.sqrt(part), groups)


def _columns_of(columns: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[:, columns]


def _of_groups(standard: Standardisation, spread: np.ndarray, groups: np.ndarray) -> RowScaling:
    """Return the scaling, with what is known of columns of groups."""
    grouped = groups != NO_GROUP
    sizes = np.bincount(groups[grouped])[groups[grouped]]
    spread[grouped] = np.sqrt(1.0 / sizes)
    facts = standard.center, standard.scale, standard.used, standard.limit
    return RowScaling(*facts, spread, groups)


def _scale_bounded_rows(
    run: Run, X: Table[Any], bounds: np.ndarray, groups: np.ndarray
) -> Standardisation:
    """Release means and mean squares of rows within public bounds, for centres and scales."""
    grouped = groups != NO_GROUP
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    middle, used = 0.5 * bounds[1] + 0.5 * bounds[0], half > 0.0
    half, p = np.where(used, half, 1.0), half.size
    mean, variance = np.zeros(p), np.full(p, TYPICAL**2)
    if run.budget.scaling and used.any():
        query, loss = RowMoments(middle, half, groups), run.budget.features
        label = "means and squares of rows"
        found = run.session.release(label, query, X, loss, "iid_gaussian")
        both = found.values / run.n_samples
        first, second = both[:p], both[p:] + 0.5
        noise = float(found.standard_deviation[0]) / run.n_samples
        keep = rules.kept(float((first**2).sum()), p * noise**2, p)
        mean = np.clip(keep * first, -1.0, 1.0)
        alone = ~grouped
        variance[alone] = second - mean[alone] ** 2
        if alone.any():
            common, n_alone = variance[alone].mean(), int(alone.sum())
            others = variance[alone] - common
            energy = float((others**2).sum())
            drawn = rules.kept(energy, n_alone * noise**2, n_alone)
            variance[alone] = common + drawn * others
    mean = np.where(used, mean, 0.0)
    part = np.sqrt(np.clip(variance, LEAST_SCALE**2, 1.0))
    part[grouped] = 1.0
    return Standardisation(middle + half * mean, half * part, used, (1.0 + np.abs(mean)) / part)


@dataclass(frozen=True, slots=True, eq=False)
class RowMoments:
    """Sums of rows in halves of public bounds, and of their squares less a half."""

    # With z within ±1, the norm of (z, z² - 1/2) is at most the root of p + p/4. Of groups, whose
    # part of a row has norm 1, only z is summed.

    middle: np.ndarray
    half: np.ndarray
    groups: np.ndarray

    @property
    def alone(self) -> np.ndarray:
        """The columns in no group."""
        return np.flatnonzero(self.groups == NO_GROUP)

    @property
    def limits(self) -> RowBounds:
        """Limits to which a row is clipped."""
        n_alone = self.alone.size
        columns = np.append(np.ones(self.half.size), np.full(n_alone, 0.5))
        norm = math.sqrt(1.25 * n_alone + self.groups.max() + 1)
        return RowBounds(columns.size, norm, columns=columns)

    def sensitivity(self, adjacency: Any) -> SensitivityProfile:
        return clipped_rows(self.limits, adjacency)

    def step(self, grid_size: np.ndarray) -> Any:
        return partial(_sums_of_moments, self, grid_size)


def _sums_of_moments(query: RowMoments, grid_size: np.ndarray, X: Any) -> np.ndarray:
    limits, alone = query.limits, query.alone
    sums = np.zeros(grid_size.size, dtype=np.int64)
    bounds: dict[str, Any] = {"norm": limits.norm, "columns": limits.columns}
    for begin in range(0, len(X), MOST_ROWS):
        values = X[begin : begin + MOST_ROWS].astype(np.float64)
        z = np.clip((values - query.middle) / query.half, -1.0, 1.0)
        both = np.hstack([z, z[:, alone] ** 2 - 0.5])
        sums += clipped_row_sums(both, row_grid_size=grid_size, **bounds)
    return sums
