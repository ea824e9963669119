"""Ranking by preferences: cost of sorting beside NumPy, and of waiting for a judge."""

import asyncio
from dataclasses import replace
from time import perf_counter

import numpy as np

from benchmarks.measure import machine, medians, show
from rankcore.preference import (
    Indexed,
    PreferenceRanker,
    from_scores,
    quicksort_rank,
    rate,
    sort_by_degree,
)
from rankcore.preference.plackett_luce import Choices, fit_choices
from rankcore.preference.rating import Rating

N = 1_000_000
N_MATRIX = 5_000
LATENCY, CONCURRENCY = 0.05, 16


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    show(
        [
            *sorting(min(repeat, 5)),
            *degrees(repeat),
            *asking(min(repeat, 5)),
            *overhead(repeat),
            *ratings(repeat),
        ]
    )


def sorting(repeat):
    """QuickSort of scores, beside numpy.argsort of them."""
    rng = np.random.default_rng(0)
    scores, items = rng.random(N), np.arange(N)
    levels = np.floor(5 * scores)  # with many ties, which are drawn
    softly = Indexed(lambda i, j: 1 / (1 + np.exp(30 * (scores[j] - scores[i]))))
    seconds = medians(
        repeat,
        argsort=lambda: np.argsort(scores),
        scores=lambda: quicksort_rank(items, from_scores(scores), random_state=0),
        levels=lambda: quicksort_rank(items, from_scores(levels), random_state=0),
        softly=lambda: quicksort_rank(items, softly, random_state=0),
        top=lambda: quicksort_rank(items, from_scores(scores), top_k=100, random_state=0),
    )
    unit = seconds["argsort"]
    rows = [("numpy.argsort of 1,000,000 scores", f"{1e3 * unit:.0f} ms", "")]
    for name, what, target in [
        ("scores", "QuickSort of all, scores as preferences", "at most 15x"),
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
    for dtype, target in [(np.float64, "at most 1.5x"), (np.float32, "")]:
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
            what = f"100 items, judge of 50 ms, 16 at a time, {name}, {method}"
            rows.append((what, f"{np.median(ratios):.2f}x rounds and calls", "at most 1.3x"))
    return rows


def overhead(repeat):
    """Overhead of a call besides the preference itself."""
    items = np.random.default_rng(0).permutation(2000).tolist()
    ranker = PreferenceRanker(lambda u, v: u < v, random_state=0, cache=False)
    seconds = medians(min(repeat, 5), rank=lambda: ranker.rank(items))["rank"]
    return [("a call of a Python function", f"{1e6 * seconds / ranker.n_calls_:.1f} us", "")]


def ratings(repeat):
    """Refitting ratings, choosing the next pairs, and rating a large table."""
    rng = np.random.default_rng(0)
    n, m = 1000, 20_000
    theta = 1.5 * rng.standard_normal(n)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    won = rng.random(m) < 1 / (1 + np.exp(theta[j] - theta[i]))
    items = np.column_stack([np.where(won, i, j), np.where(won, j, i)])
    first = np.where(won, 0, 1)
    before = fit_choices(n, Choices(items[:-64], np.ones(m - 64), first[:-64]), scale=1.5)
    method = Rating(np.arange(n), rng, batch=64)
    method._take([(a, b, 0) for a, b in items.tolist()], [1.0] * m)
    method.ratings()._posterior.covariance  # noqa: B018  what choosing reads
    large, many = 10_000, 1_000_000
    a = rng.integers(0, large, many)
    b = (a + rng.integers(1, large, many)) % large
    seconds = medians(
        min(repeat, 5),
        refit=lambda: fit_choices(
            n, Choices(items, np.ones(m), first), scale=1.5, start=before, tolerance=1e-6
        ),
        covariance=lambda: replace(before).covariance,  # of a copy, which has not kept it
        choose=method._next,
        rate=lambda: rate(a, b),
    )
    return [
        (
            "refit 1,000 ratings, 20,000 answers, 64 new",
            f"{1e3 * seconds['refit']:.0f} ms",
            "50 ms",
        ),
        ("their covariance", f"{1e3 * seconds['covariance']:.0f} ms", ""),
        ("choose the next 64 pairs", f"{1e3 * seconds['choose']:.0f} ms", "20 ms"),
        ("rate 1,000,000 comparisons of 10,000 items", f"{seconds['rate']:.1f} s", ""),
    ]
