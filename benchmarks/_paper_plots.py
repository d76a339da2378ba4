"""The figures of the paper benchmark, one file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._looks import METHODS
from benchmarks._paper_profiles import profile
from benchmarks._pictures import pyplot

# Colours that all can tell apart (Okabe and Ito); markers and dashes repeat what they say.
_BLUE, _ORANGE, _GREEN, _RED, _SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
_RULES = {"iid": "i.i.d.", "spr": "SPR", "inid": "i.n.i.d."}
_FAMILIES = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "staircase": "staircase",
    "truncated_laplace": "truncated Laplace",
    "osgt": "OSGT",
    "subbotin": "Subbotin",
    "flipped_huber": "flipped Huber",
}
_COINCIDES = 0.002  # so near to Laplace noise, lines would hide each other
_PROFILE_STYLES = (
    {"color": _BLUE, "marker": "o"},
    {"color": _ORANGE, "marker": "s"},
    {"color": _GREEN, "marker": "^"},
    {"color": _RED, "marker": "D"},
)


def save_plots(out: Path, curves: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw every figure and save it; without matplotlib, say so and return."""
    plt = pyplot()
    if plt is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, draw, wanted in (
        ("paper_a_epsilon", lambda c: _errors(plt, c, "by_epsilon"), "errors"),
        ("paper_a_size", lambda c: _errors(plt, c, "by_size"), "errors"),
        ("paper_b_reductions", lambda c: _reductions(plt, c), "reductions"),
        ("paper_c_families", lambda c: _family_ratios(plt, c), "families"),
        ("paper_d_plane", lambda c: _plane(plt, c), "plane"),
        ("paper_e_one_dimension", lambda c: _one_dimension(plt, c), "flipped_huber"),
        ("paper_e_twenty", lambda c: _twenty(plt, c), "flipped_huber"),
        ("paper_f_tight_laplace", lambda c: _tight(plt, c), "tight_laplace"),
        ("paper_g_capping", lambda c: _capping(plt, c), "capping"),
        ("paper_h_correlated", lambda c: _correlated(plt, c), "correlated"),
    ):
        figure = draw(curves[wanted])
        path = out / f"{name}.png"
        figure.savefig(path, dpi=130)
        plt.close(figure)
        print(f"saved {path}")


def _axes(plt: Any, title: str, x: str, y: str, *, width: float = 7.5) -> tuple[Any, Any]:
    figure, axis = plt.subplots(figsize=(width, 5.0), layout="constrained")
    axis.set_title(title, fontsize=11)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(which="major", alpha=0.3)
    return figure, axis


def _plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Show the values themselves on a logarithmic axis."""
    axis.set_xscale("log")
    axis.set_xticks(list(values), [f"{value:g}" for value in values])
    axis.set_xticks([], minor=True)


def _errors(plt: Any, curves: Mapping[str, Any], along: str) -> Any:
    by_epsilon = along == "by_epsilon"
    x = curves["epsilons"] if by_epsilon else curves["sizes"]
    sizes = [20] * len(x) if by_epsilon else x
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.5), layout="constrained")
    for axis, (name, lines) in zip(axes.flat, curves["errors"].items(), strict=False):
        for family, fill in (("gaussian", "full"), ("laplace", "none")):
            for rule, text in _RULES.items():
                errors = [
                    error / (size * profile(name, size).max() ** 2)
                    for error, size in zip(lines[f"{rule}_{family}"][along], sizes, strict=True)
                ]
                name_of_family = "Gaussian" if family == "gaussian" else "Laplace (pure)"
                axis.plot(
                    x,
                    errors,
                    fillstyle=fill,
                    label=f"{text} {name_of_family}",
                    **METHODS[rule] | {"markersize": {"iid": 9, "spr": 7, "inid": 5}[rule]},
                )
        axis.set_yscale("log")
        _plain_ticks(axis, x if by_epsilon else [k for k in x if k in (1, 2, 5, 12, 20, 50)])
        axis.set_title(f"profile: {_label(name)}")
        axis.set_xlabel("ε" if by_epsilon else "number of coordinates K")
        axis.set_ylabel("error per coordinate, × $1/\\lambda_{max}^2$")
        axis.grid(which="major", alpha=0.3)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    axes.flat[5].axis("off")
    axes.flat[5].legend(handles, labels, loc="center", frameon=False, fontsize=11)
    fixed = "K = 20" if by_epsilon else "ε = 1"
    figure.suptitle(f"Mean squared error of three allocations, {fixed}, δ = $10^{{-6}}$ (Gaussian)")
    return figure


def _label(name: str) -> str:
    return f"${name.removesuffix('^i')}^{{\\,i}}$" if name.endswith("^i") else name


def _reductions(plt: Any, curves: Mapping[str, Sequence[float]]) -> Any:
    figure, axis = _axes(
        plt, "Squared error that i.n.i.d. noise saves over i.i.d., K = 20", "", "saved, per cent"
    )
    width = 0.38
    for shift, column, text, colour in (
        (-0.5, 0, "Gaussian", METHODS["gaussian"]["color"]),
        (0.5, 1, "Laplace (pure)", METHODS["laplace"]["color"]),
    ):
        heights = [values[column] for values in curves.values()]
        places = [i + shift * width for i in range(len(curves))]
        bars = axis.bar(places, heights, width, label=text, color=colour)
        axis.bar_label(bars, [f"{height:.1f}" for height in heights], fontsize=8, padding=2)
    axis.set_xticks(
        range(len(curves)),
        [f"{_label(name)}\nGini {values[2]:.3f}" for name, values in curves.items()],
    )
    axis.set_ylim(0, 105)
    axis.legend(loc="upper left", frameon=False)
    return figure


def _family_ratios(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, axis = _axes(
        plt,
        "Laplace against Gaussian noise, i.n.i.d., (ε, δ) = (0.5, $10^{-6}$)",
        "number of coordinates K",
        "squared error of Laplace over that of Gaussian",
    )
    for (name, lines), style in zip(curves["ratios"].items(), _PROFILE_STYLES, strict=False):
        text = _label(name)
        pure = {"fillstyle": "none", "linestyle": ":", "label": f"{text}, pure"}
        axis.plot(curves["sizes"], lines["pure"], **pure, **style)
        axis.plot(curves["tight_sizes"], lines["tight"], label=f"{text}, tight", **style)
    axis.axhline(1.0, color="black", linewidth=1)
    axis.axvline(curves["threshold"] ** 2, color="0.5", linewidth=1, linestyle="-.")
    axis.annotate(
        f"uniform: K = {curves['threshold']:.3f}² = {curves['threshold'] ** 2:.2f}",
        (curves["threshold"] ** 2, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        fontsize=9,
        color="0.3",
    )
    axis.set_yscale("log")
    axis.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    axis.set_yticks([], minor=True)
    _plain_ticks(axis, [1, 2, 3, 5, 8, 12, 20, 30, 50])
    axis.legend(frameon=False, fontsize=9)
    return figure


def _plane(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, axis = _axes(
        plt,
        "Mean absolute error in two dimensions, $\\Delta_1 = 1$, λ = [0.15, 0.85]",
        "ε",
        "ε × mean absolute error",
    )
    x = curves["epsilons"]
    for name, style in (
        ("i.i.d. Laplace", METHODS["iid"]),
        ("staircase", METHODS["staircase"]),
        ("i.n.i.d. Laplace", METHODS["inid"]),
    ):
        text = "staircase on the $\\ell_1$ ball" if name == "staircase" else name
        values = [e * v for e, v in zip(x, curves[name], strict=True)]
        axis.plot(x, values, label=text, **style)
    axis.legend(frameon=False, loc="lower left")
    axis.set_ylim(1.6, 2.1)
    return figure


def _one_dimension(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
    epsilons, found = list(curves["one"]), list(curves["one"].values())
    ratios = {
        name: [values[name] * e**2 / 2.0 for e, values in zip(epsilons, found, strict=True)]
        for name in _FAMILIES
        if name in found[0]
    }
    near = [n for n, line in ratios.items() if max(abs(r - 1.0) for r in line) < _COINCIDES]
    together = ", ".join(_FAMILIES[name] for name in near)
    for name, line in ratios.items():
        if name in near and name != "laplace":
            continue
        text = f"{together}:\nwithin 0.2 % of Laplace" if name in near else _FAMILIES[name]
        look = METHODS[name] | {"label": text}
        left.plot(epsilons, line, **look)
        if name != "gaussian":
            right.plot(epsilons, [100.0 * (ratio - 1.0) for ratio in line], **look)
    left.set_yscale("log")
    left.set_yticks([0.4, 0.6, 1, 2, 4, 8, 12], ["0.4", "0.6", "1", "2", "4", "8", "12"])
    left.set_yticks([], minor=True)
    left.set_ylabel("variance over that of Laplace noise, $2/ε^2$")
    left.set_title("Gaussian noise beside the others")
    right.set_yscale("symlog", linthresh=5.0)
    right.set_yticks([-60, -30, -15, -5, -2.5, 0, 2.5, 5])
    right.set_yticklabels(["−60", "−30", "−15", "−5", "−2.5", "0", "+2.5", "+5"])
    right.set_ylim(-80.0, 6.0)
    right.set_ylabel("variance above that of Laplace noise (%)\nlogarithmic below −5 %")
    right.set_title("The others, in per cent")
    for axis in (left, right):
        _plain_ticks(axis, epsilons)
        axis.set_xlabel("ε")
        axis.grid(which="major", alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle("One number of sensitivity 1, δ = $10^{-6}$")
    return figure


def _twenty(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, axis = _axes(
        plt,
        "Twenty equal coordinates, exact loss, δ = $10^{-6}$",
        "ε",
        "squared error over that of Gaussian noise",
        width=9.5,
    )
    x = curves["epsilons"]
    axis.axhline(1.0, color="black", linewidth=1, label="Gaussian")
    for name, gains in curves["gains"].items():
        size = {"laplace": 11, "truncated_laplace": 8}.get(name, 6)
        look = METHODS[name] | {"label": _FAMILIES[name], "markersize": size}
        hollow = {"fillstyle": "none"} if name == "laplace" else {}
        axis.plot(x, [1 - g / 100 for g in gains], **look, **hollow)
    closed = [1 - g / 100 for g in curves["closed"]]
    axis.plot(x, closed, color=_BLUE, linestyle=":", label="flipped Huber, closed zCDP condition")
    axis.set_yscale("log")
    axis.set_yticks([0.8, 0.9, 1, 1.2, 1.5, 2], ["0.8", "0.9", "1", "1.2", "1.5", "2"])
    axis.set_yticks([], minor=True)
    _plain_ticks(axis, x)
    axis.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _tight(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, axis = _axes(
        plt,
        "Laplace noise at (0.5, $10^{-6}$), equal sensitivities 1",
        "number of coordinates K",
        "scale b",
    )
    x = curves["sizes"]
    axis.plot(x, curves["corollary"], "--s", color=_ORANGE, label="Corollary 6")
    axis.plot(x, curves["tight"], "-o", color=_BLUE, label="exact loss of the composition")
    axis.set_yscale("log")
    ratio = (curves["corollary"][-1] / curves["tight"][-1]) ** 2
    text = f"K = {x[-1]}: {ratio:.0f} times less noise power"
    axis.text(0.97, 0.06, text, ha="right", transform=axis.transAxes)
    axis.vlines(x[-1], curves["tight"][-1], curves["corollary"][-1], color="0.4", linewidth=1)
    _plain_ticks(axis, [k for k in x if k in (1, 2, 5, 10, 20, 50, 100, 200, 400)])
    axis.legend(frameon=False)
    return figure


def _capping(plt: Any, curves: Mapping[str, Mapping[str, float]]) -> Any:
    figure, axis = _axes(
        plt, "Joint bounds, ε = 1, δ = $10^{-6}$ (Laplace pure)", "", "total squared error", width=9
    )
    width = 0.27
    styles = (("i.i.d., ball", _RED), ("i.n.i.d., box", _SKY), ("i.n.i.d., capped", _BLUE))
    for k, (kind, colour) in enumerate(styles):
        heights = [values[kind] for values in curves.values()]
        places = [i + (k - 1) * width for i in range(len(curves))]
        bars = axis.bar(places, heights, width, label=kind, color=colour)
        axis.bar_label(bars, [f"{height:.4g}" for height in heights], fontsize=8, padding=2)
    axis.set_ylim(0, 2000)
    names = [name.replace(", ", "\n", 1) for name in curves]
    axis.set_xticks(range(len(curves)), names)
    axis.legend(frameon=False, loc="upper right")
    return figure


def _correlated(plt: Any, curves: Mapping[str, Any]) -> Any:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    x = curves["sizes"]
    left.plot(x, curves["gaussian"], label="Gaussian", **METHODS["gaussian"])
    left.plot(x, curves["laplace"], label="Laplace (pure)", **METHODS["laplace"])
    left.axhline(0.25, color="0.4", linewidth=1, linestyle=":", label="limit: a quarter")
    _plain_ticks(left, [size for size in x if size in (1, 2, 5, 10, 20, 50, 100, 1000)])
    left.set_ylim(0.0, 1.05)
    left.set_xlabel("number of sums d, contributions in [0, 1]")
    left.set_ylabel("squared error over that of independent noise")
    left.set_title("Correlated noise for one-sided sums, add/remove", fontsize=11)
    right.plot(curves["ones"], curves["counts"], "-o", color=_BLUE, label="correlated")
    right.plot(curves["ones"], curves["ones"], "--", color="black", label="independent")
    right.set_xticks([1, 5, 10, 15, 19])
    right.set_xlabel("most ones of a record, k")
    right.set_ylabel("variance of one count, × μ²")
    right.set_title("Counts of d = 20 attributes, at most k ones, add/remove", fontsize=11)
    for axis in (left, right):
        axis.grid(which="major", alpha=0.3)
        axis.legend(frameon=False)
    return figure
