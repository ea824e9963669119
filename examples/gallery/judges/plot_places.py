"""
Intervals of places
===================

How sure is the place of an item?

From the answers of a judge that errs, `PreferenceRanker` learns the strengths of items and how
the judge errs. The places follow, as intervals: where answers do not tell items apart, intervals
overlap.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc
from rankcore.preference import Indexed

plt.style.use(rc.plotting.STYLE)


def ranked(calls, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(24)  # truth[i] is the place of item i

    def judge(i, j):  # the nearer two items are, the more often it errs
        return rng.random(i.size) < 1 / (1 + np.exp((truth[i] - truth[j]) / 2.5))

    judge = Indexed(judge)
    ranker = rc.PreferenceRanker(judge, method="rating", max_calls=calls, random_state=0)
    ranker.rank(np.arange(24))
    return ranker, truth


# %%
# The judge errs about neighbours nearly half of the time, about distant items rarely. Dots are
# true places, bars the intervals of 90% for the place of an item. With 100 calls the bars are
# wide; with 800 they are short, and still contain most of the dots.

# sphinx_gallery_thumbnail_number = 2
axes = [plt.subplots(figsize=(4.8, 4), layout="constrained")[1] for _ in range(2)]
for ax, calls in zip(axes, [100, 800], strict=True):
    ranker, truth = ranked(calls)
    low, high = ranker.ratings_.place_interval().T
    rows = np.arange(24)
    order = ranker.order_
    ax.hlines(rows, low[order], high[order], color=rc.plotting.BLUE, lw=5, alpha=0.35)
    ax.plot(truth[order] + low.min(), rows, "o", ms=5, color=rc.plotting.ORANGE)
    true = truth + low.min()
    inside = np.mean((low <= true) & (true <= high))
    ax.set(title=f"{calls} calls: {inside:.0%} inside", xlabel="place", ylabel="items, best first")
    ax.set(yticks=[], xlim=(0, 25))
    ax.invert_yaxis()
plt.show()
