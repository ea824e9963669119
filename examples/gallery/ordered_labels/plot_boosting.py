"""
Trees for ordered labels
========================

When do ordered labels need trees?

A linear learner has one direction along which ranks rise. If both low and high values of a feature
raise the rank, no direction fits. Trees fit such curves, and their probabilities still use the
order of the ranks.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(4000, 3))
latent = X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=4000)
y = np.digitize(latent, [0, 1, 2, 3]) + 1

models = {
    "PRank, calibrated": rc.CalibratedOrdinal(rc.PRank(random_state=0)),
    "OrdinalBoost": rc.OrdinalBoost(),
}

# %%
# Probabilities of ranks along the first feature; the others are 0. Ranks are low in the middle and
# high at both ends. The linear model cannot fit this and predicts almost the same everywhere. The
# legend has the ranked probability score of 2,000 other rows; lower is better.

along = np.zeros((200, 3))
along[:, 0] = np.linspace(-2, 2, 200)
# sphinx_gallery_thumbnail_number = 2
axes = [plt.subplots(figsize=(4.8, 4), layout="constrained")[1] for _ in range(2)]
colours = plt.get_cmap("viridis")(np.linspace(0, 1, 5))
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X[:2000], y[:2000])
    score = rc.metrics.ranked_probability_score(y[2000:], model.predict_proba(X[2000:]))
    ax.stackplot(along[:, 0], model.predict_proba(along).T, colors=colours, labels=range(1, 6))
    ax.set(title=f"{name}: {score:.2f}", ylabel="probability", xlim=(-2, 2), ylim=(0, 1))
    ax.set_xlabel("first feature")
    ax.figure.legend(title="rank", ncols=5, loc="outside lower center")
plt.show()
