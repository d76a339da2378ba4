"""The spending of a ledger, against time or charge by charge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise._utils.checks import check_option, check_type
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.ledger import PrivacyLedger
from skdpnoise.ledger.charge import history_columns
from skdpnoise.plotting._display import Display, Times
from skdpnoise.plotting._panels import style
from skdpnoise.privacy import PrivacyGuarantee

_ROOM = 1.15  # above the highest line
_EDGE = 0.04  # beside the first and the last charge, as a share of the width
_TALLEST = 2.5  # budgets: where the basic sum is cut off
_ALONE = np.timedelta64(1, "s")  # the width around charges of one moment


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class LedgerDisplay(Display):
    r"""The budget of a ledger, and the part of it that charges have spent.

    Steps show the ε that tight composition gives all charges so far, at the δ of the budget. Beside
    them is the basic sum of all ε. Where it is above the budget, only tight composition allowed
    further fits. :meth:`skdpnoise.ledger.PrivacyLedger.history` has the same numbers as a frame.

    Parameters
    ----------
    %(displays: name)s
    time : array-like of datetime64 of shape (n_charges,)
        When each charge was made, in UTC.
    spent : array-like of shape (n_charges,)
        ε of tight composition after each.
    basic : array-like of shape (n_charges,)
        Sum of the ε that the charges state, after each; what was returned counts nothing.
    guarantee : PrivacyGuarantee
        The budget.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    spent_ : matplotlib Line2D
        Steps of tight composition.
    basic_ : matplotlib Line2D
        Steps of the basic sum.
    budget_ : matplotlib Line2D
        The budget.

    Examples
    --------
    >>> from skdpnoise.privacy import PureLoss
    >>> ledger = PrivacyLedger("trips", epsilon=2.0, delta=1e-6, storage="memory")
    >>> for _ in range(100):
    ...     charge = ledger.charge("counts", PureLoss(0.03))
    >>> display = LedgerDisplay.from_ledger(ledger, by="charge")
    >>> [line.get_label() for line in (display.basic_, display.spent_)]
    ['basic sum: ε = 3', 'tight composition: ε = 1.27']
    """

    time: Times
    spent: ArrayLike
    basic: ArrayLike
    guarantee: PrivacyGuarantee

    def plot(
        self, ax: Any = None, *, by: str = "time", name: str | None = None, **kwargs: Any
    ) -> Self:
        """Draw steps, and the budget as a line.

        Parameters
        ----------
        %(displays: ax, by, name, **kwargs, Returns)s

        Raises
        ------
        ValueError
            If `by` is neither.
        TypeError
            If `ax` is not an Axes.
        """
        check_option("LedgerDisplay.plot", "by", by, ("time", "charge"))
        return super().plot(ax, name=name, by=by, **kwargs)

    def _draw(self, ax: Any, /, *, by: str = "time", **kwargs: Any) -> None:
        budget = self.guarantee
        spent, basic = np.asarray(self.spent), np.asarray(self.basic)
        first, charges, last = self._by_charge(ax) if by == "charge" else self._by_time(ax)
        # From nothing, at the left edge, to the right edge, where the last value still holds.
        x = np.concatenate([[first], charges, [last]])
        spent, basic = (np.concatenate([[0.0], y, y[-1:]]) for y in (spent, basic))
        if not charges.size:
            spent = basic = np.zeros(2)
            ax.text(0.5, 0.5, "no charges yet", ha="center", va="center", transform=ax.transAxes)
        given = {"label": f"tight composition: ε = {spent[-1]:.3g}", "linewidth": 2.0}
        given |= {"drawstyle": "steps-post", "zorder": 2.2} | kwargs
        (self.spent_,) = ax.plot(x, spent, **style(0, given))
        given = {"label": f"basic sum: ε = {basic[-1]:.3g}", "zorder": 2.3}
        (self.basic_,) = ax.step(x, basic, where="post", **style(1, given))
        label = f"budget: ε = {budget.epsilon:g}, δ = {budget.delta:g}"
        self.budget_ = ax.axhline(budget.epsilon, color="0.25", linestyle=":", label=label)
        if "drawstyle" not in kwargs:
            colour = self.spent_.get_color()
            ax.fill_between(x, spent, step="post", alpha=0.12, linewidth=0, color=colour)
        # A basic sum of many budgets would press all else to the floor: it leaves the picture.
        tallest = min(float(basic.max()), _TALLEST * budget.epsilon)
        ax.set_xlim(first, last)
        ax.set_ylim(0.0, _ROOM * max(budget.epsilon, float(spent.max()), tallest))
        ax.set_ylabel("ε spent")
        ax.legend(loc="best")
        ax.grid(axis="y", alpha=0.25)

    def _by_charge(self, ax: Any) -> tuple[Any, NDArray[Any], Any]:
        """Name the horizontal axis; return its begin, the places of the charges, and its end."""
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("charge")
        count = np.size(self.time)
        return 0, np.arange(1, count + 1), max(count, 1) + max(1, math.ceil(_EDGE * count))

    def _by_time(self, ax: Any) -> tuple[Any, NDArray[Any], Any]:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(minticks=3, maxticks=8)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        ax.set_xlabel("time (UTC)")
        time = np.asarray(self.time)
        if not time.size:
            now = np.datetime64("now", "us")
            return now - _ALONE, time, now
        first, last = time.min(), time.max()
        margin = np.timedelta64(max(1, int(_EDGE * (last - first).astype(np.int64))), "us")
        if first == last:
            margin = _ALONE
        return first - margin, time, last + margin

    @classmethod
    def from_ledger(
        cls,
        ledger: PrivacyLedger,
        *,
        ax: Any = None,
        by: str = "time",
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read and draw what a ledger has spent.

        Parameters
        ----------
        ledger : PrivacyLedger
            Its history is read once. With more than 200 charges what was spent is computed after
            200 of them, and in between it is the next computed value.
        %(displays: ax, by, name, **kwargs, Returns, Raises)s
        """
        check_type("LedgerDisplay.from_ledger", "ledger", ledger, PrivacyLedger)
        columns = history_columns(ledger.charges(), ledger.guarantee.delta)
        kept = [reason is None for reason in columns["returned"]]
        display = cls(
            time=[moment.replace(tzinfo=None) for moment in columns["time"]],  # UTC
            spent=columns["spent"],
            basic=np.cumsum(np.where(kept, columns["epsilon"], 0.0), dtype=np.float64),
            guarantee=ledger.guarantee,
            name=ledger.dataset,
        )
        return display.plot(ax, by=by, name=name, **kwargs)
