"""How the cost of each learner grows with rows, features and ranks: default fits, one thread.

Seconds are of the processor, from one fit each; the exponent is that of a power of the size between
the last two sizes, 1 where the cost is proportional. A size that would take more than ``CAP``
seconds by the step before it, or more memory than ``memory_limit`` allows, is left out. Bytes are
the most that a fit of the second size held beyond its rows.
"""

from functools import partial
from math import log
from time import process_time

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import rankcore as rc
from benchmarks.measure import machine, peak_bytes, sized

CAP = 120.0
D, IN_QUERY = 10, 100
ROWS = sized((1_000, 10_000, 100_000, 1_000_000, 10_000_000), (200, 400))
FEATURES = sized((1_000, 10_000, 100_000, 1_000_000), (1_000, 2_000))
RANKS = sized((2, 10, 100), (2, 4))
N_OTHERS = sized(20_000, 400)  # rows where another size grows
SEEDED = {"random_state": 0}

ORDINAL = {
    "PRank": lambda: rc.PRank(**SEEDED),
    "WidrowHoff": lambda: rc.WidrowHoff(**SEEDED),
    "MulticlassPerceptron": lambda: rc.MulticlassPerceptron(**SEEDED),
    "CuSumRank": lambda: rc.CuSumRank(**SEEDED),
    "VotedPRank": lambda: rc.VotedPRank(**SEEDED),
    "OAPBPM": lambda: rc.OAPBPM(**SEEDED),
    "OAPBagging": lambda: rc.OAPBagging(**SEEDED),
    "OAPVoting": lambda: rc.OAPVoting(**SEEDED),
    "CalibratedOrdinal(PRank)": lambda: rc.CalibratedOrdinal(rc.PRank(**SEEDED)),
    "OrdinalBoost": lambda: rc.OrdinalBoost(),
    "KernelPRank": lambda: rc.KernelPRank(**SEEDED),
    "KernelPRank, budget 500": lambda: rc.KernelPRank(budget=500, **SEEDED),
    "KernelCuSumRank": lambda: rc.KernelCuSumRank(**SEEDED),
    "KernelOAPBPM": lambda: rc.KernelOAPBPM(**SEEDED),
}
RANKING = {
    "PairwisePerceptron": lambda: rc.PairwisePerceptron(**SEEDED),
    "RankSVM": lambda: rc.RankSVM(**SEEDED),
    "RankSVM, rbf": lambda: rc.RankSVM(kernel="rbf", **SEEDED),
    "RankBoost, 300 stumps": lambda: rc.RankBoost(300),
    "RankBoost, 100 trees": lambda: rc.RankBoost(100, max_leaf_nodes=31),
}
BIPARTITE = {"BipartiteRankBoost": lambda: rc.BipartiteRankBoost()}


def dense(n, k=5):
    """Rows of ``D`` features, ranks of a linear score with noise, and queries."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D), dtype=np.float32)
    score = X @ rng.normal(size=D) + 3 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score[:100_000], np.arange(1, k) / k))
    return X, y, np.repeat(np.arange(n // IN_QUERY), IN_QUERY)


def sparse(d, n=N_OTHERS, stored=20):
    """Rows of ``stored`` values in ``d`` columns, of which small ones are more frequent."""
    rng = np.random.default_rng(0)
    columns = (d * rng.random((n, stored)) ** 2).astype(np.int32)
    starts = np.arange(0, n * stored + 1, stored)
    X = sp.csr_array((np.ones(n * stored), columns.ravel(), starts), shape=(n, d))
    X.sum_duplicates()
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))
    return X, y, np.repeat(np.arange(n // IN_QUERY), IN_QUERY)


def learners():
    """Name, learner, how labels are taken, and whether it takes queries."""
    for name, make in ORDINAL.items():
        yield name, make, None, False
    for name, make in RANKING.items():
        yield name, make, None, True
    for name, make in BIPARTITE.items():
        yield name, make, 2, False


def grow(title, sizes, data):
    """Print a table of seconds by size, the exponent of the last step, and bytes a row."""
    print(f"\n| {title} | {' | '.join(f'{size:,}' for size in sizes)} | exponent | bytes a row |")
    print("|---|" + "---|" * (len(sizes) + 2))
    for name, make, k, queries in learners():
        took, memory = [], 0.0
        for size in sizes:
            if took and took[-1] * (took[-1] / took[-2] if len(took) > 1 else 1) > CAP:
                break
            X, y, qid = data(size, k)
            fit = partial(make().fit, X, y, **({"qid": qid} if queries else {}))
            try:
                if not took:
                    fit()  # what is imported is not of the fit
                elif len(took) == 1:
                    memory = peak_bytes(fit) / len(y)
                start = process_time()
                fit()
            except ValueError as error:
                if "memory_limit" not in str(error):
                    raise
                break
            took.append(process_time() - start)
        cells = [f"{seconds:.2f}" for seconds in took] + [""] * (len(sizes) - len(took))
        exponent = ""
        if len(took) > 1:
            step = log(sizes[len(took) - 1] / sizes[len(took) - 2])
            exponent = f"{log(took[-1] / took[-2]) / step:.2f}"
        held = f"{memory:,.0f}" if memory else ""
        print(f"| `{name}` | {' | '.join(cells)} | {exponent} | {held} |", flush=True)


def run(repeat):
    """Measure and print."""
    print(machine())
    with threadpool_limits(1):
        grow("rows, 10 dense features", ROWS, lambda n, k: dense(n, k or 5))
        grow(f"features, {N_OTHERS:,} rows of 20 values", FEATURES, lambda d, k: two(sparse(d), k))
        grow(
            f"ranks, {N_OTHERS:,} rows of 10 features",
            RANKS,
            lambda ranks, k: dense(N_OTHERS, k or ranks),
        )


def two(case, k):
    """Return the case, with two classes if ``k`` is 2."""
    X, y, qid = case
    return X, (y > 2 if k == 2 else y), qid
