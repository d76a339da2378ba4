"""What a ledger has spent, against time or charge by charge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdpnoise.ledger import PrivacyLedger
from skdpnoise.ledger.history import past
from skdpnoise.plotting._panels import COLOURS, DASHES, one_panel, style
from skdpnoise.privacy import PrivacyGuarantee
from skdpnoise.privacy.checks import check_option, check_type
from skdpnoise.privacy.shared_texts import shared_texts

__all__ = ["LedgerDisplay"]

Vector = NDArray[np.float64]

_ROOM = 1.15  # above the highest line
_EDGE = 0.04  # beside the first and the last charge, as a share of the width
_TALLEST = 2.5  # budgets: where the basic sum is cut off
_ALONE = np.timedelta64(1, "s")  # the width around charges of one moment


@shared_texts
class LedgerDisplay:
    r"""What the charges of a ledger have spent of its budget.

    Steps show the ε that tight composition gives all charges so far, at the δ of the budget. Beside
    them is the basic sum of all ε. Where it is above the budget, only tight composition allowed
    further fits.

    Parameters
    ----------
    time : array-like of datetime64 of shape (n_charges,)
        When each charge was made, in UTC.
    spent : array-like of shape (n_charges,)
        ε of tight composition after each.
    basic : array-like of shape (n_charges,)
        Sum of the ε that the charges state, after each.
    guarantee : PrivacyGuarantee
        The budget.
    name : str or None, default=None
        Of the data set.

    Attributes
    ----------
    %(displays: ax_, figure_)s
    spent_ : matplotlib Line2D
        Steps of tight composition.
    basic_ : matplotlib Line2D
        Steps of the basic sum.
    budget_ : matplotlib Line2D
        The budget.

    See Also
    --------
    skdpnoise.ledger.PrivacyLedger.history : The same numbers as a frame.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from skdpnoise.privacy import PureLoss
    >>> ledger = PrivacyLedger("trips", epsilon=2.0, delta=1e-6, storage="memory")
    >>> for _ in range(100):
    ...     charge = ledger.charge("counts", PureLoss(0.03))
    >>> display = LedgerDisplay.from_ledger(ledger, by="charge")
    >>> [line.get_label() for line in (display.basic_, display.spent_)]
    ['basic sum: ε = 3', 'tight composition: ε = 1.27']
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        time: ArrayLike,
        spent: ArrayLike,
        basic: ArrayLike,
        guarantee: PrivacyGuarantee,
        name: str | None = None,
    ) -> None:
        self.time = np.asarray(time, dtype="datetime64[us]")
        self.spent = np.asarray(spent, dtype=np.float64)
        self.basic = np.asarray(basic, dtype=np.float64)
        self.guarantee = guarantee
        self.name = name

    def plot(
        self, ax: Any = None, *, by: str = "time", name: str | None = None, **kwargs: Any
    ) -> LedgerDisplay:
        """Draw steps, and the budget as a line.

        Parameters
        ----------
        %(displays: ax)s
        by : {"time", "charge"}, default="time"
            Whether the horizontal axis is time or the number of the charge.
        name : str or None, default=None
            Title; None is the name of the data set.
        **kwargs
            Passed to ``Axes.plot`` for the steps of tight composition.

        Returns
        -------
        LedgerDisplay

        Raises
        ------
        ValueError
            If `by` is neither.
        TypeError
            If `ax` is not an Axes.
        """
        check_option("LedgerDisplay.plot", "by", by, ("time", "charge"))
        ax = one_panel("LedgerDisplay.plot", ax)
        budget, count = self.guarantee, self.spent.size
        steps = {"drawstyle": "steps-post"}
        labels = (
            f"tight composition: ε = {_last(self.spent)}",
            f"basic sum: ε = {_last(self.basic)}",
            f"budget: ε = {budget.epsilon:g}, δ = {budget.delta:g}",
        )
        x, first, last = self._places(by)
        # From nothing, at the left edge, to the right edge, where the last value still holds.
        x = np.concatenate([[first], x, [last]])
        spent, basic = (
            np.concatenate([[0.0], values, values[-1:] if count else [0.0]])
            for values in (self.spent, self.basic)
        )
        given = {"label": labels[0], "linewidth": 2.0, "zorder": 2.2} | steps | kwargs
        (self.spent_,) = ax.plot(x, spent, **style(0, given))
        drawn = {"color": COLOURS[1], "linestyle": DASHES[1], "label": labels[1], "zorder": 2.3}
        (self.basic_,) = ax.plot(x, basic, **drawn, **steps)
        self.budget_ = ax.axhline(budget.epsilon, color="0.25", linestyle=":", label=labels[2])
        if "drawstyle" not in kwargs:
            ax.fill_between(
                x, spent, step="post", alpha=0.12, linewidth=0, color=self.spent_.get_color()
            )
        # A basic sum of many budgets would press all else to the floor: it leaves the picture.
        highest = max(
            budget.epsilon,
            float(spent.max()),
            min(float(basic.max()), _TALLEST * budget.epsilon),
        )
        ax.set_xlim(first, last)
        ax.set_ylim(0.0, _ROOM * highest)
        ax.set(ylabel="ε spent", title=self.name if name is None else name)
        self._name_places(ax, by)
        ax.legend(loc="best")
        ax.grid(axis="y", alpha=0.25)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _places(self, by: str) -> tuple[NDArray[Any], Any, Any]:
        """Return where charges are on the horizontal axis, and its ends."""
        count = self.spent.size
        if by == "charge":
            return np.arange(1, count + 1), 0, max(count, 1) + max(1, math.ceil(_EDGE * count))
        if not count:
            now = np.datetime64("now", "us")
            return self.time, now - _ALONE, now
        first, last = self.time.min(), self.time.max()
        width = max(last - first, np.timedelta64(1, "us"))
        margin = np.timedelta64(max(1, int(_EDGE * width.astype(np.int64))), "us")
        if first == last:
            margin = _ALONE
        return self.time, first - margin, last + margin

    def _name_places(self, ax: Any, by: str) -> None:
        if by == "charge":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set_xlabel("charge")
        else:
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator(minticks=3, maxticks=8)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            ax.set_xlabel("time (UTC)")
        if not self.spent.size:
            ax.text(0.5, 0.5, "no charges yet", ha="center", va="center", transform=ax.transAxes)

    @classmethod
    def from_ledger(
        cls,
        ledger: PrivacyLedger,
        *,
        ax: Any = None,
        by: str = "time",
        name: str | None = None,
        **kwargs: Any,
    ) -> LedgerDisplay:
        """Read and draw what a ledger has spent.

        Parameters
        ----------
        ledger : PrivacyLedger
            Its history is read once. With more than 200 charges what was spent is computed after
            200 of them, and in between it is the next computed value.
        %(displays: ax)s
        by : {"time", "charge"}, default="time"
            Whether the horizontal axis is time or the number of the charge.
        name : str or None, default=None
            Title; None is the name of the data set.
        **kwargs
            Passed to ``Axes.plot`` for the steps of tight composition.

        Returns
        -------
        LedgerDisplay

        Raises
        ------
        TypeError
            If `ledger` is not a PrivacyLedger.
        """
        check_type("LedgerDisplay.from_ledger", "ledger", ledger, PrivacyLedger)
        columns = past(ledger.charges(), ledger.guarantee.delta)
        display = cls(
            time=[moment.replace(tzinfo=None) for moment in columns["time"]],  # UTC
            spent=columns["spent"],
            basic=np.cumsum(columns["epsilon"], dtype=np.float64),
            guarantee=ledger.guarantee,
            name=ledger.dataset,
        )
        return display.plot(ax, by=by, name=name, **kwargs)


def _last(values: Vector) -> str:
    return f"{values[-1]:.3g}" if values.size else "0"
