"""Targets: how they are read, what is public of them, and what is released of them first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skdpnoise._utils.parameters import as_bounds
from skdpnoise.data.computed import is_computed
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.data.targets import (
    against_rest,
    known_classes,
    read_labels,
    read_numbers,
)
from skdpnoise.kernels import LOGISTIC
from skdpnoise.kernels.joint import SOFTMAX
from skdpnoise.linear_model._class_weights import public_weights, release_balance
from skdpnoise.linear_model._records import (
    LinearProblem,
    LinearTarget,
    Outputs,
    Rows,
    one_output,
    output_within,
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

    @abstractmethod
    def read(self, model: Any, y: Any, n_rows: int) -> np.ndarray:
        """Return the target, or refuse it."""

    @abstractmethod
    def public(self, model: Any, schema: Schema) -> tuple[Schema, Outputs]:
        """Return the schema with what is public of the target, and what makes its outputs."""

    @abstractmethod
    def release(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release what must be known of the target; return it, and the run with what is left."""

    def problem(self, run: Run, table: Table[Rows]) -> tuple[LinearProblem, Run]:
        """Release what must be known of target and features; return what is to be minimised."""
        target, run = self.release(run, table)
        features = standardise_features(run, table)
        return LinearProblem(run.settings, run.schema, features, target), run


class NumberTarget(TargetKind):
    """Numbers of any sign."""

    def read(self, model: Any, y: Any, n_rows: int) -> np.ndarray:
        """Return the target, or refuse it."""
        return np.asarray(read_numbers(model, y, n_rows))

    def public(self, model: Any, schema: Schema) -> tuple[Schema, Outputs]:
        """Return the schema with public bounds, and what makes the only output."""
        bounds = as_bounds(model.target_bounds, 1, "target_bounds", model)
        return replace(schema, target_bounds=bounds), one_output

    def release(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release location and scale."""
        assert run.schema.target_bounds is not None
        scaling, run = standardise_target(run, table.map(_y), run.schema.target_bounds)
        return LinearTarget(np.zeros(1), scaling), run


class CountTarget(NumberTarget):
    """Counts or rates, which are not negative."""

    def read(self, model: Any, y: Any, n_rows: int) -> np.ndarray:
        """Return the target, or refuse it."""
        numbers = super().read(model, y, n_rows)
        if (numbers < 0.0).any() and not is_computed("y", model):
            name = type(model).__name__
            raise ValueError(f"{name} needs counts or rates, and y has negative values.")
        return numbers

    def public(self, model: Any, schema: Schema) -> tuple[Schema, Outputs]:
        """Return the schema with public bounds from 0 on, and what makes the only output."""
        bounds, name = as_bounds(model.target_bounds, 1, "target_bounds", model), type(model)
        if not bounds[1, 0] > 0.0:
            raise ValueError(
                f"The 'target_bounds' parameter of {name.__name__} must end above 0. Got "
                f"{bounds[1, 0]:g}."
            )
        computed, bounds = is_computed("y", model), np.maximum(bounds, 0.0)
        within = not computed and tuple(bounds[:, 0]) == (0.0, np.inf)
        make = one_output if within else partial(output_within, bounds)
        return replace(schema, target_bounds=bounds), make

    def release(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release mean and scale."""
        return release_rate(run, table.map(_only_output), run.schema.target_bounds)


class LabelTarget(TargetKind):
    """Labels of classes: one output for two of them, else one for each."""

    labels = True
    output = slice(None)

    def read(self, model: Any, y: Any, n_rows: int) -> np.ndarray:
        """Return the labels, or refuse them."""
        return np.asarray(read_labels(type(model).__name__, y, n_rows))

    def public(self, model: Any, schema: Schema) -> tuple[Schema, Outputs]:
        """Return the schema with all classes, and what makes outputs of -1 and +1."""
        assert schema.classes is not None
        classes = known_classes(model, schema.classes, schema.n_rows or 0)
        n_outputs = len(classes) if len(classes) > 2 else 1
        return replace(schema, classes=classes, n_outputs=n_outputs), partial(against_rest, classes)

    def release(self, run: Run, table: Table[Rows]) -> tuple[LinearTarget, Run]:
        """Release numbers of records of classes: for log-odds, or for balanced weights."""
        n_outputs = run.schema.n_outputs
        if not run.settings.whole:
            return LinearTarget(release_log_odds(run, table, n_outputs)), run
        assert run.schema.classes is not None
        weights = public_weights(run.settings.owner, run.settings.class_weight, run.schema.classes)
        if isinstance(run.settings.class_weight, str):
            weights = release_balance(run, table, n_outputs)
        return LinearTarget(np.zeros(n_outputs), weights=weights), run

    def problem(self, run: Run, table: Table[Rows]) -> tuple[LinearProblem, Run]:
        """Release target and features; without features, what was meant for them finds classes."""
        problem, run = super().problem(run, table)
        constant = (
            run.settings.whole and run.settings.fit_intercept and not problem.features.used.any()
        )
        # Of balanced classes all are alike.
        alike = run.budget.first == "classes" or run.settings.loss not in (LOGISTIC, SOFTMAX)
        if not constant or alike:
            return problem, run
        rest = replace(run.budget, first="classes", searching=1.0 - run.budget.scaling)
        target = problem.target
        weights = 1.0 if target.weights is None else target.weights.values
        log_odds = release_log_odds(replace(run, budget=rest), table, run.schema.n_outputs, weights)
        return replace(problem, target=replace(target, constant=log_odds)), run


NUMBERS, COUNTS, LABELS = NumberTarget(), CountTarget(), LabelTarget()


def _y(rows: Rows) -> np.ndarray:
    return rows.y


def _only_output(rows: Rows) -> np.ndarray:
    return rows.outputs[0]
