"""
Noisy judges
============

How many calls does a noisy judge need?

A judge that is wrong one time in ten needs more calls than one that is never wrong. More calls
about the right pairs buy the order back, up to a limit that depends on the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc
from rankcore.preference import Indexed

plt.style.use(rc.plotting.STYLE)
budgets = [60, 120, 240, 435]


def tau(calls, noise, seed):
    rng = np.random.default_rng(seed)
    worth = rng.permutation(30)

    def judge(i, j):
        return (worth[i] > worth[j]) ^ (rng.random(i.size) < noise)

    judge = Indexed(judge)
    ranker = rc.PreferenceRanker(judge, max_calls=calls, method="rating", random_state=seed)
    ranker.rank(np.arange(30))
    places = np.empty(30)
    places[ranker.order_] = np.arange(30)
    return rc.metrics.kendall_tau(worth, -places)


noises = [0.0, 0.1, 0.2, 0.3]
found = {
    noise: np.array([[tau(calls, noise, seed) for seed in range(3)] for calls in budgets])
    for noise in noises
}

# %%
# Kendall's tau between the order found and the true one, for 30 items; 1 is the same order, 0
# none. Lines are means of three runs, bands their range. The last budget is the number of all
# pairs. A judge that is wrong 30% of the time needs more than that: asking about near items
# again.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for noise, colour in zip(noises, ["#004b76", "#0072b2", "#56b4e9", "#d55e00"], strict=True):
    values = found[noise]
    ax.fill_between(budgets, values.min(1), values.max(1), color=colour, alpha=0.15)
    ax.plot(budgets, values.mean(1), "o-", color=colour, label=f"wrong {noise:.0%} of the time")
ax.set(xlabel="calls", ylabel="Kendall's tau", ylim=(0, 1.02))
ax.legend(loc="lower right")
plt.show()
