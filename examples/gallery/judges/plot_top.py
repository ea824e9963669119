"""
The first k of many items
=========================

How many calls do the first ten of a thousand cost?

For the first k of many items most comparisons of a full sort are wasted. The methods differ in
calls, and in the number of rounds of simultaneous calls. `call_plan` computes both before the first
call.
"""

import matplotlib.pyplot as plt

import rankcore as rc
from rankcore.preference import call_plan

plt.style.use(rc.plotting.STYLE)
costs = call_plan(1000, 10)
for name, cost in costs.items():
    print(f"{name:10} {cost.calls:8.0f} calls {cost.rounds:6.0f} rounds")

# %%
# Left and low is best: few calls, few rounds. Comparing all pairs takes one round and half a
# million calls. QuickSort needs the fewest calls, halving fewer rounds, and averages errors out.

fig, ax = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for name, cost in costs.items():
    ax.scatter(cost.calls, cost.rounds, s=60, color=rc.plotting.BLUE)
    ax.annotate(name, (cost.calls, cost.rounds), (8, 6), textcoords="offset points")
ax.set(xscale="log", yscale="log", xlabel="calls", ylabel="rounds, one after the other")
ax.margins(0.15)
plt.show()

# %%
# An actual run: halving finds the first ten among a thousand numbers, within the planned calls.

calls = []


def judge(a, b):
    calls.append(1)
    return a > b


ranker = rc.PreferenceRanker(judge, method="halving", top_k=10, random_state=0)
print(ranker.rank(list(range(1000)))[:10], len(calls))
assert len(calls) <= costs["halving"].calls
