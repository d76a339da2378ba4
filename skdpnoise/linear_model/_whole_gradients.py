"""What models have in common that descend along whole gradients alone."""

from __future__ import annotations

from typing import Any

from skdpnoise.linear_model._budget import Budget
from skdpnoise.linear_model._coordinate_descent import PrivateLinearModel
from skdpnoise.linear_model._joint import check_joint, of_whole_rows, plan_joint
from skdpnoise.linear_model._records import Data, Problem, Settings
from skdpnoise.linear_model._scaling import Run

__all__ = ["WholeGradientModel"]


class WholeGradientModel(PrivateLinearModel):
    """A linear model whose gradients are clipped as a whole, one norm for each record."""

    _last, _takes_sparse = None, True

    def _settled(self, settings: Settings, data: Data) -> Settings:
        return of_whole_rows(self, settings, data)

    def _check_plans(self, settings: Settings, data: Data, budget: Budget) -> None:
        check_joint(settings, data, budget)

    def _plan(self, settings: Settings, run: Run, problem: Problem) -> Any:
        n_outputs = len(problem.data.outputs)
        return plan_joint(settings, problem, n_outputs, run.n_samples, run.budget)
