"""
Streams that drift
==================

What happens when a stream changes its mind?

Online learners need no second fit: `partial_fit` goes on. After a change of taste an average
remembers the old one for long; the last model forgets at once. An average with a half-life forgets
at the rate you choose, and is less rough.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
old, new = rng.normal(size=(2, 8))
cuts = [-4, -1.5, 1.5, 4]


def chunk(weights, n=50):
    X = rng.normal(size=(n, 8))
    return X, np.digitize(X @ weights + 0.5 * rng.normal(size=n), cuts)


models = {
    "average": rc.PRank(average=True),
    "last model": rc.PRank(average=False),
    "average, half-life of 100 rows": rc.PRank(half_life=100),
}
losses = {name: [] for name in models}
for step in range(200):
    X, y = chunk(old if step < 100 else new)
    for name, model in models.items():
        if step:  # each chunk is predicted before it is learned
            losses[name].append(rc.metrics.rank_loss(y, model.predict(X)))
        model.partial_fit(X, y, classes=range(5))

# %%
# The taste changes after 5,000 rows. The average (blue) was best until then and recovers slowly;
# the last model (orange) recovers within some hundred rows, but is rougher. The average with a
# half-life (black) recovers nearly as fast, and is as smooth as the other average.

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
smooth = np.ones(5) / 5
for (name, values), colour in zip(
    losses.items(), [rc.plotting.BLUE, rc.plotting.ORANGE, "black"], strict=True
):
    ax.plot(np.arange(5, 200) * 50, np.convolve(values, smooth, "valid"), color=colour, label=name)
ax.axvline(5000, color=rc.plotting.GREY, ls="--", lw=1)
ax.set(xlabel="rows of the stream", ylabel="mean rank loss, before learning", ylim=(0, None))
ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
plt.show()
