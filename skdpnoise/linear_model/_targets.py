"""Targets: how they are read, what is public of them, and what is released of them first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.data.computed import is_computed
from skdpnoise.data.table import Table
from skdpnoise.data.targets import known_classes, read_counts, read_numbers
from skdpnoise.kernels import LOGISTIC
from skdpnoise.kernels.joint import SOFTMAX
from skdpnoise.linear_model._class_weights import public_weights, release_balance
from skdpnoise.linear_model._records import (
    LinearProblem,
    LinearSchema,
    LinearTarget,
    MakeRows,
    Rows,
    rows_of_labels,
    rows_of_numbers,
    rows_within,
)
from skdpnoise.linear_model._scaling import (
    Run,
    release_log_odds,
    release_rate,
    standardise_features,
    standardise_target,
)

__all__ = ["COUNTS", "LABELS", "NUMBERS", "TargetKind"]


class TargetKind(ABC):
    """A kind of target."""

    labels: ClassVar[bool] = False
    output: ClassVar[int | slice] = 0  # of coefficients: regressors drop the axis of outputs
    read: ClassVar[Callable[..., np.ndarray]] = staticmethod(read_numbers)

    @abstractmethod
    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        """Return the schema with what is public of the target, and what makes rows of tables."""

    @abstractmethod
    def estimate(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release what must be known of the target; return it, and the run with what is left."""

    def problem(self, run: Run, table: Table[Rows]) -> tuple[LinearProblem, Run]:
        """Release what must be known of target and features; return what is to be minimised."""
        target, run = self.estimate(run, table)
        features = standardise_features(run, table)
        problem = LinearProblem(run.settings, run.schema, features, target)
        return (problem if features.used.any() else self.constant(problem, run, table)), run

    def constant(self, problem: LinearProblem, run: Run, table: Table[Rows]) -> LinearProblem:
        """Return a problem without features, of which a constant is all that is fitted."""
        return problem


class NumberTarget(TargetKind):
    """Numbers of any sign."""

    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        """Return the schema with public bounds, and what makes rows of tables."""
        bounds = as_bounds(model.target_bounds, 1, "target_bounds", model)
        return replace(schema, target_bounds=bounds), rows_of_numbers

    def estimate(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release location and scale."""
        assert run.schema.target_bounds is not None
        scaling, run = standardise_target(run, table.map(attrgetter("y")), run.schema.target_bounds)
        return LinearTarget(np.zeros(1), scaling), run


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
        make = rows_of_numbers if within else partial(rows_within, bounds)
        return replace(schema, target_bounds=bounds), make

    def estimate(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release mean and scale."""
        return release_rate(run, table.map(_only_output), run.schema.target_bounds)


class LabelTarget(TargetKind):
    """Labels of classes: one output for two of them, else one for each."""

    labels = True
    output = slice(None)

    def public(self, model: Any, schema: LinearSchema) -> tuple[LinearSchema, MakeRows]:
        """Return the schema with all classes, and what makes rows of tables."""
        assert schema.classes is not None
        classes = known_classes(model, schema.classes, schema.n_rows or 0)
        n_outputs = len(classes) if len(classes) > 2 else 1
        known = replace(schema, classes=classes, n_outputs=n_outputs)
        return known, partial(rows_of_labels, classes)

    def estimate(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release numbers of records of classes: for log-odds, or for balanced weights."""
        n_outputs = run.schema.n_outputs
        if not run.settings.whole:
            return LinearTarget(release_log_odds(run, table, n_outputs)), run
        assert run.schema.classes is not None
        weights = public_weights(run.settings.owner, run.settings.class_weight, run.schema.classes)
        if isinstance(run.settings.class_weight, str):
            weights = release_balance(run, table, n_outputs)
        return LinearTarget(np.zeros(n_outputs), weights=weights), run

    def constant(self, problem: LinearProblem, run: Run, table: Table[Rows]) -> LinearProblem:
        """Return a problem whose constant is found by what was meant for features."""
        # Of balanced classes all are alike.
        alike = run.budget.first == "classes" or run.settings.loss not in (LOGISTIC, SOFTMAX)
        if alike or not (run.settings.whole and run.settings.fit_intercept):
            return problem
        rest = replace(run.budget, first="classes", searching=1.0 - run.budget.scaling)
        target = problem.target
        weights = 1.0 if target.weights is None else target.weights.values
        log_odds = release_log_odds(replace(run, budget=rest), table, run.schema.n_outputs, weights)
        return replace(problem, target=replace(target, constant=log_odds))


NUMBERS, COUNTS, LABELS = NumberTarget(), CountTarget(), LabelTarget()


def _only_output(rows: Rows) -> np.ndarray:
    return rows.outputs[0]
