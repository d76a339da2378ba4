"""The bases of displays: numbers that are computed already, drawn by `plot`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting import PrivacyReport
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.plotting._panels import check_additive, kinds_of, panels, report_of

Arrays = Sequence[Any]
Flags = ArrayLike
Texts = Sequence[str]
Times = ArrayLike
_floats = partial(np.asarray, dtype=np.float64)
_KEPT: dict[str, Callable[[Any], Any]] = {
    "ArrayLike": _floats,
    "Arrays": lambda values: tuple(map(_floats, values)),
    "Flags": partial(np.asarray, dtype=bool),
    "Texts": lambda values: tuple(map(str, values)),
    "Times": partial(np.asarray, dtype="datetime64[us]"),
}
"""Functions that read a field of a display, by the type that is written for it."""


class Panels(NamedTuple):
    """Panels of a display: rows and columns, and the size of a new figure in inches."""

    shape: tuple[int, int] = (1, 1)
    size: tuple[float, float] = (6.4, 4.4)
    shares_x: bool = False
    title_at: str = "center"


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class Display(ABC):
    """Draws one Axes, or several panels, with a title."""

    name: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            read = _KEPT.get(str(field.type).removesuffix(" | None"))
            if read is not None and (values := getattr(self, field.name)) is not None:
                setattr(self, field.name, read(values))

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the numbers.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of them, or None, default=None
            Where to draw; None makes a figure. Of several panels one Axes each, or one to divide.
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
        layout = self._layout()
        axes = panels(owner, ax, layout.shape, layout.size, layout.shares_x)
        self.ax_ = axes if axes.size > 1 else axes[0]
        self.figure_ = axes[0].figure
        self._draw(self.ax_, **kwargs)
        title = self.name if name is None else name
        if title is not None:
            axes[0].set_title(title, loc=layout.title_at)
        return self

    def _layout(self) -> Panels:
        return Panels()

    @abstractmethod
    def _draw(self, axes: Any, /, **kwargs: Any) -> None: ...


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class RowsDisplay(Display):
    """Draws a number for each coordinate of a mechanism, or for each kind of release of a fit."""

    smallest: ArrayLike
    largest: ArrayLike
    kinds: Texts | None = None

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
        %(displays: name, **kwargs, Returns, Raises)s
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
        %(displays: name, **kwargs, Returns, Raises, NotFittedError)s
        """
        report = report_of(f"{cls.__name__}.from_estimator", estimator)
        return cls(**cls._of_report(report, kinds_of(report, name))).plot(ax, **kwargs)

    @classmethod
    @abstractmethod
    def _of_mechanism(cls, mechanism: AdditiveMechanism) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def _of_report(cls, report: PrivacyReport, rows: dict[str, Any]) -> dict[str, Any]: ...
