"""
Monotone constraints
====================

How can a model be made to rise with a feature?

More matching words should never lower the score of a document. With few rows an unconstrained
model also fits noise, and its score falls in places. ``monotonic_cst`` constrains each feature.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(4)
X = rng.uniform(0, 10, size=(600, 2))  # matching words, age
worth = np.sqrt(X[:, 0]) * 2 - 0.3 * X[:, 1] + rng.normal(scale=1.2, size=600)
y = np.digitize(worth, [0.5, 2, 3.5])
qid = np.repeat(np.arange(30), 20)
X_test = rng.uniform(0, 10, size=(20_000, 2))
worth_test = np.sqrt(X_test[:, 0]) * 2 - 0.3 * X_test[:, 1]
qid_test = np.repeat(np.arange(1000), 20)

params = {"n_estimators": 100, "max_leaf_nodes": 6, "learning_rate": 0.3, "min_samples_leaf": 5}
free = rc.RankBoost(**params).fit(X, y, qid=qid)
held = rc.RankBoost(**params, monotonic_cst=[1, -1]).fit(X, y, qid=qid)

# %%
# The score by the number of matching words, for documents of age 5. The unconstrained model
# (orange) falls in places: it prefers a document with fewer words. The constrained model (blue)
# never falls, and ranks new queries better, since the constraint is true.

x = np.linspace(0.5, 9.5, 500)
rows = np.column_stack([x, np.full(500, 5.0)])
fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for name, model, colour in [
    ("free", free, rc.plotting.ORANGE),
    ("rising in words, falling in age", held, rc.plotting.BLUE),
]:
    scores = model.predict(rows)
    wrong = rc.metrics.pairwise_misranking(worth_test, model.predict(X_test), qid=qid_test)
    label = f"{name}: {wrong:.1%} of new pairs wrong"
    ax.plot(x, (scores - scores.mean()) / scores.std(), color=colour, label=label)
ax.set(xlabel="matching words", ylabel="score, standardised")
ax.legend()
plt.show()

# %%
assert (np.diff(held.predict(rows)) >= 0).all()
assert (np.diff(free.predict(rows)) < 0).any()
