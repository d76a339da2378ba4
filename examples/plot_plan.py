"""
A plan before a fit
===================

What three numbers of rows would reach, before anything is spent: a plan fits copies of the model to
made-up records of the same shape. The line of a ledger says how large an epsilon it still covers.
"""

import sys

import matplotlib.pyplot as plt

from skdpnoise import DPLogisticCD, PrivacyLedger
from skdpnoise.plotting import PlanDisplay
from skdpnoise.privacy import PureLoss

QUICK = "--quick" in sys.argv
SCHEMA = {"age": (17, 90), "hours": (0, 100), "gain": None, "loss": None}
EPSILONS = [0.1, 1.0] if QUICK else [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]

ledger = PrivacyLedger("people", epsilon=1.0, delta=1e-6, storage="memory")
ledger.charge("what was spent before", PureLoss(0.6))
model = DPLogisticCD(epsilon=1.0, ledger=ledger)

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharey=True)
for ax, n_samples in zip(axes, [500, 5_000, 50_000], strict=True):
    plan = model.plan(n_samples, SCHEMA, epsilons=EPSILONS, n_fits=2 if QUICK else 5)
    display = PlanDisplay.from_plan(plan, ax=ax, name=f"{n_samples:,} rows")
    ax.get_legend().remove()
    ax.label_outer()
print(plan)
assert len(ledger.charges()) == 1  # a plan charges nothing

axes[0].set_ylim(0.45, 0.8)
figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=5)
if sys.argv[-1].endswith(".png"):
    figure.savefig(sys.argv[-1], dpi=120)
else:
    plt.show()
