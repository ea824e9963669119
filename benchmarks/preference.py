"""Ranking by preferences: cost of sorting beside NumPy, and of waiting for a judge."""

import asyncio
from time import perf_counter, process_time

import numpy as np

from benchmarks.measure import machine, medians, show, sized
from rankcore.preference import (
    Indexed,
    PreferenceRanker,
    quicksort_rank,
    rate,
    sort_by_degree,
)

N = sized(1_000_000, 10_000)
N_MATRIX = sized(5_000, 200)
LATENCY, CONCURRENCY = sized(0.05, 0.001), 16


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    show(
        [
            *sorting(min(repeat, 5)),
            *degrees(repeat),
            *asking(min(repeat, 5)),
            *overhead(),
            *ratings(repeat),
        ]
    )


def sorting(repeat):
    """QuickSort of scores, beside numpy.argsort of them."""
    rng = np.random.default_rng(0)
    scores, items = rng.random(N), np.arange(N)
    levels = np.floor(5 * scores)  # with many ties, which are drawn
    hard = Indexed(lambda i, j: scores[i] > scores[j])
    tied = Indexed(lambda i, j: (levels[i] > levels[j]) + 0.5 * (levels[i] == levels[j]))
    softly = Indexed(lambda i, j: 1 / (1 + np.exp(30 * (scores[j] - scores[i]))))
    seconds = medians(
        repeat,
        argsort=lambda: np.argsort(scores),
        scores=lambda: quicksort_rank(items, hard, random_state=0),
        levels=lambda: quicksort_rank(items, tied, random_state=0),
        softly=lambda: quicksort_rank(items, softly, random_state=0),
        top=lambda: quicksort_rank(items, hard, top_k=100, random_state=0),
    )
    unit = seconds["argsort"]
    rows = [(f"numpy.argsort of {N:,} scores", f"{1e3 * unit:.0f} ms", "")]
    for name, what, target in [
        ("scores", "QuickSort of all, scores as preferences", "about 30x with AVX-512"),
        ("levels", "QuickSort of all, five levels of scores", ""),
        ("softly", "QuickSort of all, degrees in between", ""),
        ("top", "QuickSort of the first 100", ""),
    ]:
        rows.append((what, f"{seconds[name] / unit:.1f}x", target))
    return rows


def degrees(repeat):
    """Sort by degree of a matrix, beside its column sums."""
    rng = np.random.default_rng(0)
    items = np.arange(N_MATRIX)
    rows = []
    for dtype, target in [(np.float64, "about 6x"), (np.float32, "")]:
        matrix = rng.random((N_MATRIX, N_MATRIX)).astype(dtype)
        seconds = medians(
            repeat,
            sums=lambda m=matrix: m.sum(axis=0),
            degree=lambda m=matrix: sort_by_degree(items, m),
        )
        ratio = seconds["degree"] / seconds["sums"]
        what = f"sort by degree of {N_MATRIX:,} items, {np.dtype(dtype)}, to column sums"
        rows.append((what, f"{ratio:.2f}x", target))
    return rows


def asking(repeat):
    """Return wall time with a slow judge, relative to rounds and calls times its delay."""
    items = np.random.default_rng(0).permutation(100).tolist()

    async def in_a_loop(u, v):
        await asyncio.sleep(LATENCY)
        return u < v

    def in_threads(u, v):
        from time import sleep

        sleep(LATENCY)
        return u < v

    rows = []
    for name, judge in [("event loop", in_a_loop), ("threads", in_threads)]:
        for method, top_k in [("quicksort", None), ("halving", 10)]:
            ratios = []
            for seed in range(repeat):
                ranker = PreferenceRanker(
                    judge, method=method, top_k=top_k, concurrency=CONCURRENCY, random_state=seed
                )
                start = perf_counter()
                ranker.rank(items)
                seconds = perf_counter() - start
                calls = ranker.n_calls_ / CONCURRENCY
                ratios.append(seconds / (LATENCY * (ranker.n_rounds_ + calls)))
            what = f"100 items, judge of {1e3 * LATENCY:.0f} ms, 16 at a time, {name}, {method}"
            rows.append((what, f"{np.median(ratios):.2f}x rounds and calls", "at most 1.3x"))
    return rows


def overhead():
    """Overhead of a call besides the preference itself."""
    items = np.random.default_rng(0).permutation(2000).tolist()
    ranker = PreferenceRanker(lambda u, v: u < v, random_state=0)
    start = perf_counter()
    ranker.rank(items)
    seconds = perf_counter() - start
    return [("a call of a Python function", f"{1e6 * seconds / ranker.n_calls_:.1f} us", "")]


def ratings(repeat):
    """Ratings of a judge that errs, and of a large table of games."""
    places = np.random.default_rng(0).permutation(60)
    n, m = sized((1000, 1_000_000), (100, 10_000))
    rng = np.random.default_rng(0)
    names = np.array([f"model-{k:04}" for k in range(n)])
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    winners, losers = names[i].tolist(), names[j].tolist()

    def judged():
        noise = np.random.default_rng(1)
        ranker = PreferenceRanker(
            lambda u, v: (places[u] < places[v]) ^ (noise.random() < 0.2),
            max_calls=600,
            random_state=0,
        )
        ranker.rank(list(range(60)))

    seconds = []
    for work in (judged, lambda: rate(winners, losers)):
        spent = []
        for _ in range(min(repeat, 5)):
            start = process_time()
            work()
            spent.append(process_time() - start)
        seconds.append(float(np.median(spent)))
    return [
        ("60 items, 600 answers, processor", f"{seconds[0]:.2f} s", "about 1.2 s"),
        (f"rate {m:,} games of {n:,} names", f"{seconds[1]:.2f} s", "at most 0.6 s"),
    ]
