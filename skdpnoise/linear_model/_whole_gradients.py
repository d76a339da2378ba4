"""What models have in common that descend along whole gradients, alone or where it is better."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skdpnoise.base.constructors import Constraints, constructor_of_fields
from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._coordinate_descent import PrivateLinearModel
from skdpnoise.linear_model._joint import (
    check_joint,
    check_whole_rows,
    is_normal,
    of_whole_rows,
    plan_joint,
)
from skdpnoise.linear_model._parameters import CoordinateParameters, DescentParameters
from skdpnoise.linear_model._records import Data, Fitted, Problem, Settings
from skdpnoise.linear_model._scaling import Run

__all__ = ["EitherSolverModel", "WholeGradientModel"]


@constructor_of_fields
class WholeGradientModel(DescentParameters, PrivateLinearModel):
    """A linear model whose gradients are clipped as a whole, one norm for each record."""

    _last, _takes_sparse = None, True

    def _settled(self, settings: Settings, data: Data) -> Settings:
        return of_whole_rows(self, settings, data)

    def _check_plans(self, settings: Settings, data: Data, budget: Budget) -> None:
        check_joint(settings, data, budget)

    def _plan(self, settings: Settings, run: Run, problem: Problem) -> Any:
        n_outputs = len(problem.data.outputs)
        return plan_joint(settings, problem, n_outputs, run.n_samples, run.budget)


@constructor_of_fields
class EitherSolverModel(CoordinateParameters, PrivateLinearModel):
    """A linear model whose gradients are clipped as a whole, or in each coordinate by itself."""

    _: KW_ONLY
    solver: str = "auto"
    _takes_sparse = True
    _parameter_constraints: ClassVar[Constraints] = {
        "solver": [StrOptions({"auto", "coordinate", "joint"})]
    }

    def _settled(self, settings: Settings, data: Data) -> Settings:
        given = check_whole_rows(self, data)
        automatic = self.solver == "auto" and (given or self._prefers_joint(data))
        if self.solver == "joint" or automatic:
            return replace(of_whole_rows(self, settings, data), last=None)
        return settings

    def _prefers_joint(self, data: Data) -> bool:
        """Whether nothing is asked for that is made for gradients clipped in each coordinate."""
        given = self.clip, self.budget_growth, self.error_weights
        automatic = all(isinstance(one, str) for one in given)
        return is_normal(self) and automatic and self.error_weights != "uniform"

    def _check_plans(self, settings: Settings, data: Data, budget: Budget) -> None:
        super()._check_plans(settings, data, budget)  # of settings that are not used, too
        if settings.joint:
            check_joint(settings, data, budget)

    def _plan(self, settings: Settings, run: Run, problem: Problem) -> Any:
        if not settings.joint:
            return super()._plan(settings, run, problem)
        n_outputs = len(problem.data.outputs)
        return plan_joint(settings, problem, n_outputs, run.n_samples, run.budget)

    def _model(self, settings: Settings, problem: Problem, plan: Any, path: np.ndarray) -> Fitted:
        model = super()._model(settings, problem, plan, path)
        return model | {"solver_": "joint" if settings.joint else "coordinate"}
