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
from skdpnoise.accounting.queries import GroupedSum
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
from skdpnoise.queries.location_scale import locate
from skdpnoise.queries.ranges import Ranges
from skdpnoise.queries.searched_location import SearchedLocation, search_location
from skdpnoise.sensitivity import clipped_sum

_LEAST_RATE = 1e-9  # a smaller scale is what a search finds where nearly all counts are 0
_LEAST_MEAN = 1.0 / 14.0  # of counts, in their quantile of 13/14: Markov's inequality
_LEAST_FOUND = 1e-29  # magnitudes end at 2**-100: a scale about there is an end, and not found
_LARGEST_WEIGHT = 100.0  # of "balanced"
_FROM, _TO = 1e-6, 1e6  # weights that are given
_LEAST_SHARE = 0.5  # of the records, that public weights are thought to leave at least

MakeRows = Callable[[dict[str, Any]], Rows]
"""From tables X and y to the rows that are fitted."""


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
        standard, run, found = yield from _located(run)
        _warn_of_constant(run, found)
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
        # Where the search finds that nearly all are alike, they are scaled as a feature is: by
        # magnitudes, which see what is rare. Without an intercept the unit is 1. A mean that the
        # noise made smaller than counts of such a scale have is set to the least of these.
        settings = run.settings  # the mean is wanted in any case
        always = replace(run, settings=replace(settings, fit_intercept=True))
        found, after, search = yield from _located(always)
        run = replace(after, settings=settings)
        seen = bool(found.used[0] and found.scale[0] >= _LEAST_RATE)
        another = None if seen else run.budget.with_another_look()
        if another is not None:
            part, budget = another
            ranges = Ranges("private_location_scale", 1, (0.0, np.inf))
            session = run.session.under("target: ")
            rare = yield partial(
                _answer_on_column, locate(ranges, session, budget.noise, part, run.n_samples)
            )
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
        if settings.class_weight != "balanced":
            return LinearTarget(zeros, weights=settings.weights), run
        # The weights n / (K n_k), none above the largest.
        counts = yield from _class_counts(run)
        weights = np.minimum(counts.sum() / (len(counts) * counts), _LARGEST_WEIGHT)
        share = float(weights @ counts / counts.sum() / weights.max())
        return LinearTarget(zeros, weights=ClassWeights(weights, share)), run

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
        standard = yield partial(_answer_on_column, standardise(run, bounds, target=True))
        if not _is_hidden(standard, run, bounds):
            return standard, run, None
        run = replace(run, budget=run.budget.with_search(run.n_samples))
    budget, session = run.budget, run.session.under("target: ")
    ends = float(bounds[0, 0]), float(bounds[1, 0])
    found = yield partial(
        search_location,
        loss=budget.search,
        bounds=ends,
        noise=budget.noise,
        n_samples=run.n_samples,
        session=session,
    )
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
    rule, scale = tuned.TARGET, standard.scale[0]
    wide = half[0] > rule.wide * LIMIT * scale
    return not noise <= rule.hidden[0 if wide else 1] * scale


def _answer_on_column(search: Search[Any], y: Table[Any]) -> Any:
    return Session.answer(search, y.map(_as_column, 1))


def _as_column(values: np.ndarray) -> np.ndarray:
    return values[:, np.newaxis]


def _warn_of_constant(run: Run, found: SearchedLocation | None) -> None:
    """Say how noisy the location that a search found is, by released numbers and public ones."""
    if found is None or (found.found and found.error <= tuned.TARGET.hidden[0] * found.scale):
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


def _log_odds(run: Run, weights: np.ndarray | float = 1.0) -> Search[np.ndarray]:
    """Find how many records are in each class; return the log-odds of every output."""
    # Without an intercept they are 0, and nothing is released.
    n_outputs = run.schema.n_outputs
    if run.budget.first == "nothing":
        return np.zeros(n_outputs)
    counts = (yield from _class_counts(run)) * weights
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
