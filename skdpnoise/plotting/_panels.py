"""Inputs, axes and colours of displays, and drawing of rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdpnoise._utils.checks import complaint, needed
from skdpnoise.accounting import PrivacyReport
from skdpnoise.accounting.report import noise_in_records
from skdpnoise.mechanisms import AdditiveMechanism
from skdpnoise.sampling.words import with_caveat

Vector = NDArray[np.float64]

# Okabe and Ito's colours, which stay apart for the colour-blind, and dashes for grey prints.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MANY = 60  # more coordinates are drawn as a sorted line
_NAMED = 20  # so many get a tick each
_FEWEST_SLOTS = 6  # so that one bar does not fill a panel
_FAINT = 0.25  # of a grid
_WIDE = 10.0  # values that span more get a logarithmic axis
_SINGLE = "a matplotlib Axes or None"


def pyplot() -> Any:
    return needed("matplotlib.pyplot", "A display", "plot")


def style(index: int, given: dict[str, Any]) -> dict[str, Any]:
    from matplotlib import cbook, lines

    look = {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)]}
    return look | cbook.normalize_kwargs(given, lines.Line2D)


def check_axes(owner: str, axes: Iterable[Any], allowed: str = _SINGLE) -> None:
    kind = pyplot().Axes
    for ax in axes:
        if not isinstance(ax, kind):
            raise wrong_kind(owner, "ax", ax, allowed)


def panels(
    owner: str, ax: Any, shape: tuple[int, int], size: tuple[float, float], sharex: bool
) -> Any:
    """Return an array of Axes: those of a new figure, the given ones, or the given one divided."""
    plt, count = pyplot(), shape[0] * shape[1]
    if ax is None:
        figure = plt.figure(figsize=size, layout="constrained")
        return figure.subplots(*shape, sharex=sharex, squeeze=False).ravel()
    allowed = f"a matplotlib Axes, a sequence of {count} of them, or None" if count > 1 else _SINGLE
    must = f"The 'ax' parameter of {owner} must be {allowed}."
    several = count > 1 and isinstance(ax, Sequence | np.ndarray) and not isinstance(ax, str)
    given = np.array(ax if several else [ax], dtype=object).ravel()
    if several and given.size != count:
        raise ValueError(f"{must} Got {given.size} instead.")
    check_axes(owner, given, allowed)
    if given.size == count:
        return given
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            f"{must} An Axes outside of a grid cannot be divided: give {count} Axes, or one that "
            "plt.subplots made."
        )
    ax.set_axis_off()
    return place.subgridspec(*shape).subplots(sharex=sharex, squeeze=False).ravel()


def wrong_kind(owner: str, name: str, value: object, allowed: str) -> TypeError:
    given = f"an object of type {type(value).__name__}"
    return TypeError(complaint(owner, name, f"be {allowed}", given))


def check_additive(owner: str, mechanism: object) -> AdditiveMechanism:
    if not isinstance(mechanism, AdditiveMechanism):
        allowed = "an AdditiveMechanism, which calibrate returns"
        raise wrong_kind(owner, "mechanism", mechanism, allowed)
    return mechanism


def report_of(owner: str, estimator: Any) -> PrivacyReport:
    report = getattr(estimator, "privacy_", None)
    if isinstance(report, PrivacyReport):
        return report
    if hasattr(estimator, "fit") and not isinstance(estimator, type):
        check_is_fitted(estimator)
    allowed = "a fitted estimator of skdpnoise, with a report in privacy_"
    raise wrong_kind(owner, "estimator", estimator, allowed)


def coordinates_of(mechanism: AdditiveMechanism, sizes: Vector) -> dict[str, Any]:
    """Return the fields of a display of a mechanism: sizes by coordinate, and a title."""
    rows = np.atleast_2d(sizes)
    return {"smallest": rows.min(axis=0), "largest": rows.max(axis=0), "name": mechanism.noise}


def kinds_of(report: PrivacyReport, name: str | None) -> dict[str, Any]:
    """Return the fields of a display of a report: sizes in records, names, and a title."""
    releases, guarantee = report.releases, report.guarantee
    # Kinds of release have units of their own; a record is the one that they share.
    size = np.array([noise_in_records(release, guarantee) for release in releases])
    size[np.isinf(size)] = np.nan
    several = len({release.noise for release in releases}) > 1
    if name is None:
        name = f"{report.estimator}, ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}"
    return {
        "smallest": size,
        "largest": size,
        "kinds": tuple(
            f"{release.label}, {release.n_releases} × {release.n_coordinates}"
            + (f" ({release.noise})" if several else "")
            for release in releases
        ),
        "name": with_caveat(name, secure=report.secure),
    }


def sorted_order(keys: Sequence[Vector], kinds: Sequence[str] | None) -> NDArray[np.intp]:
    """Return the order of the rows: as they are, or, of many coordinates, largest first."""
    size = keys[0].size
    if kinds is not None or size <= MANY:
        return np.arange(size)
    return np.lexsort([-key for key in reversed(keys)])


def spread(
    ax: Any, low: Vector, high: Vector, what: str, kinds: Sequence[str] | None, **kwargs: Any
) -> Any:
    """Draw a number, or a range, for each row; return the line of the largest."""
    # Coordinates stand side by side, kinds of release below each other.
    row, along, join = np.arange(high.size), "x", ax.hlines
    ranges, many = True, False
    if kinds is None:
        row, along, join = row + 1, "y", ax.vlines
        ranges, many = bool((low < high).any()), high.size > MANY
        # Zeros (coordinates without noise) have no place on a logarithmic axis: words say them.
        low, high = (np.where(values > 0.0, values, np.nan) for values in (low, high))
    smallest, largest = ((row, x) if kinds is None else (x, row) for x in (low, high))
    given = {"color": COLOURS[0]} | ({} if many else {"marker": "o", "linestyle": "none"}) | kwargs
    (line,) = ax.plot(*largest, **given)
    colour = line.get_color()
    if ranges and many:
        ax.fill_between(row, low, high, alpha=0.3, linewidth=0, color=colour)
    elif ranges:
        ax.plot(*smallest, "o", color=colour)
        join(row, low, high, color=colour, linewidth=2)
    _fit_axis(ax, along, np.concatenate([low, high]))
    ax.grid(axis=along, alpha=_FAINT)
    if kinds is None:
        ax.set_ylabel(f"{what}\n(units of the query)")
    else:
        ax.set_xlabel(f"{what}\n(in records: the most that one can change)")
        _name_rows(ax, kinds)
    return line


def shares(
    ax: Any, values: Vector, share_of: str, kinds: Sequence[str] | None, **kwargs: Any
) -> Any:
    """Draw shares as bars, or, if many, as the line under which they lie; return the artist."""
    percent, row, given = 100.0 * values, np.arange(values.size), {"color": COLOURS[2]} | kwargs
    along, room = ("y", 1.15) if kinds is None else ("x", 1.25)
    if kinds is not None:
        artist = ax.barh(row, percent, **given)
        ax.bar_label(artist, fmt="%.3g %%", padding=3)
        _name_rows(ax, [""] * values.size)
    elif values.size <= MANY:
        artist = ax.bar(row + 1, percent, **given)
    else:
        (artist,) = ax.plot(row + 1, percent, **given)
        ax.fill_between(row + 1, percent, alpha=0.3, linewidth=0, color=artist.get_color())
    limits = (0.0, room * float(percent.max()))
    ax.set(**{f"{along}lim": limits, f"{along}label": f"share of {share_of} (%)"})
    ax.grid(axis=along, alpha=_FAINT)
    return artist


def _name_rows(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(max(len(names), 2) - 0.4, -0.6)


def name_coordinates(ax: Any, noise: Vector, sorted_by: str) -> None:
    size, without_noise = noise.size, int((noise == 0.0).sum())
    text = f"coordinate, sorted by {sorted_by}" if size > MANY else "coordinate"
    if without_noise:
        text += f" ({without_noise} without noise)"
    ax.set_xlabel(text)
    if size > MANY:
        ax.set_xlim(1, size)
        return
    middle, half = 0.5 * (size + 1), 0.5 * max(size, _FEWEST_SLOTS) + 0.1
    ax.set_xlim(middle - half, middle + half)
    if size <= _NAMED:
        ax.set_xticks(range(1, size + 1))


def _fit_axis(ax: Any, along: str, values: Vector) -> None:
    """Begin at zero, or, if positive values span much, use a logarithmic axis."""
    positive = values[np.isfinite(values) & (values > 0.0)]
    if positive.size == 0:
        return
    low, high = float(positive.min()), float(positive.max())
    if high <= _WIDE * low:
        ax.set(**{f"{along}lim": (0.0, 1.15 * high)})
    else:
        ax.set(**{f"{along}scale": "log"})
        ax.set(**{f"{along}lim": (low / 1.5, high * 1.5)})
