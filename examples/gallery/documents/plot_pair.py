"""
Differences of two documents
============================

Why is this document above that one?

The score of a sum over features is a sum of contributions, exactly. For a pair, each feature's
contribution is relative to the other document, and they add up to the difference of the two
scores.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
names = ["title match", "body match", "clicks", "age", "length", "spam"]
X = np.round(rng.gamma(2, 2, size=(4000, 6)), 1)
worth = 3 * np.sqrt(X[:, 0]) + X[:, 1] + 0.5 * X[:, 2] - 0.3 * X[:, 3] - 2 * (X[:, 5] > 8)
y = np.digitize(worth + rng.normal(size=4000), [7, 10, 13])
qid = np.repeat(np.arange(200), 20)
model = rc.RankBoost(80, max_leaf_nodes=6, learning_rate=0.3).fit(X, y, qid=qid)

of_query = np.flatnonzero(qid == 7)
first, fourth = of_query[np.argsort(-model.predict(X[of_query]))[[0, 3]]]
why = rc.explain.pair(model, X[first], X[fourth], names=("first", "fourth"), feature_names=names)
print(why)

# %%
# From the score of the fourth document (below) to that of the first (above): blue features favour
# the first, orange ones the fourth. The bars add up to the whole distance; nothing is left
# unexplained.

fig, ax = plt.subplots(figsize=(4.8, 4), layout="constrained")
why.plot(ax=ax)
plt.show()

# %%
assert np.isclose(why.contributions.sum(), why.difference)
