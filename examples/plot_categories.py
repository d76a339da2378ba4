"""
Categories that nobody listed
=============================

A list of what people wrote may name a single person. ``private_categories`` shows the categories
that many records have, and hides the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from _style import METHODS, line

from skdpnoise import PrivacyGuarantee
from skdpnoise.queries import private_categories

# %%
# Jobs of 5,000 made-up people. Ten jobs are so rare that few people have them.

rng = np.random.default_rng(0)
names = [f"job {number:02d}" for number in range(1, 31)]
share = 0.75 ** np.arange(30)
jobs = rng.choice(names, 5_000, p=share / share.sum())
found = private_categories(list(jobs), PrivacyGuarantee(epsilon=1.0, delta=1e-6))
print(found)

# %%
# Counts get noise, and a category is shown where its noisy count reaches the threshold. How
# likely that is for a category of m records is known beforehand. For one person it is at most
# half of δ.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
exact = np.array([np.sum(jobs == job) for job in names])
shown = np.isin(names, found.categories[0])
for of, colour, label in (
    (shown, METHODS["inid"]["color"], "shown"),
    (~shown, "0.75", "hidden"),
):
    left.bar(np.arange(1, 31)[of], exact[of], color=colour, label=label)
places = [names.index(job) + 1 for job in found.categories[0]]
left.plot(places, found.counts[0], "D", color="k", markersize=4, label="released count, with noise")
left.axhline(found.threshold, label=f"threshold: {found.threshold:.0f}", **line("iid"))
left.set(yscale="log", ylim=(0.8, 4000), xlabel="job, from the most to the least frequent")
left.set_ylabel("people who have it")
left.legend()
m = np.arange(1, 81)
right.plot(m, [found.mechanism.chance(int(k)) for k in m], **line("inid", linewidth=2))
right.axvline(found.threshold, **line("iid"))
right.set(
    yscale="log", xlabel="people who have the category", ylabel="chance that it is shown, at most"
)
right.grid(alpha=0.25)
figure.suptitle("ε = 1, δ = 1e-6")
plt.show()
