"""Preconditioner of a linear ranking SVM: second derivatives of a sample of the queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from rankcore.ranking.svm._losses import overflow
from rankcore.ranking.svm._newton import Solve

# More features than this are not worth a matrix of their second derivatives.
MOST_FEATURES = 1024
# Documents for each feature in the sample from which that matrix is estimated: at first enough for
# conjugate gradients to gain almost a digit per product. After a step of more products than these
# the sample doubles.
DOCS_PER_FEATURE = 64
PRODUCTS = 8
# Values of a query (64 MiB twice) beyond which it is not in the sample.
MOST_VALUES = 2**23


class Sample:
    """Random samples of queries that have pairs, for the preconditioner.

    ``sizes`` are the numbers of their documents.
    """

    def __init__(
        self, sizes: NDArray[np.int64], n_features: int, generator: np.random.Generator
    ) -> None:
        order = generator.permutation(sizes.size)
        if n_features <= MOST_FEATURES:
            self._order = order[sizes[order] * n_features <= MOST_VALUES]
        else:
            self._order = order[:0]
        self._n_docs = np.cumsum(sizes[self._order])
        self._wanted = DOCS_PER_FEATURE * n_features

    def draw(self, products: int) -> NDArray[np.int64] | None:
        """The queries of the next step, ascending; None for none.

        ``products`` are those that the step before took.
        """
        if not self._order.size:
            return None
        if products > PRODUCTS:
            self._wanted *= 2
        n_queries = int(np.searchsorted(self._n_docs, self._wanted)) + 1
        return np.sort(self._order[:n_queries])


def inverse(matrix: NDArray[np.float64], factor: float) -> Solve:
    """Inverse of the objective's approximate second derivatives, as an operator.

    ``matrix`` has those of the loss of a sample, and is overwritten; ``factor`` is the weight of
    all pairs by that of the sample, as which the rest of the loss is taken to bend.
    """
    matrix *= factor
    matrix += matrix.T
    matrix *= 0.5
    matrix[np.diag_indices_from(matrix)] += 1.0
    if not np.isfinite(matrix).all():
        raise overflow()
    cholesky = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return lambda r: cho_solve(cholesky, r, check_finite=False)
