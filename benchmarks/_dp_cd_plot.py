"""The picture of the DP-CD benchmark: one panel for each data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._dp_cd_runs import ALLOCATIONS

_TITLES = {
    "california_raw": "California housing, raw columns\nleast squares, $\\ell_1$ penalty 1.0",
    "california_standardised": "California housing, standardised\nleast squares, $\\ell_1$ "
    "penalty 0.1",
    "electricity_raw": "Electricity, raw columns\nlogistic loss, $\\ell_2$ penalty $1/n$",
    "electricity_standardised": "Electricity, standardised\nlogistic loss, $\\ell_2$ penalty $1/n$",
}
# Wide lines and large hollow markers below, so that they stay visible where allocations coincide.
_LINES: dict[str, dict[str, Any]] = {
    "spr": {"color": "#f2b94b", "linewidth": 7, "alpha": 0.7},
    "uniform": {"color": "#2f7fc1", "marker": "s", "markersize": 10, "fillstyle": "none"},
    "curvature": {"color": "#c1272d", "linewidth": 2.5, "marker": "o", "markersize": 7},
    "spread": {"color": "#1b7f5c", "linewidth": 1, "marker": "^", "markersize": 4},
}
_SHUFFLED_LINE: dict[str, Any] = {
    "label": "ours, i.n.i.d., weights 1/M, permuted passes alone",
    "color": "#c1272d",
    "linestyle": "-.",
    "linewidth": 1.2,
}
_PUBLISHED_LINES: dict[str, dict[str, Any]] = {
    "dp_cd": {"color": "black", "linestyle": "--", "marker": "x", "markersize": 5},
    "dp_sgd": {"color": "0.55", "linestyle": ":", "marker": "+", "markersize": 6},
}


def save_plot(
    path: Path, results: Mapping[str, Any], published: Mapping[str, Mapping[str, Any]]
) -> None:
    """Draw relative error against passes and save it; without matplotlib, say so and return."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        print("no picture: matplotlib is not installed (the extra 'plot' brings it)")
        return
    figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")
    for axis, (name, by_passes) in zip(axes.flat, results.items(), strict=False):
        passes = list(by_passes)
        start = published[name]["dp_cd"][0]
        for allocation, text in ALLOCATIONS.items():
            errors = [by_passes[t][allocation]["any"].error for t in passes]
            axis.plot([0, *passes], [start, *errors], label=f"ours, {text}", **_LINES[allocation])
        errors = [by_passes[t]["curvature"]["shuffled"].error for t in passes]
        axis.plot([0, *passes], [start, *errors], **_SHUFFLED_LINE)
        limit = max(10, *passes)
        for method, text in (("dp_cd", "DP-CD, published"), ("dp_sgd", "DP-SGD, published")):
            points = {t: e for t, e in published[name][method].items() if t <= limit}
            axis.plot(list(points), list(points.values()), label=text, **_PUBLISHED_LINES[method])
        axis.set_yscale("log")
        axis.set_xlim(left=0)
        axis.set_title(_TITLES[name], fontsize=11)
        axis.set_xlabel("passes over the data")
        axis.set_ylabel("relative error of the objective, $(F - F^*)/F^*$")
        axis.grid(which="major", alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(
        "Private training, $\\varepsilon=1$, $\\delta=1/n^2$; mean of five seeds, "
        "best of a grid chosen without charge",
        fontsize=12,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"saved {path}")
