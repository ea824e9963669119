"""
Cut-offs of measures
====================

Which measure distinguishes two rankings?

One ranking has the best documents first and then random ones; another is decent all the way down.
Which one is better depends on how many documents a reader examines, and so do the measures.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
n_queries, n_docs = 200, 50
qid = np.repeat(np.arange(n_queries), n_docs)
y = rng.choice([0, 1, 2], p=[0.7, 0.2, 0.1], size=qid.size)
noise = rng.normal(size=qid.size)
top_heavy = np.where((y == 2) & (rng.random(qid.size) < 0.5), 10, 0) + noise
steady = 1.1 * y + noise

ks = np.array([1, 2, 3, 5, 10, 20, 30, 50])
measures = ["ndcg", "precision", "recall"]
curves = {
    name: {
        measure: [
            rc.metrics.evaluate(y, s, qid=qid, metrics=f"{measure}@{k}")[f"{measure}@{k}"]
            for k in ks
        ]
        for measure in measures
    }
    for name, s in [("best first", top_heavy), ("decent throughout", steady)]
}

# %%
# NDCG uses the grades of relevance and gives the first positions more weight: up to three documents
# the orange ranking is better, further down the blue one. Precision and recall use only whether a
# document is relevant, and never prefer the orange one. Choose the measure that matches the reader.

axes = [plt.subplots(figsize=(4.8, 3.4), layout="constrained")[1] for _ in range(3)]
for ax, measure in zip(axes, measures, strict=True):
    for (name, found), colour in zip(
        curves.items(), [rc.plotting.ORANGE, rc.plotting.BLUE], strict=True
    ):
        ax.plot(ks, found[measure], "o-", ms=4, color=colour, label=name)
    ax.set(xscale="log", title=f"{measure}@k", xlabel="k")
    ax.set_xticks([1, 3, 10, 50], [1, 3, 10, 50])
    ax.minorticks_off()
axes[0].legend()
plt.show()
