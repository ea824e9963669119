"""
Counterfactual evaluation
=========================

How good would a new ranker be, by the clicks on an old one's lists?

Users see what is on top. Counting their clicks flatters the documents that the old ranker prefers;
weights of 1 / propensity correct that, and a limit of the weights trades bias for noise.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc
from rankcore.clicks.evaluation import evaluate

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
n_queries, n_documents, n_sessions = 150, 8, 60
theta = 1 / np.arange(1, n_documents + 1)  # of positions
relevance = rng.beta(1, 2, size=(n_queries, n_documents))
# The old ranker knows little; its lists differ a little from session to session.
wish = rng.normal(size=relevance.shape)
noise = rng.normal(0, 0.3, (n_queries, n_sessions, n_documents))
lists = np.argsort(-(wish[:, None, :] + noise), axis=2)
query = np.repeat(np.arange(n_queries), n_sessions * n_documents)
document, position = lists.ravel(), np.tile(np.arange(n_documents), n_queries * n_sessions)
clicked = rng.random(query.size) < theta[position] * relevance[query, document]
log = SimpleNamespace(query=query, document=document, position=position + 1, clicked=clicked)

# %%
# The new ranker knows the relevance with some noise.

score = relevance + rng.normal(0, 0.2, relevance.shape)
places = np.indices(relevance.shape).reshape(2, -1)
new = {"query": places[0], "document": places[1], "score": score.ravel()}
new["relevance"] = np.full(score.size, relevance.mean())  # a simple model, for "dr"
best = np.argsort(-score, axis=1)[:, :3]
truth = np.take_along_axis(relevance, best, axis=1).mean()
ways = {
    "clicks alone": {"propensity": np.ones(n_documents)},
    "ips": {"propensity": theta},
    "ips, clip=3": {"propensity": theta, "clip": 3.0},
    "snips, clip=3": {"propensity": theta, "clip": 3.0, "estimator": "snips"},
    "dr, clip=3": {"propensity": theta, "clip": 3.0, "estimator": "dr"},
}
found = {
    way: evaluate(log, new, metrics="precision@3", **given)["precision@3"]
    for way, given in ways.items()
}

# %%
# Self-normalised weights may be clipped without bias; the doubly robust estimate fills in what is
# clipped by the model.

fig, ax = plt.subplots(figsize=(4.8, 3.2), layout="constrained")
for i, estimate in enumerate(found.values()):
    ax.plot([estimate.low, estimate.high], [i, i], lw=2, color=rc.plotting.BLUE)
    ax.plot(estimate.value, i, "o", color=rc.plotting.BLUE)
ax.axvline(truth, color=rc.plotting.ORANGE)
ax.set_yticks(range(len(found)), list(found))
ax.invert_yaxis()
ax.set(xlabel="precision@3, with intervals of 95%; the line is the truth")
plt.show()

# %%
assert found["clicks alone"].high < truth
assert found["ips"].low < truth < found["ips"].high
