"""
Regularisation of a ranking SVM
===============================

How strongly should a ranking SVM be regularised?

``C`` weighs the errors of pairs against the length of the weights. `ranksvm_path` fits many
values, each from the solution of the one before, so that the path costs little more than its last
fits.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
n_queries, n_docs = 120, 12
X = rng.normal(size=(n_queries * n_docs, 60))
true = np.where(np.arange(60) < 6, 1.0, 0.0)
y = np.digitize(X @ true + rng.normal(scale=3, size=X.shape[0]), [0, 2, 4])
qid = np.repeat(np.arange(n_queries), n_docs)
train, held = qid < 40, qid >= 40

path = rc.ranksvm_path(
    X[train], y[train], qid=qid[train], Cs=15, eval_set=(X[held], y[held]), eval_qid=qid[held]
)
Cs = np.array([model.C for model in path.estimators])
weights = np.array([model.coef_ for model in path.estimators])
seen = [model.score(X[train], y[train], qid=qid[train]) for model in path.estimators]
unseen = [model.score(X[held], y[held], qid=qid[held]) for model in path.estimators]

# %%
# First: weights grow with C. The six features that matter (blue) lead; the other 54 are noise, and
# catch up where C is large. Second: training queries are ranked ever better, held-out ones are
# best at the marked C.

# sphinx_gallery_thumbnail_number = 2
_, above = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
_, below = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
above.plot(Cs, weights[:, 6:], color=rc.plotting.GREY, lw=0.6)
above.plot(Cs, weights[:, :6], color=rc.plotting.BLUE, lw=1.5)
above.set(xscale="log", xlabel="C", ylabel="weight")
below.plot(Cs, seen, color=rc.plotting.ORANGE, label="training queries")
below.plot(Cs, unseen, color=rc.plotting.BLUE, label="held-out queries")
below.plot(Cs[path.best], unseen[path.best], "o", ms=11, mfc="none", color=rc.plotting.BLUE)
below.set(xscale="log", xlabel="C", ylabel="NDCG@10")
below.legend()
plt.show()
