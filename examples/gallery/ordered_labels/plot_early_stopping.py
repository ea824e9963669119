"""
Early stopping
==============

When should a fit stop?

More passes over the rows fit them better, not always new rows. With ``eval_set`` a fit measures
held-out rows after each pass; with ``early_stopping_rounds`` it keeps the best pass and stops
once it is that old.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 150))
latent = X[:, :10].sum(axis=1) + rng.normal(scale=2.0, size=1200)
y = np.digitize(latent, [-4, -1.5, 1.5, 4])
train, held = slice(0, 400), slice(400, None)

model = rc.PRank(max_iter=60, early_stopping_rounds=20, average=True, random_state=0)
model.fit(X[train], y[train], eval_set=(X[held], y[held]))
print("passes:", model.n_iter_, "best:", model.best_iteration_)

# %%
# Orange: the loss while learning, each row ranked before it is learned. It goes on falling, for
# 400 rows of 150 features can be learned by heart. Blue: held-out rows, which settle soon. The
# marked pass is the model that the fit keeps.

history = model.history_
passes = np.arange(1, len(history["rank_loss"]) + 1)
fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
ax.plot(passes, history["rank_loss"], color=rc.plotting.ORANGE, label="rows learned")
held_out = history["valid_rank_loss"]
ax.plot(passes, held_out, color=rc.plotting.BLUE, label="held-out rows")
best = model.best_iteration_
ax.plot(best, held_out[best - 1], "o", ms=11, mfc="none", color=rc.plotting.BLUE)
ax.annotate("kept", (best, held_out[best - 1]), (best + 1, held_out[best - 1] + 0.06))
ax.set(xlabel="pass", ylabel="mean rank loss", ylim=(0, None))
ax.legend()
plt.show()
