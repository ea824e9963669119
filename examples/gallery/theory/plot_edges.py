"""
Edges and the training error
============================

How do the edges of the rounds bound the training error?

The edge of a stump is the weight of the pairs that it orders correctly minus the weight of the
pairs that it misorders. For any data, the edges bound the share of training pairs that the sum of
stumps misorders.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
X, y, qid = rc.datasets.make_letor(150, 30, random_state=0)
train, test = qid <= 80, qid > 80
model = rc.RankBoost(150).fit(X[train], y[train], qid=qid[train])


def misranked(rows):
    stages = model.staged_predict(X[rows])
    return [rc.metrics.pairwise_misranking(y[rows], scores, qid=qid[rows]) for scores in stages]


wrong, unseen = misranked(train), misranked(test)

# %%
# First: edges fall as the remaining pairs become harder. Second: the misordered share of the
# training pairs never exceeds the bound, a product of one factor per round. The bound does not
# apply to new queries.

rounds = np.arange(1, 151)
# sphinx_gallery_thumbnail_number = 2
_, edges = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
_, errors = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
edges.plot(rounds, np.abs(model.history_["edge"]), color=rc.plotting.BLUE)
edges.set(xlabel="round", ylabel="edge of the stump", ylim=(0, None))
errors.plot(rounds, model.history_["bound"], color="black", ls="--", label="bound, proved")
errors.plot(rounds, wrong, color=rc.plotting.BLUE, label="training pairs")
errors.plot(rounds, unseen, color=rc.plotting.ORANGE, label="new queries")
errors.set(xlabel="round", ylabel="share of pairs misordered", ylim=(0, 1))
errors.legend()
plt.show()

# %%
assert all(w <= b for w, b in zip(wrong, model.history_["bound"], strict=True))
