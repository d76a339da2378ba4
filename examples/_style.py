"""One colour, one line style and one marker for each method, in every picture.

The colours are Okabe and Ito's, which stay apart for the colour-blind; dashes and markers say the
same in a grey print. The displays of ``skdpnoise.plotting`` use them in this order.
"""

from pathlib import Path

METHODS = {
    # rules that divide the noise over coordinates; "inid" is the default, and stands for skdpnoise
    "inid": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    "iid": {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    "spr": {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    # what is compared with
    "public": {"color": "#7F7F7F", "linestyle": ":", "marker": "x"},
    "baseline": {"color": "#000000", "linestyle": (0, (1, 3)), "marker": "+"},
    # a second and a third private method beside the first
    "second": {"color": "#CC79A7", "linestyle": (0, (5, 1, 1, 1)), "marker": "D"},
    "third": {"color": "#E69F00", "linestyle": (0, (3, 1)), "marker": "v"},
    # families of noise, in pictures without rules
    "gaussian": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "laplace": {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    "staircase": {"color": "#CC79A7", "linestyle": "-.", "marker": "D"},
    "subbotin": {"color": "#56B4E9", "linestyle": ":", "marker": "^"},
    "truncated_laplace": {"color": "#D55E00", "linestyle": (0, (1, 1)), "marker": "x"},
    "osgt": {"color": "#009E73", "linestyle": (0, (5, 1, 1, 1)), "marker": "v"},
    "flipped_huber": {"color": "#0072B2", "linestyle": (0, (3, 1)), "marker": "P"},
}


def look(method, **more):
    """Return how the line of a method looks, for ``ax.plot``."""
    return METHODS[method] | more


def line(method, **more):
    """Return the same without a marker."""
    return {name: METHODS[method][name] for name in ("color", "linestyle")} | more


def epsilon_axis(ax, epsilons, delta=None):
    """Draw ε on a logarithmic axis, with the numbers themselves."""
    ax.set_xscale("log")
    ax.set_xticks(list(epsilons), [f"{epsilon:g}" for epsilon in epsilons])
    ax.minorticks_off()
    ax.set_xlabel(
        "ε (smaller is more private)"
        + ("" if delta is None else f", δ = {delta:g}".replace("e-0", "e-"))
    )
    ax.grid(alpha=0.25)


def show_kept_picture(name):
    """Show a picture that was drawn before, where what draws it is not installed."""
    import matplotlib.pyplot as plt

    picture = Path(__file__).resolve().parents[1] / "docs" / "images" / f"{name}.png"
    _, ax = plt.subplots(figsize=(10, 4.8), layout="constrained")
    ax.imshow(plt.imread(picture))
    ax.set_axis_off()
