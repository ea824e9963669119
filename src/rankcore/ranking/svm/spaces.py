"""Spaces of ranking SVMs: weights of features, or coefficients of documents."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankcore._core.numbers import Floats
from rankcore._ext.rows import Rows
from rankcore.ranking.svm.losses import Evaluation, PairLosses, Terms, overflow
from rankcore.ranking.svm.newton import Solve, Space

# Maximum number of features for which the matrix of second derivatives is computed, and maximum
# number of its multiplications per stored value: dense rows reach both together. After n times
# PRODUCTS products, each of which reads all values, n times as many multiplications are allowed.
MOST_FEATURES = 1024
# Documents per feature in the sample that estimates this matrix: initially enough for conjugate
# gradients to gain almost a digit per product. After a step of more products than these the sample
# doubles.
DOCS_PER_FEATURE = 64
PRODUCTS = 8
# Queries with more values than this (64 MiB twice) are not sampled.
MOST_VALUES = 2**23
# If a squared norm b' K b is below 0 by more than this share of |b|^2 max |K|, it is not due to
# rounding: kernel matrices in single precision are exact to 1e-7.
INDEFINITE = 1e-6
EPSILON = float(np.finfo(np.float64).eps)


class WeightSpace(Space):
    """Weights of features, which rows multiply by factors.

    ``factors`` is None for features as given. ``sizes`` are the numbers of documents of queries
    with pairs, ``weight`` is the total weight of all pairs, and ``generator`` draws the queries
    from which second derivatives are estimated. ``n_values`` is the number of stored values.
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        n_features: int,
        weight: float,
        generator: np.random.Generator,
        n_values: int,
        factors: Floats | None,
    ) -> None:
        self._n_features, self.weight = n_features, weight
        self._factors = factors
        self._sample = Sample(sizes, n_features, generator, n_values)

    def zero(self) -> Floats:
        """Implement `Space.zero`."""
        return np.zeros(self._n_features)

    def dot(self, u: Floats, v: Floats) -> float:
        """Implement `Space.dot`."""
        return float(u @ v)

    def times_factors(self, w: Floats) -> Floats:
        """Multiply an element, or the gradient of one, by the factors of original features."""
        return w if self._factors is None else w * self._factors

    def element(self, weights: Floats) -> Floats:
        """Return the element of given weights of original features."""
        if self._factors is None:
            return weights.copy()
        used = self._factors > 0  # others have no weight
        return np.divide(weights, self._factors, out=np.zeros(weights.size), where=used)

    def preconditioner(self, at: Evaluation, products: int) -> Solve | None:
        """Implement `Space.preconditioner`."""
        sample = self._sample.draw(products)
        if sample is None:
            return None
        matrix, sampled = self._matrix(sample, at)
        if self._factors is not None:
            matrix *= self._factors[:, np.newaxis]
            matrix *= self._factors
        return inverse(matrix, self.weight / sampled) if sampled > 0.0 else None

    @abstractmethod
    def _matrix(self, sample: NDArray[np.int64], at: Evaluation) -> tuple[Floats, float]:
        """Return second derivatives of the loss on a sample, and the weight of its pairs.

        They are by the weights of features as given.
        """


class FeatureSpace(WeightSpace):
    """Weights of features of rows in memory."""

    def __init__(
        self,
        losses: PairLosses,
        rows: Rows,
        generator: np.random.Generator,
        factors: Floats | None,
    ) -> None:
        weight = float(losses.weights.sum())
        sizes = np.diff(losses.pairing.bounds)
        super().__init__(sizes, rows.n_features, weight, generator, rows.n_values, factors)
        self._losses, self._rows = losses, rows

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """Implement `Space.evaluate`."""
        at = self._losses.evaluate(terms, rows=self._rows, weights=self.times_factors(w))
        assert at.pulled is not None
        return at, w + self.times_factors(at.pulled)

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """Implement `Space.along`."""
        return self._losses.evaluate(terms, scores=scores)

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Implement `Space.curve`."""
        weights = self.times_factors(p)
        z, _, pulled = self._losses.curve(at, rows=self._rows, weights=weights)
        assert pulled is not None
        return z, self.times_factors(pulled)

    def _matrix(self, sample: NDArray[np.int64], at: Evaluation) -> tuple[Floats, float]:
        matrix = self._losses.curve_rows(at, self._rows, sample)
        return matrix, float(self._losses.weights[sample].sum())


class KernelSpace(Space):
    """Coefficients of documents; a score is the sum of coefficients times kernel values.

    An element has shape (2, n_docs): coefficients b, and their scores K b. Both are linear, so that
    a step costs one product with the kernel matrix per product with second derivatives. The matrix
    has shape (n_docs, n_docs) and is symmetric positive semidefinite. There is no preconditioner:
    these products dominate, and an inverse requires all of the matrix.
    """

    def __init__(self, losses: PairLosses, kernel: NDArray[Any]) -> None:
        self._losses, self._kernel = losses, kernel
        self.weight = float(losses.weights.sum())
        self._largest = float(max(kernel.max(), -kernel.min()))

    def zero(self) -> Floats:
        """Implement `Space.zero`."""
        return np.zeros((2, self._kernel.shape[0]))

    def element(self, coefficients: Floats) -> Floats:
        """Return the element with given coefficients."""
        return np.stack([coefficients, self._kernel @ coefficients])

    def dot(self, u: Floats, v: Floats) -> float:
        """Return the inner product of the functions, u' K v."""
        return float(u[0] @ v[1])

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """Implement `Space.evaluate`."""
        at = self._losses.evaluate(terms, scores=w[1])
        slopes = self.element(at.slopes)
        if self.dot(slopes, slopes) < -INDEFINITE * self._largest * (at.slopes @ at.slopes):
            raise ValueError(
                "the kernel matrix has negative eigenvalues: it is not an inner product, and the "
                "objective has no minimum; choose another kernel, or clip the eigenvalues at 0"
            )
        return at, w + slopes

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """Implement `Space.along`."""
        return self._losses.evaluate(terms, scores=scores)

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Implement `Space.curve`."""
        _, product, _ = self._losses.curve(at, z=p[1])
        return p[1], self.element(product)


class Sample:
    """Random samples of queries with pairs, for the preconditioner.

    ``sizes`` are the numbers of their documents, and ``n_values`` is the number of stored values.
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        n_features: int,
        generator: np.random.Generator,
        n_values: int,
    ) -> None:
        self._square, self._most = n_features**2, MOST_FEATURES * n_values
        self._products = 0
        order = generator.permutation(sizes.size)
        if n_features <= MOST_FEATURES:
            self._order = order[sizes[order] * n_features <= MOST_VALUES]
        else:
            self._order = order[:0]
        self._n_docs = np.cumsum(sizes[self._order])
        self._wanted = DOCS_PER_FEATURE * n_features

    def draw(self, products: int) -> NDArray[np.int64] | None:
        """Draw the queries for the next step, ascending; None for no preconditioner.

        ``products`` is the number of products in the previous step.
        """
        if not self._order.size:
            return None
        if products > PRODUCTS:
            self._wanted *= 2
        n_queries = int(np.searchsorted(self._n_docs, self._wanted)) + 1
        chosen = self._order[:n_queries]
        self._products += products
        n_docs = int(self._n_docs[chosen.size - 1])
        if n_docs * self._square > self._most * max(self._products / PRODUCTS, 1.0):
            return None
        return np.sort(chosen)


def inverse(matrix: Floats, factor: float) -> Solve:
    """Return the operator that inverts the objective's approximate second derivatives.

    ``matrix`` has the second derivatives of the loss of a sample, and is overwritten. They are
    multiplied by ``factor``, the ratio of the weight of all pairs to that of the sample.
    """
    matrix *= factor
    matrix += matrix.T
    matrix *= 0.5
    matrix[np.diag_indices_from(matrix)] += 1.0
    if not np.isfinite(matrix).all():
        raise overflow()
    cholesky = _factor(matrix)
    return lambda r: cho_solve(cholesky, r, check_finite=False)


def _factor(matrix: Floats) -> tuple[Floats, bool]:
    """Factor a positive definite matrix; rounding may make that of large features indefinite."""
    with suppress(LinAlgError):
        return cho_factor(matrix, lower=True, check_finite=False)
    # A bound of the rounding errors of its entries and of the factorisation.
    diagonal = matrix.diagonal().copy()
    matrix[np.diag_indices_from(matrix)] += 8 * diagonal.size * EPSILON * diagonal.max()
    try:
        return cho_factor(matrix, lower=True, check_finite=False)
    except LinAlgError:
        raise ValueError(
            "X has features so large that second derivatives are lost in rounding: scale X, for "
            "example with sklearn.preprocessing.StandardScaler"
        ) from None
