"""
Budgets of kernel learners
==========================

How many support vectors does a kernel learner need?

A kernel learner keeps a row per mistake, and on a stream these never end. A ``budget`` bounds
memory and time. What is lost depends on which row is dropped.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)


def rings(n):
    X = rng.normal(size=(n, 2))
    y = np.digitize(np.linalg.norm(X, axis=1) + rng.normal(scale=0.1, size=n), [0.7, 1.2, 1.7])
    return X, y


X, y = rings(1500)
X_test, y_test = rings(3000)


def loss(**params):
    model = rc.KernelPRank(gamma=1.0, max_iter=1, random_state=0, **params).fit(X, y)
    return rc.metrics.rank_loss(y_test, model.predict(X_test)), model.support_.size


full, n_support = loss()
linear = rc.PRank(random_state=0).fit(X, y)
straight = rc.metrics.rank_loss(y_test, linear.predict(X_test))
budgets = [25, 50, 100, 200, 400]
policies = ["oldest", "smallest", "projectron"]
found = {
    policy: [loss(budget=budget, budget_policy=policy)[0] for budget in budgets]
    for policy in policies
}

# %%
# Ranks are rings around the origin, so that no straight line helps (grey). The dashed line is the
# learner without a budget. Dropping the oldest row needs a large budget; projecting a row onto
# those that stay (`projectron`) comes close with few.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for policy, mark in zip(policies, "os^", strict=True):
    ax.plot(budgets, found[policy], marker=mark, label=policy)
ax.axhline(full, color="black", ls="--", lw=1, label=f"no budget: {n_support} vectors")
ax.axhline(straight, color=rc.plotting.GREY, lw=1, label="linear PRank")
ax.set(xscale="log", xlabel="budget: support vectors", ylabel="mean rank loss, new rows")
ax.set_xticks(budgets, budgets)
ax.minorticks_off()
ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
plt.show()
