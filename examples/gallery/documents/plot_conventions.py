"""
Conventions of NDCG
===================

Why do two tools give different values of NDCG?

Tools differ in gains, ties and queries without relevant documents. `rankcore.metrics` computes
each tool's figure under its name, so that a difference between models is not one between
conventions.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
qid = np.repeat(np.arange(60), 12)
y = rng.choice([0, 1, 2, 4], p=[0.7, 0.15, 0.1, 0.05], size=qid.size)
y[qid < 12] = 0  # nothing is relevant to a fifth of the queries
weak = np.round(y + rng.normal(scale=2.0, size=qid.size))
strong = np.round(y + rng.normal(scale=1.2, size=qid.size))

tools = ["sklearn", "trec_eval", "ranx", "lightgbm", "xgboost"]
docid = [f"d{i:03}" for i in rng.permutation(qid.size)]
found = {
    tool: [
        rc.metrics.ndcg_score(y, scores, qid=qid, k=10, convention=tool, docid=docid)
        for scores in (weak, strong)
    ]
    for tool in tools
}

# %%
# The same two models (orange worse, blue better) on the same 60 queries, by five conventions. The
# better model is better everywhere. But the worse model by LightGBM's convention looks better
# than the better one by scikit-learn's: LightGBM and XGBoost give 1 to a query without relevant
# documents, the others 0.

fig, ax = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
for place, tool in enumerate(tools):
    ax.plot(found[tool], [place] * 2, color=rc.plotting.GREY, lw=1, zorder=0)
    ax.scatter(found[tool][0], place, color=rc.plotting.ORANGE, s=50)
    ax.scatter(found[tool][1], place, color=rc.plotting.BLUE, s=50)
    print(f"{tool:10}", [round(float(value), 3) for value in found[tool]])
ax.set(yticks=range(5), yticklabels=tools, xlabel="NDCG@10")
ax.invert_yaxis()
plt.show()
