"""
Margin bounds
=============

What does a margin promise about unseen pairs?

If training pairs are ordered correctly by a wide margin, unseen pairs are mostly ordered
correctly, too. The bound limits the share of misordered unseen pairs, from training pairs alone.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc
from rankcore.bounds import margin_curve

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)


def pairs(n):
    """Draw n independent pairs of rows on the unit sphere; the better one has label 1."""
    X = rng.normal(size=(2 * n, 5))
    X /= np.linalg.norm(X, axis=1)[:, None]
    worth = (X @ [1.0, 0.5, 0, 0, 0] + 0.1 * rng.normal(size=2 * n)).reshape(n, 2)
    return X, (worth == worth.max(axis=1)[:, None]).ravel(), np.repeat(np.arange(n), 2)


X_new, y_new, qid_new = pairs(50_000)
sizes = [500, 2000, 8000, 30_000]
bounds, unseen = [], []
for n in sizes:
    X, y, qid = pairs(n)
    model = rc.RankSVM(C=1.0, random_state=0).fit(X, y, qid=qid)
    curve = margin_curve(y, model.predict(X), qid=qid)
    norm = np.linalg.norm(model.coef_)
    bounds.append(np.nanmin(curve.certificate(radius=1.0, norm=norm)))
    unseen.append(rc.metrics.pairwise_misranking(y_new, model.predict(X_new), qid=qid_new))

# %%
# The bound (black) holds with probability 95%, for any distribution of pairs. It is loose with 500
# pairs, and tighter with more. The misranking of 50,000 new pairs (blue) is far below.

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
ax.plot(sizes, bounds, "k--o", label="bound, from training pairs alone")
ax.plot(sizes, unseen, "o-", color=rc.plotting.BLUE, label="unseen pairs")
ax.set(xscale="log", xlabel="training pairs", ylabel="share misranked", ylim=(0, None))
ax.axhline(1, color=rc.plotting.GREY, lw=1)
ax.legend()
plt.show()

# %%
assert all(u <= b for u, b in zip(unseen, bounds, strict=True))
