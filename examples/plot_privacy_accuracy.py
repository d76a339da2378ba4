"""
Privacy against accuracy
========================

The default estimators on raw columns, with no bounds and nothing tuned, at six values of ε.

The data are California housing and Electricity where the files are (``fetch_california`` and
``fetch_electricity`` say how to get them), else generated: the titles say which.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _peer import NoisyDescent
from _style import epsilon_axis, line, look
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import RobustScaler

from skdpnoise import DPCoordinateDescentRegressor, DPLogisticRegression, PrivacyWarning
from skdpnoise.datasets import fetch_california, fetch_electricity

EPSILONS = [0.02, 0.05, 0.1, 0.3, 1.0, 3.0]
N_FITS = 15


def load(fetch, name, classify):
    """Return a title, X and y; generated data where the files are not on this machine."""
    try:
        return name, *fetch(return_X_y=True, download_if_missing=False)
    except OSError:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 8))
        y = X @ rng.normal(size=8) + rng.normal(0.0, 2.0, size=len(X))
        X *= 10.0 ** rng.integers(-3, 4, size=8)
        return "generated", X, np.where(y > 0, "UP", "DOWN") if classify else y


def scores(make, split):
    """Return the test scores of repeated fits, a line for each ε."""
    X, X_test, y, y_test = split
    with warnings.catch_warnings():
        # At a small ε the noise hides some columns: they are left out, with a warning.
        warnings.simplefilter("ignore", PrivacyWarning)
        fits = [[make(epsilon).fit(X, y) for _ in range(N_FITS)] for epsilon in EPSILONS]
    return np.array([[model.score(X_test, y_test) for model in row] for row in fits])


def band(ax, table, name, label):
    """Draw the median of repeated fits, and 5 % to 95 % of them."""
    low, middle, high = np.quantile(table, [0.05, 0.5, 0.95], axis=1)
    ax.plot(EPSILONS, middle, label=label, **look(name))
    ax.fill_between(EPSILONS, low, high, alpha=0.2, linewidth=0, color=look(name)["color"])


# %%
# One division into training and test records, so that a band is the noise of repeated fits and
# nothing else. The peer is noisy gradient descent (DP-GD). It gets what the private models have
# to pay for: columns and target that were standardised and clipped without privacy, and the best
# of three step sizes, chosen on the test records.
#
# On California housing the private model is above scikit-learn's: it clips extreme block groups,
# and that helps. So there is a second line without privacy, of clipped columns.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for ax, fetch, name, private, public in (
    (
        axes[0],
        fetch_california,
        "California housing",
        DPCoordinateDescentRegressor,
        LinearRegression(),
    ),
    (axes[1], fetch_electricity, "Electricity", DPLogisticRegression, LogisticRegression()),
):
    classify = private is DPLogisticRegression
    title, X, y = load(fetch, name, classify)
    split = train_test_split(X, y, test_size=0.2, random_state=0)
    robust = RobustScaler(unit_variance=True).fit(split[0])
    X, X_test = (np.clip(robust.transform(part), -3, 3) for part in split[:2])
    y, y_test = (
        (part == "UP") if classify else (part - split[2].mean()) / split[2].std()
        for part in split[2:]
    )
    clipped = X, X_test, y, y_test

    band(ax, scores(private, split), "inid", "skdpnoise, raw columns")
    peers = [scores(lambda e, s=s: NoisyDescent(e, step=s), clipped) for s in (0.3, 1.0, 3.0)]
    best = np.argmax([np.median(one, axis=1) for one in peers], axis=0)
    peer = np.array([peers[k][row] for row, k in enumerate(best)])
    band(ax, peer, "iid", "DP-GD, scaled without privacy, best step of three")
    level = public.fit(X, y).score(X_test, y_test)
    ax.axhline(level, label="scikit-learn, clipped columns", **line("public"))
    raw = public.fit(robust.transform(split[0]), y).score(robust.transform(split[1]), y_test)
    ax.axhline(raw, label="scikit-learn", **line("public", linestyle="-"))
    floor = max(y_test.mean(), 1 - y_test.mean()) if classify else 0.0
    label = "always the larger class; predicting the mean"
    ax.axhline(floor, label=label, **line("baseline"))
    epsilon_axis(ax, EPSILONS, delta=1e-6)
    ax.set_ylabel("accuracy on test records" if classify else "R² on test records")
    ax.set_title(f"{title}, {len(X) + len(X_test):,} records")
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
