"""
Private scaling of raw columns
==============================

Two columns in units a billion apart, one with a long tail. Three private scalers bring them to
one scale. No bounds are given.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import DPMinMaxScaler, DPQuantileTransformer, DPRobustScaler, DPStandardScaler

rng = np.random.default_rng(0)
n = 20_000
income = rng.lognormal(10.5, 0.6, n)  # euros a year
lead = rng.normal(3e-5, 5e-6, n)  # grams per litre of blood
X = np.column_stack([income, lead])

# %%
# ``DPStandardScaler`` divides by the standard deviation, ``DPRobustScaler`` by the distance
# between quartiles, ``DPMinMaxScaler`` brings most values between 0 and 1, and
# ``DPQuantileTransformer`` makes every column uniform. Each costs its ε.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained")
for ax, scaler in zip(
    axes,
    (DPStandardScaler, DPRobustScaler, DPMinMaxScaler, DPQuantileTransformer),
    strict=True,
):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where noise hides a column, a scaler says so
        scaled = scaler(epsilon=1.0).fit_transform(X)
    low, high = np.quantile(scaled, [0.001, 0.995])
    bins = np.linspace(low, high, 60)
    for column, name, colour, dash in zip(
        scaled.T, ("income", "lead"), ("#0072B2", "#D55E00"), ("-", "--"), strict=True
    ):
        style = {"histtype": "step", "linewidth": 2, "linestyle": dash, "color": colour}
        ax.hist(column, bins, density=True, label=name, **style)
    ax.set(title=scaler.__name__, xlabel="scaled value, no unit", yticks=[])
axes[0].set_ylabel("density")
axes[0].legend()
figure.suptitle("Two columns of 20,000 rows after private scaling, ε = 1 each")
plt.show()
