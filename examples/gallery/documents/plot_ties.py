"""
Ties in NDCG
============

How much can ties change NDCG?

A model that predicts ranks gives many documents the same score. Their order in the file then
decides the measure, unless it is the mean over all orders, which is the default here.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
y = rng.integers(0, 4, size=40)
scores = y + rng.normal(scale=1.0, size=40)
levels = [2, 3, 5, 10, 40]

found = {ties: [] for ties in ["average", "optimistic", "pessimistic"]}
shuffled = []
for n in levels:
    cuts = np.quantile(scores, np.linspace(0, 1, n + 1)[1:-1])
    coarse = np.digitize(scores, cuts)  # n different scores
    for ties in found:
        found[ties].append(rc.metrics.ndcg_score(y, coarse, k=10, ties=ties))
    orders = [rng.permutation(40) for _ in range(300)]
    shuffled.append(
        [rc.metrics.ndcg_score(y[order], coarse[order], k=10, ties="first") for order in orders]
    )

# %%
# Points are 300 orders of the file, ties broken by position, as many tools do. The blue line is
# the exact mean over all orders; the band is the range over all orders. With two different scores
# the order of the file changes NDCG more than most differences between models.

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
place = np.arange(len(levels))
ax.fill_between(
    place, found["pessimistic"], found["optimistic"], alpha=0.15, color=rc.plotting.BLUE
)
for i, values in enumerate(shuffled):
    ax.scatter(i + rng.uniform(-0.12, 0.12, 300), values, s=3, color=rc.plotting.GREY)
ax.plot(place, found["average"], "o-", color=rc.plotting.BLUE, label='ties="average"')
ax.set_xticks(place, levels)
ax.set(xlabel="different scores among 40 documents", ylabel="NDCG@10")
ax.legend()
plt.show()

# %%
# The mean over the sampled orders minus the exact mean:

for values, exact in zip(shuffled, found["average"], strict=True):
    print(f"{np.mean(values) - exact:+.4f}")
