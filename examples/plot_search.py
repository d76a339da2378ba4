"""
Tuning inside the guarantee
===========================

How strongly to penalise is a question to the data, and its answer discloses something of them. A
private search pays for it: one (ε, δ) covers all candidates, the choice, its score and the final
model. Here ``"noisy_max"`` gives each of seven penalties a share of the budget and chooses by noisy
scores. With ``refit`` half of the budget is kept for one more fit of the winner.

The lines to compare with could not be drawn for private data: the best penalty in hindsight, which
spends the whole budget on one fit, and the mean over all penalties, as if one were taken blindly.
The search lies between. The data are generated: thirty columns, of which four matter.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import DPGridSearchCV, DPLogisticCD

# Seeds, so that the picture can be drawn again: never with private data.
warnings.filterwarnings("ignore", "NOT PRIVATE")
QUICK = "--quick" in sys.argv
EPSILONS = [0.5, 2.0] if QUICK else [0.2, 0.3, 0.5, 1.0, 2.0, 4.0]
SEEDS = range(2 if QUICK else 5)
GRID = {"alpha": [0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3]}
rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 30))
chance = 1 / (1 + np.exp(-X[:, :4] @ [1.0, -0.8, 0.6, 0.4]))
y = np.where(rng.random(len(X)) < chance, "yes", "no")
X, X_test, y, y_test = X[:20_000], X[20_000:], y[:20_000], y[20_000:]


def show_progress(search):
    """Give a search a progress bar, where scikit-learn has one."""
    try:
        from sklearn.callback import ProgressBar

        return search.set_callbacks(ProgressBar())
    except ImportError as error:
        print(f"no progress bar, which needs scikit-learn 1.9 and rich: {error}")
        return search


def penalised(epsilon=1.0, **parameters):
    """Return a classifier that prefers few columns, with public bounds."""
    return DPLogisticCD(epsilon, l1_ratio=1.0, feature_bounds=(-5, 5), **parameters)


table = {"best penalty, in hindsight": [], "private search": [], "private search, refit": []}
table["any penalty, on average"] = []
for epsilon in EPSILONS:
    rows = []
    for seed in SEEDS:
        found = []
        for refit in (False, True):
            search = DPGridSearchCV(
                penalised(),
                GRID,
                epsilon=epsilon,
                delta=1e-6,
                strategy="noisy_max",
                refit=refit,
                random_state=seed,
            )
            if seed == 0:
                search = show_progress(search)
            found.append(search.fit(X, y).score(X_test, y_test))
        single = [penalised(epsilon, alpha=a, random_state=seed) for a in GRID["alpha"]]
        scores = [model.fit(X, y).score(X_test, y_test) for model in single]
        rows.append([max(scores), *found, np.mean(scores)])
    for name, column in zip(table, np.transpose(rows), strict=True):
        table[name].append(np.quantile(column, [0.0, 0.5, 1.0]))
    medians = ", ".join(f"{name} {scores[-1][1]:.3f}" for name, scores in table.items())
    print(f"epsilon {epsilon:g}: {medians}; last choice {search.best_params_}")

figure, ax = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
for (name, scores), style in zip(table.items(), ("k--", "o-", "s-", "k:"), strict=True):
    low, median, high = np.transpose(scores)
    (line,) = ax.plot(EPSILONS, median, style, label=name)
    if name.startswith("private"):
        ax.fill_between(EPSILONS, low, high, alpha=0.15, linewidth=0, color=line.get_color())
ax.set(xscale="log", xlabel="ε in total, with δ = 1e-6", ylabel="accuracy on test rows")
ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
ax.minorticks_off()
ax.set_title("Seven penalties under one guarantee")
ax.legend(loc="center right")
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
