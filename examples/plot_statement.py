"""
A report for a data protection officer
======================================

Every fitted model says what it read from the data. ``privacy_.statement()`` is a page for people
who know no differential privacy.
"""

import matplotlib.pyplot as plt
import numpy as np

from skdpnoise import DPLogisticRegression
from skdpnoise.plotting import AllocationDisplay

# %%
# A private model of 20,000 made-up people.

rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(18, 90, 20_000), rng.lognormal(10.5, 0.5, 20_000)])
ill = rng.random(20_000) < 1 / (1 + np.exp(-0.08 * (X[:, 0] - 60)))
model = DPLogisticRegression(epsilon=1.0, classes=[False, True]).fit(X, ill)

# %%
# The picture is for the appendix: what was released, with how much noise, and which share of the
# budget each kind of release had.

display = AllocationDisplay.from_estimator(model)
plt.show()

# %%
# The page itself:

print(model.privacy_.statement())

# %%
# In a notebook the report is a card:

model.privacy_
