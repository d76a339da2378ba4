"""
A budget for many fits
======================

Three colleagues fit models to the same records and charge one ledger in a file, until it refuses.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skdpnoise import DPCoordinateDescentRegressor, PrivacyLedger
from skdpnoise.ledger import BudgetExceededError
from skdpnoise.plotting import LedgerDisplay

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
FITS = {"Gaussian noise": (0.2, 1e-8), "Pure privacy": (0.05, 0.0)}  # ε and δ of each
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 3))
y = X @ [1.0, 0.5, 0.0] + rng.normal(size=len(X))

# %%
# What a fit may cost at most is charged before it draws any noise. So a refused fit has spent
# nothing, and the refusal says what was asked for, spent and left.


def spend(storage, dataset, epsilon, delta):
    """Fit until the ledger refuses; return it."""
    ledger = PrivacyLedger(dataset, **BUDGET, storage=storage)
    team = [PrivacyLedger.open(dataset, storage, who=name) for name in ("ana", "ben", "eva")]
    bounds = {"feature_bounds": (-4, 4), "target_bounds": (-6, 6)}
    model = DPCoordinateDescentRegressor(epsilon, delta=delta, **bounds)
    try:
        for turn in range(1000):
            clone(model).set_params(ledger=team[turn % len(team)]).fit(X, y)
    except BudgetExceededError as refusal:
        print(f"{dataset}: {refusal}\n")
    return ledger


# %%
# By basic composition a budget of ε = 1 covers five fits at ε = 0.2, or twenty at ε = 0.05. Tight
# composition knows that the worst cases of many fits hardly come together, and the budget lasts
# for more. It lasts longest with Gaussian noise, whose costs add in squares.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
with tempfile.TemporaryDirectory() as folder:  # which a real ledger must outlive
    storage = f"sqlite:///{Path(folder) / 'budget.db'}"
    for ax, (dataset, (epsilon, delta)) in zip(axes, FITS.items(), strict=True):
        ledger = spend(storage, dataset, epsilon, delta)
        display = LedgerDisplay.from_ledger(ledger, by="charge", ax=ax)
        fits, basic = len(display.spent), int(BUDGET["epsilon"] / epsilon + 1e-9)
        ax.set_title(f"{dataset}, ε = {epsilon:g}: {fits} fits instead of {basic}")
        ax.set_xlabel("fit")
        ax.label_outer()
plt.show()
