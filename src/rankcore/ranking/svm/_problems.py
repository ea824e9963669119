"""Training data of ranking SVMs, for successive values of C."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rankcore._core.kernels import resolve_gamma, some_rows
from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.threads import n_threads
from rankcore._ext.held_signals import signals_held
from rankcore._ext.rows import Rows
from rankcore.ranking._pairs import Pairing
from rankcore.ranking.svm._draft import LOSS as DRAFTED
from rankcore.ranking.svm._draft import Draft, drafted_steps, make_draft
from rankcore.ranking.svm._losses import PairLosses
from rankcore.ranking.svm._models import Kernel, KernelModel, LinearModel
from rankcore.ranking.svm._newton import Solution, Step, newton_steps
from rankcore.ranking.svm._spaces import FeatureSpace, KernelSpace

Model = LinearModel | KernelModel
# Values of a precomputed matrix that are copied and compared at a time.
PART_VALUES = 2**20


class Problem:
    """Pairs of rows, in the space of the model. A context manager.

    Raises ValueError if the kernel matrix takes more than ``memory_limit`` bytes, or is found to
    have negative eigenvalues.
    """

    def __init__(self, model: Any, rows: Rows, pairing: Pairing) -> None:
        self._rows, self._pairing = rows, pairing
        self._kernel = None if model.kernel is None else _kernel_of(model, rows)
        balanced, n_jobs = model.balance == "query", n_threads(model.n_jobs)
        if self._kernel is not None:
            values = _kernel_matrix(rows, pairing.docs, self._kernel, int(model.memory_limit))
            self.losses = PairLosses(pairing, balanced, n_jobs)
            self.space: FeatureSpace | KernelSpace = KernelSpace(self.losses, values)
        else:
            generator = as_generator(model.random_state)
            self.losses = PairLosses(pairing, balanced, n_jobs, rows)
            self.space = FeatureSpace(self.losses, rows, generator)
        # A draft, if any, and its solution: weights and element.
        self._draft: Draft | None = None
        self._ended: tuple[Floats, Floats] | None = None
        with signals_held():  # it opens a file
            self._blas = ThreadpoolController()

    def __enter__(self) -> Problem:
        return self

    def __exit__(self, *_: object) -> None:
        self.losses.__exit__()

    def start(self, model: Model | None) -> Floats:
        """Initial element: a model of the same kind and rows, or zero."""
        if isinstance(model, LinearModel) and isinstance(self.space, FeatureSpace):
            return model.weights.copy()
        if isinstance(model, KernelModel) and isinstance(self.space, KernelSpace):
            coefficients = np.zeros(self._rows.n_rows)
            coefficients[model.support] = model.coefficients
            return self.space.element(coefficients[self._pairing.docs])
        return self.space.zero()

    def model(self, w: Floats) -> Model:
        """The model of an element of the space."""
        if self._kernel is None:
            return LinearModel(w if w.ndim == 1 or self._draft is None else self._draft.weights(w))
        by_row = np.argsort(self._pairing.docs)
        found = by_row[w[0][by_row] != 0.0]
        support = self._pairing.docs[found]
        kept = None if self._kernel.kind == "precomputed" else some_rows(self._rows, support)
        return KernelModel(self._kernel, support, w[0][found], kept)

    def steps(
        self, model: Any, start: Floats
    ) -> Generator[tuple[Floats, Step], bool | None, Solution]:
        """Steps that minimise the objective of an estimator; use within `limits`."""
        begun, drafts = None, model.loss == DRAFTED and self._kernel is None
        if self._ended is not None and start is self._ended[0]:
            begun = self._ended[1]
        elif drafts and self._draft is None and not start.any():
            self._draft = make_draft(model, self.losses, self._rows, self._pairing.docs)
        if self._draft is None or (begun is None and start.any()):
            return (yield from newton_steps(model, self.space, start))
        found, ended = yield from drafted_steps(model, self._draft, self.space, begun)
        self._ended = found.w, ended
        return found

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Context that sets the number of BLAS threads and floating-point warnings for steps."""
        # Matrices of features are small: BLAS threads that wait for each other on a busy machine
        # can make a step ten times slower, and would compete with ours.
        threads = 1 if isinstance(self.space, FeatureSpace) else None
        with (
            self._blas.limit(limits=threads, user_api="blas"),
            np.errstate(over="ignore", invalid="ignore"),  # overflows raise an error later
        ):
            yield


def _kernel_of(model: Any, rows: Rows) -> Kernel:
    gamma = 1.0  # unused by kernels without it
    if model.kernel in ("poly", "rbf"):
        gamma = resolve_gamma(model.gamma, rows)
    return Kernel(model.kernel, gamma, int(model.degree), float(model.coef0))


def _kernel_matrix(rows: Rows, docs: NDArray[np.int64], kernel: Kernel, limit: int) -> Floats:
    """Kernel matrix of the documents."""
    n = docs.size
    if 8 * n * n > limit:
        raise ValueError(
            f"the kernel matrix of {n} documents takes {8 * n * n:,} bytes, more than "
            f"memory_limit={limit:,}: raise it, or map the features to a space where the model is "
            "linear, with make_pipeline(sklearn.kernel_approximation.Nystroem(), RankSVM())"
        )
    matrix = np.empty((n, n))
    if kernel.kind == "precomputed":
        if rows.n_rows != rows.n_features:
            raise ValueError(
                f"a precomputed kernel matrix must be square; found {rows.n_rows} rows and "
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
    """Blocks of rows of a matrix of n columns."""
    size = max(1, PART_VALUES // n)
    return (slice(first, first + size) for first in range(0, n, size))
