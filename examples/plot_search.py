"""
Tuning inside the guarantee
===========================

How strongly to penalise is a question to the data, and its answer tells something about them. A
private search pays for it: one (ε, δ) covers all candidates, the choice, its score and the final
model.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import epsilon_axis, line, look

from skdpnoise import DPGridSearchCV, DPLogisticRegression

EPSILONS = [0.1, 0.3, 1.0]
N_FITS = 5
GRID = {"alpha": [0.0, 0.003, 0.01, 0.03, 0.1, 0.3]}

# %%
# Thirty columns, of which four matter, so that a penalty helps.

rng = np.random.default_rng(0)
X = np.clip(rng.normal(size=(20_000, 30)), -5, 5)
chance = 1 / (1 + np.exp(-X[:, :4] @ [1.0, -0.8, 0.6, 0.4]))
y = np.where(rng.random(len(X)) < chance, "yes", "no")
X, X_test, y, y_test = X[:10_000], X[10_000:], y[:10_000], y[10_000:]


def penalised(epsilon=1.0, **parameters):
    """Return a classifier that prefers few columns, with public bounds."""
    return DPLogisticRegression(epsilon, l1_ratio=1.0, feature_bounds=(-5, 5), **parameters)


# %%
# The search fits every candidate with a small share of the budget and chooses by noisy scores. It
# keeps half of the budget for fitting the winner again: this is the default for up to ten
# candidates. ``refit=False`` publishes the winner as it was fitted first, with a sixth of the
# budget.
#
# Two lines could not be drawn for private data: the best penalty in hindsight, which spends the
# whole budget on one fit, and the mean over all penalties, as if one were taken blindly.

table = {"best": [], "refit": [], "share": [], "blind": []}
for epsilon in EPSILONS:
    for name, refit in (("refit", "auto"), ("share", False)):
        options = {"epsilon": epsilon, "delta": 1e-6, "strategy": "noisy_max", "refit": refit}
        search = DPGridSearchCV(penalised(), GRID, **options)
        table[name].append([search.fit(X, y).score(X_test, y_test) for _ in range(N_FITS)])
    scores = [
        [penalised(epsilon, alpha=alpha).fit(X, y).score(X_test, y_test) for _ in range(2)]
        for alpha in GRID["alpha"]
    ]
    table["best"].append([np.median(scores, axis=1).max()])
    table["blind"].append([np.mean(scores)])
    print(f"ε = {epsilon:g}: last choice {search.best_params_}")

figure, ax = plt.subplots(figsize=(7.6, 5.2), layout="constrained")
for name, style, label in (
    ("best", line("public"), "best penalty, in hindsight"),
    ("refit", look("inid"), "private search (the default)"),
    ("share", look("second"), "private search, refit=False"),
    ("blind", line("baseline"), "any penalty, on average"),
):
    low, middle, high = np.quantile(table[name], [0.0, 0.5, 1.0], axis=1)
    ax.plot(EPSILONS, middle, label=label, **style)
    ax.fill_between(EPSILONS, low, high, alpha=0.15, linewidth=0, color=style["color"])
epsilon_axis(ax, EPSILONS, delta=1e-6)
ax.set_ylabel("accuracy on test rows")
ax.set_title(f"Six penalties under one guarantee: median and range of {N_FITS} searches")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
