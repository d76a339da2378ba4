"""
A plan before a fit
===================

A plan says what score a model would reach with a number of rows, before anything is spent. It
fits copies of the model to made-up records of the same shape. It reads no private record.
"""

import matplotlib.pyplot as plt
from _style import epsilon_axis

from skdpnoise import DPLogisticCD, PrivacyLedger
from skdpnoise.plotting import PlanDisplay
from skdpnoise.privacy import PureLoss

SCHEMA = {"age": (17, 90), "hours": (0, 100), "gain": None, "loss": None}
EPSILONS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]

# %%
# The ledger of the data set has a budget of ε = 1, and 0.6 of it was spent before.

ledger = PrivacyLedger("people", epsilon=1.0, delta=1e-6, storage="memory")
ledger.charge("what was spent before", PureLoss(0.6))
model = DPLogisticCD(epsilon=1.0, ledger=ledger)

# %%
# One panel for each number of rows. The dashed line says how large an ε the ledger still covers:
# more than the difference 0.4, because losses compose tightly.

figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharey=True)
for ax, n_samples in zip(axes, [500, 5_000, 50_000], strict=True):
    plan = model.plan(n_samples, SCHEMA, epsilons=EPSILONS, n_fits=3)
    display = PlanDisplay.from_plan(plan, ax=ax, name=f"{n_samples:,} rows")
    display.best_.set_label("best possible in the simulation")
    epsilon_axis(ax, EPSILONS)
    ax.get_legend().remove()
    ax.label_outer()
axes[0].set_ylim(0.45, 0.8)
figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# The plan as text. It charged nothing.

print(plan)
assert len(ledger.charges()) == 1
