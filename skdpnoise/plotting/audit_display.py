"""The ε that audits have found, beside the claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.checks import check_type
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.inspection import AuditReport, audit
from skdpnoise.plotting._display import Display, Flags, Texts
from skdpnoise.plotting._panels import COLOURS

_REFUTED = "//"  # what colour says, for grey prints
_BROKEN = " (declaration broken)"


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class AuditDisplay(Display):
    """Lower bounds of ε, one bar for each audit, beside the claim and the most it could show.

    Parameters
    ----------
    %(displays: name)s
    names : sequence of str of length n_audits
        What was audited, or how.
    found : array-like of shape (n_audits,)
        What was found; NaN where there is no number.
    claimed : array-like of shape (n_audits,)
        ε of the claims.
    most : array-like of shape (n_audits,)
        The most that could have been found; NaN or infinity where there is no limit.
    passed : array-like of bool of shape (n_audits,)
        Whether nothing was found against the claim.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    found_ : matplotlib BarContainer
        The bounds.
    claimed_, most_ : matplotlib Line2D
        Marks of the claims, and of the most that could have been found.

    Examples
    --------
    >>> display = AuditDisplay(
    ...     names=["replay", "black_box"], found=[0.9, 0.6], claimed=[1.0, 1.0],
    ...     most=[np.nan, 4.7], passed=[True, True],
    ... ).plot()
    >>> [round(float(bar.get_width()), 1) for bar in display.found_]
    [0.9, 0.6]
    """

    names: Texts
    found: ArrayLike
    claimed: ArrayLike
    most: ArrayLike
    passed: Flags

    def _draw(self, ax: Any, /, **kwargs: Any) -> None:
        places = range(len(self.names))
        passed = np.asarray(self.passed)
        colours = [COLOURS[0] if fine else COLOURS[1] for fine in passed]
        hatches = ["" if fine else _REFUTED for fine in passed]
        given = {"color": colours, "hatch": hatches, "height": 0.6} | kwargs
        self.found_ = ax.barh(places, np.nan_to_num(self.found), **given)
        for colour, hatch, label, shown in (
            (COLOURS[0], "", "found", passed.any()),
            (COLOURS[1], _REFUTED, "found, against the claim", not passed.all()),
        ):
            if shown:
                ax.bar(0.0, 0.0, color=colour, hatch=hatch, label=label)
        marks = []
        for at, colour, label in (
            (self.claimed, "black", "claimed"),
            (np.where(np.isfinite(self.most), self.most, np.nan), "grey", "most it could show"),
        ):
            marks += ax.plot(at, places, "|", color=colour, label=label, ms=16, mew=2)
        self.claimed_, self.most_ = marks
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.legend(loc="best")
        ax.set_xlabel("ε")

    @classmethod
    def from_report(
        cls, report: AuditReport, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw what an audit has found, one bar for each method.

        Parameters
        ----------
        report : AuditReport
            As :func:`~skdpnoise.inspection.audit` returns it.
        %(displays: ax, name, **kwargs, Returns, Raises)s
        """
        check_type("AuditDisplay.from_report", "report", report, AuditReport)
        results = report.results
        claim = report.claim
        display = cls(
            names=[r.method + ("" if r.passed or r.refuted else _BROKEN) for r in results],
            found=[np.nan if r.epsilon is None else r.epsilon for r in results],
            claimed=[claim.epsilon] * len(results),
            most=[getattr(result, "most_epsilon", np.nan) for result in results],
            passed=[not result.refuted for result in results],
            name=f"{report.estimator}, δ={claim.delta:g}, {claim.adjacency}",
        )
        return display.plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
        bar_kwargs: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Audit an estimator and draw what is found.

        Parameters
        ----------
        estimator, X, y : see :func:`~skdpnoise.inspection.audit`
        %(displays: ax, name)s
        bar_kwargs : dict or None, default=None
            Passed to the bars.
        **options
            Passed to :func:`~skdpnoise.inspection.audit`.
        %(displays: Returns)s
        """
        report = audit(estimator, X, y, **options)
        return cls.from_report(report, ax=ax, name=name, **(bar_kwargs or {}))
