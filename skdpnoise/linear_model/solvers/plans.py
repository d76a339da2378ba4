"""Solvers, their plans, and the final steps after their passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from skdpnoise.accounting.session import Session
from skdpnoise.data.schema import Schema
from skdpnoise.data.table import Table
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._records import Problem, Rows, Settings, Target
from skdpnoise.linear_model._standard_units import LIMIT, RowScaling, plain_units

__all__ = ["FinalStep", "Plan", "Solver", "finished", "made_up_problem"]


class Plan(Protocol):
    """All that is fixed before passes use the rows. It holds none, and runs on a table."""

    @property
    def problem(self) -> Problem:
        """What is minimised, in the units of the passes."""
        ...

    @property
    def solver(self) -> Solver:
        """The solver that planned."""
        ...

    @property
    def n_passes(self) -> int:
        """Number of iterates."""
        ...

    @property
    def final(self) -> tuple[FinalStep, ...]:
        """What is done to the iterates, in this order."""
        ...

    def run(self, table: Table[Rows], session: Session) -> Iterator[np.ndarray]:
        """Yield the iterate of every pass in standard units, shape (n_outputs, n_features + 1)."""
        ...

    def average(self, path: np.ndarray) -> np.ndarray:
        """Return the model of all iterates: post-processing, so free."""
        ...


class FinalStep(Protocol):
    """A step after the passes: post-processing, or one more release that was planned."""

    def __call__(
        self, path: np.ndarray, plan: Any, table: Table[Rows], session: Session
    ) -> np.ndarray:
        """Return the iterates, shape (n_passes, n_outputs, n_features + 1)."""
        ...


class Solver(Protocol):
    """Plans how a problem is solved, by public facts and released numbers."""

    def check(self, settings: Settings, schema: Schema, budget: Budget) -> None:
        """Raise what planning would raise, before anything is spent."""
        ...

    def plan(self, problem: Problem, n_samples: float, budget: Budget) -> Plan:
        """Return the plan for so many records, a public or a released number."""
        ...


def finished(path: np.ndarray, plan: Plan, table: Table[Rows], session: Session) -> np.ndarray:
    """Return the iterates after all final steps."""
    for step in plan.final:
        path = step(path, plan, table, session)
    return path


def made_up_problem(settings: Settings, schema: Schema) -> Problem:
    """Return a problem whose columns are in standard units, to plan before anything is known."""
    ones, groups = np.ones(schema.n_columns), schema.column_groups
    assert groups is not None
    features = RowScaling(0.0 * ones, ones, ones > 0.0, LIMIT * ones, ones, groups)
    scaling = None if schema.target_bounds is None else plain_units(1)
    return Problem(settings, schema, features, Target(np.zeros(schema.n_outputs), scaling))
