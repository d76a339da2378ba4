"""The parameters of a fit, checked, for stages that need no estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from skdpnoise.solvers import Loss

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the stages know of the estimator."""

    owner: str  # name of the class, for messages
    loss: Loss
    last: Any  # what is released after a descent: Residuals, Gain or None
    noise: str = "auto"
    fit_intercept: bool = True
    alpha: float | str = "auto"
    l1_ratio: float = 0.5
    n_passes: int | str = "auto"
    clip: float | str = "auto"
    budget_growth: float | str = "auto"
    error_weights: Any = "curvature"
    row_norm: float | str = "auto"
    n_jobs: int | None = None
    spread: float = 1.0  # of typical slopes, in which clips are measured; released with the target

    @classmethod
    def of(cls, estimator: Any) -> Settings:
        """Return the settings of an estimator."""
        names = {field.name for field in fields(cls)}
        given = estimator.get_params(deep=False)
        chosen = {name: value for name, value in given.items() if name in names}
        return cls(type(estimator).__name__, estimator._loss, estimator._last, **chosen)

    @property
    def strength(self) -> float:
        """Strength of the penalty of a descent, whose few passes shrink as it is."""
        return 0.0 if isinstance(self.alpha, str) else self.alpha
