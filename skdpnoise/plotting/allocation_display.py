"""Where the noise goes, and where the privacy budget does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise.plotting._inputs import (
    check_additive,
    coordinate_shares,
    range_over_releases,
    release_shares,
    report_of,
    rows_of,
)
from skdpnoise.plotting._panels import (
    COLOURS,
    name_coordinates,
    panels,
    shares_by_coordinate,
    shares_by_kind,
    sorted_order,
    spread_by_coordinate,
    spread_by_kind,
)
from skdpnoise.privacy.shared_texts import shared_texts

__all__ = ["AllocationDisplay"]


@shared_texts
class AllocationDisplay:
    r"""Sensitivity, noise scale and share of the privacy budget, by coordinate or by release.

    .. math:: \frac{c_j}{\sum_k c_k}, \qquad c_j = \sum_t (\lambda_j / s_{tj})^2
              \quad\text{(Gaussian)}, \qquad c_j = \sum_t \lambda_j / s_{tj}
              \quad\text{(Laplace)}

    is the share of coordinate j: of μ² for Gaussian noise, whose squares add, and of ε for noise
    that gives pure privacy. Other noise is counted in μ², by the Fisher information of its density
    (or by its variance, if it has none). The record meant moves every coordinate by its own bound,
    though a joint bound on all of them may forbid that.

    Of an estimator, the shares of its kinds of release are drawn: of ε if all of them are purely
    private, else of μ², those of the Gaussian losses with the same ε at the guarantee's δ.

    More than 60 coordinates are sorted by sensitivity and drawn as lines.

    Parameters
    ----------
    smallest, largest : array-like of shape (n_rows,)
        Range of the size of the noise of each row over the releases.
    share : array-like of shape (n_rows,)
        Shares of the budget, which add up to 1.
    share_of : str
        In what losses are counted: "ε" or "μ²".
    size : str, default="noise scale s"
        What smallest and largest are: the standard deviation, where the shape of the noise differs
        between coordinates.
    sensitivity : array-like of shape (n_rows,) or None, default=None
        λ of each coordinate.
    kinds : sequence of str or None, default=None
        Names of the rows, if they are kinds of release; None if they are coordinates.
    %(displays: name)s

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        Where it was drawn: sensitivity (if there is one), scale, and share.
    %(displays: figure_)s
    order_ : ndarray of int
        The row in each place.
    sensitivity_ : matplotlib Line2D or None
        The sensitivities.
    scale_ : matplotlib Line2D
        The largest scales.
    share_ : matplotlib BarContainer or Line2D
        The shares, in per cent.

    References
    ----------
    Muthukrishnan and Kalyani, arXiv:2302.03511, Theorems 4 and 5 (the best scales).

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> profile = SensitivityProfile([1.0, 8.0])
    >>> mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(1.0))
    >>> display = AllocationDisplay.from_mechanism(mechanism)
    >>> display.share.round(3)  # λ_j / s_j is as the two-thirds power of λ_j
    array([0.2, 0.8])
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        smallest: ArrayLike,
        largest: ArrayLike,
        share: ArrayLike,
        share_of: str,
        size: str = "noise scale s",
        sensitivity: ArrayLike | None = None,
        kinds: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.smallest = np.asarray(smallest, dtype=np.float64)
        self.largest = np.asarray(largest, dtype=np.float64)
        self.share = np.asarray(share, dtype=np.float64)
        self.share_of = share_of
        self.size = size
        self.sensitivity = None if sensitivity is None else np.asarray(sensitivity, np.float64)
        self.kinds = None if kinds is None else tuple(kinds)
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> AllocationDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of them, or None, default=None
            One Axes for each panel, or one to be divided; None makes a figure.
        name : str or None, default=None
            Title of the picture, in place of its own.
        **kwargs
            Passed to the artists of every panel, such as ``color`` or ``alpha``.

        Returns
        -------
        AllocationDisplay
        """
        name = self.name if name is None else name
        if self.kinds is None:
            self._plot_coordinates(ax, name, kwargs)
        else:
            self._plot_kinds(ax, name, kwargs)
        self.figure_ = self.ax_[0].figure
        return self

    def _plot_coordinates(self, ax: Any, name: str | None, kwargs: dict[str, Any]) -> None:
        keys = [self.largest] if self.sensitivity is None else [self.sensitivity, self.largest]
        self.order_ = sorted_order(keys)
        height = 2.2 * (len(keys) + 1)
        shape = (len(keys) + 1, 1)
        axes = panels("AllocationDisplay.plot", ax, shape, (6.4, height), sharex=True)
        self.sensitivity_ = None
        if self.sensitivity is not None:
            values = self.sensitivity[self.order_]
            given = {"color": COLOURS[1]} | kwargs
            self.sensitivity_ = spread_by_coordinate(
                axes[0], values, values, "sensitivity λ", **given
            )
        low, high = self.smallest[self.order_], self.largest[self.order_]
        self.scale_ = spread_by_coordinate(axes[-2], low, high, self.size, **kwargs)
        share = self.share[self.order_]
        self.share_ = shares_by_coordinate(axes[-1], share, self.share_of, **kwargs)
        if name is not None:
            axes[0].set_title(name)
        by = "scale" if self.sensitivity is None else "sensitivity"
        name_coordinates(axes[-1], high.size, int((high == 0.0).sum()), by)
        self.ax_ = axes

    def _plot_kinds(self, ax: Any, name: str | None, kwargs: dict[str, Any]) -> None:
        assert self.kinds is not None
        rows = len(self.kinds)
        size = (9.0, 1.4 + 0.38 * max(rows, 2))
        axes = panels("AllocationDisplay.plot", ax, (1, 2), size)
        self.order_, self.sensitivity_ = np.arange(rows), None
        self.scale_ = spread_by_kind(
            axes[0], self.smallest, self.largest, self.size, self.kinds, **kwargs
        )
        self.share_ = shares_by_kind(axes[1], self.share, self.share_of, **kwargs)
        if name is not None:
            axes[0].set_title(name, loc="left")
        self.ax_ = axes

    @classmethod
    def from_mechanism(
        cls, mechanism: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> AllocationDisplay:
        """Compute and draw the allocation of a mechanism, by coordinate.

        Parameters
        ----------
        mechanism : AdditiveMechanism
            As :func:`~skdpnoise.mechanisms.calibrate` returns it.
        ax : matplotlib Axes, sequence of three, or None, default=None
            Where to draw; None makes a figure.
        name : str or None, default=None
            Title of the picture; None is the name of the noise.
        **kwargs
            Passed to the artists of every panel.

        Returns
        -------
        AllocationDisplay

        Raises
        ------
        TypeError
            If the mechanism is of another kind.
        """
        mechanism = check_additive("AllocationDisplay.from_mechanism", mechanism)
        sizes, size = mechanism.scale, "noise scale s"
        # Where the coordinates have shapes of their own, scales do not tell who has more noise.
        if mechanism.family.lattice or len(set(mechanism.families or ())) > 1:
            sizes, size = mechanism.standard_deviation, "standard deviation"
        smallest, largest = range_over_releases(sizes)
        share, share_of = coordinate_shares(mechanism)
        return cls(
            smallest=smallest,
            largest=largest,
            share=share,
            share_of=share_of,
            size=size,
            sensitivity=mechanism.sensitivity.per_coordinate,
            name=mechanism.noise,
        ).plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> AllocationDisplay:
        """Compute and draw the scales and shares of all kinds of release behind a fit.

        Parameters
        ----------
        %(displays: estimator)s
        ax : matplotlib Axes, sequence of two, or None, default=None
            Where to draw; None makes a figure.
        name : str or None, default=None
            Title of the picture; None is estimator and guarantee.
        **kwargs
            Passed to the artists of every panel.

        Returns
        -------
        AllocationDisplay

        Raises
        ------
        TypeError
            If the estimator has no privacy report.
        %(displays: NotFittedError)s
        """
        report = report_of("AllocationDisplay.from_estimator", estimator)
        share, share_of = release_shares(report)
        display = cls(share=share, share_of=share_of, size="noise scale", **rows_of(report, name))
        return display.plot(ax, **kwargs)
