"""
Features that decide a query
============================

What decided the top of this query?

For a whole query, contributions are relative to the mean of its documents: a feature that is the
same for all of them decides nothing there, however much it matters elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(1)
names = ["title match", "body match", "clicks", "age", "length"]
X = np.round(rng.gamma(2, 2, size=(3000, 5)), 1)
X[:15, 2] = 0  # a new query: nobody has clicked yet
worth = 2 * np.sqrt(X[:, 0]) + 0.5 * X[:, 1] + X[:, 2] - 0.3 * X[:, 3]
y = np.digitize(worth + rng.normal(size=3000), [5, 8, 11])
qid = np.repeat(np.arange(200), 15)
model = rc.RankBoost(100).fit(X, y, qid=qid)

# %%
# Documents from the best down, with labels and scores. Blue raises a document above the mean of
# the query, orange lowers it. Clicks matter most in the whole collection (printed below), but the
# column is empty in this query, in which nobody has clicked.

why = rc.explain.query(model, X, qid, which=0, y=y, top_k=5, feature_names=names)
fig, ax = plt.subplots(figsize=(4.8, 5.6), layout="constrained")
why.plot(ax=ax, max_documents=15)
plt.show()

# %%
found = rc.explain.global_importance(model, X, qid=qid)
for name, value in zip(names, found.importances, strict=True):
    print(f"{name:12} {value:.3f}")
