"""
Averaged weights
================

How does averaging calm PRank?

A perceptron follows its latest mistakes. On noisy labels it never settles: the model after row
2,000 differs from the one after row 1,990. The average of all models on the way does settle, at
no cost in passes.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(1)


def rows(n):
    X = rng.normal(size=(n, 10))
    latent = X @ np.linspace(0, 1, 10) + rng.normal(size=n)
    return X, np.digitize(latent, [-2, -0.7, 0.7, 2])


X_test, y_test = rows(4000)
X, y = rows(2000)
models = {
    "last model": rc.PRank(average=False, shuffle=False),
    "average of all models": rc.PRank(average=True, shuffle=False),
}
steps = np.arange(10, 2001, 10)
losses = {name: [] for name in models}
for name, model in models.items():
    for end in steps:
        model.partial_fit(X[end - 10 : end], y[end - 10 : end], classes=range(5))
        losses[name].append(rc.metrics.rank_loss(y_test, model.predict(X_test)))

# %%
# Each point is the loss on 4,000 held-out rows. The orange line keeps jumping with the last few
# rows it saw; the blue one falls and stays. ``average=True`` is the default.

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
ax.plot(steps, losses["last model"], color=rc.plotting.ORANGE, lw=0.8, label="last model")
ax.plot(steps, losses["average of all models"], color=rc.plotting.BLUE, lw=2, label="average")
ax.set(xlabel="rows learned", ylabel="mean rank loss, held-out rows", ylim=(0.3, 1.2))
ax.legend()
plt.show()

# %%
# Over the second half of the stream:

for name, values in losses.items():
    late = np.array(values[100:])
    print(f"{name:24} mean {late.mean():.3f}, largest {late.max():.3f}")
