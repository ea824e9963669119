"""Kernel learners: 20,000 x 54 dense rows, rbf; and a budget over a stream of a million rows."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

import rankcore as rc
from benchmarks.measure import machine, peak_bytes, processor_seconds, show, sized
from rankcore.ordinal.kernel import dual

N, N_TEST, D, GAMMA = sized(20_000, 400), sized(4_000, 200), 54, 0.02
STREAM, CHUNK, BUDGET = sized(1_000_000, 2_000), sized(10_000, 500), 100


def run(repeat: int) -> None:
    """Measure and print."""
    repeat = min(repeat, 3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = np.digitize(3 * np.sin(X[:, :6]).sum(axis=1) + 0.3 * rng.normal(size=N), [-4, 0, 4])
    print(machine())
    model = rc.KernelPRank.published(gamma=GAMMA).fit(X, y)
    support = model.support_
    print(f"{N} x {D} dense rows, 4 ranks, rbf, {support.size} support vectors\n")

    def peer() -> None:
        vectors, coefs = model.support_vectors_, model.dual_coef_[0]
        for start in range(0, N_TEST, 256):
            rbf_kernel(X[start : min(start + 256, N_TEST)], vectors, gamma=GAMMA) @ coefs

    ensemble = rc.KernelOAPBPM.published(gamma=GAMMA, random_state=0)
    seconds = processor_seconds(
        repeat,
        fit=lambda: rc.KernelPRank.published(gamma=GAMMA).fit(X, y),
        rows=lambda: by_rows(X, y),
        numpy=lambda: numpy_blocks(X, support),
        oap=lambda: ensemble.fit(X, y),
        float32=lambda: rc.KernelPRank.published(gamma=GAMMA).fit(X.astype(np.float32), y),
        predict=lambda: model.project(X[:N_TEST]),
        peer=peer,
    )

    def ratio(one: str, other: str) -> str:
        return f"{seconds[one] / seconds[other]:.2f}x"

    fits = [peak_bytes(partial(model.project, X[:n])) / 2**20 for n in (N_TEST // 4, N_TEST)]
    show(
        [
            ("fit", f"{seconds['fit']:.2f} s", ""),
            ("row by row / by blocks", ratio("rows", "fit"), "at least 8"),
            ("fit / NumPy's kernel blocks alone", ratio("fit", "numpy"), "at most 2"),
            ("100 members / one", ratio("oap", "fit"), "at most 4"),
            ("    support vectors of the 100", str(ensemble.support_.size), ""),
            ("float32 / float64", ratio("float32", "fit"), ""),
            (
                "predict / rbf_kernel(X, S) @ alpha by blocks",
                ratio("predict", "peer"),
                "at most 1.3",
            ),
            (
                f"memory to predict {N_TEST // 4} and {N_TEST} rows",
                f"{fits[0]:.2f}, {fits[1]:.2f} MB",
                "",
            ),
        ]
    )
    print(f"\nA stream of {STREAM} rows of 10 features, budget {BUDGET}:")
    for policy in ["oldest", "random", "forgetron", "projectron"]:
        show([(policy, *stream(policy))])


def by_rows(X: Any, y: Any) -> None:
    """Fit with blocks of one row."""
    block, dual.BLOCK_ROWS = dual.BLOCK_ROWS, 1
    rows, dual.LEAST_ROWS = dual.LEAST_ROWS, 1
    try:
        rc.KernelPRank.published(gamma=GAMMA).fit(X, y)
    finally:
        dual.BLOCK_ROWS, dual.LEAST_ROWS = block, rows


def numpy_blocks(X: Any, support: Any) -> None:
    """Compute the kernel values of each block with its support vectors."""
    vectors, norms = X[support], (X**2).sum(axis=1)
    for start in range(0, N, dual.BLOCK_ROWS):
        n = int(np.searchsorted(support, start))
        if n:
            values = X[start : start + dual.BLOCK_ROWS] @ vectors[:n].T
            values *= -2
            values += norms[start : start + dual.BLOCK_ROWS, np.newaxis]
            values += norms[support[:n]]
            np.maximum(values, 0, out=values)
            values *= -GAMMA
            np.exp(values, out=values)


def stream(policy: str) -> tuple[str, str]:
    """Return bytes of the model along a stream, and the cost of the stream."""
    rng = np.random.default_rng(1)
    model = rc.KernelPRank.published(gamma=0.1, budget=BUDGET, budget_policy=policy, random_state=0)
    sizes = {}

    def learn() -> None:
        for start in range(0, STREAM, CHUNK):
            X = rng.normal(size=(CHUNK, 10))
            y = np.digitize(2 * np.sin(X[:, :3]).sum(axis=1), [-2, 0, 2])
            model.partial_fit(X, y, classes=range(4))
            size = sum(array.nbytes for array in model._state.pool.values())
            sizes[start + CHUNK] = size

    seconds = processor_seconds(1, stream=learn)["stream"]
    first, last = sizes[CHUNK], sizes[STREAM]
    loss = model.history_["rank_loss"][0]
    return (
        f"{first} bytes after {CHUNK}, {last} after {STREAM}",
        f"{seconds:.0f} s, loss {loss:.3f}",
    )
