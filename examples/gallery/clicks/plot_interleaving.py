"""
Interleaving, tested every day
==============================

Has the new ranker won yet?

Two rankers share one list, by team draft; users click. The interval of the expected preference may
be looked at each day: with a probability of 95% it contains the truth on all days, and the
experiment may end when it leaves 0.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankcore as rc
from rankcore.interleaving import TeamDraft, preference, sequential_test

plt.style.use(rc.plotting.STYLE)
rng = np.random.default_rng(0)
days, per_day = 21, 150
relevance = rng.beta(1, 3, size=(50, 12))  # of the documents of 50 queries
old = np.argsort(-(relevance + rng.normal(0, 0.15, relevance.shape)), axis=1)
new = np.argsort(-(relevance + rng.normal(0, 0.08, relevance.shape)), axis=1)

method, credit = TeamDraft(), []
for impression in range(days * per_day):
    query = rng.integers(50)
    shown = method.interleave([old[query], new[query]], length=6, seed=impression)
    seen = 1 / np.arange(1, 7)
    clicked = rng.random(6) < seen * relevance[query, shown.documents]
    credit.append(method.credit(shown, clicked))

# %%
# An impression prefers the ranker whose documents were clicked more often.

looks = np.arange(1, days + 1) * per_day
found = sequential_test(preference(credit), looks=looks)
ended = int(np.argmax(found.p_value <= 0.05))
print(f"day {ended + 1}, {looks[ended]} impressions: p = {found.p_value[ended]:.3f}")

# %%
# The interval only shrinks: it is the intersection of those of all days so far.

fig, ax = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
day = np.arange(1, days + 1)
ax.fill_between(day, found.low, found.high, step="post", alpha=0.25, color=rc.plotting.BLUE)
ax.plot(day, found.mean, "o-", ms=4, color=rc.plotting.BLUE)
ax.axhline(0, color="0.4", lw=1)
ax.axvline(ended + 1, color=rc.plotting.ORANGE, lw=1.5)
ax.text(ended + 0.7, 0.3, "the new ranker has won", ha="right")
ax.set(xlabel="day", ylabel="preference for the new ranker", ylim=(-0.2, 0.4))
ax.set_xticks(day[::2])
plt.show()

# %%
assert found.winner == 1
