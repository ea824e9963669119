"""
Updating a ranker with new judgements
=====================================

Must a ranker learn from all judgements again when each day brings new ones? It depends on the
learner.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
X, y, qid = rc.datasets.make_letor(300, 40, random_state=1)
train, test = qid <= 200, qid > 200
day = (qid - 1) // 20  # 20 new queries a day


def ndcg(model):
    return rc.metrics.ndcg_score(y[test], model.predict(X[test]), qid=qid[test], k=10)


# %%
# `PairwisePerceptron` learns the pairs of each day once, by ``partial_fit``. `RankSVM` has one
# optimum; with ``warm_start`` it starts from the last solution, and needs all rows. `RankBoost`
# adds trees to what it has: here ten a day, fitted to the queries of that day alone.

perceptron = rc.PairwisePerceptron(random_state=0)
machine = rc.RankSVM(warm_start=True)
trees = rc.RankBoost(100, max_leaf_nodes=31, warm_start=True)
curves = {name: [] for name in ("PairwisePerceptron", "RankSVM", "RankBoost, trees added")}
for today in range(10):
    new, known = day == today, day <= today
    perceptron.partial_fit(X[new], y[new], qid=qid[new])
    machine.fit(X[known], y[known], qid=qid[known])
    trees.set_params(n_estimators=100 + 10 * today).fit(X[new], y[new], qid=qid[new])
    for name, model in zip(curves, (perceptron, machine, trees), strict=True):
        curves[name].append(ndcg(model))
at_once = {
    "PairwisePerceptron": rc.PairwisePerceptron(random_state=0),
    "RankSVM": rc.RankSVM(),
    "RankBoost, trees added": rc.RankBoost(100, max_leaf_nodes=31),
}
for name, model in at_once.items():
    at_once[name] = ndcg(model.fit(X[train], y[train], qid=qid[train]))
    print(f"{name:<24} day by day {curves[name][-1]:.3f}, all at once {at_once[name]:.3f}")

# %%
# Lines: day by day. Marks at the right: the same learner on all days at once. The first two lose
# next to nothing. Trees that are added for the errors on new queries undo what was learned from the
# old ones: fit `RankBoost` again.

figure, ax = plt.subplots()
for name, values in curves.items():
    (line,) = ax.plot(np.arange(1, 11), values, label=name)
    ax.plot(10.4, at_once[name], "o", color=line.get_color(), clip_on=False)
ax.set_xlabel("day")
ax.set_ylabel("NDCG@10 on other queries")
ax.legend()
plt.show()
