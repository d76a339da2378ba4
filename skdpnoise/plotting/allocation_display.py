"""Noise and share of the privacy budget, by coordinate or by release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.report import release_shares
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.noises import Noise
from skdpnoise.plotting import _panels
from skdpnoise.plotting._display import Panels, RowsDisplay
from skdpnoise.sensitivity import GroupedProfile


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class AllocationDisplay(RowsDisplay):
    r"""Sensitivity, noise scale and share of the privacy budget, by coordinate or by release.

    .. math:: \frac{c_j}{\sum_k c_k}, \qquad c_j = \sum_t (\lambda_j / s_{tj})^2
              \quad\text{(Gaussian)}, \qquad c_j = \sum_t \lambda_j / s_{tj}
              \quad\text{(Laplace)}

    is the share of coordinate j: of μ² for Gaussian noise, whose squares add, and of ε for noise
    that gives pure privacy. Other noise is counted in μ², by the Fisher information of its density
    (or by its variance, if it has none). The record meant moves every coordinate by its own bound,
    though a joint bound on all of them may forbid that.

    Of an estimator, the shares of its kinds of release are drawn: of ε if all of them are purely
    private, else of μ², those of the Gaussian losses with the same ε at the guarantee's δ. Kinds of
    release have units of their own, so their noise is drawn in records: its scale over the most
    that one record can change. More than 60 coordinates are sorted, and drawn as lines.

    Parameters
    ----------
    %(displays: name)s
    %(panels: smallest, largest, kinds)s
    share : array-like of shape (n_rows,)
        Shares of the budget, which add up to 1.
    share_of : str
        In what losses are counted: "ε" or "μ²".
    size : str, default="noise scale s"
        What smallest and largest are: the standard deviation, where shapes of noise differ.
    sensitivity : array-like of shape (n_rows,) or None, default=None
        λ of each coordinate.

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
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> profile = SensitivityProfile([1.0, 8.0])
    >>> mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(1.0))
    >>> display = AllocationDisplay.from_mechanism(mechanism)
    >>> display.share.round(3)  # λ_j / s_j is as the two-thirds power of λ_j
    array([0.2, 0.8])
    """

    share: ArrayLike
    share_of: str
    size: str = "noise scale s"
    sensitivity: ArrayLike | None = None

    def _layout(self) -> Panels:
        if self.kinds is not None:
            size = 9.0, 1.4 + 0.38 * max(len(self.kinds), 2)
            return Panels((1, 2), size, title_at="left")
        count = 2 if self.sensitivity is None else 3
        return Panels((count, 1), (6.4, 2.2 * count), shares_x=True)

    def _draw(self, axes: Any, /, **kwargs: Any) -> None:
        kinds, high = self.kinds, np.asarray(self.largest)
        keys = [high]
        if len(axes) > 2:
            keys = [np.asarray(self.sensitivity), high]
        order = _panels.sorted_order(keys, kinds)
        self.order_, self.sensitivity_ = order, None
        if len(keys) > 1:
            values, given = keys[0][order], {"color": _panels.COLOURS[1]} | kwargs
            what = "sensitivity λ"
            self.sensitivity_ = _panels.spread(axes[0], values, values, what, None, **given)
        sizes = np.asarray(self.smallest)[order], high[order]
        self.scale_ = _panels.spread(axes[-2], *sizes, self.size, kinds, **kwargs)
        share = np.asarray(self.share)[order]
        self.share_ = _panels.shares(axes[-1], share, self.share_of, kinds, **kwargs)
        if kinds is None:
            by = "scale" if len(keys) == 1 else "sensitivity"
            _panels.name_coordinates(axes[-1], high, by)

    @classmethod
    def _of_mechanism(cls, mechanism: AdditiveMechanism) -> dict[str, Any]:
        sizes, size = mechanism.scale, "noise scale s"
        # Where the coordinates have shapes of their own, scales do not tell who has more noise.
        if mechanism.family.lattice or len(set(mechanism.families or ())) > 1:
            sizes, size = mechanism.standard_deviation, "standard deviation"
        known = {"size": size, "sensitivity": mechanism.sensitivity.per_coordinate}
        return known | _coordinate_shares(mechanism) | _panels.coordinates_of(mechanism, sizes)

    @classmethod
    def _of_report(cls, report: PrivacyReport, rows: dict[str, Any]) -> dict[str, Any]:
        share, share_of = release_shares(report)
        return {"size": "noise of one release", "share": share, "share_of": share_of, **rows}


def _coordinate_shares(mechanism: AdditiveMechanism) -> dict[str, Any]:
    """Return each coordinate's share of the loss of all releases, and the unit of losses."""
    assert mechanism.families is not None
    limit, scale, groups = mechanism.sensitivity.per_coordinate, mechanism.scale, None
    if isinstance(mechanism.sensitivity, GroupedProfile):
        groups, order = mechanism.sensitivity, mechanism.family.norm_order or 1.0
        limit = groups.bounds
        scale = np.array([groups.effective(row, order) for row in np.atleast_2d(scale)])
    shift = np.zeros(scale.shape)
    np.divide(limit, scale, out=shift, where=(limit > 0.0) & (scale > 0.0))
    shift = np.atleast_2d(shift)
    families = mechanism.families * (limit.size // len(mechanism.families))
    columns = zip(families, shift.T, strict=True)
    cost, unit = np.column_stack([family.max_loss(column) for family, column in columns]), "ε"
    if not np.isfinite(cost).all():
        information = {family: _information(family) for family in set(families)}
        cost, unit = shift**2 * [information[family] for family in families], "μ²"
    total = cost.sum(axis=0)
    if groups is not None:  # members share alike what their group costs
        total = (total / groups.sizes)[groups.members]
    return {"share": total / total.sum(), "share_of": unit}


def _information(family: Noise) -> float:
    # Many small shifts lose what Gaussian noise of the same Fisher information does. Where there is
    # no such number (atoms, jumps), that of Gaussian noise of the same variance stands in.
    information = family.fisher_information
    return information if math.isfinite(information) else 1.0 / family.variance
