"""Spaces of ranking SVMs: weights of features, or coefficients of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows
from rankcore.ranking.svm._losses import Evaluation, PairLosses, Terms
from rankcore.ranking.svm._newton import Solve
from rankcore.ranking.svm._preconditioner import Sample, inverse

Floats = NDArray[np.float64]

# A squared length b' K b below 0 by more than this share of |b|^2 max |K| is not rounding: kernel
# matrices of single precision are exact to 1e-7.
INDEFINITE = 1e-6


class FeatureSpace:
    """Weights of features. An element has shape (n_features,).

    Parameters
    ----------
    losses : PairLosses
    rows : Rows
    generator : numpy Generator
        Draws the queries from which second derivatives are estimated.
    """

    def __init__(self, losses: PairLosses, rows: Rows, generator: np.random.Generator) -> None:
        self._losses, self._rows = losses, rows
        self._sample = Sample(np.diff(losses.pairing.bounds), rows.n_features, generator)

    def zero(self) -> Floats:
        """No weight for any feature."""
        return np.zeros(self._rows.n_features)

    def dot(self, u: Floats, v: Floats) -> float:
        """Inner product."""
        return float(u @ v)

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """The loss of weights, and the gradient of the objective."""
        at = self._losses.evaluate(terms, rows=self._rows, weights=w)
        assert at.pulled is not None
        return at, w + at.pulled

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """The loss of scores."""
        return self._losses.evaluate(terms, scores=scores)

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Scores of p, and the second derivatives of the loss times p."""
        z, _, pulled = self._losses.curve(at, rows=self._rows, weights=p)
        assert pulled is not None
        return z, pulled

    def preconditioner(self, at: Evaluation, products: int) -> Solve | None:
        """Approximate inverse of the second derivatives, from a sample of the queries."""
        sample = self._sample.draw(products)
        if sample is None:
            return None
        weights = self._losses.weights
        sampled = float(weights[sample].sum())
        if not sampled > 0.0:
            return None
        matrix = self._losses.curve_rows(at, self._rows, sample)
        return inverse(matrix, float(weights.sum()) / sampled)


class KernelSpace:
    """Coefficients of documents: a document's score is the sum of coefficient times kernel.

    An element has shape (2, n_docs): coefficients b, and the scores K b that they give. Sums and
    multiples keep the two in step, so that a step costs one product with the kernel matrix for each
    product with second derivatives.

    Parameters
    ----------
    losses : PairLosses
    kernel : ndarray of float, shape (n_docs, n_docs)
        Symmetric, without negative eigenvalues.
    """

    def __init__(self, losses: PairLosses, kernel: NDArray[Any]) -> None:
        self._losses, self._kernel = losses, kernel
        self._largest = float(max(kernel.max(), -kernel.min()))

    def zero(self) -> Floats:
        """No coefficients."""
        return np.zeros((2, self._kernel.shape[0]))

    def element(self, coefficients: Floats) -> Floats:
        """Element with given coefficients."""
        return np.stack([coefficients, self._kernel @ coefficients])

    def dot(self, u: Floats, v: Floats) -> float:
        """Inner product of the functions, u' K v."""
        return float(u[0] @ v[1])

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """The loss of coefficients, and the gradient of the objective."""
        at = self._losses.evaluate(terms, scores=w[1])
        slopes = self.element(at.slopes)
        if self.dot(slopes, slopes) < -INDEFINITE * self._largest * (at.slopes @ at.slopes):
            raise ValueError(
                "the kernel matrix has negative eigenvalues: it is no inner product, and the "
                "objective has no minimum; choose another kernel, or clip the eigenvalues at 0"
            )
        return at, w + slopes

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """The loss of scores."""
        return self._losses.evaluate(terms, scores=scores)

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Scores of p, and the second derivatives of the loss times p."""
        _, product, _ = self._losses.curve(at, z=p[1])
        return p[1], self.element(product)

    def preconditioner(self, at: Evaluation, products: int) -> Solve | None:
        """None: products with the kernel matrix dominate, and a good inverse needs all of it."""
        return None
