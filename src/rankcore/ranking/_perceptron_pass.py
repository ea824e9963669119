"""One pass of a pairwise perceptron over its queries, by Gram matrices or scores on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import pairs as kernels
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.rows import Rows
from rankcore.progress import Progress, report
from rankcore.ranking._pairs import Pairing
from rankcore.ranking._perceptron_state import PairwiseState

# Pairs to look at, or as much other work, between two looks at pending signals: some milliseconds.
BUDGET = 500_000
# A Gram matrix of more documents than this (128 MiB) is not worth its room.
GRAM_DOCS = 4096
# More values than this (32 MiB) of a query are not laid out.
PACKED_VALUES = 2**22
# Documents are padded to whole vectors of this many.
PANEL = 8


def run_pass(
    model: Any,
    data: kernels.PairData,
    pairing: Pairing,
    sequence: NDArray[np.int64],
    quality: Callable[[Any], float] | None,
    passes: tuple[int, int] = (1, 1),
) -> None:
    """Visit queries of a pairing in the order of ``sequence``, and log the figures in the model.

    ``quality`` is the criterion for members of the committee, if any. Raises ValueError if weights,
    scores or its values are not finite, or if the hypotheses need more than ``memory_limit``.
    """
    state: PairwiseState = model._state
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
                "the scores overflowed: X or its sample weights are too large; scale X, for "
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
            "the weights overflowed: X or its sample weights are too large; scale X, for "
            "example with sklearn.preprocessing.StandardScaler"
        )


def bind_pairs(
    model: Any, pairing: Pairing, rows: Rows, seed: int, passes: int = 1
) -> kernels.PairData:
    """The pairs and rows as the kernel takes them, with room for Gram matrices that are kept.

    Without ``shuffle``, pairs come in order; otherwise they are walked through, by ``seed``.
    Nothing but time depends on ``memory_limit``, the bytes that are kept, and the passes.
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
        np.empty(size),
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
    """The cheapest solver for each query; the same on every machine."""
    dense = rows.columns is None
    if solver == "packed" and not dense:
        solver = "lazy"
    if solver != "auto":
        return np.full(n_docs.size, kernels.WAYS[solver], dtype=np.uint8)
    # Inner products: half of n^2 for a Gram matrix, up to two a pair and pass without. Those of
    # dense rows are made in blocks, eight times as fast.
    gram = n_docs.astype(np.float64) ** 2 / 2 / (8 if dense else 1)
    lazy = 2.0 * pairing.n_pairs * min(passes, 4)
    worth = (gram <= lazy) & (n_docs <= GRAM_DOCS)
    ways = np.where(worth, kernels.WAYS["gram"], kernels.WAYS["lazy"])
    if dense and not lexicographic:
        # A mistake costs n_docs with a Gram matrix; here it costs n_features, as does a pair.
        packed = (n_docs > 2 * rows.n_features) & (pairing.n_pairs > 4 * n_docs)
        packed &= n_docs * (rows.n_features + PANEL) <= PACKED_VALUES
        ways[packed] = kernels.WAYS["packed"]
    return ways.astype(np.uint8)
