"""
Rows that do not fit into memory
================================

A fit reads sums of integers, so that rows may come in parts: from files, from a database, or from
a cluster. The result has the same bits as in memory.
"""

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _style import look

from skdpnoise import DPRidge
from skdpnoise.data import scan_batches

ROWS = [50_000, 100_000, 200_000, 400_000]
NAMES, BATCH = [f"x{number}" for number in range(10)], 25_000

# %%
# A function that gives made-up rows in batches, anew in each call. It stands for a query of a
# database. Files are read by ``scan_parquet`` and ``scan_csv``.


def batches(n_rows):
    """Return a function that yields the same batches whenever it is called."""

    def rows():
        for start in range(0, n_rows, BATCH):
            rng = np.random.default_rng(start)
            made = pd.DataFrame(rng.uniform(-1, 1, size=(BATCH, len(NAMES))), columns=NAMES)
            yield made.assign(y=made["x0"] - made["x1"] + rng.uniform(-1, 1, size=BATCH))

    return rows


def fit(table):
    """Fit to the columns of a frame, or of rows in parts: both are selected in the same way."""
    model = DPRidge(epsilon=1.0, feature_bounds=(-1, 1), target_bounds=(-3, 3))
    return model.fit(table[NAMES], table["y"])


# %%
# The most memory that numpy holds at a time, while the rows are made and a model is fitted to
# them.


def peak(task):
    """Return the most memory that a task holds, in megabytes."""
    tracemalloc.start()
    task()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


fit(pd.concat(batches(BATCH)()))  # so that nothing is compiled below
whole = [peak(lambda n=n: fit(pd.concat(batches(n)()))) for n in ROWS]
parts = [peak(lambda n=n: fit(scan_batches(batches(n)))) for n in ROWS]
figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
ax.plot(ROWS, whole, label="all rows in one frame", **look("iid"))
ax.plot(ROWS, parts, label=f"scan_batches, {BATCH:,} rows at a time", **look("inid"))
ax.set(xlabel="rows of eleven columns", ylabel="most memory during a fit (MB)", ylim=(0, None))
ax.xaxis.set_major_formatter("{x:,.0f}")
ax.grid(alpha=0.25)
ax.legend()
plt.show()
