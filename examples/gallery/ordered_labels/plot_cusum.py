"""
Directions of CuSum Rank
========================

What can CuSum Rank learn that PRank cannot?

`PRank` has one direction for all ranks. If what separates bad from fair differs from what
separates fair from good, no single direction will do. `CuSumRank` has a weight vector for each
threshold.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
# A product that breaks is bad (rank 0); among those that hold, comfort makes good (2) of fair (1).
X = rng.uniform(-1, 1, size=(1500, 2))
holds, comfortable = X[:, 0] > 0, X[:, 1] > 0
y = np.where(holds, 1 + comfortable, 0)

models = {"PRank": rc.PRank(random_state=0), "CuSumRank": rc.CuSumRank(random_state=0)}
for model in models.values():
    model.fit(X, y)

# %%
# Colours are what each model predicts, points are the true ranks of some rows. PRank cuts the
# plane by parallel lines, a compromise for both questions. CuSum Rank turns its second line:
# holding decides the first threshold, comfort the second.

axis = np.linspace(-1, 1, 200)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
colours = ListedColormap(["#d8e5f0", "#8fb8d8", rc.plotting.BLUE])
# sphinx_gallery_thumbnail_number = 2
axes = [plt.subplots(figsize=(4.8, 4), layout="constrained")[1] for _ in range(2)]
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ax.pcolormesh(axis, axis, model.predict(grid).reshape(200, 200), cmap=colours)
    for rank, mark in enumerate(["x", "s", "o"]):
        some = np.flatnonzero(y == rank)[:60]
        ax.scatter(*X[some].T, marker=mark, s=14, color="black", lw=0.8)
    wrong = np.mean(model.predict(X) != y)
    ax.set(title=f"{name}: {wrong:.0%} of rows wrong", xlabel="strength", ylabel="comfort")
plt.show()

# %%
# Weights by threshold: the first is about strength, the second about both.

print(models["CuSumRank"].coef_.round(2))
