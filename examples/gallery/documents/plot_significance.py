"""
Significance of a difference
============================

Is the better model better, or is the difference due to chance?

Means over queries differ between any two models. `rankcore.metrics.compare` estimates how often a
difference as large arises when the two models are exchanged at random, query by query.
"""

import matplotlib.pyplot as plt

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
X, y, qid = rc.datasets.make_letor(160, 25, random_state=0)
train, test = qid <= 100, qid > 100
scale = X[train].std(axis=0)
models = {
    "RankSVM": rc.RankSVM().fit(X[train] / scale, y[train], qid=qid[train]),
    "50 stumps": rc.RankBoost(50).fit(X[train], y[train], qid=qid[train]),
    "55 stumps": rc.RankBoost(55).fit(X[train], y[train], qid=qid[train]),
}
scores = {
    name: model.predict(X[test] / scale if name == "RankSVM" else X[test])
    for name, model in models.items()
}
found = rc.metrics.compare(scores, y[test], qid=qid[test], metrics=["ndcg@10", "map"])
print(found)

# %%
# Differences from the first model, with 95% intervals over 60 queries. If an interval includes 0,
# the queries do not show which of the two is better. P-values are corrected by Holm's method for
# the number of comparisons.

# sphinx_gallery_thumbnail_number = 2
_, intervals = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
_, queries = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
rc.plotting.plot_comparison(found, ax=intervals)
intervals.set_xlabel("difference of the means")
rc.plotting.plot_query_differences(found, 1, ax=queries)
queries.legend(loc="lower left")
plt.show()

# %%
# The second picture is the same query by query. A mean difference is the sum of gains and losses,
# and here there are many of both.
