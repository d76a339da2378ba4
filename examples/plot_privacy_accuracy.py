"""
Privacy against accuracy
========================

The default estimators on raw data, with no bounds and nothing tuned, at many values of epsilon:
median and range over splits, beside two non-private models. One is fitted to the raw columns, the
other to columns that are centred, scaled and clipped as the private model does it: on California
housing clipping alone helps, because a few block groups are extreme.

The data are California housing and Electricity where the files are (``fetch_california`` and
``fetch_electricity`` say how to get them), else generated.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticCD, PrivacyWarning
from skdpnoise.datasets import fetch_california, fetch_electricity

QUICK = "--quick" in sys.argv
EPSILONS = [0.1, 1.0] if QUICK else [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
CLIP = FunctionTransformer(np.clip, kw_args={"a_min": -3, "a_max": 3})
SEEDS = range(2 if QUICK else 10)


def load(fetch, name, classify):
    """Return a title, X and y; generated data where the files are not on this machine."""
    try:
        return name, *fetch(return_X_y=True, download_if_missing=False)
    except OSError:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 8))
        y = X @ rng.normal(size=8) + rng.normal(0.0, 2.0, size=len(X))
        X *= 10.0 ** rng.integers(-3, 4, size=8)
        return "generated", X, np.where(y > 0, "up", "down") if classify else y


def test_scores(model, X, y):
    """Return the score on the test rows of every split."""
    scores = []
    for seed in SEEDS:
        labels = y if is_classifier(model) else None
        split = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=labels)
        # Seeds, so that the picture can be drawn again: never with private data.
        if "random_state" in model.get_params():
            model = clone(model).set_params(random_state=seed)
        scores.append(model.fit(split[0], split[2]).score(split[1], split[3]))
    return scores


def draw(ax, title, X, y, private, model):
    """Draw the scores of a private model over epsilon, and of the non-private ones."""
    with warnings.catch_warnings():
        # At a small epsilon the noise hides some columns: they are left out, with a warning.
        warnings.simplefilter("ignore", PrivacyWarning)
        table = np.array([test_scores(private(epsilon), X, y) for epsilon in EPSILONS])
    median = np.median(table, axis=1)
    ax.fill_between(EPSILONS, table.min(1), table.max(1), alpha=0.2, label="private, range")
    ax.plot(EPSILONS, median, "o-", label="private, median")
    for public, style, columns in (
        (make_pipeline(StandardScaler(), model), "--", "raw"),
        (make_pipeline(RobustScaler(unit_variance=True), CLIP, model), ":", "clipped"),
    ):
        level = np.median(test_scores(public, X, y))
        ax.axhline(level, color="k", linestyle=style, label=f"non-private, {columns} columns")
    top, floor = table.max(), max(table.min(), 0.4)
    top, floor = top + 0.05 * (top - floor), floor - 0.05 * (top - floor)
    for epsilon, score in zip(EPSILONS, median, strict=True):
        if score < floor:  # the noise hid the scale of the target, and the model predicts zero
            label = f"↓ {score:.1f}".replace("-", "−")
            ax.annotate(label, (epsilon, floor), (2, 4), textcoords="offset points")
    ax.set(xscale="log", xlabel="ε, with δ = 1e-6 (smaller is more private)", ylim=(floor, top))
    ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    ax.minorticks_off()
    ax.set_ylabel("accuracy on test rows" if is_classifier(model) else "R² on test rows")
    ax.set_title(f"{title}, {len(y):,} records")


figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
title, X, y = load(fetch_california, "California housing", classify=False)
draw(axes[0], title, X, y, DPCoordinateDescentRegressor, LinearRegression())
title, X, y = load(fetch_electricity, "Electricity", classify=True)
draw(axes[1], title, X, y, DPLogisticCD, LogisticRegression(max_iter=1000))
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
