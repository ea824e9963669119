"""Drafts of ranking SVMs (squared hinge), solved on inner products of documents in float32.

With fewer documents than features, a Hessian-vector product costs two passes over X, and no sample
of queries is cheaper. The inner products of all documents take one matrix product, which is twice
as fast in float32 as in float64; Newton steps on them cost little. The result is optimal up to
rounding, and starts the steps on X in float64, which compute the gap; usually none is needed.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from math import ceil, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.kernels import as_matrix
from rankcore._core.numbers import Floats
from rankcore._core.threads import for_each, n_threads
from rankcore._ext.rows import Rows
from rankcore.ranking.svm._losses import PairLosses, Terms
from rankcore.ranking.svm._newton import Goal, Solution, Space, Step, minimise, newton_steps
from rankcore.ranking.svm._spaces import MOST_FEATURES, KernelSpace

Floats32 = NDArray[np.float32]

# With the hinge, steps on X would start again at the first width of its smoothing.
LOSS = "squared_hinge"
# Inner products of this many documents cost about 200 Hessian-vector products.
MOST_DOCS = 8192
# Values converted at a time for products of matrices (32 MiB) and with a vector (2 MiB), and number
# of parts of the documents for threads.
CHUNK_VALUES, FEW_VALUES, PARTS = 2**23, 2**18, 8
# Maximum factor between values of C on the path to the given one, and the gap of each. Large C take
# three times as many steps when started from zero.
ASCENT, NEAR = 10.0, 0.1
# Gap of a draft as a share of ``tol``, and the minimum in float32.
SHARE, LEAST_TOL = 0.5, 1e-6


class Draft(KernelSpace):
    """Coefficients of documents with inner products in float32, see `make_draft`."""

    def __init__(
        self, losses: PairLosses, rows: Rows, docs: NDArray[np.int64], products: Floats32
    ) -> None:
        super().__init__(losses, products)
        self._rows, self._docs = rows, docs

    def element(self, coefficients: Floats) -> Floats:
        """Element with given coefficients."""
        return np.stack([coefficients, self._kernel @ coefficients.astype(np.float32)])

    def weights(self, w: Floats) -> Floats:
        """Weights of features of an element, by one pass over X."""
        X, n, d = as_matrix(self._rows), self._docs.size, self._rows.n_features
        found, width = np.empty(d), max(64, FEW_VALUES // n)
        for first in range(0, d, width):
            chunk = X[self._docs, first : first + width].astype(np.float64, copy=False)
            found[first : first + width] = w[0] @ chunk
        return found

    def ascent(self, C: float) -> list[float]:
        """Path of smaller values of C to the given one, ascending."""
        at_zero = self._losses.evaluate(Terms.squared_hinge(C), scores=np.zeros(self._docs.size))
        bend = float(at_zero.curvatures.mean())
        bend *= float(np.diagonal(self._kernel).mean(dtype=np.float64))
        if not bend > 1.0:
            return []
        return np.geomspace(C / bend, C, 1 + ceil(log10(bend) / log10(ASCENT)))[:-1].tolist()


def make_draft(model: Any, losses: PairLosses, rows: Rows, docs: NDArray[np.int64]) -> Draft | None:
    """Draft of some documents; None if it is not faster or float32 overflows."""
    n, d = docs.size, rows.n_features
    if model.loss != LOSS or rows.columns is not None:
        return None
    if not MOST_FEATURES < d >= n <= MOST_DOCS or 4 * n * n > int(model.memory_limit):
        return None
    products = _inner_products(as_matrix(rows), docs, n_threads(model.n_jobs))
    return Draft(losses, rows, docs, products) if np.isfinite(products).all() else None


def _inner_products(X: NDArray[np.floating], docs: NDArray[np.int64], n_jobs: int) -> Floats32:
    """Inner products of all pairs of rows of X; they do not depend on ``n_jobs``. O(n^2 d)."""
    n, d = docs.size, X.shape[1]
    products = np.zeros((n, n), dtype=np.float32)
    width = max(256, CHUNK_VALUES // n)
    edges = np.linspace(0, n, PARTS + 1).astype(int)
    parts = [(i, k) for i, k in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if i < k]
    for start in range(0, d, width):
        chunk = X[docs, start : start + width].astype(np.float32, copy=False)

        def add(part: tuple[int, int], chunk: NDArray[np.float32] = chunk) -> None:
            i, k = part
            products[i:k, :i] += chunk[i:k] @ chunk[:i].T
            products[i:k, i:k] += chunk[i:k] @ chunk[i:k].T

        for_each(add, parts[::-1], n_jobs)  # the longest first
    for i, k in parts:
        products[:i, i:k] = products[i:k, :i].T
    return products


def drafted_steps(
    model: Any, draft: Draft, space: Space, begun: Floats | None
) -> Generator[tuple[Floats, Step], bool | None, tuple[Solution, Floats]]:
    """As `newton_steps`, on a draft first; ``begun`` is the draft's solution for a smaller C.

    Also returns the draft's solution. Steps for smaller values of C are not yielded.
    """
    goal = Goal(model.C, LOSS, model.tol, int(model.max_iter))
    w = begun
    if w is None:
        w = draft.zero()
        for smaller in draft.ascent(goal.C):
            w = minimise(newton_steps(goal._replace(C=smaller, tol=NEAR), draft, w)).w
    near = goal._replace(tol=max(SHARE * goal.tol, LEAST_TOL))
    drafted = yield from newton_steps(near, draft, w)
    stopped = drafted.outcome == "stopped"
    left = goal._replace(max_iter=0 if stopped else goal.max_iter - drafted.n_iter)
    found = yield from newton_steps(left, space, draft.weights(drafted.w))
    outcome = "stopped" if stopped else found.outcome
    return replace(found, n_iter=drafted.n_iter + found.n_iter, outcome=outcome), drafted.w
