"""
Privacy against accuracy
========================

The default estimators on raw columns, with no bounds and nothing tuned, at four values of ε.

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

EPSILONS = [0.03, 0.1, 0.3, 1.0]
N_FITS = 7


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
# nothing else. A fit on raw columns pays for their scales, too. So there are two further lines
# for columns and a target that were standardised and clipped without privacy: our models with
# those bounds, and a peer, noisy gradient descent (DP-GD), with the best of three step sizes,
# chosen on the test records.
#
# On California housing the private model is above scikit-learn's: it clips extreme block groups,
# and that helps. So there is a second line without privacy, of clipped columns.

figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, fetch, name, classify in (
    (axes[0], fetch_california, "California housing", False),
    (axes[1], fetch_electricity, "Electricity", True),
):
    private = DPLogisticRegression if classify else DPCoordinateDescentRegressor
    public = LogisticRegression() if classify else LinearRegression()
    bounds = {"feature_bounds": (-3, 3)} | ({} if classify else {"target_bounds": (-3, 3)})
    title, X, y = load(fetch, name, classify)
    target = y == "UP" if classify else (y - y.mean()) / y.std()
    parts = train_test_split(X, y, target, test_size=0.2, random_state=0)
    scaler = RobustScaler(unit_variance=True).fit(parts[0])
    scaled = [*map(scaler.transform, parts[:2]), *parts[4:]]
    clipped = [np.clip(scaled[0], -3, 3), np.clip(scaled[1], -3, 3), *parts[4:]]

    band(ax, scores(private, parts[:4]), "inid", "skdpnoise, raw columns")
    ours = scores(lambda e, m=private, b=bounds: m(e, **b), clipped)
    band(ax, ours, "second", "skdpnoise, scaled without privacy")
    peers = [scores(lambda e, s=s: NoisyDescent(e, step=s), clipped) for s in (0.3, 1.0, 3.0)]
    best = np.argmax([np.median(one, axis=1) for one in peers], axis=0)
    peer = np.array([peers[k][row] for row, k in enumerate(best)])
    band(ax, peer, "iid", "DP-GD, scaled without privacy, best step of three")
    for split, dash, label in (
        (clipped, ":", "scikit-learn, clipped columns"),
        (scaled, "-", "scikit-learn"),
    ):
        level = public.fit(split[0], split[2]).score(split[1], split[3])
        ax.axhline(level, label=label, **line("public", linestyle=dash))
    floor = max(target.mean(), 1 - target.mean()) if classify else 0.0
    ax.axhline(floor, label="always the larger class; the mean", **line("baseline"))
    epsilon_axis(ax, EPSILONS, delta=1e-6)
    ax.set_ylabel("accuracy on test records" if classify else "R² on test records")
    ax.set_title(f"{title}, {len(X):,} records")
figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
