"""Scores of the pairs that a pairwise perceptron compares, by Gram matrices or on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.pairs import WAYS, PairData
from rankcore._ext.rows import Rows
from rankcore.ranking._pairs import Pairing

# A Gram matrix of more documents than this (128 MiB) is not worth its room.
GRAM_DOCS = 4096
# More values than this (32 MiB) of a query are not laid out.
PACKED_VALUES = 2**22
# Documents are padded to whole vectors of this many.
PANEL = 8


def bind_pairs(model: Any, pairing: Pairing, rows: Rows, seed: int, passes: int = 1) -> PairData:
    """The pairs and rows as the kernel takes them, with room for Gram matrices that are kept.

    Without ``shuffle``, pairs come in order; otherwise they are walked through, by ``seed``.
    Nothing but time depends on ``memory_limit``, the bytes that are kept, and the passes.
    """
    lexicographic = not model.shuffle
    n_docs = np.diff(pairing.bounds)
    ways = _ways(pairing, n_docs, rows, model.solver, passes, lexicographic)
    cached = np.full(n_docs.size, -1, dtype=np.int64)
    size = 0
    if passes > 1:
        sizes = np.where(ways == WAYS["gram"], (-(-n_docs // PANEL) * PANEL) ** 2, 0)
        stops = np.cumsum(sizes)
        fits = (sizes > 0) & (stops <= int(model.memory_limit) // 8)
        cached[fits] = (stops - sizes)[fits]
        size = int(stops[fits].max(initial=0))
    offsets, winners, losers, weights = pairing.listed or (None, None, None, None)
    return PairData(
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
        return np.full(n_docs.size, WAYS[solver], dtype=np.uint8)
    # Inner products: half of n^2 for a Gram matrix, up to two a pair and pass without. Those of
    # dense rows are made in blocks, eight times as fast.
    gram = n_docs.astype(np.float64) ** 2 / 2 / (8 if dense else 1)
    lazy = 2.0 * pairing.n_pairs * min(passes, 4)
    worth = (gram <= lazy) & (n_docs <= GRAM_DOCS)
    ways = np.where(worth, WAYS["gram"], WAYS["lazy"])
    if dense and not lexicographic:
        # A mistake costs n_docs with a Gram matrix; here it costs n_features, as does a pair.
        packed = (n_docs > 2 * rows.n_features) & (pairing.n_pairs > 4 * n_docs)
        packed &= n_docs * (rows.n_features + PANEL) <= PACKED_VALUES
        ways[packed] = WAYS["packed"]
    return ways.astype(np.uint8)
