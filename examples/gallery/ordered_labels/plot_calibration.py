"""
Calibrated probabilities
========================

How often is a probability of 70% right?

`CalibratedOrdinal` adds the probability of each rank to any ordinal learner. A reliability plot
compares what was said with what happened.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 6))
latent = X @ [1, 0.8, 0.6, 0.4, 0.2, 0] + rng.logistic(scale=0.8, size=6000)
y = np.digitize(latent, [-2.5, -0.8, 0.8, 2.5]) + 1
train, test = slice(0, 2000), slice(2000, None)

model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[train], y[train])
table = model.predict_proba(X[test])

# %%
# First: the probability of each rank by the learner's score. Each rank has its peak, and they add
# up to 1. Second: of the rows with a stated probability of more than a rank near 70%, about 70% do
# have more. Points on the diagonal mean that probabilities can be taken at their word.

_, curves = plt.subplots(figsize=(4.8, 4), layout="constrained")
_, dots = plt.subplots(figsize=(4.8, 4), layout="constrained")
scores = model.estimator_.project(X[test])
order = np.argsort(scores)
for j, rank in enumerate(model.classes_):
    colour = plt.get_cmap("viridis")(j / 4)
    curves.plot(scores[order], table[order, j], color=colour, label=f"rank {rank}")
curves.set(xlabel="score", ylabel="probability")
curves.legend(ncols=2)
rc.plotting.plot_reliability(y[test], table, labels=model.classes_, n_bins=8, ax=dots)
plt.show()

# %%
# The ranked probability score rewards both, sharp and honest; 0 is perfect. Shares of the ranks
# alone, the same for each row, are what it has to beat.

shares = np.bincount(y[train], minlength=6)[1:] / 2000
constant = np.tile(shares, (table.shape[0], 1))
for name, said in [("calibrated", table), ("shares of ranks", constant)]:
    score = rc.metrics.ranked_probability_score(y[test], said, labels=model.ranks_)
    print(f"{name:16} {score:.3f}")
