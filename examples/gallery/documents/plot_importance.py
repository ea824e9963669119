"""
Importance of features
======================

Does a model need what it uses?

Contributions show how much a feature changes scores. Permutation shows how much a measure falls
without it. A feature can change scores and still be redundant, if another feature is similar.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
n = 4000
match, clicks, age, random = rng.normal(size=(4, n))
views = clicks + 0.1 * rng.normal(size=n)  # nearly the same as clicks
X = np.column_stack([match, clicks, views, age, random])
names = ["match", "clicks", "views", "age", "random"]
worth = match + 0.5 * (clicks + views) - 0.5 * age + 0.5 * rng.normal(size=n)
y = np.digitize(worth, [-1, 0, 1, 2])
qid = np.repeat(np.arange(200), 20)
train, test = qid < 140, qid >= 140
model = rc.RankSVM().fit(X[train], y[train], qid=qid[train])

moves = rc.explain.global_importance(model, X[test], qid=qid[test])
suffers = rc.explain.permutation_importance(model, X[test], y[test], qid=qid[test], n_repeats=20)

# %%
# First: clicks and views share the weight of their common information. Second: NDCG@10 falls if one
# of them is shuffled, because the model uses both, although a new fit without views is as good
# (printed next). Intervals are over queries; the interval of the random feature is around 0.

_, above = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
_, below = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
place = np.arange(5)
above.barh(place, moves.importances, color=rc.plotting.BLUE)
above.set(yticks=place, yticklabels=names, xlabel="mean absolute contribution")
below.barh(place, -suffers.changes, color=rc.plotting.ORANGE)
below.hlines(place, -suffers.high, -suffers.low, color="black", lw=1.5)
below.set(yticks=place, yticklabels=names, xlabel="loss of NDCG@10 when shuffled")
above.invert_yaxis()
below.invert_yaxis()
plt.show()

# %%
without = [0, 1, 3, 4]
again = rc.RankSVM().fit(X[train][:, without], y[train], qid=qid[train])
print("all features :", round(model.score(X[test], y[test], qid=qid[test]), 4))
print("without views:", round(again.score(X[test][:, without], y[test], qid=qid[test]), 4))
