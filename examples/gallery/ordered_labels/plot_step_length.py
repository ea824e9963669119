"""
Passive-aggressive steps
========================

How far should one mistake move the model?

`CuSumRank` as a passive-aggressive learner steps just far enough to rank the row correctly; ``C``
caps the step (``update="pa1"``). On noisy labels a wrong label should not move the model far.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
weights = rng.normal(size=20) / np.sqrt(20)


def rows(n, noise):
    X = rng.normal(size=(n, 20))
    y = np.digitize(X @ weights, [-1, -0.3, 0.3, 1])
    wrong = rng.random(n) < noise
    return X, np.where(wrong, rng.integers(0, 5, n), y)


caps = np.logspace(-3, 0, 10)
X_test, y_test = rows(4000, 0.0)
losses = {}
for noise in [0.0, 0.1, 0.3]:
    X, y = rows(1000, noise)
    losses[noise] = []
    for C in caps:
        learner = rc.CuSumRank(update="pa1", C=C, average=False, max_iter=1)
        models = [clone(learner).set_params(random_state=seed).fit(X, y) for seed in range(6)]
        found = [rc.metrics.rank_loss(y_test, model.predict(X_test)) for model in models]
        losses[noise].append(np.mean(found))

# %%
# One pass over 1,000 rows, means of six orders. Each line is a share of labels that are random;
# the loss is measured against clean labels. Without noise long steps (right) are best. With noise
# they copy wrong labels, and the best cap moves left. The default averages all models on the way,
# which calms either.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for (noise, values), colour in zip(losses.items(), ["#56b4e9", "#0072b2", "#d55e00"], strict=True):
    ax.plot(caps, values, marker="o", color=colour, label=f"{noise:.0%} of labels random")
    best = int(np.argmin(values))
    ax.plot(caps[best], values[best], marker="o", ms=12, mfc="none", color=colour)
ax.set(xscale="log", xlabel="C, the cap of a step", ylabel="mean rank loss, clean rows")
ax.legend()
plt.show()
