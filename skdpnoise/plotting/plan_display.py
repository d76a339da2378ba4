"""Score against ε, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.checks import check_type
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.planning import PrivacyPlan, plan
from skdpnoise.plotting._display import Display
from skdpnoise.plotting._panels import COLOURS, style

_ROOM = 0.05  # above and below all that is drawn


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class PlanDisplay(Display):
    """Simulated scores against ε: their median, their range and the best possible score.

    Parameters
    ----------
    %(displays: name)s
    epsilon : array-like of shape (n_points,)
        Where the score was simulated, in increasing order.
    median : array-like of shape (n_points,)
        Median score of the fits.
    lowest, highest : array-like of shape (n_points,)
        Their lowest and highest scores.
    score_name : str, default="score"
        What the score is.
    best : float or None, default=None
        Score of the best predictions; None if it is not known.
    asked : float or None, default=None
        ε of the estimator, to mark.
    affordable : float or None, default=None
        The largest ε that a ledger covers, to mark.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    median_ : matplotlib Line2D
        The median scores.
    range_ : matplotlib PolyCollection
        From the lowest to the highest.
    best_, asked_, affordable_ : matplotlib Line2D or None
        What is marked.

    Examples
    --------
    >>> display = PlanDisplay(
    ...     epsilon=[0.1, 1.0], median=[0.6, 0.7], lowest=[0.5, 0.69], highest=[0.62, 0.71]
    ... )
    >>> display.plot().median_.get_ydata()
    array([0.6, 0.7])
    """

    epsilon: ArrayLike
    median: ArrayLike
    lowest: ArrayLike
    highest: ArrayLike
    score_name: str = "score"
    best: float | None = None
    asked: float | None = None
    affordable: float | None = None

    def _draw(self, ax: Any, /, **kwargs: Any) -> None:
        epsilon, median = np.asarray(self.epsilon), np.asarray(self.median)
        low, high = np.asarray(self.lowest), np.asarray(self.highest)
        given = {"marker": "o", "label": "median of the simulated fits"} | kwargs
        (self.median_,) = ax.plot(epsilon, median, **style(0, given))
        look = {"alpha": 0.2, "linewidth": 0, "color": self.median_.get_color()}
        self.range_ = ax.fill_between(epsilon, low, high, **look, label="all of them")
        self.best_ = self.asked_ = self.affordable_ = None
        if self.best is not None:
            label = f"best possible: {self.best:.3g}"
            self.best_ = ax.axhline(self.best, color="0.5", linestyle=":", label=label)
        if self.asked is not None:
            label = f"asked for: ε = {self.asked:g}"
            self.asked_ = ax.axvline(self.asked, color=COLOURS[2], linestyle="-.", label=label)
        if self.affordable:
            label = f"the ledger covers ε = {self.affordable:g}"
            look = {"color": COLOURS[1], "linestyle": "--"}
            self.affordable_ = ax.axvline(self.affordable, **look, label=label)
        # A fit that noise threw far off would press all else to the top.
        top = max(float(high.max()), -np.inf if self.best is None else self.best)
        bottom = max(float(low.min()), 2.0 * float(median.min()) - top)
        room = _ROOM * ((top - bottom) or 1.0)
        ax.set_ylim(bottom - room, top + room)
        ax.set_xscale("log")
        ax.set(xlabel="ε", ylabel=f"{self.score_name}, simulated")
        ax.grid(alpha=0.25)
        ax.legend(loc="best")

    @classmethod
    def from_plan(
        cls, plan: PrivacyPlan, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw the scores of a plan.

        Parameters
        ----------
        plan : PrivacyPlan
            As :func:`~skdpnoise.inspection.plan` returns it, of an estimator that predicts.
        %(displays: ax, name, **kwargs, Returns, Raises)s
        ValueError
            If the plan has no scores.
        """
        check_type("PlanDisplay.from_plan", "plan", plan, PrivacyPlan)
        if not plan.scores:
            raise ValueError(
                "The 'plan' parameter of PlanDisplay.from_plan must have scores. "
                f"{plan.estimator} predicts nothing: plan for the model that uses it."
            )
        columns = ("epsilon", "median", "lowest", "highest")
        display = cls(
            **{name: [getattr(one, name) for one in plan.scores] for name in columns},
            score_name=plan.score_name or "score",
            best=plan.best,
            asked=plan.guarantee.epsilon,
            affordable=plan.affordable,
            name=f"{plan.estimator}, {plan.n_samples:,} rows of {plan.n_columns:,} columns",
        )
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        n_samples: int,
        features: Any,
        *,
        ax: Any = None,
        name: str | None = None,
        line_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Plan, and draw the scores.

        Parameters
        ----------
        estimator : estimator
            A private estimator, pipeline or search that predicts; it is copied.
        n_samples, features : see :func:`~skdpnoise.inspection.plan`
        %(displays: ax, name)s
        line_kwargs : dict or None, default=None
            Passed to the line.
        **options
            Passed to :func:`~skdpnoise.inspection.plan`.
        %(displays: Returns)s
        """
        found = plan(estimator, n_samples, features, **options)
        return cls.from_plan(found, ax=ax, name=name, **(line_kwargs or {}))
