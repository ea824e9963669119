"""
Conformal prediction sets
=========================

Which ranks can a row have, with 90% certainty?

A conformal set is a run of neighbouring ranks that contains the true one with a chosen
probability, for any learner and any data, if rows are exchangeable. Easy rows get one rank, hard
ones several.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 4))
latent = X @ [1.5, 1.0, 0.5, 0.0] + rng.normal(size=9000)
y = np.digitize(latent, [-3, -1, 1, 3]) + 1
train, more, test = slice(0, 2000), slice(2000, 4000), slice(4000, None)

model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[train], y[train])
model.conformalize(X[more], y[more])  # rows that it has not learned from

# %%
# First: the wanted coverage, and that of 5,000 new rows: the points lie on the diagonal.
# Second: its cost. Sets of 80% are mostly one or two ranks, sets of 99% three.

wanted = np.array([0.8, 0.85, 0.9, 0.95, 0.99])
covered, sizes = [], []
for coverage in wanted:
    low, high = model.predict_set(X[test], coverage=coverage).T
    covered.append(np.mean((low <= y[test]) & (y[test] <= high)))
    sizes.append(np.bincount(high - low + 1, minlength=6)[1:] / low.size)

# sphinx_gallery_thumbnail_number = 2
_, above = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
_, below = plt.subplots(figsize=(4.8, 4), layout="constrained")
above.plot([0.75, 1], [0.75, 1], color=rc.plotting.GREY, lw=1)
above.plot(wanted, covered, "o", color=rc.plotting.BLUE)
above.set(xlabel="coverage wanted", ylabel="share of true ranks inside", aspect="equal")
bottom = np.zeros(wanted.size)
shares = np.array(sizes).T
for size in range(1, 1 + np.count_nonzero(shares.any(axis=1))):
    share = shares[size - 1]
    colour = plt.get_cmap("viridis")((size - 1) / 3)
    below.bar(wanted.astype(str), share, bottom=bottom, color=colour, label=f"{size}")
    bottom += share
below.set(xlabel="coverage wanted", ylabel="share of rows")
below.legend(title="ranks in a set", ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()
