"""Densities of the noise, and its size by coordinate."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Self, cast

import numpy as np

from skdpnoise._utils.checks import check_option
from skdpnoise._utils.shared_texts import shared_texts
from skdpnoise.accounting import PrivacyReport, Release
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.noises import Noise, get_noise
from skdpnoise.plotting import _panels
from skdpnoise.plotting._display import Arrays, Panels, RowsDisplay, Texts

_FEW = 5  # more densities than these are represented by three
_TAIL = 1e-4  # probability beyond each end of the picture
_POINTS = 401
_MARKED = 61  # so many integers get a mark each
_ONE_COLUMN = 3  # so many densities are listed below each other


@shared_texts
@dataclass(kw_only=True, eq=False, repr=False)
class NoiseDisplay(RowsDisplay):
    r"""Densities of the noise, in the units of the query, and its size by coordinate.

    .. math:: f_{tj}(x) = \frac{1}{s_{tj}} f\!\left(\frac{x}{s_{tj}}\right)

    On a logarithmic axis, the slope of the density is the privacy that a small change costs. Up to
    five different densities are drawn; of more, those of the smallest, the median and the largest
    standard deviation. Noise on the integers is drawn as steps, each at its integer.

    Of an estimator, the kinds of release that its report holds are drawn. They have units of their
    own, so their noise is drawn in records: over the most that one record can change. Densities are
    drawn only where the report tells them, since it holds scales but no shapes.

    Parameters
    ----------
    %(displays: name)s
    %(panels: smallest, largest, kinds)s
    values : sequence of array-like
        Where each density is known.
    densities : sequence of array-like
        The densities there; probabilities, for noise on the integers.
    labels : sequence of str
        What to call each density.
    size : str, default="standard deviation"
        What the size is.
    lattice : bool, default=False
        Whether the noise lives on the integers.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        Where it was drawn: densities, and sizes.
    %(displays: figure_)s
    lines_ : list of matplotlib Line2D
        One for each density.
    order_ : ndarray of int
        The row in each place of the second panel.
    size_ : matplotlib Line2D
        The largest sizes.

    Examples
    --------
    >>> from skdpnoise.mechanisms import calibrate
    >>> from skdpnoise.privacy import PrivacyGuarantee
    >>> from skdpnoise.sensitivity import SensitivityProfile
    >>> profile = SensitivityProfile([1.0, 8.0])
    >>> mechanism = calibrate("inid_laplace", profile, PrivacyGuarantee(1.0))
    >>> display = NoiseDisplay.from_mechanism(mechanism)
    >>> display.labels
    ('7.07 (coordinate 1)', '14.1 (coordinate 2)')
    """

    values: Arrays
    densities: Arrays
    labels: Texts
    size: str = "standard deviation"
    lattice: bool = False

    def plot(
        self, ax: Any = None, *, name: str | None = None, yscale: str = "log", **kwargs: Any
    ) -> Self:
        """Draw the two panels.

        Parameters
        ----------
        %(panels: ax)s
        %(displays: name)s
        yscale : {"log", "linear"}, default="log"
            Axis of the densities.
        %(displays: **kwargs, Returns)s

        Raises
        ------
        ValueError
            If `yscale` is neither.
        """
        check_option("NoiseDisplay.plot", "yscale", yscale, ("log", "linear"))
        return super().plot(ax, name=name, yscale=yscale, **kwargs)

    def _layout(self) -> Panels:
        if self.kinds is None:
            return Panels((1, 2), (9.6, 4.0))
        return Panels((1, 2), (11.5, max(4.0, 1.4 + 0.38 * len(self.kinds))))

    def _draw(self, axes: Any, /, *, yscale: str = "log", **kwargs: Any) -> None:
        left, right = axes
        self._plot_densities(left, yscale, kwargs)
        low, high = np.asarray(self.smallest), np.asarray(self.largest)
        order = self.order_ = _panels.sorted_order([high], self.kinds)
        what = f"{self.size} of the noise" if self.kinds is None else self.size
        self.size_ = _panels.spread(right, low[order], high[order], what, self.kinds)
        if self.kinds is None:
            _panels.name_coordinates(right, high, self.size)

    def _plot_densities(self, ax: Any, yscale: str, kwargs: dict[str, Any]) -> None:
        steps = {"drawstyle": "steps-mid"} if self.lattice else {}
        if self.lattice and max(each.size for each in self.values) <= _MARKED:
            steps |= {"marker": "o", "markersize": "3.5"}
        self.lines_ = [
            ax.plot(x, y, **_panels.style(i, {"label": self.labels[i]} | steps | kwargs))[0]
            for i, (x, y) in enumerate(zip(self.values, self.densities, strict=True))
        ]
        units = "in the units of the query" if self.kinds is None else "in records"
        ax.set_xlabel(f"noise, {units}")
        ax.set_ylabel("probability" if self.lattice else "density")
        ax.grid(alpha=0.25)
        if not self.lines_:
            ax.text(0.5, 0.5, "the report holds no shapes", ha="center", transform=ax.transAxes)
            return
        reach = max(float(each.max()) for each in self.values)
        ax.set_xlim(-reach, reach)
        peaks = [float(each.max()) for each in self.densities]
        columns = 1 if self.kinds is not None or len(self.lines_) <= _ONE_COLUMN else 2
        room = 1.0 - _legend_height(ax, 1 - (-len(self.lines_) // columns))
        ax.set_yscale(yscale)
        if yscale == "log":
            low = 2.0 * _TAIL * min(peaks)
            ax.set_ylim(low, low * (max(peaks) / low) ** (1.0 / room))
        else:
            ax.set_ylim(0.0, max(peaks) / room)
        ax.legend(title=self.size, loc="upper right", ncols=columns)

    @classmethod
    def _of_mechanism(cls, mechanism: AdditiveMechanism) -> dict[str, Any]:
        curves = _curves_of(mechanism)
        if len(curves) > _FEW:
            ranked = zip(_chosen(curves), ("smallest", "median", "largest"), strict=True)
            curves = [replace(curve, label=_label(curve.size, rank)) for curve, rank in ranked]
        rows = _panels.coordinates_of(mechanism, mechanism.standard_deviation)
        return {"lattice": mechanism.family.lattice, **_tabulated(curves), **rows}

    @classmethod
    def _of_report(cls, report: PrivacyReport, rows: dict[str, Any]) -> dict[str, Any]:
        curves = [
            _Curve(family, scale, scale, _label(scale, release.label))
            for release, scale in zip(report.releases, rows["largest"], strict=True)
            if (family := _unit_family(release)) is not None and np.isfinite(scale)
        ]
        curves = _chosen(sorted(curves, key=lambda curve: curve.size))
        return {"size": "noise of one release", **_tabulated(curves), **rows}


@dataclass(frozen=True, slots=True)
class _Curve:
    family: Noise
    scale: float
    size: float
    label: str


def _curves_of(mechanism: AdditiveMechanism) -> list[_Curve]:
    """Return the different densities of a mechanism, from the narrowest up."""
    assert mechanism.families is not None
    deviation = np.atleast_2d(mechanism.standard_deviation)
    scale = np.atleast_2d(mechanism.scale)
    n_coordinates = scale.shape[1]
    order = zip(*np.unravel_index(np.argsort(deviation, axis=None), scale.shape), strict=True)
    noisy = [place for place in order if scale[place] > 0.0]
    curves = []
    # Equal to four digits is equal to the eye.
    for _, alike in groupby(noisy, key=lambda place: f"{deviation[place]:.4g}"):
        places = list(alike)
        t, j = places[0]
        family = mechanism.families[j if len(mechanism.families) > 1 else 0]
        size = float(deviation[t, j])
        label = _label(size, _whose(sorted({j for _, j in places}), n_coordinates))
        curves.append(_Curve(family, float(scale[t, j]), size, label))
    return curves


def _unit_family(release: Release) -> Noise | None:
    """Return the noise at unit scale, or None if it has a shape, which reports do not hold."""
    try:
        family = get_noise(release.noise.partition("_")[2])
    except ValueError:
        return None
    return None if fields(cast(Any, family)) else family


def _legend_height(ax: Any, lines: int) -> float:
    """Return the share of the height of a panel to keep free above the peaks for the legend."""
    inches = ax.bbox.height / ax.figure.dpi
    return float(min(0.2 * (lines + 1) / inches, 0.6))


def _whose(members: list[int], n_coordinates: int) -> str:
    if len(members) == n_coordinates:
        return ""
    if len(members) == 1:
        return f"coordinate {members[0] + 1}"
    return f"{len(members)} coordinates"


def _label(size: float, whose: str) -> str:
    number = f"{size:.0f}" if 1e3 <= size < 1e6 else f"{size:.3g}"
    return f"{number} ({whose})" if whose else number


def _chosen(curves: list[_Curve]) -> list[_Curve]:
    if len(curves) <= _FEW:
        return curves
    return [curves[0], curves[len(curves) // 2], curves[-1]]


def _tabulated(curves: list[_Curve]) -> dict[str, Any]:
    """Return where each density is known, fine enough for the narrowest, its values and name."""
    reaches = [float(curve.family.isf(_TAIL)) * curve.scale for curve in curves]
    reach = max(reaches, default=0.0)
    values, densities = [], []
    for curve, own in zip(curves, reaches, strict=True):
        if curve.family.lattice:
            x = np.rint(np.linspace(-reach, reach, min(int(2 * reach) + 1, 2 * _POINTS)))
        else:
            x = np.concatenate([np.linspace(-end, end, _POINTS) for end in (reach, own)])
        values.append(np.unique(x))
        densities.append(np.exp(curve.family.logpdf(values[-1] / curve.scale)) / curve.scale)
    labels = [curve.label for curve in curves]
    return {"values": values, "densities": densities, "labels": labels}
