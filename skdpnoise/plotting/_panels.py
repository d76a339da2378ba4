"""Axes, colours, and how a number for each coordinate, or for each kind of release, is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Okabe and Ito's colours, which stay apart for the colour-blind, and dashes for grey prints.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MANY = 60  # more coordinates are drawn as a sorted line
_NAMED = 20  # so many get a tick each
_FEWEST_SLOTS = 6  # so that one bar does not fill a panel
_FAINT = 0.25  # of a grid
_WIDE = 10.0  # values that span more get a logarithmic axis


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            "The displays of skdpnoise draw with matplotlib, which is not installed. Install it "
            'with: pip install "skdpnoise[plot]"'
        ) from error
    return matplotlib.pyplot


def style(index: int, given: dict[str, Any]) -> dict[str, Any]:
    """Return colour and dashes of the index-th curve, unless they are given."""
    chosen: dict[str, Any] = {}
    if "color" not in given and "c" not in given:
        chosen["color"] = COLOURS[index % len(COLOURS)]
    if "linestyle" not in given and "ls" not in given:
        chosen["linestyle"] = DASHES[index % len(DASHES)]
    return chosen | given


def one_panel(owner: str, ax: Any) -> Any:
    """Return the Axes to draw on: the given one, or that of a new figure."""
    plt = pyplot()
    if ax is None:
        return plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1]
    _check_axes(owner, ax, "a matplotlib Axes or None")
    return ax


def panels(
    owner: str, ax: Any, shape: tuple[int, int], size: tuple[float, float], **kw: Any
) -> Any:
    """Return an array of Axes: those of a new figure, the given ones, or the given one divided."""
    plt = pyplot()
    count = shape[0] * shape[1]
    if ax is None:
        _, axes = plt.subplots(*shape, figsize=size, layout="constrained", squeeze=False, **kw)
        return axes.ravel()
    allowed = f"a matplotlib Axes, a sequence of {count} of them, or None"
    if isinstance(ax, Sequence | np.ndarray) and not isinstance(ax, str):
        given = np.array(ax, dtype=object).ravel()
        if given.size != count:
            raise ValueError(
                f"The 'ax' parameter of {owner} must be {allowed}. Got {given.size} instead."
            )
        for each in given:
            _check_axes(owner, each, allowed)
        return given
    _check_axes(owner, ax, allowed)
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            f"The 'ax' parameter of {owner} must be {allowed}. An Axes outside of a grid cannot be "
            f"divided: give {count} Axes, or one that plt.subplots made."
        )
    ax.set_axis_off()
    return place.subgridspec(*shape).subplots(squeeze=False, **kw).ravel()


def _check_axes(owner: str, ax: object, allowed: str) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"The 'ax' parameter of {owner} must be {allowed}. Got an object of type "
            f"{type(ax).__name__} instead."
        )


def sorted_order(keys: Sequence[Vector]) -> NDArray[np.intp]:
    """Return the order in which coordinates are drawn: as they are, or, if many, largest first."""
    size = keys[0].size
    if size <= MANY:
        return np.arange(size)
    return np.lexsort([-key for key in reversed(keys)])


def spread_by_coordinate(ax: Any, low: Vector, high: Vector, what: str, **kwargs: Any) -> Any:
    """Draw a positive number, or a range, for each coordinate; return the line of the largest."""
    position = np.arange(1, high.size + 1)
    ranges = bool((low < high).any())
    # Zeros (coordinates without noise) have no place on a logarithmic axis, and are said in words.
    low, high = (np.where(values > 0.0, values, np.nan) for values in (low, high))
    given = {"color": COLOURS[0]} | kwargs
    if high.size > MANY:
        (line,) = ax.plot(position, high, **given)
        if ranges:
            ax.fill_between(position, low, high, alpha=0.3, linewidth=0, color=line.get_color())
    else:
        (line,) = ax.plot(position, high, **({"marker": "o", "linestyle": "none"} | given))
        if ranges:
            ax.plot(position, low, "o", color=line.get_color())
            ax.vlines(position, low, high, color=line.get_color(), linewidth=2)
    _fit_axis(ax.set_yscale, ax.set_ylim, np.concatenate([low, high]))
    ax.set_ylabel(what)
    ax.grid(axis="y", alpha=_FAINT)
    return line


def spread_by_kind(
    ax: Any, low: Vector, high: Vector, what: str, names: Sequence[str], **kwargs: Any
) -> Any:
    """Draw a range for each kind of release, from the top down; return the line of the largest."""
    row = np.arange(len(names))
    given = {"color": COLOURS[0], "marker": "o", "linestyle": "none"} | kwargs
    (line,) = ax.plot(high, row, **given)
    ax.plot(low, row, "o", color=line.get_color())
    ax.hlines(row, low, high, color=line.get_color(), linewidth=2)
    _fit_axis(ax.set_xscale, ax.set_xlim, np.concatenate([low, high]))
    ax.set_xlabel(f"{what}, in the units of each release")
    ax.grid(axis="x", alpha=_FAINT)
    _name_rows(ax, names)
    return line


def shares_by_coordinate(ax: Any, shares: Vector, share_of: str, **kwargs: Any) -> Any:
    """Draw shares as bars, or, if many, as the line under which they lie; return the artist."""
    position = np.arange(1, shares.size + 1)
    given = {"color": COLOURS[2]} | kwargs
    if shares.size <= MANY:
        artist = ax.bar(position, 100.0 * shares, **given)
    else:
        (artist,) = ax.plot(position, 100.0 * shares, **given)
        ax.fill_between(position, 100.0 * shares, alpha=0.3, linewidth=0, color=artist.get_color())
    ax.set_ylim(0.0, 115.0 * float(shares.max()))
    ax.set_ylabel(f"share of {share_of} (%)")
    ax.grid(axis="y", alpha=_FAINT)
    return artist


def shares_by_kind(ax: Any, shares: Vector, share_of: str, **kwargs: Any) -> Any:
    """Draw shares as bars, from the top down, beside rows that have names already; return them."""
    given = {"color": COLOURS[2]} | kwargs
    bars = ax.barh(np.arange(shares.size), 100.0 * shares, **given)
    ax.bar_label(bars, fmt="%.3g %%", padding=3)
    ax.set_xlim(0.0, 125.0 * float(shares.max()))
    ax.set_xlabel(f"share of {share_of} (%)")
    ax.grid(axis="x", alpha=_FAINT)
    _name_rows(ax, [""] * shares.size)
    return bars


def _name_rows(ax: Any, names: Sequence[str]) -> None:
    """Name the rows of a panel, the first at the top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(max(len(names), 2) - 0.4, -0.6)


def name_coordinates(ax: Any, noise: Vector, sorted_by: str) -> None:
    """Name the horizontal axis of panels with a place for each coordinate."""
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


def _fit_axis(set_scale: Any, set_limits: Any, values: Vector) -> None:
    """Begin at zero, or, if positive values span much, use a logarithmic axis."""
    positive = values[np.isfinite(values) & (values > 0.0)]
    if positive.size == 0:
        return
    low, high = float(positive.min()), float(positive.max())
    if high <= _WIDE * low:
        set_limits(0.0, 1.15 * high)
        return
    set_scale("log")
    set_limits(low / 1.5, high * 1.5)
