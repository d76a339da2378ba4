"""
What many releases disclose together
====================================

One release at ε = 0.1 is a strong promise. A hundred of them are a weak one. How weak depends on
the noise, and on how the losses are added.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import line

from skdpnoise.plotting import PrivacyLossDisplay
from skdpnoise.privacy import GaussianLoss, PureLoss, gdp_mu

# %%
# On the left are curves of δ over ε for normal noise, one release of which is (0.1,
# 1e-6)-private. On the right is ε at δ = 1e-6 by the number of releases. Basic composition adds
# the ε. Tight composition computes what all releases together disclose: both are true, and the
# tight one is smaller.

one = GaussianLoss(gdp_mu(0.1, 1e-6))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
losses = {f"{k} release{'s' if k > 1 else ''}": one.compose(k) for k in (1, 10, 100)}
PrivacyLossDisplay.from_mechanisms(losses, ax=left, name="Normal noise, (0.1, 1e-6) each")

counts = np.array([1, 2, 5, 10, 20, 50, 100])
normal = [one.compose(int(k)).epsilon(1e-6) for k in counts]
pure = [PureLoss(0.1).numeric().compose(int(k)).epsilon(1e-6) for k in counts]
right.plot(counts, 0.1 * counts, label="basic: the sum of all ε", **line("iid"), marker="s")
right.plot(counts, pure, label="tight, of any noise with ε = 0.1", **line("spr"), marker="^")
right.plot(counts, normal, label="tight, of normal noise", **line("inid"), marker="o")
right.set(
    xscale="log", yscale="log", xlabel="number of releases", ylabel="ε of all together, δ = 1e-6"
)
right.set_xticks(counts, counts)
right.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
right.minorticks_off()
right.grid(alpha=0.25)
right.legend()
right.set_title("Basic and tight composition")
plt.show()
