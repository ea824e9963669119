"""Simulated cost with more workers: times measured here, and an assumed network.

Measured: a pass of PRank for each stored value, the sums of a round of RankBoost for each value,
what Dask takes for n tasks that have nothing to do, and a round of RankBoost in which one worker
asks another that has next to nothing to do. The rest is arithmetic: ``LATENCY`` and ``BANDWIDTH``
are assumed, as is that all workers are as fast as one thread here, and that they end together.
"""

import time
from math import ceil, log

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, seconds_each, show, sized
from rankcore._core.inputs import as_rows
from rankcore._core.sources import Window
from rankcore.boosting._given_bins import GivenBins, ValueGroups
from rankcore.boosting._stump_shard import StumpShard
from rankcore.datasets import make_letor, make_ordinal
from rankcore.ranking._pairs import make_pairing

LATENCY, BANDWIDTH = 1e-4, 1.25e9  # seconds; bytes a second, of 10 Gbit/s
N_ROWS = 10**9
# As w1: values a row, features. As L: features and bins.
W1_VALUES, W1_FEATURES = 75, 50_000
L_FEATURES, L_BINS = 136, 256


def run(repeat: int) -> None:
    """Measure, simulate and print."""
    from distributed import Client

    from rankcore.dask._rounds import BELOW

    print(machine())
    per_value, per_sum = prank_value(repeat), boosting_value(repeat)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        fixed, per_task = overhead(client, repeat)
        hop = question(repeat)
    print("\nmeasured")
    show(
        [
            ("PRank, a stored value", f"{per_value * 1e9:.2f} ns", ""),
            ("RankBoost, a value in a round", f"{per_sum * 1e9:.2f} ns", ""),
            ("tasks that have nothing to do", f"{fixed * 1e3:.1f} ms", ""),
            ("and for each of them", f"{per_task * 1e3:.2f} ms", ""),
            ("a round of RankBoost of 2,400 rows on two workers", f"{hop * 1e3:.2f} ms", ""),
        ]
    )
    print(f"\nsimulated: {N_ROWS:.0e} rows, {LATENCY * 1e3} ms, {BANDWIDTH / 1e9} GB/s")
    rows = []
    for name, simulate in [
        ("a pass of PRank", lambda n: prank(n, per_value, fixed, per_task)),
        ("a round of RankBoost", lambda n: boosting(n, BELOW, per_sum, hop)),
    ]:
        alone = sum(simulate(1))
        for n in [1, 10, 100, 1000]:
            work, sent, dask = simulate(n)
            parts = f"work {work:.3f} s, network {sent:.3f} s, Dask {dask:.3f} s"
            total = work + sent + dask
            times = f"{alone / total:.0f} times: {parts}"
            rows.append((f"{name}, {n} workers", f"{total:.3f} s", times))
    show(rows)


def prank(n, per_value, fixed, per_task):
    """Seconds of a pass on n workers of a shard each: work, network, Dask."""
    model = 16 * W1_FEATURES
    # The model goes from worker to worker, twice as many with each step; all come back to one.
    sent = ceil(log(n + 1, 2)) * (LATENCY + model / BANDWIDTH) + n * model / BANDWIDTH
    # Two tasks a shard: its order and the pass.
    return N_ROWS * W1_VALUES * per_value / n, sent, fixed + 2 * per_task * n


def boosting(n, asked, per_sum, hop):
    """Seconds of a round on n workers of a shard each: work, network, messages."""
    sums = 8 * L_FEATURES * L_BINS
    levels, reached = 0, 1
    while reached < n:
        levels += 1
        reached += asked**levels
    # A question goes down; sums come back up, those of all whom a worker asks to the same one.
    sent = levels * (2 * LATENCY + min(asked, n - 1) * sums / BANDWIDTH)
    return N_ROWS * L_FEATURES * per_sum / n, sent, max(levels, 1) * hop


def prank_value(repeat):
    """Seconds of a pass for each stored value, of processor time."""
    X, y = make_ordinal(sized(60_000, 1_000), random_state=101)
    times = []
    for _ in range(repeat):
        marks = []
        for n in [1, 4]:
            start = time.process_time()
            rc.PRank(max_iter=n, random_state=0).fit(X, y)
            marks.append(time.process_time() - start)
        times.append((marks[1] - marks[0]) / 3 / X.nnz)
    return min(times)


def boosting_value(repeat):
    """Seconds of a round's sums for each value, of processor time."""
    X, y, qid = make_letor(sized(500, 10), random_state=0)
    rows = as_rows(X)
    pairing = make_pairing(Window(rows, y, qid, 0, 0), in_row_order=False)
    docs = pairing.docs
    cuts = ValueGroups.of(rows, docs).cuts(255, False)
    places = np.arange(docs.size, dtype=np.int32)
    shard = StumpShard(GivenBins([(rows, docs, places)], docs.size, None, cuts), pairing, True)
    times = []
    for _ in range(3 * repeat):
        start = time.process_time()
        shard.look((), (48,), True)
        times.append(time.process_time() - start)
    return min(times) / (docs.size * X.shape[1])


def overhead(client, repeat):
    """Seconds of tasks that do nothing: at once, and for each."""
    counts, seconds = [2, 8, 32], []
    for n in counts:
        times = []
        for k in range(10 * repeat):
            keys = [f"nothing-{n}-{k}-{i}" for i in range(n)]
            start = time.perf_counter()
            client.gather(client.map(abs, range(n), key=keys))
            times.append(time.perf_counter() - start)
        seconds.append(np.median(times))
    slope, begin = np.polyfit(counts, seconds, 1)
    return max(float(begin), 0.0), float(slope)


def question(repeat):
    """Seconds of a round of a few rows on two workers: one asks the other, and picks a stump."""
    import dask

    import rankcore.dask as rd

    X, y, qid = make_letor(20, random_state=0)
    X, y, qid = ([dask.delayed(part) for part in np.split(one, 2)] for one in (X, y, qid))

    def fit(n):
        start = time.perf_counter()
        rd.RankBoost(n).fit(X, y, qid=qid, n_shards=2)
        return time.perf_counter() - start

    fit(1)
    return min(seconds_each(fit, sized(200, 5)) for _ in range(repeat))
