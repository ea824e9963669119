"""Speed-up by threads: two beside one by the clock, and the bound for more of them.

The share is of one thread's time in the functions that threads divide. With n threads the work
takes at least ``1 - share + share / n`` of that time (Amdahl's law), which gives the bounds. Run it
on a machine without other work: below 95 % of a core, other programs took a part of it.
"""

from time import perf_counter, process_time
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import rankcore as rc
from benchmarks.limits import N_L
from benchmarks.measure import machine, sized
from benchmarks.metrics import judged
from rankcore._core.threads import Threads
from rankcore.datasets import make_letor, make_ordinal

MORE = (2, 4, 8, 16)


def tasks():
    """Work by name, as functions of the number of threads that return what was found."""
    X, y = make_ordinal(n_samples=sized(20_000, 500))
    D, grades, qid = make_letor(N_L // 120 * 5 // 4)
    D, grades, qid = D[:N_L].astype(np.float32), grades[:N_L], qid[:N_L]
    noisy = D[:100_000, :5].sum(axis=1)
    noisy += 1e-3 * np.arange(len(noisy)) % 7
    ranks = np.digitize(noisy, np.quantile(noisy, np.arange(1, 10) / 10))
    few, first = make_letor(sized(40, 5), 100, random_state=0), slice(500 * 120)
    labels, scores = judged()
    numbers = np.repeat(np.arange(len(labels)), labels.shape[1])
    levels = labels.ravel().astype(np.float64)
    return {
        "OAPBPM, 100 members": lambda n: (
            rc.OAPBPM(100, random_state=0, n_jobs=n).fit(X, y).project(X)
        ),
        "100 rounds of stumps": lambda n: (
            rc.RankBoost(100, n_jobs=n).fit(D, grades, qid=qid).predict(D[:1000])
        ),
        "20 trees of 31 leaves": lambda n: (
            rc.RankBoost(20, max_leaf_nodes=31, n_jobs=n).fit(D, grades, qid=qid).predict(D[:1000])
        ),
        "OrdinalBoost, 20 rounds, 10 ranks": lambda n: (
            rc.OrdinalBoost(20, n_jobs=n).fit(D[:100_000, :50], ranks).predict_proba(D[:1000, :50])
        ),
        "RankSVM": lambda n: (
            rc.RankSVM(random_state=0, n_jobs=n)
            .fit(D[first], grades[first], qid=qid[first])
            .predict(D[:1000])
        ),
        "KernelPRank, 4,000 rows": lambda n: (
            rc.KernelPRank(random_state=0, n_jobs=n).fit(few[0], few[1]).project(few[0])
        ),
        "ndcg@10 of 10 million": lambda n: rc.metrics.ndcg_score(
            levels, scores.ravel(), qid=numbers, k=10, n_jobs=n
        ),
    }


def two_beside_one(task, repeat):
    """Seconds of one thread, of two, and the share of a core that one had; the same bits."""
    took, found, cores = {1: [], 2: []}, {}, []
    for _ in range(repeat):
        for n in took:
            start, before = perf_counter(), process_time()
            found[n] = task(n)
            took[n].append(perf_counter() - start)
            if n == 1:
                cores.append((process_time() - before) / took[1][-1])
    assert np.array_equal(found[1], found[2])
    return min(took[1]), min(took[2]), max(cores)


def share(task):
    """Share of one thread's time that more threads would divide."""
    divided = [0.0]

    def timed(function):
        def run(*args):
            start = perf_counter()
            found = function(*args)
            divided[0] += perf_counter() - start
            return found

        return run

    with mock.patch.object(Threads, "map", timed(Threads.map)):
        start = perf_counter()
        task(1)
        return divided[0] / (perf_counter() - start)


def run(repeat):
    """Measure and print."""
    print(machine())
    heads = " | ".join(f"bound, {n}" for n in MORE)
    print(f"\n| work | one thread, s | two, times as fast | share | {heads} | of a core |")
    print("|---|" + "---|" * (len(MORE) + 4))
    with threadpool_limits(1):
        for name, task in tasks().items():
            one, two, core = two_beside_one(task, min(repeat, 4))
            part = share(task)
            bounds = " | ".join(f"{1 / (1 - part + part / n):.1f}" for n in MORE)
            print(
                f"| {name} | {one:.2f} | {one / two:.2f} | {part:.0%} | {bounds} | {core:.0%} |",
                flush=True,
            )
