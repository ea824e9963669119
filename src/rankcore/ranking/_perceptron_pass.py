"""Passes of pairwise perceptrons over queries, with Gram matrices or scores on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.state import zeros_by_line
from rankcore._ext import pairs as kernels
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.rows import Rows
from rankcore.progress import Progress, report
from rankcore.ranking._pairs import Pairing
from rankcore.ranking._perceptron_state import PairwiseState

# Pairs to visit, or equivalent work, between checks for signals: some milliseconds.
BUDGET = 500_000
# Maximum number of documents of a Gram matrix (128 MiB).
GRAM_DOCS = 4096
# Maximum number of values of a query to copy (32 MiB).
PACKED_VALUES = 2**22
# Documents are padded to a multiple of this.
PANEL = 8


def run_pass(
    model: Any,
    data: kernels.PairData,
    pairing: Pairing,
    sequence: NDArray[np.int64],
    quality: Callable[[Any], float] | None,
    passes: tuple[int, int] = (1, 1),
) -> None:
    """Visit queries of a pairing in the order of ``sequence``, and log figures in the model.

    ``quality`` is the criterion for members of the committee, if any. Raises ValueError if weights,
    scores or qualities are not finite, or hypotheses require more than ``memory_limit``.
    """
    state: PairwiseState = model._state
    with state.scaled():
        n_queries = pairing.n_pairs.size
        steps = pairing.finite_steps(model.balance == "query")
        units = np.ones(n_queries) if model.count == "pair" else 1.0 / pairing.n_pairs
        record = state.log[-1]
        before, base = state.tally(), list(record)
        position, bound = 0, state.bind(model.margin)
        while True:
            raise_signals()
            position, outcome = kernels.learn(
                bound, data, sequence, position, steps, units, state.bar(), BUDGET
            )
            if outcome == kernels.OUTCOMES["candidate"]:
                weights = np.empty(state.weights.size)
                count = kernels.candidate(bound, data, weights)
                state.offer(weights, count, quality)
                continue
            if outcome == kernels.OUTCOMES["full"]:
                state.grow(int(model.memory_limit))
                bound = state.bind(model.margin)
                continue
            if outcome == kernels.OUTCOMES["overflowed"]:
                raise ValueError(
                    "scores overflowed: X or sample_weight is too large; scale X, for "
                    "example with sklearn.preprocessing.StandardScaler"
                )
            now = state.tally()
            record[:3] = [base[k] + now[k] - before[k] for k in range(2)] + [now[1] + 1]
            record[3] = base[3] + position
            share = record[1] / max(record[0], 1)
            what, total = "share of mistakes", sequence.size
            report(Progress(*passes, position, total, share, what, "queries"))
            if outcome == kernels.OUTCOMES["reached"]:
                break
    if not (np.isfinite(state.weights).all() and np.isfinite(state.sums).all()):
        raise ValueError(
            "weights overflowed: X or sample_weight is too large; scale X, for "
            "example with sklearn.preprocessing.StandardScaler"
        )


def bind_pairs(
    model: Any, pairing: Pairing, rows: Rows, seed: int, passes: int = 1
) -> kernels.PairData:
    """Pairs and rows for the kernel, with a cache of Gram matrices.

    Pairs are visited in order or, with ``shuffle``, in the random order of ``seed``. The number of
    passes and ``memory_limit``, the size of the cache, change only the time.
    """
    lexicographic = not model.shuffle
    n_docs = np.diff(pairing.bounds)
    ways = _ways(pairing, n_docs, rows, model._solver, passes, lexicographic)
    cached = np.full(n_docs.size, -1, dtype=np.int64)
    size = 0
    if passes > 1:
        sizes = np.where(ways == kernels.WAYS["gram"], (-(-n_docs // PANEL) * PANEL) ** 2, 0)
        stops = np.cumsum(sizes)
        fits = (sizes > 0) & (stops <= int(model.memory_limit) // 8)
        cached[fits] = (stops - sizes)[fits]
        size = int(stops[fits].max(initial=0))
    offsets, winners, losers, weights = pairing.listed or (None, None, None, None)
    return kernels.PairData(
        rows,
        pairing.docs,
        pairing.bounds,
        pairing.labels,
        pairing.doc_weights,
        offsets,
        winners,
        losers,
        weights,
        pairing.n_pairs,
        ways,
        cached,
        zeros_by_line((size,)),
        lexicographic,
        seed,
    )


def _ways(
    pairing: Pairing,
    n_docs: NDArray[np.int64],
    rows: Rows,
    solver: str,
    passes: int,
    lexicographic: bool,
) -> NDArray[np.uint8]:
    """The cheapest way to compute scores for each query; the same on every machine."""
    dense = rows.columns is None
    if solver == "packed" and not dense:
        solver = "lazy"
    if solver != "auto":
        return np.full(n_docs.size, kernels.WAYS[solver], dtype=np.uint8)
    # Inner products: n^2 / 2 for a Gram matrix, otherwise up to two per pair and pass. Those of
    # dense rows are computed in blocks, eight times as fast.
    gram = n_docs.astype(np.float64) ** 2 / 2 / (8 if dense else 1)
    lazy = 2.0 * pairing.n_pairs * min(passes, 4)
    worth = (gram <= lazy) & (n_docs <= GRAM_DOCS)
    ways = np.where(worth, kernels.WAYS["gram"], kernels.WAYS["lazy"])
    if dense and not lexicographic:
        # A mistake costs n_docs with a Gram matrix; here mistakes and pairs cost n_features.
        packed = (n_docs > 2 * rows.n_features) & (pairing.n_pairs > 4 * n_docs)
        packed &= n_docs * (rows.n_features + PANEL) <= PACKED_VALUES
        ways[packed] = kernels.WAYS["packed"]
    return ways.astype(np.uint8)
