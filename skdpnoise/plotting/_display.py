"""The bases of displays: numbers that are computed already, drawn by `plot`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting import PrivacyReport
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.plotting._panels import check_additive, kinds_of, panels, report_of

Layout = tuple[tuple[int, int], tuple[float, float], dict[str, Any]]
"""Rows and columns of panels, size of a new figure in inches, and options of its Axes."""

_ONE: Layout = (1, 1), (6.4, 4.4), {}


@shared_texts
class Display:
    """Draws one Axes, or several panels, with a title."""

    _numbers: ClassVar[tuple[str, ...]] = ()
    _texts: ClassVar[tuple[str, ...]] = ()
    name: str | None = None

    def __post_init__(self) -> None:
        for field in self._numbers:
            values = getattr(self, field)
            setattr(self, field, None if values is None else np.asarray(values, dtype=np.float64))
        for field in self._texts:
            values = getattr(self, field)
            setattr(self, field, None if values is None else tuple(map(str, values)))

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of them, or None, default=None
            Where to draw; None makes a figure. A display of several panels takes one Axes for each,
            or one that it divides.
        %(displays: name, **kwargs)s

        Returns
        -------
        Display
            Itself.

        Raises
        ------
        TypeError
            If `ax` is not an Axes.
        """
        owner = f"{type(self).__name__}.plot"
        several = self._layout()
        axes = panels(owner, ax, *(several or _ONE))
        self.ax_ = axes if several else axes[0]
        self.figure_ = axes[0].figure
        self._draw(self.ax_, **kwargs)
        title = self.name if name is None else name
        if title is not None:
            axes[0].set_title(title, loc=self._title_at())
        return self

    def _layout(self) -> Layout | None:
        """Return the layout of several panels; None of a display with one Axes."""
        return None

    def _title_at(self) -> str:
        return "center"

    def _draw(self, axes: Any, /, **kwargs: Any) -> None:
        raise NotImplementedError


@shared_texts
class RowsDisplay(Display):
    """Draws a number for each coordinate of a mechanism, or for each kind of release of a fit."""

    kinds: Any

    @classmethod
    def from_mechanism(
        cls, mechanism: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Compute and draw the noise of a mechanism, by coordinate.

        Parameters
        ----------
        mechanism : AdditiveMechanism
            As :func:`~skdpnoise.mechanisms.calibrate` returns it.
        %(panels: ax)s
        %(displays: name)s
        **kwargs
            Passed to `plot`.

        Returns
        -------
        Display

        Raises
        ------
        %(displays: TypeError)s
        """
        mechanism = check_additive(f"{cls.__name__}.from_mechanism", mechanism)
        return cls(**cls._of_mechanism(mechanism)).plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> Self:
        """Compute and draw the noise of all kinds of release behind a fit.

        Parameters
        ----------
        %(displays: estimator)s
        %(panels: ax)s
        %(displays: name)s
        **kwargs
            Passed to `plot`.

        Returns
        -------
        Display

        Raises
        ------
        %(displays: TypeError, NotFittedError)s
        """
        report = report_of(f"{cls.__name__}.from_estimator", estimator)
        return cls(**cls._of_report(report, kinds_of(report, name))).plot(ax, **kwargs)

    @classmethod
    def _of_mechanism(cls, mechanism: AdditiveMechanism) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def _of_report(cls, report: PrivacyReport, rows: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError
