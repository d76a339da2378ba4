"""The picture of peers: scores over epsilon on California housing and Adult."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._peers_page import ORDINARY, OURS, figures, median
from benchmarks._pictures import pyplot

# One method of each library, chosen before any was measured; colours of Okabe and Ito.
_STYLES = {
    ORDINARY: ("#7F7F7F", ":", ""),
    OURS: ("#0072B2", "-", "o"),
    "diffprivlib LinearRegression": ("#D55E00", "--", "s"),
    "diffprivlib LogisticRegression": ("#D55E00", "--", "s"),
    "OpenDP ridge": ("#009E73", "-.", "^"),
    "interpret DP-EBM": ("#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "Opacus linear": ("#E69F00", (0, (3, 1)), "v"),
}
_PANELS = {
    "California": ("California housing", "R² on test rows", 0.0),
    "Adult": ("Adult", "accuracy on test rows", 0.5),
}


def save_plot(path: Path, run: Mapping[str, Any]) -> None:
    """Draw the medians and save the picture; without matplotlib, say so and return."""
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.6), layout="constrained")
    entries: dict[str, Any] = {}
    for axis, (data, (title, label, bottom)) in zip(axes, _PANELS.items(), strict=True):
        table, below = figures(run, data), []
        for method, (color, style, marker) in _STYLES.items():
            records = table.get(method, {})
            points = [(one, median(records.get(one))) for one in run["epsilons"]]
            points = [(one, score) for one, score in points if score is not None]
            inside = [(one, score) for one, score in points if score >= bottom]
            below += [_name(method)] if len(inside) < len(points) else []
            if not inside:
                continue
            (line,) = axis.plot(
                *zip(*inside, strict=True),
                color=color,
                linestyle=style,
                marker=marker,
                linewidth=2.5 if method == OURS else 1.6,
                zorder=3 if method == OURS else 2,
            )
            entries.setdefault(_name(method), line)
        axis.set_xscale("log")
        axis.set_xticks(run["epsilons"], [f"{one:g}" for one in run["epsilons"]])
        axis.set_xticks([], minor=True)
        axis.set_xlabel("ε (privacy parameter, no unit)")
        axis.set_ylabel(label)
        axis.set_title(title)
        if below:
            axis.set_ylim(bottom=bottom)
            text = f"below {bottom:g}: {', '.join(below)}"
            axis.text(0.97, 0.03, text, transform=axis.transAxes, ha="right")
        axis.grid(alpha=0.3)
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"saved {path}")


def _name(method: str) -> str:
    """Return what the legend says."""
    named = {
        ORDINARY: "scikit-learn, not private",
        OURS: "skdpnoise, defaults",
        "interpret DP-EBM": "interpret DP-EBM, bounds given",
    }
    library = method.partition(" ")[0]
    fallback = "diffprivlib" if library == "diffprivlib" else method
    return named.get(method, f"{fallback}, bounds given")
