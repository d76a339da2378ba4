"""The picture of the DP-CD benchmark: one panel for each data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._looks import METHODS
from benchmarks._pictures import pyplot

_TITLES = {
    "california_raw": "California housing, raw columns\nleast squares, $\\ell_1$ penalty 1.0",
    "california_standardised": "California housing, standardised\nleast squares, $\\ell_1$ "
    "penalty 0.1",
    "electricity_raw": "Electricity, raw columns\nlogistic loss, $\\ell_2$ penalty $1/n$",
    "electricity_standardised": "Electricity, standardised\nlogistic loss, $\\ell_2$ penalty $1/n$",
}
_WEIGHTED = "i.n.i.d., weights 1/M (the default)"
_LINES: dict[str, dict[str, Any]] = {
    "curvature": METHODS["inid"] | {"label": f"skdpnoise, {_WEIGHTED}"},
    "spread": METHODS["third"] | {"label": "skdpnoise, the same, more budget for late passes"},
    "uniform": METHODS["second"] | {"label": "skdpnoise, i.n.i.d., uniform weights"},
    "spr": METHODS["spr"] | {"label": "skdpnoise, scale, perturb, rescale"},
}
_SHORT = {"spr": "s.p.r.", "uniform": "uniform weights", "spread": "more for late passes"}
_SHUFFLED_LINE: dict[str, Any] = {
    "label": f"skdpnoise, {_WEIGHTED}, permuted passes alone",
    "color": METHODS["inid"]["color"],
    "linestyle": (0, (1, 1)),
}
_PUBLISHED_LINES: dict[str, dict[str, Any]] = {
    "dp_cd": METHODS["baseline"] | {"linestyle": "--", "label": "DP-CD, published"},
    "dp_sgd": METHODS["iid"] | {"label": "DP-SGD, published"},
}


def save_plot(
    path: Path, results: Mapping[str, Any], published: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw relative error against passes and save it; without matplotlib, say so and return."""
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
    for axis, (name, by_passes) in zip(axes.flat, results.items(), strict=False):
        passes = list(by_passes)
        start = published[name]["dp_cd"][0]
        equal = []
        for allocation, line in _LINES.items():
            runs = [by_passes[t][allocation] for t in passes]
            if allocation != "curvature" and runs == [by_passes[t]["curvature"] for t in passes]:
                equal.append(allocation)  # the same noise, and so the same runs
                continue
            axis.plot([0, *passes], [start, *(run["any"].error for run in runs)], **line)
        errors = [by_passes[t]["curvature"]["shuffled"].error for t in passes]
        axis.plot([0, *passes], [start, *errors], **_SHUFFLED_LINE)
        limit = max(10, *passes)
        for method, line in _PUBLISHED_LINES.items():
            points = {t: e for t, e in published[name][method].items() if t <= limit}
            axis.plot(list(points), list(points.values()), **line)
        title = _TITLES[name]
        if equal:
            others = " and ".join(_SHORT[one] for one in equal)
            title += f"\nthe default is the same here as {others}"
        axis.set_yscale("log")
        axis.set_xlim(left=0)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("passes over the data")
        axis.set_ylabel("relative error, $(F - F^*)/F^*$")
        axis.grid(which="major", alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(
        "Objective F of private training, beside its least value F* without privacy\n"
        "ε = 1, δ = 1/n²; mean of five seeds, best of a grid chosen without charge",
        fontsize=12,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"saved {path}")
