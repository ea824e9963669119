"""
Trees and stumps
================

When do trees beat stumps?

A sum of stumps is a sum of one function per feature. If the effect of a feature depends on
another one, only trees can learn it. The partial dependence on both features shows what each
model has learned.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(6000, 4))
# Fresh pages should be short, old ones long.
worth = 2 * X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(scale=0.2, size=6000)
y = np.digitize(worth, [-0.7, 0, 0.7])
qid = np.repeat(np.arange(300), 20)
train, test = qid < 200, qid >= 200

models = {
    "stumps": rc.RankBoost(150),
    "trees of 8 leaves": rc.RankBoost(150, max_leaf_nodes=8, learning_rate=0.3),
}
for model in models.values():
    model.fit(X[train], y[train], qid=qid[train])

# %%
# Colour is the mean score over 200 rows whose first two features are replaced by those of the
# point. The data have a saddle: both high or both low is good. Stumps see nothing in either
# feature alone, so their picture is flat; trees have the saddle, and rank better.

axis = np.linspace(-1, 1, 21)
a, b = np.meshgrid(axis, axis)
# sphinx_gallery_thumbnail_number = 2
axes = [plt.subplots(figsize=(4.8, 4), layout="constrained")[1] for _ in range(2)]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    rows = np.repeat(X[None, :200], a.size, axis=0)
    rows[..., 0], rows[..., 1] = a.reshape(-1, 1), b.reshape(-1, 1)
    means = model.predict(rows.reshape(-1, 4)).reshape(a.size, 200).mean(axis=1)
    spread = np.std(model.predict(X[:200]))
    picture = ax.pcolormesh(
        axis,
        axis,
        (means - means.mean()).reshape(a.shape) / spread,
        cmap="RdBu",
        vmin=-1.5,
        vmax=1.5,
    )
    quality = model.score(X[test], y[test], qid=qid[test])
    ax.set(title=f"{name}: NDCG@10 {quality:.3f}", xlabel="age", ylabel="length")
    ax.figure.colorbar(picture, ax=ax, label="mean score, in deviations")
plt.show()
