"""Linear ranking SVM on shards of queries: the model is the same to the bit for any shards.

The sums of a shard depend only on its queries and on the given weights. Losses are summed exactly
as fractions. Gradients and products with second derivatives are summed by feature as 64-bit
integers: products of a slope and a value, times a power of two that depends only on the weights,
rounded. Sums over shards therefore depend neither on the number of shards nor on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from threadpoolctl import threadpool_limits

from rankcore._core.equal_rows import equal_in_groups
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore._core.numbers import Floats, exact_sum
from rankcore._ext.exact_sums import feature_sums
from rankcore.ranking._pairs import Pairing
from rankcore.ranking.svm._losses import Evaluation, PairLosses, Terms, overflow
from rankcore.ranking.svm._spaces import WeightSpace

Words = NDArray[np.int64]

# Bits of sums of magnitudes; bounds are exceeded only by rounding.
BITS = 60
# Rows copied at a time.
ROWS = 2**14


@dataclass(frozen=True)
class Facts:
    """Facts of a shard that are needed before the first evaluation."""

    largest: Floats  # (n_features,): maximum magnitude of each feature in rows that have pairs
    weight: Fraction  # of all pairs
    sizes: NDArray[np.int64]  # documents of each query
    n_in_query: int  # rows of the largest query
    n_values: int  # that are stored
    tied: bool  # whether compared rows are equal


@dataclass(frozen=True)
class Slopes:
    """Sums of a loss over one shard or several."""

    # Sums of (m - d) and (m - d)^2 for each margin m, consecutively.
    sums: tuple[Fraction, ...]
    trace: Fraction  # the sum of the diagonal of the second derivatives
    pulled: Words  # (n_features,): slopes times rows


def added_slopes(parts: Sequence[Slopes]) -> Slopes:
    """Sums of several shards, independent of their order."""
    sums = tuple(sum(some, Fraction()) for some in zip(*(p.sums for p in parts), strict=True))
    trace = sum((part.trace for part in parts), Fraction())
    return Slopes(sums, trace, np.sum([part.pulled for part in parts], axis=0))


def added_words(parts: Sequence[Words]) -> Words:
    """Sum the words of second derivatives over shards."""
    return np.asarray(np.sum(parts, axis=0))


class PairShard:
    """Queries of a shard, and its last evaluation; the largest query has ``n_in_query`` rows.

    The evaluation is a cache for calls at the same weights; a shard that is moved to another
    process recomputes it. Documents of ``pairing`` are in the order of rows.
    """

    def __init__(self, X: Any, pairing: Pairing, balanced: bool, n_in_query: int = 0) -> None:
        self._X, self._pairing, self._balanced = X, pairing, balanced
        self._n_in_query = n_in_query
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_X", "_pairing", "_balanced", "_n_in_query")
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._rows = as_rows(self._X)
        self._losses = PairLosses(self._pairing, self._balanced)
        self._at: tuple[Floats, Evaluation] | None = None
        self._lock = Lock()

    def __sizeof__(self) -> int:
        return sum(array.nbytes for array in self._rows.arrays) + 100 * self._losses.n_docs

    def facts(self) -> Facts:
        """Compute the facts for the first evaluation."""
        docs = self._pairing.docs
        largest = np.zeros(self._rows.n_features)
        # Only of rows with pairs: the shard of the other rows must have no effect.
        for start in range(0, docs.size, ROWS):
            some = some_rows(self._rows, docs[start : start + ROWS])
            highest, lowest = some.max(axis=0), some.min(axis=0)
            if hasattr(highest, "toarray"):
                highest, lowest = highest.toarray(), lowest.toarray()
            for extreme in (np.ravel(highest), -np.ravel(lowest)):
                np.maximum(largest, extreme, out=largest)
        weight = exact_sum(self._losses.weights)
        sizes = np.diff(self._pairing.bounds)
        tied = equal_in_groups(self._rows, docs, self._pairing.bounds)
        return Facts(largest, weight, sizes, self._n_in_query, self._rows.n_values, tied)

    def slopes(self, weights: Floats, terms: Terms, exponents: NDArray[np.intc]) -> Slopes:
        """Losses, and slopes times rows times two to the power of exponents."""
        with self._lock:
            at = self._evaluate(weights, terms)
            assert at.by_query is not None
            by_margin = at.by_query.reshape(self._losses.n_queries, 2 * terms.margins.size)
            sums = tuple(exact_sum(one) for one in by_margin.T)
            trace = exact_sum(at.curvatures)
            return Slopes(sums, trace, self._pull(at.slopes, exponents))

    def curve(self, weights: Floats, terms: Terms, p: Floats, exponents: NDArray[np.intc]) -> Words:
        """Second derivatives of the loss at weights times p, as `slopes`."""
        with self._lock:
            at = self._evaluate(weights, terms)
            with np.errstate(over="ignore", invalid="ignore"):
                _, product, _ = self._losses.curve(at, rows=self._rows, weights=p, pull=False)
            return self._pull(product, exponents)

    def matrix(self, weights: Floats, terms: Terms) -> tuple[Floats, float]:
        """Matrix of second derivatives of the loss in the weights, and the weight of all pairs."""
        # Sums of BLAS may depend on its number of threads.
        with (
            self._lock,
            threadpool_limits(limits=1, user_api="blas"),
            np.errstate(over="ignore", invalid="ignore"),  # the client raises an error
        ):
            at, n = self._evaluate(weights, terms), self._losses.n_queries
            found = self._losses.curve_rows(at, self._rows, np.arange(n))
            return found, float(self._losses.weights.sum())

    def take(self, queries: NDArray[np.int64]) -> tuple[Any, Pairing]:
        """Rows and pairs of a sample of the queries, in ascending order."""
        kept = np.zeros(self._pairing.n_pairs.size, dtype=bool)
        kept[queries] = True
        part = self._pairing.part(kept)
        return some_rows(self._rows, part.docs), part

    def _evaluate(self, weights: Floats, terms: Terms) -> Evaluation:
        if self._at is not None:
            kept, at = self._at
            if np.array_equal(kept, weights) and at.terms.same(terms):
                return at
        self._at = None
        self._losses.forget_order()
        with np.errstate(over="ignore", invalid="ignore"):
            at = self._losses.evaluate(terms, rows=self._rows, weights=weights, pull=False)
        self._at = weights.copy(), at
        return at

    def _pull(self, by: Floats, exponents: NDArray[np.intc]) -> Words:
        if not np.isfinite(by).all():
            raise overflow()
        words = np.empty(self._rows.n_features, dtype=np.int64)
        feature_sums(self._rows, self._pairing.docs, by, np.ldexp(1.0, exponents), words)
        return words


def joined_shard(parts: Sequence[tuple[Any, Pairing]], balanced: bool) -> PairShard:
    """Build a shard from rows of other shards."""
    blocks = [X for X, _ in parts]
    X = vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)
    pairings = [pairing for _, pairing in parts]
    sizes = np.concatenate([np.diff(one.bounds) for one in pairings])
    weights = [
        np.ones(one.docs.size) if one.doc_weights is None else one.doc_weights for one in pairings
    ]
    of_queries = [
        np.ones(one.n_pairs.size) if one.query_weights is None else one.query_weights
        for one in pairings
    ]
    pairing = Pairing(
        np.arange(X.shape[0]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([one.labels for one in pairings]),
        np.concatenate(weights),
        None,
        np.concatenate([one.n_pairs for one in pairings]),
        np.concatenate([one.weights for one in pairings]),
        np.arange(sizes.size),
        np.concatenate(of_queries),
    )
    return PairShard(X, pairing, balanced)


class SharedSpace(WeightSpace):
    """Weights of features if scores are not available; elements represent their scores.

    As scores are linear in weights, the method is that of fits in memory, with operations on
    weights instead of scores; the slope along a step is the inner product of gradient and step. The
    evaluation at the end of a step is cached, so that each step length is evaluated once.

    ``questions`` has the methods ``slopes`` and ``curve`` of `PairShard`, whose results are summed
    over all shards, and ``matrix``, of some of the queries.
    """

    def __init__(
        self, facts: Sequence[Facts], questions: Any, generator: np.random.Generator
    ) -> None:
        self._questions = questions
        self._largest = np.max([one.largest for one in facts], axis=0)
        weight = float(sum((one.weight for one in facts), Fraction()))
        sizes = np.concatenate([one.sizes for one in facts])
        n_values = sum(one.n_values for one in facts)
        super().__init__(sizes, self._largest.size, weight, generator, n_values)
        self._last: tuple[Floats, Evaluation] | None = None

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        at = self.along(w, terms)
        return at, w + at.slopes

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """The loss at the scores of weights; slopes are derivatives by the weights."""
        if self._last is not None:
            kept, at = self._last
            if np.array_equal(kept, scores) and at.terms.same(terms):
                return at
        exponents = self._exponents(2.0 * self.weight * self._steepest(scores, terms))
        found = self._questions.slopes(scores, terms, exponents)
        sums = np.array([float(one) for one in found.sums]).reshape(-1, 2)
        loss = float(terms.factors @ sums[:, 1])
        pulled = np.ldexp(found.pulled.astype(np.float64), -exponents)
        trace = float(found.trace)
        at = Evaluation(terms, scores, pulled, np.empty(0), trace, loss, sums, pulled)
        self._last = scores.copy(), at
        return at

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """p, and the second derivatives of the loss times p."""
        # At most this for a pair, times the difference of two products with p, for both documents.
        bend = 2.0 * float(np.abs(at.terms.factors).max())
        exponents = self._exponents(4.0 * self.weight * bend * self._reach(p))
        words = self._questions.curve(at.scores, at.terms, p, exponents)
        return p, np.ldexp(words.astype(np.float64), -exponents)

    def _matrix(self, sample: NDArray[np.int64], at: Evaluation) -> tuple[Floats, float]:
        matrix, sampled = self._questions.matrix(sample, at.scores, at.terms)
        return matrix.copy(), sampled

    def _reach(self, w: Floats) -> float:
        """Upper bound on the magnitude of the scores."""
        return float(np.abs(w) @ self._largest)

    def _steepest(self, w: Floats, terms: Terms) -> float:
        """Upper bound on the slope of the loss of a pair of weight 1."""
        factor = 2.0 * float(np.abs(terms.factors).max())
        if terms.margins.size == 2:  # two parabolas of opposite sign
            return factor * float(terms.margins[0] - terms.margins[1])
        return factor * (float(terms.margins[0]) + 2.0 * self._reach(w))

    def _exponents(self, bound: float) -> NDArray[np.intc]:
        """Powers of two for features, given a bound on the sum of magnitudes of factors."""
        found = np.zeros(self._largest.size, dtype=np.intc)
        for f, largest in enumerate(self._largest.tolist()):
            if largest > 0 and bound > 0:
                power = frexp(largest)[1] + frexp(bound)[1]
                found[f] = min(max(BITS - power, -1000), 1000)
        if not np.isfinite(bound):
            raise overflow()
        return found
