"""The picture of the history of speed: a panel for each ratio of passes, and one for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._pictures import pyplot

_MARKERS = "osD^vP*X"  # one for each machine
_COLORS = {"squared": "#2f7fc1", "logistic": "#c1272d"}
_SIGNS = {"<=": "at most", ">=": "at least"}


def save_plot(
    path: Path, points: Sequence[Mapping[str, Any]], ratios: Sequence[str], machines: Sequence[str]
) -> None:
    """Draw every ratio over the kept runs and save it; without matplotlib, say so and return.

    Lines join points of one machine only.
    """
    plt = pyplot()
    if plt is None:
        return
    figure = plt.figure(figsize=(11, 12), layout="constrained")
    grid = figure.add_gridspec(3, 2)
    panels = [figure.add_subplot(grid[row, column]) for row in (0, 1) for column in (0, 1)]
    rest = figure.add_subplot(grid[2, :])
    markers = dict(zip(dict.fromkeys(machines), _MARKERS * len(machines), strict=False))
    labels = list(dict.fromkeys(label for point in points for label in point["ratios"]))
    for axis, name in zip(panels, ratios, strict=True):
        for label in labels:
            for machine, marker in markers.items():
                where = [
                    k
                    for k, point in enumerate(points)
                    if machines[k] == machine and label in point["ratios"]
                ]
                values = [points[k]["ratios"][label][name] for k in where]
                first = machine == machines[0]
                axis.plot(
                    where, values, marker=marker, label=label if first else None, **_line(label)
                )
        sign, bar = points[-1]["bars"][name]
        axis.axhline(bar, color="0.3", linestyle=":", linewidth=1.5)
        axis.set_title(f"{name} ({_SIGNS[sign]} {bar:g})")
        axis.margins(y=0.1)
        axis.grid(alpha=0.3)
    _draw_rest(rest, points)
    ticks = [f"{point['date'][:10]}\n{point['commit'][:8]}" for point in points]
    for axis in (*panels[2:], rest):
        axis.set_xticks(range(len(points)), ticks, rotation=45 if len(points) > 6 else 0)
        axis.set_xlim(-0.5, len(points) - 0.5)
    for axis in panels[:2]:
        axis.set_xlim(-0.5, len(points) - 0.5)
        axis.set_xticks(range(len(points)), [])
    cases = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    hardware = {
        machine: plt.Line2D([], [], color="0.3", linestyle="", marker=marker)
        for machine, marker in markers.items()
    }
    figure.legend(
        [*cases.values(), *hardware.values()],
        [*cases, *hardware],
        loc="outside lower center",
        ncols=3,
    )
    figure.suptitle("Ratios within one run of `python -m benchmarks speed`; dotted: the bar")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"saved {path}")


def _draw_rest(axis: Any, points: Sequence[Mapping[str, Any]]) -> None:
    """Draw every other figure in units of its bar, one colour for each part."""
    for k, part in enumerate(dict.fromkeys(part for point in points for part in point["parts"])):
        names = dict.fromkeys(name for point in points for name in point["parts"].get(part, ()))
        for label, name in zip([part, *[None] * len(names)], names, strict=False):
            figures = [point["parts"].get(part, {}).get(name) for point in points]
            where = [place for place, figure in enumerate(figures) if figure is not None]
            shares = [figures[place][0] / figures[place][1] for place in where]
            axis.plot(where, shares, marker="o", markersize=4, color=f"C{k}", label=label)
    axis.axhline(1.0, color="0.3", linestyle=":", linewidth=1.5)
    axis.set_yscale("log")
    axis.set_title("All other figures, in units of their bars")
    axis.grid(alpha=0.3)
    axis.legend(ncols=2)


def _line(label: str) -> dict[str, Any]:
    """Colour by loss, dashes by type, a thin pale line without standardisation."""
    loss, dtype, *standardised = label.split(", ")
    return {
        "color": _COLORS.get(loss, "0.5"),
        "linestyle": "--" if dtype == "float32" else "-",
        "linewidth": 2.0 if standardised else 1.0,
        "alpha": 1.0 if standardised else 0.6,
        "markersize": 5,
    }
