"""
Merged models
=============

Can shards be learned apart and put together?

Each of eight machines learns its own part of the rows; `merge` makes one model of theirs. Each
part is too small to learn well from, but their errors differ, and the merged model has the mean
of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
weights = rng.normal(size=40) / np.sqrt(40)


def rows(n):
    X = rng.normal(size=(n, 40))
    return X, np.digitize(X @ weights + 0.4 * rng.normal(size=n), [-1, -0.3, 0.3, 1])


X, y = rows(1600)
X_test, y_test = rows(8000)


def loss(model):
    return rc.metrics.rank_loss(y_test, model.predict(X_test))


alone, merged = [], []
for n_shards in [1, 2, 4, 8]:
    parts = np.array_split(np.arange(1600), n_shards)
    models = [rc.PRank(random_state=0).fit(X[part], y[part]) for part in parts]
    alone.append([loss(model) for model in models])
    merged.append(loss(rc.merge(models)))

# %%
# Grey: models of one shard each, which get worse as shards get smaller. Blue: the merged model of
# the same shards, which stays close to that of all rows (dashed).

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
for place, values in enumerate(alone):
    ax.scatter([place] * len(values), values, color=rc.plotting.GREY, s=22)
ax.plot(range(4), merged, "o-", color=rc.plotting.BLUE, label="merged")
ax.axhline(merged[0], color="black", ls="--", lw=1, label="one machine, all rows")
ax.scatter([], [], color=rc.plotting.GREY, label="each shard alone")
ax.set_xticks(range(4), [1, 2, 4, 8])
ax.set(xlabel="shards", ylabel="mean rank loss, new rows")
ax.legend()
plt.show()
