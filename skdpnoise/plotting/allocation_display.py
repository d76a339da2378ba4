"""Where the noise goes, and where the privacy budget does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
@dataclass(kw_only=True, eq=False, repr=False)
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
    %(panels: smallest, largest)s
    share : array-like of shape (n_rows,)
        Shares of the budget, which add up to 1.
    share_of : str
        In what losses are counted: "ε" or "μ²".
    size : str, default="noise scale s"
        What smallest and largest are: the standard deviation, where the shape of the noise differs
        between coordinates.
    sensitivity : array-like of shape (n_rows,) or None, default=None
        λ of each coordinate.
    %(panels: kinds)s
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

    smallest: ArrayLike
    largest: ArrayLike
    share: ArrayLike
    share_of: str
    size: str = "noise scale s"
    sensitivity: ArrayLike | None = None
    kinds: Sequence[str] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        self.smallest = np.asarray(self.smallest, dtype=np.float64)
        self.largest = np.asarray(self.largest, dtype=np.float64)
        self.share = np.asarray(self.share, dtype=np.float64)
        if self.sensitivity is not None:
            self.sensitivity = np.asarray(self.sensitivity, dtype=np.float64)
        self.kinds = None if self.kinds is None else tuple(self.kinds)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> AllocationDisplay:
        """Draw the panels.

        Parameters
        ----------
        %(panels: ax)s
        %(displays: name, **kwargs)s

        Returns
        -------
        AllocationDisplay
        """
        owner, side = "AllocationDisplay.plot", "center"
        self.sensitivity_ = None
        low, high, share = (np.asarray(v) for v in (self.smallest, self.largest, self.share))
        if self.kinds is not None:
            side, rows = "left", len(self.kinds)
            self.order_ = np.arange(rows)
            self.ax_ = panels(owner, ax, (1, 2), (9.0, 1.4 + 0.38 * max(rows, 2)))
            self.scale_ = spread_by_kind(self.ax_[0], low, high, self.size, self.kinds, **kwargs)
            self.share_ = shares_by_kind(self.ax_[1], share, self.share_of, **kwargs)
        else:
            keys = [high] if self.sensitivity is None else [np.asarray(self.sensitivity), high]
            order = self.order_ = sorted_order(keys)
            rows = len(keys) + 1
            self.ax_ = panels(owner, ax, (rows, 1), (6.4, 2.2 * rows), sharex=True)
            if self.sensitivity is not None:
                values, given = keys[0][order], {"color": COLOURS[1]} | kwargs
                self.sensitivity_ = spread_by_coordinate(
                    self.ax_[0], values, values, "sensitivity λ", **given
                )
            self.scale_ = spread_by_coordinate(
                self.ax_[-2], low[order], high[order], self.size, **kwargs
            )
            self.share_ = shares_by_coordinate(self.ax_[-1], share[order], self.share_of, **kwargs)
            by = "scale" if self.sensitivity is None else "sensitivity"
            name_coordinates(self.ax_[-1], high, by)
        name = self.name if name is None else name
        if name is not None:
            self.ax_[0].set_title(name, loc=side)
        self.figure_ = self.ax_[0].figure
        return self

    @classmethod
    def from_mechanism(
        cls, mechanism: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any
    ) -> AllocationDisplay:
        """Compute and draw the allocation of a mechanism, by coordinate.

        Parameters
        ----------
        %(panels: mechanism, ax)s
        %(displays: name, **kwargs)s

        Returns
        -------
        AllocationDisplay

        Raises
        ------
        %(displays: TypeError)s
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
        %(panels: ax)s
        %(displays: name, **kwargs)s

        Returns
        -------
        AllocationDisplay

        Raises
        ------
        %(displays: TypeError, NotFittedError)s
        """
        report = report_of("AllocationDisplay.from_estimator", estimator)
        share, share_of = release_shares(report)
        display = cls(share=share, share_of=share_of, size="noise scale", **rows_of(report, name))
        return display.plot(ax, **kwargs)
