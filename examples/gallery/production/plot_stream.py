"""
Streams that drift
==================

What happens when a stream changes its mind?

Online learners need no second fit: `partial_fit` goes on. After a change of taste an average
remembers the old one for long; the last parameters forget at once, but are rough. There are two
cures: an average with a half-life forgets at the rate you choose, and is less rough; a
`DriftMonitor` finds the change, and starts again.
"""

import matplotlib.pyplot as plt

import rankcore as rc

plt.style.use(rc.plotting.STYLE)
X, y = rc.datasets.make_drift(20_000, drift="returning", random_state=3)


def stream():
    for start in range(0, len(y), 50):
        yield X[start : start + 50], y[start : start + 50]


class PageHinkley:
    """An alarm when losses are above their mean for some time; river has more detectors."""

    n, mean, total, drift_detected = 0, 0.0, 0.0, False

    def update(self, loss):
        self.n += 1
        self.mean += (loss - self.mean) / self.n
        self.total = max(0.0, self.total + loss - self.mean - 0.03)
        self.drift_detected = self.total > 8


learners = {
    "average": rc.PRank(),
    "last parameters": rc.PRank(average=False),
    "average, half-life of 100 rows": rc.PRank(half_life=100),
    "average, monitored": rc.online.DriftMonitor(rc.PRank(), PageHinkley()),
}
# Each chunk is predicted before it is learned.
found = {
    name: rc.online.evaluate(model, stream(), window=500, classes=range(1, 6))
    for name, model in learners.items()
}

# %%
# The taste changes after 5,000, 10,000 and 15,000 rows. The average is best until then, and
# recovers slowly. The one with a half-life recovers within some hundred rows. The monitored one
# starts again from the latest 100 rows at each change, and is as good as the average before it. The
# guide :doc:`a stream that changes </changing_streams>` has more: probabilities and sets.

ax = rc.plotting.plot_stream(found)
for alarm in learners["average, monitored"].drifts_:
    ax.axvline(alarm, color=rc.plotting.GREY, ls="--", lw=1)
ax.set(ylim=(0, None))
plt.show()
