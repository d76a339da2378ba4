"""From the user's units to standard ones, by public bounds or private locations and scales."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skdpnoise.accounting.budget import HALF
from skdpnoise.accounting.queries import ClippedRows
from skdpnoise.accounting.session import FitSession, Search
from skdpnoise.base.advice import cause_of_hiding, named, note_hidden, warn_last
from skdpnoise.data.computed import asked_epsilon
from skdpnoise.data.table import Table
from skdpnoise.kernels.losses import in_turn
from skdpnoise.kernels.sizes import in_blocks
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._budget import FitBudget
from skdpnoise.linear_model._column_groups import NO_GROUP
from skdpnoise.linear_model._constant_models import constant_of
from skdpnoise.linear_model._records import LinearSchema, Settings
from skdpnoise.linear_model._standard_units import LIMIT, OF_COLUMNS, Standardisation
from skdpnoise.mechanisms import calibrate
from skdpnoise.mechanisms.balls import calibrate_ball
from skdpnoise.privacy import LossBudget
from skdpnoise.queries.location_scale import (
    LEAST_SCALE,
    TO_SIGMA,
    locate,
    locate_first,
)
from skdpnoise.queries.ranges import REACH, SEARCH_SHARES, TYPICAL, Ranges, hides_magnitudes
from skdpnoise.sensitivity import RowBounds, clipped_sum


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

    @property
    def asked_epsilon(self) -> float:
        """The ε of what the user fits, of which this fit may be a part."""
        return asked_epsilon(self.session.account.estimator)

    def spared(self, part: float) -> Run:
        """Return the run whose model may cost such a part of what the features may, too."""
        return replace(self, budget=replace(self.budget, spared=part))


def standardise(
    run: Run, bounds: np.ndarray, alone: np.ndarray | None = None, *, target: bool = False
) -> Search[tuple[Standardisation, float]]:
    """Find locations and scales of features or target; public bounds save most of the budget."""
    # Of all features, or of those alone that share no unit of norm with others. Return also the
    # part of the budget that is left where columns without bounds are alike.
    # Nothing within public bounds is clipped yet: a rare value may be what a column is about.
    part, prefix = (run.budget.target, "target: ") if target else (run.budget.features, "")
    ends = bounds[0], bounds[1]
    ranges = Ranges("private_location_scale", bounds.shape[1], ends, pooled=True)
    session, noise = run.session.under(prefix), run.budget.noise
    found, left = yield from locate_first(ranges, session, noise, part, run.n_samples)
    if not found.found.all():
        hidden = ~found.found
        if alone is not None:
            hidden = np.zeros(run.schema.n_columns, dtype=bool)
            hidden[alone] = ~found.found
        _warn(run, hidden, typical_found=found.typical_found)
        note_hidden("the target" if target else run.settings.owner, hidden)
    widest = np.maximum(bounds[1] - found.location, found.location - bounds[0]) / LIMIT
    wide = np.where(np.isfinite(widest), np.maximum(found.scale, widest), found.scale)
    limit = LIMIT * wide / found.scale
    standard = Standardisation(found.location, found.scale, found.found, limit)
    return (standard if run.settings.fit_intercept else standard.through_origin()), left


def _warn(run: Run, hidden: np.ndarray, *, typical_found: bool) -> None:
    cause = cause_of_hiding(run.asked_epsilon, typical_found=typical_found)
    model = run.session.account.estimator
    columns, nothing = named(model, hidden), bool(hidden.all())
    so = f"{constant_of(model)}, as it " if nothing else ""
    remedy = "More records, a larger epsilon or public bounds (feature_bounds) would help."
    text = f"{run.settings.owner} {so}leaves out {columns}: {cause}. {remedy}"
    warn_last(text, first=nothing)


def standardise_features(run: Run) -> Search[tuple[Standardisation, Run]]:
    """Find what must be known of the features, for gradients of whole rows or of columns."""
    # Return also the run, whose model may cost what the scales of columns that are alike leave.
    groups, within = run.schema.column_groups, run.schema.bounds
    if not run.settings.whole:
        standard, left = yield from standardise(run, within)
        return (yield from _unbounded(run.spared(left), standard))
    grouped, p = groups != NO_GROUP, groups.size
    if run.schema.sparse:  # zeros stay zeros
        largest = np.abs(within).max(axis=0)
        standard = Standardisation(np.zeros(p), largest, largest > 0.0, np.ones(p))
        return _of_groups(standard, np.full(p, TYPICAL), groups), run
    if run.budget.centred:
        loss = run.budget.features if run.budget.scaling else None
        standard = yield from _scale_bounded_rows(run, within, groups, loss)
    elif grouped.any():
        facts = np.zeros(p), np.ones(p), np.ones(p, dtype=bool), np.ones(p)
        alone, standard = np.flatnonzero(~grouped), Standardisation(*facts)
        if alone.size:
            search = standardise(run, within[:, alone], alone)
            found, left = yield partial(_answer_on_columns, search, alone)
            run = run.spared(left)
            for name in OF_COLUMNS:
                getattr(standard, name)[alone] = getattr(found, name)
    else:
        standard, left = yield from standardise(run, within)
        rows = run.settings.fit_intercept and bool(np.isinf(within).any(axis=0).all())
        strength = tuned.ball_strength(run.budget.features, run.n_samples, 2 * p)
        beside = 2.0 * tuned.row_share(p, strength, run.budget.order)
        if rows and left > beside > 0.0:
            # Means and squares of rows within what now are bounds, by a part of what is left.
            ends = standard.center + REACH * np.array([[-1.0], [1.0]]) * standard.scale
            loss = run.budget.features.share(beside)
            standard = yield from _scale_bounded_rows(
                run, ends, groups, loss, typical=1.0 / REACH**2
            )
            left -= beside
        run = run.spared(left)
    # By its deviation alone a column that is hardly ever 1 would have very long rows, by half of
    # its bounds alone one that is far from them would hardly count: scales are between.
    bounds = np.where(grouped, [[-np.inf], [np.inf]], within)
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    known = np.isfinite(half) & standard.used
    part = np.where(known, np.clip(standard.scale / np.where(known, half, 1.0), 0.0, 1.0), 1.0)
    scale, limit = standard.scale / np.sqrt(part), standard.limit * np.sqrt(part)
    softened = replace(standard, scale=scale, limit=limit)
    return _of_groups(softened, np.sqrt(part), groups), run


def _unbounded(run: Run, standard: Standardisation) -> Search[tuple[Standardisation, Run]]:
    """Search columns whose scale drowns in wide bounds as if they had none."""
    # Which these are, released numbers say; the search costs what found them once more, or
    # half of the model's. Bounds of those found tell nothing: the run that is returned has none.
    bounds, budget, noise = run.schema.bounds, run.budget, run.budget.noise
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    if not (run.settings.fit_intercept and np.isfinite(half).any()) or budget.pure:
        return standard, run
    sums = clipped_sum(0.0 * standard.scale, np.ones(half.size), budget.adjacency)
    mechanism = calibrate(noise, sums, budget.features.share(HALF))
    error = TO_SIGMA * float(mechanism.standard_deviation.max()) / run.n_samples
    least = max(LEAST_SCALE, error / tuned.TARGET.hidden)
    drowned = np.isfinite(half) & (half > 0.0) & (standard.scale <= least * half)
    places, loss = np.flatnonzero(drowned), budget.features.share(budget.again)
    facts = noise, loss.share(SEARCH_SHARES[0]), run.n_samples, places.size
    if not places.size or hides_magnitudes(*facts):
        return standard, run
    ranges = Ranges("private_location_scale", places.size, None)
    search = locate(ranges, run.session, noise, loss, run.n_samples)
    found = yield partial(_answer_on_columns, search, places)
    limit = np.full(places.size, LIMIT)
    closer = Standardisation(found.location, found.scale, found.found, limit)
    arrays = {name: getattr(standard, name).copy() for name in OF_COLUMNS}
    bounds = bounds.copy()
    for name in OF_COLUMNS:
        arrays[name][places[found.found]] = getattr(closer, name)[found.found]
    bounds[:, places[found.found]] = [[-np.inf], [np.inf]]
    run = replace(run, schema=replace(run.schema, bounds=bounds))
    return replace(standard, **arrays), run.spared(budget.spared - budget.again)


def _answer_on_columns(search: Search[Any], columns: np.ndarray, X: Table[Any]) -> Any:
    return FitSession.answer(search, X.map(partial(_columns_of, columns), columns.size))


def _columns_of(columns: np.ndarray, X: np.ndarray) -> np.ndarray:
    return X[:, columns]


def _of_groups(
    standard: Standardisation, spread: np.ndarray, groups: np.ndarray
) -> Standardisation:
    grouped = groups != NO_GROUP
    sizes = np.bincount(groups[grouped])[groups[grouped]]
    spread[grouped] = np.sqrt(1.0 / sizes)
    return replace(standard, spread=spread, groups=groups)


def _scale_bounded_rows(
    run: Run,
    bounds: np.ndarray,
    groups: np.ndarray,
    loss: LossBudget | None,
    *,
    typical: float = math.inf,
) -> Search[Standardisation]:
    """Find centres and scales from means and mean squares of rows within public bounds."""
    # Columns may be known to have about a typical variance, in squared halves of their bounds.
    grouped = groups != NO_GROUP
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    middle, used = 0.5 * bounds[1] + 0.5 * bounds[0], half > 0.0
    half, p = np.where(used, half, 1.0), half.size
    mean, variance = np.zeros(p), np.full(p, TYPICAL**2)
    if run.budget.pure:
        # Noise in all columns hides a mean: 0 is a better guess than the middle, where it is among
        # the values, since most entries of counts, of categories and of pixels are 0.
        inside = (bounds[0] <= 0.0) & (bounds[1] >= 0.0) & ~grouped
        mean = np.where(inside, -middle / half, mean)
    if loss is not None and used.any():
        query = row_moments(middle, half, groups, pooled=run.budget.pure)
        label = "means and squares of rows"
        profile = query.sensitivity(run.budget.adjacency)
        assert profile.l2 is not None
        mechanism = calibrate_ball("iid_gaussian", profile, profile.l2, loss)
        found = yield partial(run.session.released, label, query, mechanism=mechanism)
        both = found.values / run.n_samples
        first = both[:p]
        noise = float(found.standard_deviation[0]) / run.n_samples
        keep = tuned.kept(float(((first - mean) ** 2).sum()), p * noise**2, p)
        mean = np.clip(mean + keep * (first - mean), -1.0, 1.0)
        alone = ~grouped
        if alone.any():
            n_alone = int(alone.sum())
            # Of pure noise, which is much for each column, the mean square of all.
            second = both[p:] / (math.sqrt(n_alone) if run.budget.pure else 1.0) + 0.5
            variance[alone] = second - mean[alone] ** 2
            common = variance[alone].mean()
            others = variance[alone] - common
            energy = float((others**2).sum())
            drawn = tuned.kept(energy, n_alone * noise**2, n_alone)
            if math.isfinite(typical):  # about as sure of it as it is large
                trust = typical**2 / (typical**2 + noise**2 / n_alone)
                common = typical + trust * (common - typical)
            variance[alone] = common + drawn * others
            if run.budget.pure:
                variance[alone] = max(common, noise / math.sqrt(n_alone))
    mean = np.where(used, mean, 0.0)
    part = np.sqrt(np.clip(variance, LEAST_SCALE**2, 1.0))
    part[grouped] = 1.0
    return Standardisation(middle + half * mean, half * part, used, (1.0 + np.abs(mean)) / part)


def row_moments(
    middle: np.ndarray, half: np.ndarray, groups: np.ndarray, *, pooled: bool = False
) -> ClippedRows:
    """Return sums of rows in halves of public bounds, and of their squares less a half."""
    # With z within ±1, the norm of (z, z² - 1/2) is at most the root of p + p/4; and so it is with
    # the sum of these squares by the root of p, in one number. Of groups, whose part of a row has
    # norm 1, only z is summed.
    alone = np.flatnonzero(groups == NO_GROUP)
    largest = np.full(alone.size, 0.5)
    if pooled and alone.size:
        largest = np.array([0.5 * math.sqrt(alone.size)])
    columns = np.append(np.ones(half.size), largest)
    norm = math.sqrt(1.25 * alone.size + groups.max() + 1)
    bounds = RowBounds(columns.size, norm, columns=columns)
    facts = middle, half, alone
    return ClippedRows(bounds, contributions=partial(_with_squares, facts, pooled))


def _with_squares(
    facts: tuple[np.ndarray, np.ndarray, np.ndarray], pooled: bool, X: np.ndarray
) -> Iterator[np.ndarray]:
    middle, half, alone = facts
    for at in in_blocks(len(X)):
        rows, p = X[at], middle.size
        n_squares = min(1, alone.size) if pooled else alone.size
        both = np.empty((len(rows), p + n_squares), order="F")
        z = np.subtract(rows, middle, out=both[:, :p], dtype=np.float64)
        z /= half
        np.clip(z, -1.0, 1.0, out=z)
        squares = z[:, alone] ** 2 - 0.5
        if pooled and alone.size:
            squares = in_turn(squares)[:, np.newaxis] / math.sqrt(alone.size)
        both[:, p:] = squares
        yield both
