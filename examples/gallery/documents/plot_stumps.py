"""
Sums of stumps
==============

How do stumps add up to a curve?

A stump tests whether one feature is above one threshold. `RankBoost` adds up stumps; the stumps on
one feature form a step function of this feature.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(4000, 2))
# Worth rises with the first feature up to 6 and then falls; the second has a jump at 3.
worth = -np.abs(X[:, 0] - 6) + 3 * (X[:, 1] > 3)
y = np.digitize(worth + rng.normal(scale=0.5, size=4000), [-2, 0, 2])
qid = np.repeat(np.arange(200), 20)

rounds = [1, 5, 100]
models = {n: rc.RankBoost(n).fit(X, y, qid=qid) for n in rounds}

# %%
# After one round the model has one step, after five a few steps, and after a hundred the shapes
# that generated the data (grey, on a different scale). Thresholds come from the data; no bins were
# chosen.

axes = [plt.subplots(figsize=(4.8, 3.4), layout="constrained")[1] for _ in range(2)]
x = np.linspace(0, 10, 400)
shapes = [-np.abs(x - 6), 3.0 * (x > 3)]
for j, ax in enumerate(axes):
    for n, colour in zip(rounds, ["#a6cbe3", "#56a0d3", rc.plotting.BLUE], strict=True):
        rows = np.zeros((400, 2))
        rows[:, j] = x
        values = models[n].contributions(rows, background=X[:500]).values[:, j]
        ax.plot(x, values, color=colour, lw=1.5, label=f"{n} rounds")
        if n == 100:
            scale = np.polyfit(shapes[j], values, 1)
    ax.plot(x, np.polyval(scale, shapes[j]), color=rc.plotting.GREY, ls="--", label="truth")
    ax.set(xlabel=f"feature {j + 1}", ylabel="adds to the score")
axes[0].legend()
plt.show()
