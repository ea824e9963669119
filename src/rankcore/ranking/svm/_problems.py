"""Training data of ranking SVMs, for successive values of C."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import ceil, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.kernels import as_matrix, resolve_gamma, some_rows
from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.threads import for_each, n_threads, one_blas_thread
from rankcore._ext.rows import Rows
from rankcore.ranking.pairs import Pairing
from rankcore.ranking.svm.losses import PairLosses, Terms
from rankcore.ranking.svm.models import Kernel, KernelModel, LinearModel
from rankcore.ranking.svm.newton import Goal, Solution, Space, Step, minimise, newton_steps
from rankcore.ranking.svm.spaces import MOST_FEATURES, FeatureSpace, KernelSpace

Model = LinearModel | KernelModel
# Values of a precomputed matrix that are copied and compared at a time.
PART_VALUES = 2**20
Floats32 = NDArray[np.float32]

# With the hinge, steps on X would start again at the first width of its smoothing.
DRAFTED = "squared_hinge"
# Inner products of this many documents cost about 200 Hessian-vector products.
MOST_DOCS = 8192
# Values converted at a time for products of matrices (32 MiB) and with a vector (2 MiB), and number
# of parts of the documents for threads.
CHUNK_VALUES, FEW_VALUES, PARTS = 2**23, 2**18, 8
# Documents whose means are subtracted, and values from which they are at a time, in a fast cache.
MEAN_DOCS, CACHED_VALUES = 64, 2**15
# Maximum factor between values of C on the path to the given one, and the gap of each. Large C take
# three times as many steps when started from zero.
ASCENT, NEAR = 10.0, 0.1
# Gap of a draft as a share of ``tol``, and the minimum in float32.
SHARE, LEAST_TOL = 0.5, 1e-6


class Problem:
    """Pairs of rows, in the space of the model. A context manager.

    ``factors`` multiply the features of a linear model, if any.
    A named ``gamma`` is chosen from the ``weighted`` rows, of positive weight. Raises ValueError
    if the kernel matrix takes more than ``memory_limit`` bytes, or is found to
    have negative eigenvalues.
    """

    def __init__(
        self, model: Any, rows: Rows, pairing: Pairing, weighted: Rows, factors: Floats | None
    ) -> None:
        self._rows, self._pairing, self._factors = rows, pairing, factors
        self._kernel: Kernel | None = None
        if model.kernel is not None:
            # Other kernels do not use gamma.
            gamma = resolve_gamma(model.gamma, weighted) if model.kernel in ("poly", "rbf") else 1.0
            self._kernel = Kernel(model.kernel, gamma, int(model.degree), float(model.coef0))
        balanced, n_jobs = model.balance == "query", n_threads(model.n_jobs)
        if self._kernel is not None:
            values = _kernel_matrix(rows, pairing.docs, self._kernel, int(model.memory_limit))
            self.losses = PairLosses(pairing, balanced, n_jobs)
            self.space: FeatureSpace | KernelSpace = KernelSpace(self.losses, values)
        else:
            generator = as_generator(model.random_state)
            self.losses = PairLosses(pairing, balanced, n_jobs, rows)
            self.space = FeatureSpace(self.losses, rows, generator, factors)
        # A draft, if any, and its solution: weights and element.
        self._draft: Draft | None = None
        self._ended: tuple[Floats, Floats] | None = None

    def __enter__(self) -> Problem:
        return self

    def __exit__(self, *_: object) -> None:
        self.losses.__exit__()

    def start(self, model: Model | None) -> Floats:
        """Return the initial element: a model of the same kind and rows, or zero."""
        if isinstance(model, LinearModel) and isinstance(self.space, FeatureSpace):
            return self.space.element(model.weights)
        if isinstance(model, KernelModel) and isinstance(self.space, KernelSpace):
            coefficients = np.zeros(self._rows.n_rows)
            coefficients[model.support] = model.coefficients
            return self.space.element(coefficients[self._pairing.docs])
        return self.space.zero()

    def model(self, w: Floats) -> Model:
        """Return the model of an element of the space."""
        if isinstance(self.space, FeatureSpace):
            weights = w if w.ndim == 1 or self._draft is None else self._draft.weights(w)
            return LinearModel(self.space.times_factors(weights))
        assert self._kernel is not None
        by_row = np.argsort(self._pairing.docs)
        rows = by_row[w[0][by_row] != 0.0]
        support = self._pairing.docs[rows]
        kept = None if self._kernel.kind == "precomputed" else some_rows(self._rows, support)
        return KernelModel(self._kernel, support, w[0][rows], kept)

    def steps(
        self, model: Any, start: Floats
    ) -> Generator[tuple[Floats, Step], bool | None, Solution]:
        """Yield the steps that minimise the objective of an estimator; use within `limits`."""
        begun, drafts = None, model.loss == DRAFTED and self._kernel is None
        if self._ended is not None and start is self._ended[0]:
            begun = self._ended[1]
        elif drafts and self._draft is None and not start.any():
            docs = self._pairing.docs
            self._draft = make_draft(model, self.losses, self._rows, docs, self._factors)
        if self._draft is None or (begun is None and start.any()):
            return (yield from newton_steps(model, self.space, start))
        solution, ended = yield from drafted_steps(model, self._draft, self.space, begun)
        self._ended = solution.w, ended
        return solution

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Limit BLAS threads and floating-point warnings for steps, as a context manager."""
        # Matrices of features are small: BLAS threads that wait for each other on a busy machine
        # can make a step ten times slower, and would compete with ours.
        with (
            one_blas_thread() if isinstance(self.space, FeatureSpace) else nullcontext(),
            np.errstate(over="ignore", invalid="ignore"),  # overflows raise an error later
        ):
            yield


def _kernel_matrix(rows: Rows, docs: NDArray[np.int64], kernel: Kernel, limit: int) -> Floats:
    """Compute the kernel matrix of the documents."""
    n = docs.size
    if 8 * n * n > limit:
        raise ValueError(
            f"the kernel matrix of {n} documents takes {8 * n * n:,} bytes, more than "
            f"memory_limit={limit:,}: raise it, or map the features to a space where the model is "
            "linear, with make_pipeline(sklearn.kernel_approximation.Nystroem(), RankSVM()) for "
            "documents of queries, and PRank() instead of RankSVM() for ordered labels"
        )
    matrix = np.empty((n, n))
    if kernel.kind == "precomputed":
        if rows.n_rows != rows.n_features:
            raise ValueError(
                f"a precomputed kernel matrix must be square; got {rows.n_rows} rows and "
                f"{rows.n_features} columns"
            )
        for part in _parts(n):
            chosen = some_rows(rows, docs[part])[:, docs]
            matrix[part] = chosen.toarray() if hasattr(chosen, "toarray") else chosen
        near = 1e-6 * max(matrix.max(), -matrix.min())
        for part in _parts(n):
            if not np.allclose(matrix[part], matrix[:, part].T, rtol=1e-6, atol=near):
                raise ValueError("a precomputed kernel matrix must be symmetric")
    else:
        values = some_rows(rows, docs)
        for first, last, block in kernel.blocks(values, values):
            matrix[first:last] = block
    if (np.diagonal(matrix) < 0.0).any():
        raise ValueError(
            "the kernel has negative values on its diagonal, so it is not an inner product"
        )
    return matrix


def _parts(n: int) -> Iterator[slice]:
    """Yield blocks of rows of a matrix of n columns."""
    size = max(1, PART_VALUES // n)
    return (slice(first, first + size) for first in range(0, n, size))


class Draft(KernelSpace):
    """Coefficients of documents, with inner products in float32; for the squared hinge only.

    With fewer documents than features, a Hessian-vector product costs two passes over X, and no
    sample of queries is cheaper. The inner products of all documents take one matrix product, which
    is twice as fast in float32 as in float64; Newton steps on them cost little. The result is
    optimal up to rounding, and starts the steps on X in float64, which compute the gap; usually
    none is needed.
    """

    def __init__(
        self,
        losses: PairLosses,
        rows: Rows,
        docs: NDArray[np.int64],
        factors: Floats | None,
        products: Floats32,
    ) -> None:
        super().__init__(losses, products)
        self._rows, self._docs, self._factors = rows, docs, factors

    def element(self, coefficients: Floats) -> Floats:
        """Return the element with given coefficients."""
        return np.stack([coefficients, self._kernel @ coefficients.astype(np.float32)])

    def weights(self, w: Floats) -> Floats:
        """Convert an element to one of `FeatureSpace`, by one pass over X."""
        X, n, d = as_matrix(self._rows), self._docs.size, self._rows.n_features
        product, width = np.empty(d), max(64, FEW_VALUES // n)
        for first in range(0, d, width):
            chunk = X[self._docs, first : first + width].astype(np.float64, copy=False)
            product[first : first + width] = w[0] @ chunk
        return product if self._factors is None else product * self._factors

    def ascent(self, C: float) -> list[float]:
        """Return smaller values of C, ascending, whose solutions lead to that of C."""
        at_zero = self._losses.evaluate(Terms.squared_hinge(C), scores=np.zeros(self._docs.size))
        bend = float(at_zero.curvatures.mean())
        bend *= float(np.diagonal(self._kernel).mean(dtype=np.float64))
        if not bend > 1.0:
            return []
        return np.geomspace(C / bend, C, 1 + ceil(log10(bend) / log10(ASCENT)))[:-1].tolist()


def make_draft(
    model: Any,
    losses: PairLosses,
    rows: Rows,
    docs: NDArray[np.int64],
    factors: Floats | None,
) -> Draft | None:
    """Make a draft of some documents; None if it is not faster or float32 overflows."""
    n, d = docs.size, rows.n_features
    if model.loss != DRAFTED or rows.columns is not None:
        return None
    if not MOST_FEATURES < d >= n <= MOST_DOCS or 4 * n * n > int(model.memory_limit):
        return None
    products = _inner_products(as_matrix(rows), docs, factors, n_threads(model.n_jobs))
    return Draft(losses, rows, docs, factors, products) if np.isfinite(products).all() else None


def _inner_products(
    X: NDArray[np.floating], docs: NDArray[np.int64], factors: Floats | None, n_jobs: int
) -> Floats32:
    """Compute inner products of all pairs of rows, equal for every ``n_jobs``. O(n^2 d).

    Features are less their approximate means, which fall out of the differences of documents and
    would take digits of float32, and are multiplied by ``factors``, if any.
    """
    n, d = docs.size, X.shape[1]
    products = np.zeros((n, n), dtype=np.float32)
    width = max(256, CHUNK_VALUES // n)
    edges = np.linspace(0, n, PARTS + 1).astype(int)
    parts = [(i, k) for i, k in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True) if i < k]
    for start in range(0, d, width):
        chunk = _prepared(X, docs, slice(start, start + width), factors)

        def add(part: tuple[int, int], chunk: NDArray[np.float32] = chunk) -> None:
            i, k = part
            products[i:k, :i] += chunk[i:k] @ chunk[:i].T
            products[i:k, i:k] += chunk[i:k] @ chunk[i:k].T

        for_each(add, parts[::-1], n_jobs)  # the longest first
    for i, k in parts:
        products[:i, i:k] = products[i:k, :i].T
    return products


def _prepared(
    X: NDArray[np.floating], docs: NDArray[np.int64], columns: slice, factors: Floats | None
) -> Floats32:
    """Return some columns in float32, about centred and multiplied by their factors."""
    sample = docs[:: max(1, docs.size // MEAN_DOCS)]
    origin = X[sample, columns].mean(axis=0, dtype=np.float64)
    out = np.empty((docs.size, origin.size), dtype=np.float32)
    size = max(1, CACHED_VALUES // origin.size)
    for first in range(0, docs.size, size):
        values = X[docs[first : first + size], columns] - origin
        if factors is not None:
            values *= factors[columns]
        out[first : first + size] = values
    return out


def drafted_steps(
    model: Any, draft: Draft, space: Space, begun: Floats | None
) -> Generator[tuple[Floats, Step], bool | None, tuple[Solution, Floats]]:
    """Yield `newton_steps`, on a draft first; ``begun`` is the draft's solution for a smaller C.

    Also returns the draft's solution. Steps for smaller values of C are not yielded.
    """
    goal = Goal(model.C, DRAFTED, model.tol, int(model.max_iter))
    w = begun
    if w is None:
        w = draft.zero()
        for smaller in draft.ascent(goal.C):
            w = minimise(newton_steps(goal._replace(C=smaller, tol=NEAR), draft, w)).w
    near = goal._replace(tol=max(SHARE * goal.tol, LEAST_TOL))
    drafted = yield from newton_steps(near, draft, w)
    stopped = drafted.outcome == "stopped"
    left = goal._replace(max_iter=0 if stopped else goal.max_iter - drafted.n_iter)
    solution = yield from newton_steps(left, space, draft.weights(drafted.w))
    outcome = "stopped" if stopped else solution.outcome
    return replace(solution, n_iter=drafted.n_iter + solution.n_iter, outcome=outcome), drafted.w
