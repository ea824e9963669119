"""
Bayes points
============

Why learn a hundred PRanks at once?

Of all models that fit the rows, the one in the middle (the Bayes point) errs least on average.
`OAPBPM` estimates it: each member sees a random share of the rows, and the model is the members'
mean.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(3)
X = rng.normal(size=(120, 2))
y = np.digitize(X @ [1.0, 0.6] + rng.normal(scale=0.4, size=120), [-0.8, 0.8])
X_test = rng.normal(size=(20_000, 2))
y_test = np.digitize(X_test @ [1.0, 0.6] + rng.normal(scale=0.4, size=20_000), [-0.8, 0.8])


def angle(weights):
    return np.degrees(np.arctan2(weights[1], weights[0]))


# One PRank, in a new order each time, without averages: one member's point of view.
single, ensemble = [], []
for seed in range(60):
    single.append(rc.PRank(max_iter=3, average=False, random_state=seed).fit(X, y))
    means = rc.OAPBPM(100, average_members=False, max_iter=3, random_state=seed)
    ensemble.append(means.fit(X, y))

# %%
# Each point is a model: the direction of its weights, and its loss on 20,000 new rows. The true
# direction is the dashed line. Single models scatter with the order of the rows; the means of a
# hundred members lie together, and low.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for name, models, colour in [
    ("one PRank", single, rc.plotting.ORANGE),
    ("mean of 100", ensemble, rc.plotting.BLUE),
]:
    loss = [rc.metrics.rank_loss(y_test, model.predict(X_test)) for model in models]
    ax.scatter([angle(model.coef_) for model in models], loss, s=18, color=colour, label=name)
    print(f"{name}: mean loss {np.mean(loss):.3f}, worst {np.max(loss):.3f}")
ax.axvline(angle([1.0, 0.6]), color="black", ls="--", lw=1)
ax.set(xlabel="direction of the weights, degrees", ylabel="mean rank loss, new rows")
ax.legend()
plt.show()
