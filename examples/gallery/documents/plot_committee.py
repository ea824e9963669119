"""
Committee, pocket and average
=============================

Committee or pocket: which models of a pass should one keep?

A pairwise perceptron passes through many hypotheses. The pocket keeps the one that survived the
most pairs; a committee keeps several and lets them vote; the average keeps the mean of all.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
n_queries, n_docs = 150, 15
X = rng.normal(size=(n_queries * n_docs, 30))
qid = np.repeat(np.arange(n_queries), n_docs)
worth = X @ (rng.normal(size=30) / np.sqrt(30)) + rng.normal(scale=0.8, size=X.shape[0])
y = np.digitize(worth, [0.5, 1.5])
train, test = qid < 50, qid >= 50

variants = ["last", "pocket", "committee", "averaged"]
found = {variant: [] for variant in variants}
for seed in range(20):
    for variant in variants:
        model = rc.PairwisePerceptron(variant, margin=0.0, max_iter=3, random_state=seed)
        model.fit(X[train], y[train], qid=qid[train])
        found[variant].append(model.score(X[test], y[test], qid=qid[test]))

# %%
# Each point is a fit with its own order of queries and pairs. Which hypothesis is the last one is
# a matter of luck, and so is which one survives longest on noisy labels. A committee of 20 is
# better in every run than the best of either, and varies little; so does the average of all
# hypotheses, the default.

fig, ax = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
for place, variant in enumerate(variants):
    values = np.array(found[variant])
    ax.scatter(values, place + rng.uniform(-0.15, 0.15, 20), s=18, color=rc.plotting.BLUE)
    ax.plot([values.mean()] * 2, [place - 0.3, place + 0.3], color=rc.plotting.ORANGE, lw=2)
    print(f"{variant:10} mean {values.mean():.3f}, deviation {values.std():.3f}")
ax.set(yticks=range(4), yticklabels=variants, xlabel="NDCG@10 of 100 held-out queries")
plt.show()
