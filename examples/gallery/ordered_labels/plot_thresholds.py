"""
The thresholds of PRank
=======================

Where do the ranks lie on PRank's line?

`PRank` projects each row to one number and cuts the line of numbers by thresholds: a row gets the
rank of the interval that it falls into. One weight vector serves all ranks.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
latent = X @ [2.0, 1.0] + rng.normal(scale=0.5, size=600)
y = np.digitize(latent, [-2.5, -0.5, 1.0]) + 1  # four ranks, 1 is the lowest

model = rc.PRank(random_state=0).fit(X, y)
scores = model.project(X)
print("thresholds", model.thresholds_.round(2))

# %%
# First: the weight vector is the arrow, thresholds are lines across it. Second: the same rows on
# the line. A rank that is predicted wrongly is a point beyond its threshold; most of these are
# one rank off, for a row far from a threshold is safe.

_, plane = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
_, line = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
colours = plt.get_cmap("viridis")((y - 1) / 3)
plane.scatter(*X.T, c=colours, s=12)
x = np.array([-3.5, 3.5])
for cut in model.thresholds_:
    plane.plot(x, (cut - model.coef_[0] * x) / model.coef_[1], color="black", lw=1)
arrow = model.coef_ / np.linalg.norm(model.coef_)
plane.annotate("", arrow * 2, (0, 0), arrowprops={"arrowstyle": "->", "lw": 2})
plane.set(
    xlim=x,
    ylim=x,
    xlabel="feature 1",
    ylabel="feature 2",
    aspect="equal",
    title="rows and thresholds",
)

line.scatter(scores, y + rng.uniform(-0.3, 0.3, y.size), c=colours, s=12)
for cut in model.thresholds_:
    line.axvline(cut, color="black", lw=1)
line.set(yticks=[1, 2, 3, 4], xlabel="projection", ylabel="true rank", title="the same on the line")
plt.show()

# %%
# The mean distance between predicted and true ranks:

print(round(rc.metrics.rank_loss(y, model.predict(X)), 3))
