"""Drafts of ranking SVMs (squared hinge): few long rows are solved on inner products in float32.

With fewer documents than features a product with second derivatives costs two passes over X, and
there is no sample of queries that says more than all of them. The inner products of the documents
take one product of matrices, in float32 at twice the speed of float64; Newton's steps on them then
cost next to nothing. Where they end, the model is within rounding of its optimum, and steps on X in
float64 go on from there: as a rule none is left to take, and the gap is that of X.
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

# Of the hinge, steps on X would begin at the first width of its rounding again.
LOSS = "squared_hinge"
# Inner products of this many documents take as long as some 200 products with second derivatives.
MOST_DOCS = 8192
# Values of a product of matrices (32 MiB) and of one with a vector (2 MiB) that are converted at a
# time, and parts of the documents that threads share.
CHUNK_VALUES, FEW_VALUES, PARTS = 2**23, 2**18, 8
# C ascends by factors of at most this, from where second derivatives are about 1; the gap at which
# it does. From zero alone, a C that nearly interpolates takes three times the steps.
ASCENT, NEAR = 10.0, 0.1
# The gap at which a draft ends, as a share of ``tol``; float32 has no digits for less than this.
SHARE, LEAST_TOL = 0.5, 1e-6


class Draft(KernelSpace):
    """Coefficients of documents under inner products in float32.

    Use `make_draft`.
    """

    def __init__(
        self, losses: PairLosses, rows: Rows, docs: NDArray[np.int64], products: Floats32
    ) -> None:
        super().__init__(losses, products)
        self._rows, self._docs = rows, docs

    def element(self, coefficients: Floats) -> Floats:
        """Element with given coefficients."""
        return np.stack([coefficients, self._kernel @ coefficients.astype(np.float32)])

    def weights(self, w: Floats) -> Floats:
        """Weights of features of an element: one pass over X."""
        X, n, d = as_matrix(self._rows), self._docs.size, self._rows.n_features
        found, width = np.empty(d), max(64, FEW_VALUES // n)
        for first in range(0, d, width):
            chunk = X[self._docs, first : first + width].astype(np.float64, copy=False)
            found[first : first + width] = w[0] @ chunk
        return found

    def ascent(self, C: float) -> list[float]:
        """Values of C below a given one, ascending, from which to come to it."""
        at_zero = self._losses.evaluate(Terms.squared_hinge(C), scores=np.zeros(self._docs.size))
        bend = float(at_zero.curvatures.mean())
        bend *= float(np.diagonal(self._kernel).mean(dtype=np.float64))
        if not bend > 1.0:
            return []
        return np.geomspace(C / bend, C, 1 + ceil(log10(bend) / log10(ASCENT)))[:-1].tolist()


def make_draft(model: Any, losses: PairLosses, rows: Rows, docs: NDArray[np.int64]) -> Draft | None:
    """The draft of these documents; None if it does not pay or float32 does not hold it."""
    n, d = docs.size, rows.n_features
    if model.loss != LOSS or rows.columns is not None:
        return None
    if not MOST_FEATURES < d >= n <= MOST_DOCS or 4 * n * n > int(model.memory_limit):
        return None
    products = _inner_products(as_matrix(rows), docs, n_threads(model.n_jobs))
    return Draft(losses, rows, docs, products) if np.isfinite(products).all() else None


def _inner_products(X: NDArray[np.floating], docs: NDArray[np.int64], n_jobs: int) -> Floats32:
    """Inner products of rows of X with each other, the same for every ``n_jobs``. O(n^2 d)."""
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
    """Minimise as `newton_steps` does, on a draft first; ``begun`` is the draft of a smaller C.

    Also returns the element at which the draft ended. Steps on the way to C are not yielded.
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
