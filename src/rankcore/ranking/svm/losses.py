"""Margin losses over all pairs, in threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import pair_loss as kernels
from rankcore._ext.rows import Rows
from rankcore.ranking.pairs import Pairing

# Blocks of queries. Their sums are added in order, so that results do not depend on n_jobs.
BLOCKS = 32
# Blocks for Hessian matrices.
GROUPS = 4
# Rows per matrix product in Hessian matrices.
BATCH = 1024


@dataclass(frozen=True)
class Terms:
    """Loss of a pair with difference d: the sum over margins m of ``factor * max(0, m - d)^2``."""

    # (n_margins,)
    margins: Floats
    factors: Floats

    @classmethod
    def squared_hinge(cls, C: float) -> Terms:
        """Return ``C * max(0, 1 - d)^2``."""
        return cls(np.array([1.0]), np.array([float(C)]))

    @classmethod
    def smooth_hinge(cls, C: float, width: float) -> Terms:
        """Return ``C * max(0, 1 - d)``, smoothed by a parabola for 1 - width < d < 1.

        It is ``C * (max(0, 1 - d)^2 - max(0, 1 - width - d)^2) / (2 * width)``, below the hinge by
        at most ``C * width / 2``.
        """
        factor = C / (2.0 * width)
        return cls(np.array([1.0, 1.0 - width]), np.array([factor, -factor]))

    def same(self, other: Terms) -> bool:
        """Return whether another loss is equal."""
        return np.array_equal(self.margins, other.margins) and np.array_equal(
            self.factors, other.factors
        )


@dataclass(frozen=True)
class Evaluation:
    """Loss, and its derivatives in the scores of documents."""

    terms: Terms
    # (n_docs,): scores, first derivatives, and the diagonal of the Hessian.
    scores: Floats
    slopes: Floats
    curvatures: Floats
    trace: float  # of the Hessian
    loss: float
    sums: Floats  # (n_margins, 2): sums of (m - d) and (m - d)^2 over the pairs with d < m
    pulled: Floats | None  # (n_features,): gradient in the weights of features, if requested


class PairLosses:
    """Losses of the pairs of queries, in ``n_jobs`` threads. A context manager.

    Documents of ``pairing`` are in the order of rows. If ``balanced``, the weights of a query's
    pairs sum to 1. Gradients by blocks use at most an eighth of the memory of ``rows``, if given.
    Raises ValueError if the weights of a query's pairs overflow.
    """

    def __init__(
        self, pairing: Pairing, balanced: bool, n_jobs: int = 1, rows: Rows | None = None
    ) -> None:
        steps = pairing.finite_steps(balanced)
        self.pairing = pairing
        self.n_docs = pairing.docs.size
        self.n_queries = pairing.n_pairs.size
        self.weights = steps * pairing.weights  # of all pairs of each query
        sizes = np.diff(pairing.bounds)
        places = np.arange(self.n_docs) - np.repeat(pairing.bounds[:-1], sizes)
        order = places.astype(np.uint32)
        levels, n_levels = _levels(pairing)
        listed = pairing.listed_pairs
        self.kernel = kernels.PairLoss(
            pairing.docs,
            pairing.bounds,
            levels,
            n_levels,
            pairing.doc_weights,
            steps,
            None if listed is None else listed.offsets,
            None if listed is None else listed.winners,
            None if listed is None else listed.losers,
            None if listed is None else listed.weights,
            order,
        )
        most = BLOCKS
        if rows is not None:
            most = max(1, min(BLOCKS, rows.n_values // (8 * rows.n_features)))
        cuts = np.searchsorted(pairing.bounds, np.linspace(0, self.n_docs, most + 1)[1:-1])
        # Blocks of queries, which threads share.
        self._edges = np.unique(np.concatenate([[0], cuts, [self.n_queries]])).tolist()
        self._threads = Threads(min(n_jobs, len(self._edges) - 1))

    def __enter__(self) -> PairLosses:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.close()

    def evaluate(
        self,
        terms: Terms,
        *,
        scores: Floats | None = None,
        rows: Rows | None = None,
        weights: Floats | None = None,
        pull: bool = True,
    ) -> Evaluation:
        """Compute loss and derivatives at given scores, or at rows times weights.

        With ``pull`` and rows, also the gradient in the weights. Rows are read once. O(n_values +
        n_docs log n_docs).
        """
        if scores is None:
            scores = np.empty(self.n_docs)
        slopes, curvatures = np.empty(self.n_docs), np.empty(self.n_docs)
        sums = np.empty((self.n_queries, terms.margins.size, 2))
        parts = self._room(rows) if pull else None

        def run(k: int) -> None:
            kernels.evaluate(
                self.kernel,
                rows,
                weights,
                scores,
                terms.margins,
                terms.factors,
                slopes,
                curvatures,
                sums,
                None if parts is None else parts[k],
                self._edges[k],
                self._edges[k + 1],
            )

        self._threads.for_each(run, range(len(self._edges) - 1))
        total = sums.sum(axis=0)
        loss = float(terms.factors @ total[:, 1])
        pulled = None if parts is None else parts.sum(axis=0)
        trace = float(curvatures.sum())
        usable = np.isfinite(loss) and np.isfinite(trace)
        if not usable or (pulled is not None and not np.isfinite(pulled).all()):
            raise overflow()
        return Evaluation(terms, scores, slopes, curvatures, trace, loss, total, pulled)

    def curve(
        self,
        at: Evaluation,
        *,
        z: Floats | None = None,
        rows: Rows | None = None,
        weights: Floats | None = None,
        pull: bool = True,
    ) -> tuple[Floats, Floats, Floats | None]:
        """Multiply the Hessian of the loss in the scores by z, or by rows times weights.

        ``at`` must be the last evaluation. Returns z, the product and, with ``pull`` and rows, the
        product times rows.
        """
        if z is None:
            z = np.empty(self.n_docs)
        out = np.empty(self.n_docs)
        parts = self._room(rows) if pull else None

        def run(k: int) -> None:
            kernels.curve(
                self.kernel,
                rows,
                weights,
                at.scores,
                at.terms.margins,
                at.terms.factors,
                at.curvatures,
                z,
                out,
                None if parts is None else parts[k],
                self._edges[k],
                self._edges[k + 1],
            )

        self._threads.for_each(run, range(len(self._edges) - 1))
        return z, out, None if parts is None else parts.sum(axis=0)

    def curve_rows(self, at: Evaluation, rows: Rows, queries: NDArray[np.int64]) -> Floats:
        """Compute the Hessian of the loss of some queries in the weights of features, (d, d).

        Symmetric up to rounding. ``at`` must be the last evaluation. O(n * d^2) for n documents.
        Each thread buffers two copies of 1024 documents, or of the largest query.
        """
        d = rows.n_features
        groups = np.array_split(queries, min(GROUPS, queries.size))
        totals = np.zeros((len(groups), d, d))
        sizes = np.diff(self.pairing.bounds)
        room = max(BATCH, int(sizes[queries].max()))

        def run(k: int) -> None:
            # Rows are buffered, as BLAS is slow for few rows.
            dense, curved, filled = np.empty((room, d)), np.empty((room, d)), 0
            for q in groups[k].tolist():
                stop = filled + int(sizes[q])
                if stop > room:
                    totals[k] += dense[:filled].T @ curved[:filled]
                    filled, stop = 0, int(sizes[q])
                kernels.curve_rows(
                    self.kernel,
                    rows,
                    at.scores,
                    at.terms.margins,
                    at.terms.factors,
                    at.curvatures,
                    q,
                    dense[filled:stop],
                    curved[filled:stop],
                )
                filled = stop
            totals[k] += dense[:filled].T @ curved[:filled]

        self._threads.for_each(run, range(len(groups)))
        return np.asarray(totals.sum(axis=0))

    def _room(self, rows: Rows | None) -> Floats | None:
        return None if rows is None else np.zeros((len(self._edges) - 1, rows.n_features))


def overflow() -> ValueError:
    """Return the error for overflowing sums."""
    return ValueError(
        "scores overflowed: X, C or sample_weight is too large; scale X, for example with "
        "sklearn.preprocessing.StandardScaler"
    )


def _levels(pairing: Pairing) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the level of each document within its query, from 0, and the number of levels."""
    n_docs, n_queries = pairing.docs.size, pairing.n_pairs.size
    if pairing.listed_pairs is not None:
        return np.zeros(n_docs, dtype=np.uint32), np.ones(n_queries, dtype=np.int64)
    of = np.repeat(np.arange(n_queries), np.diff(pairing.bounds))
    by_label = np.lexsort((pairing.labels, of))
    labels = pairing.labels[by_label]
    new = np.zeros(n_docs, dtype=np.int64)
    new[1:] = (of[1:] == of[:-1]) & (labels[1:] != labels[:-1])
    steps = np.cumsum(new)
    starts = steps[pairing.bounds[:-1]]
    levels = np.empty(n_docs, dtype=np.uint32)
    levels[by_label] = steps - np.repeat(starts, np.diff(pairing.bounds))
    return levels, steps[pairing.bounds[1:] - 1] - starts + 1
