"""Targets: how they are read, what is public of them, and what is released of them first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.accounting.budget import BESIDE, HALF
from skdpnoise.accounting.queries import ClippedSum, GroupedSum
from skdpnoise.accounting.session import Search, Session
from skdpnoise.base.advice import SEE_TARGET, warn_last, warn_of_hidden_target
from skdpnoise.data.computed import is_computed
from skdpnoise.data.table import Table
from skdpnoise.data.targets import known_classes, read_counts, read_numbers
from skdpnoise.kernels import LOGISTIC
from skdpnoise.kernels.joint import SOFTMAX
from skdpnoise.linear_model import _tuned as tuned
from skdpnoise.linear_model._records import (
    ClassWeights,
    LinearProblem,
    LinearSchema,
    LinearTarget,
    Rate,
    Rows,
)
from skdpnoise.linear_model._scaling import Run, standardise
from skdpnoise.linear_model._standard_units import LIMIT, Standardisation
from skdpnoise.mechanisms import calibrate
from skdpnoise.queries.location_scale import LocationScale, locate
from skdpnoise.queries.ranges import LEAST_MAGNITUDES, SEARCH_SHARES, Ranges, shows
from skdpnoise.queries.searched_location import SearchedLocation, search_location, search_roughly
from skdpnoise.sensitivity import clipped_sum

_LEAST_MEAN = 1.0 / 14.0  # of counts, in their quantile of 13/14: Markov's inequality
_LEAST_FOUND = 1e-29  # magnitudes end at 2**-100: a scale about there is an end, and not found
_DIFFER = 2.0 / 8.0  # of pairs, about, where one record in eight does: a search may see no scale
_LARGEST_WEIGHT = 100.0  # of "balanced"
_FROM, _TO = 1e-6, 1e6  # weights that are given
_LEAST_SHARE = 0.5  # of the records, that public weights are thought to leave at least

MakeRows = Callable[[dict[str, Any]], Rows]
"""From tables X and y to the rows that are fitted."""


Look = tuple[LocationScale, np.ndarray]
"""The finding of a second look at a target, and the magnitude of its differences."""


class TargetKind(ABC):
    """A kind of target."""

    labels: ClassVar[bool] = False
    output: ClassVar[int | slice] = 0  # of coefficients: regressors drop the axis of outputs
    read: ClassVar[Callable[..., np.ndarray]] = staticmethod(read_numbers)

    @abstractmethod
    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        """Return the schema with what is public of the target, and what makes rows of tables."""

    @abstractmethod
    def estimate(self, run: Run) -> Search[tuple[LinearTarget, Run]]:
        """Find what must be known of the target; return it, and the run with what is left."""

    def constant(self, problem: LinearProblem, run: Run) -> Search[LinearProblem]:
        """Return a problem without features, of which a constant is all that is fitted."""
        yield from ()
        return problem


class NumberTarget(TargetKind):
    """Numbers of any sign."""

    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        bounds = as_bounds(model.target_bounds, 1, "target_bounds", model)
        return replace(schema, target_bounds=bounds), partial(Rows.of_numbers, None)

    def estimate(self, run: Run) -> Search[tuple[LinearTarget, Run]]:
        """Find location and scale."""
        standard, run, search = yield from _located(run)
        if search is not None:
            look, run = yield from _looked_again(run, -np.inf, _DIFFER)
            seen, other = _compared(search, look)
            _warn_of_no_scale(run, look, believed=seen)
            if look is not None and other:
                # Where few values differ, the magnitude of these counts, and not the deviation.
                facts = look[0].location, look[1], look[0].found, np.full(1, LIMIT)
                standard, search = Standardisation(*facts), None
            else:
                standard = replace(standard, used=np.full(1, seen))
                search = replace(search, found=seen)
            if not run.settings.fit_intercept:
                standard = standard.through_origin()
        _warn_of_constant(run, search)
        return LinearTarget(np.zeros(1), standard), run


class CountTarget(NumberTarget):
    """Counts or rates, which are not negative."""

    read = staticmethod(read_counts)

    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        """Return the schema with public bounds from 0 on, and what makes rows of tables."""
        bounds, name = as_bounds(model.target_bounds, 1, "target_bounds", model), type(model)
        if not bounds[1, 0] > 0.0:
            raise ValueError(
                f"The 'target_bounds' parameter of {name.__name__} must end above 0. Got "
                f"{bounds[1, 0]:g}."
            )
        computed, bounds = is_computed("y", model), np.maximum(bounds, 0.0)
        within = not computed and tuple(bounds[:, 0]) == (0.0, np.inf)
        make = partial(Rows.of_numbers, None if within else bounds)
        return replace(schema, target_bounds=bounds), make

    def estimate(self, run: Run) -> Search[tuple[LinearTarget, Run]]:
        """Find mean and scale."""
        # Without an intercept the unit is 1. A mean that the noise made smaller than counts of such
        # a scale have is set to the least of these.
        settings = run.settings  # the mean is wanted in any case
        always = replace(run, settings=replace(settings, fit_intercept=True))
        found, after, search = yield from _located(always)
        run = replace(after, settings=settings)
        if search is not None:
            look, run = yield from _looked_again(run, 0.0, 1.0)
            seen, other = _compared(search, look)
            _warn_of_no_scale(run, look, believed=seen)
            if look is not None and other:
                location, seen = look[0].location, True
                if settings.fit_intercept:
                    # Of values below two magnitudes, which those of that magnitude are.
                    most = 2.0 * float(look[1][0])
                    (mean, error), run = yield from _mean_count(run, most, BESIDE)
                    location, seen = np.full(1, mean), error <= tuned.TARGET.hidden * mean
                facts = look[0].scale, look[0].found, np.full(1, LIMIT)
                found = Standardisation(location, *facts)
            if not seen:
                # A count of two or more is one. Where most are larger, the median says more.
                if settings.fit_intercept:
                    (mean, error), run = yield from _mean_count(run, 1.0, HALF)
                    if error < 1.0 and mean > search.location:  # else it tells nothing
                        search = replace(search, location=mean, error=error, hidden=False)
                facts = np.ones(1), np.zeros(1, dtype=bool), np.full(1, LIMIT)
                found = Standardisation(np.full(1, search.location), *facts)
            search = None if seen and other else replace(search, found=seen)
        _warn_of_constant(run, search)
        least = found.scale * np.where(found.used, _LEAST_MEAN, 0.5 / run.n_samples)
        center = np.maximum(found.center, least) if run.settings.fit_intercept else np.ones(1)
        return Rate(np.zeros(1), replace(found, center=center)), run


class LabelTarget(TargetKind):
    """Labels of classes: one output for two of them, else one for each."""

    labels = True
    output = slice(None)

    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        assert schema.classes is not None
        classes = known_classes(model, schema.classes, schema.n_rows or 0)
        n_outputs = len(classes) if len(classes) > 2 else 1
        known = replace(schema, classes=classes, n_outputs=n_outputs)
        return known, partial(Rows.of_labels, classes)

    def estimate(self, run: Run) -> Search[tuple[LinearTarget, Run]]:
        """Find numbers of records of classes: for log-odds, or for balanced weights."""
        settings, zeros = run.settings, np.zeros(run.schema.n_outputs)
        if not settings.whole:
            return LinearTarget((yield from _log_odds(run))), run
        if run.budget.first != "classes":
            return LinearTarget(zeros, weights=settings.weights), run
        counts, weighted = (yield from _class_counts(run)), settings.weights
        if settings.class_weight == "balanced":
            # The weights n / (K n_k), none above the largest.
            weights = np.minimum(counts.sum() / (len(counts) * counts), _LARGEST_WEIGHT)
            share = float(weights @ counts / counts.sum() / weights.max())
            weighted = ClassWeights(weights, share)
        if not (run.budget.pure and settings.fit_intercept):
            return LinearTarget(zeros, weights=weighted), run
        counts = counts if weighted is None else counts * weighted.values
        return LinearTarget(_of_counts(counts, len(zeros)), weights=weighted), run

    def constant(self, problem: LinearProblem, run: Run) -> Search[LinearProblem]:
        """Return a problem whose constant is found by what was meant for features."""
        # Of balanced classes all are alike.
        alike = run.budget.first == "classes" or run.settings.loss not in (LOGISTIC, SOFTMAX)
        if alike or not (run.settings.whole and run.settings.fit_intercept):
            return problem
        rest = replace(run.budget, first="classes", searching=1.0 - run.budget.scaling)
        target = problem.target
        weights = 1.0 if target.weights is None else target.weights.values
        log_odds = yield from _log_odds(replace(run, budget=rest), weights)
        return replace(problem, target=replace(target, constant=log_odds))


NUMBERS, COUNTS, LABELS = NumberTarget(), CountTarget(), LabelTarget()


def _located(run: Run) -> Search[tuple[Standardisation, Run, SearchedLocation | None]]:
    """Return what the target's scaling within bounds or its search found, and what is left."""
    # A target without bounds is searched for. So is one whose bounds turn out to be much wider than
    # its spread, from what was meant for features and model: whether that is so is decided by
    # released numbers.
    bounds = run.schema.target_bounds
    assert bounds is not None
    if run.budget.first == "scaling":
        standard, _ = yield partial(_answer_on_column, standardise(run, bounds, target=True))
        if not _is_hidden(standard, run, bounds):
            return standard, run, None
        run = replace(run, budget=run.budget.with_search(run.n_samples))
    budget, session = run.budget, run.session.under("target: ")
    ends = float(bounds[0, 0]), float(bounds[1, 0])
    found = yield partial(
        search_roughly if budget.rough else search_location,
        loss=budget.search,
        bounds=ends,
        noise=budget.noise,
        n_samples=run.n_samples,
        session=session,
    )
    facts = found.location, found.scale, found.found, LIMIT
    standard = Standardisation(*(np.array([fact]) for fact in facts))
    return (standard if run.settings.fit_intercept else standard.through_origin()), run, found


def _looked_again(run: Run, low: float, differ: float) -> Search[tuple[Look | None, Run]]:
    """Look at a target that was searched for as at a feature; return also the magnitude found."""
    # A histogram of differences skips what is alike, such as zeros, in which a search may end. Of
    # numbers of which such a part differs it must find them, or it would tell little but noise.
    another, noise = run.budget.with_another_look(), run.budget.noise
    if another is None or not shows(noise, another[0], run.n_samples, differ):
        return None, run
    part, budget = another
    ranges = Ranges("private_location_scale", 1, (low, np.inf), pooled=True)
    search = locate(ranges, run.session.under("target: "), noise, part, run.n_samples)
    found = yield partial(_answer_on_column, search)
    if not (found.found[0] or ranges.bisected):  # then no more than magnitudes were released
        _, budget = run.budget.with_one_more(run.budget.looking * SEARCH_SHARES[0])
    return (found, ranges.unit), replace(run, budget=budget)


def _compared(search: SearchedLocation, look: Look | None) -> tuple[bool, bool]:
    """Return whether a search found a scale, and whether that of a second look is taken."""
    seen = search.found and search.scale >= _LEAST_FOUND
    if look is None or not (look[0].found[0] and look[0].scale[0] >= _LEAST_FOUND):
        return seen, False
    # Of rare values a magnitude is a few deviations, of long tails a part of one.
    part = LEAST_MAGNITUDES * look[1][0]
    return seen, not (seen and part < search.scale < part / LEAST_MAGNITUDES**3)


def _mean_count(run: Run, most: float, part: float) -> Search[tuple[tuple[float, float], Run]]:
    """Find the mean of counts clipped to [0, `most`], no less than its error, and that."""
    # A record moves the sum by `most` at most, under both adjacencies.
    loss, budget = run.budget.with_one_more(part)
    session, sums = run.session.under("target: "), ClippedSum(np.zeros(1), np.full(1, most))
    release = partial(session.release, "mean count", sums, loss=loss, noise=budget.noise)
    found = yield partial(_released_on_column, release)
    error = float(found.standard_deviation[0]) / run.n_samples
    mean = max(float(found.values[0]) / run.n_samples, error)
    return (mean, error), replace(run, budget=budget)


def _is_hidden(standard: Standardisation, run: Run, bounds: np.ndarray) -> bool:
    """Return True if the noise of the target's mean within these bounds is much of its scale."""
    # In halves of the interval: sums in units of very narrow bounds would leave the doubles.
    one_sum = clipped_sum(-1.0, 1.0, run.budget.adjacency)
    mechanism = calibrate(run.budget.noise, one_sum, run.budget.target.share(0.5))
    half = 0.5 * (bounds[1] - bounds[0])
    noise = mechanism.standard_deviation[0] / run.n_samples * half[0]
    return not noise <= tuned.TARGET.hidden * standard.scale[0]


def _released_on_column(release: Callable[..., Any], y: Table[Any]) -> Any:
    return release(table=y.map(_as_column, 1))


def _answer_on_column(search: Search[Any], y: Table[Any]) -> Any:
    return Session.answer(search, y.map(_as_column, 1))


def _as_column(values: np.ndarray) -> np.ndarray:
    return values[:, np.newaxis]


def _warn_of_constant(run: Run, found: SearchedLocation | None) -> None:
    """Say how noisy the location that a search found is, by released numbers and public ones."""
    if found is None or (found.found and found.error <= tuned.TARGET.hidden * found.scale):
        return
    name, epsilon = run.settings.owner, run.asked_epsilon
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
    warn_last(f"{name} {about}. {SEE_TARGET}", first=not found.found)


def _warn_of_no_scale(run: Run, look: Look | None, *, believed: bool) -> None:
    """Say where a scale is believed, though the second look at most targets would show one."""
    if believed and look is not None and look[0].typical_found and not look[0].found[0]:
        warn_last(
            f"{run.settings.owner} may predict nearly one constant: at "
            f"epsilon={run.asked_epsilon:g} magnitudes of differences, which tell the scale of "
            f"most targets, stand out of the noise in none of this one. {SEE_TARGET}"
        )


def _log_odds(run: Run, weights: np.ndarray | float = 1.0) -> Search[np.ndarray]:
    """Find how many records are in each class; return the log-odds of every output."""
    # Without an intercept they are 0, and nothing is released.
    n_outputs = run.schema.n_outputs
    if run.budget.first == "nothing":
        return np.zeros(n_outputs)
    return _of_counts((yield from _class_counts(run)) * weights, n_outputs)


def _of_counts(counts: np.ndarray, n_outputs: int) -> np.ndarray:
    others = counts.sum() - counts
    return np.asarray(np.log(counts / others)[-n_outputs:])


def _class_counts(run: Run) -> Search[np.ndarray]:
    """Find how many records are in each class: no fewer than the noise is wide."""
    query = GroupedSum(max(2, run.schema.n_outputs), partial(np.asarray, dtype=np.intp))
    loss, noise = run.budget.search, run.budget.noise
    found = yield partial(run.session.tally, "class shares", query, loss=loss, noise=noise)
    return np.asarray(np.maximum(found.values, max(0.5, float(found.standard_deviation[0]))))


def public_weights(owner: str, class_weight: Any, classes: np.ndarray) -> ClassWeights | None:
    """Return the weight of every class; None where all are alike, or released numbers say it."""
    if class_weight is None or class_weight == "balanced":
        return None
    text = f"must be None, 'balanced' or a dict from labels to weights from {_FROM:g} to {_TO:g}"
    start = f"The 'class_weight' parameter of {owner} {text}. "
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"{start}Got {type(class_weight).__name__} instead.")
    known = dict(zip(classes.tolist(), range(len(classes)), strict=True))
    weights = np.ones(len(classes))
    for label, weight in class_weight.items():
        if label not in known:
            raise ValueError(f"{start}Got the label {label!r}, which is not among the classes.")
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not (number and _FROM <= float(weight) <= _TO):
            raise ValueError(f"{start}Got {weight!r} for the label {label!r}.")
        weights[known[label]] = weight
    # Steps are at most twice as long as planned, whatever share of the records is of a class.
    return ClassWeights(weights, max(_LEAST_SHARE, float(weights.mean() / weights.max())))
