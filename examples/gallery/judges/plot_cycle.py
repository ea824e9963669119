"""
Judges that contradict themselves
=================================

What does QuickSort do with a judge that goes in circles?

A judge may prefer stone to scissors, scissors to paper, and paper to stone. No order agrees with
all of that. QuickSort returns one anyway, from few comparisons; over its random pivots, no item
of the circle is favoured.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
items = ["gold", "stone", "scissors", "paper", "mud"]
BEATS = {("stone", "scissors"), ("scissors", "paper"), ("paper", "stone")}
calls = []


def judge(a, b):
    """Gold is best and mud worst; the three between go in a circle."""
    calls.append((a, b))
    if {a, b} & {"gold", "mud"}:
        return a == "gold" or b == "mud"
    return (a, b) in BEATS


runs = 3000
places = np.zeros((5, 5))
for seed in range(runs):
    order = rc.quicksort_rank(items, judge, random_state=seed)
    for place, item in enumerate(order):
        places[items.index(item), place] += 1 / runs
by_degree = rc.sort_by_degree(items, judge)

# %%
# How often each item gets each place, over 3,000 runs. Gold is always first and mud always last:
# what the judge is clear about is never contradicted. The three in the circle share the places
# between, a third each.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
ax.imshow(places, cmap="Blues", vmin=0, vmax=1)
for i, j in np.ndindex(5, 5):
    colour = "white" if places[i, j] > 0.5 else "black"
    ax.text(j, i, f"{places[i, j]:.0%}", ha="center", va="center", color=colour)
ax.set(xticks=range(5), xticklabels=range(1, 6), yticks=range(5), yticklabels=items)
ax.set(xlabel="place")
ax.grid(False)
plt.show()

# %%
# All ten pairs, and sorting by wins, gives the same picture; the circle stands in the order of
# the input:

print(by_degree, f"{(len(calls) - 10) / runs:.1f} calls per run of QuickSort, 10 for all pairs")
