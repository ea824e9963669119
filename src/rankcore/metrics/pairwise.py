"""Measures of pairs of rows in the wrong order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.inputs import reject_mask
from rankcore._core.numbers import Floats, as_vector, as_weights, scaled
from rankcore._core.queries import Queries, group_rows, query_mean, query_numbers, run_blocks
from rankcore._ext import concordance as kernels
from rankcore.metrics.evaluate_queries import Judged, judged, named
from rankcore.metrics.one_measure import PerQuery, mean_or_values

# Error of a pair of equal scores, in halves.
_TIES = {"error": 2, "half": 1, "correct": 0}


def pairwise_misranking(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    ties: Literal["error", "half", "correct"] = "error",
    pooled: bool = False,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the fraction of pairs of rows with different labels in the wrong order.

    RankBoost minimises an upper bound of this loss, with ties as errors (Freund, Iyer, Schapire and
    Singer, 2003). For two labels it is one minus the AUC: the pessimistic one for ``ties="error"``,
    the optimistic one for ``"correct"``.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    ties : {"error", "half", "correct"}, default="error"
        Whether a pair of equal scores counts as an error, half an error, or correct.
    pooled : bool, default=False
        Whether to return the share among the pairs of all queries, which weighs queries by their
        number of pairs, instead of the mean over queries.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; NaN without pairs: such queries are left out of the mean. With
        ``per_query``, the ids and values of the queries, in order of first appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights or unknown options.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n log n) for a query of n rows, by a merge sort that counts inversions (Knight, 1966); 48
    bytes per row of the longest query.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.pairwise_misranking([2, 1, 0, 0], [0.5, 0.5, 0.7, 0.1])
    0.6
    """
    if ties not in _TIES:
        raise ValueError(f"ties must be one of {sorted(_TIES)}; got {ties!r}")
    if pooled and per_query:
        raise ValueError("pooled and per_query exclude each other: pass one of them")
    data = judged(y_true, y_score, qid)
    counts = count_pairs(data, n_jobs)
    values = counts.misranking(ties)
    if per_query:
        return data.queries.ids, values
    mean = query_mean(values, query_weight)
    if not pooled or math.isnan(mean):
        return mean
    weights = as_weights(query_weight, "query_weight", {"query": values.size})
    weights = np.ones(values.size) if weights is None else scaled(weights)
    return float((weights * counts.errors(ties)).sum() / (weights * counts.pairs).sum())


def kendall_tau(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute Kendall's tau-b of labels and scores (Kendall, 1945).

    The number of pairs in order minus those in the wrong order, divided by the geometric mean of
    the number of pairs with different labels and of pairs with different scores.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between -1 and 1; NaN if all labels or all scores are equal: such queries are left out of
        the mean. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights or unknown options.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n log n) for a query of n rows (Knight, 1966); 48 bytes per row of the longest query.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.kendall_tau([1, 2, 3, 4], [0.1, 0.4, 0.3, 0.9]), 4)
    0.6667
    """
    data = judged(y_true, y_score, qid)
    values = count_pairs(data, n_jobs).kendall_tau()
    return mean_or_values((data.queries.ids, values), per_query, query_weight)


def margin_loss(
    y_true: ArrayLike,
    y_score: ArrayLike,
    rho: float = 1.0,
    *,
    qid: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    pairs_weight: ArrayLike | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the margin loss of pairs: the mean of ``min(1, max(0, 1 - d / rho))``.

    Here ``d`` is the score of the better row minus that of the worse one. Pairs in the wrong order
    cost 1; pairs in the right order, at least ``rho`` apart, cost 0 (Mohri, Rostamizadeh and
    Talwalkar, 2018, chapter 10). It is an upper bound of the misranking with ties as errors.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better: all pairs with different labels are compared. Ignored, and
        may be None, if ``pairs`` is given.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64.
    rho : float, default=1.0
        The margin, above 0.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    pairs : array-like of int, shape (n_pairs, 2), optional
        Indices of the rows to be compared, the better row of each pair first.
    pairs_weight : array-like, shape (n_pairs,), optional
        Non-negative weights of the pairs.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    n_jobs : int, optional
        Threads, if all pairs are compared; -1 for one per processor. The values do not depend on
        it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; NaN without pairs of positive weight: such queries are left out of the
        mean. With ``per_query``, the ids and values of the queries, in order of first appearance.

    Raises
    ------
    ValueError
        As `pairwise_misranking`, and for a ``rho`` that is not positive, scores too large to be
        summed, or pairs with an invalid row or of rows from two queries.
    TypeError
        For labels or scores that are not real numbers, or rows that are not integers.

    Notes
    -----
    O(n log L) for L levels of labels after sorting; 80 bytes per row of the longest query.
    Distances within the margin are summed in double-double. Only the comparison of a difference of
    scores with ``rho``, where the loss is near 0, and the result are rounded.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.margin_loss([1, 1, 0], [1.0, 0.25, 0.0], rho=0.5)
    0.25
    """
    if not isinstance(rho, Real) or not 0 < rho < math.inf:
        raise ValueError(f"rho must be a positive number; got {rho!r}")
    if pairs is not None:
        queries, values = _margin_of_pairs(y_score, float(rho), qid, pairs, pairs_weight)
        return mean_or_values((queries.ids, values), per_query, query_weight)
    if pairs_weight is not None:
        raise ValueError("pairs_weight requires pairs; pass them as pairs=")
    data = judged(y_true, y_score, qid)
    values = np.empty(data.queries.ids.size)

    def run(first: int, last: int) -> tuple[int, int]:
        return kernels.margin_losses(
            data.scores,
            data.labels,
            data.queries.rows,
            data.queries.bounds,
            first,
            last,
            float(rho),
            values,
        )

    run_kernel(run, data.queries, n_jobs)
    return mean_or_values((data.queries.ids, values), per_query, query_weight)


def run_kernel(
    kernel: Callable[[int, int], tuple[int, int]], queries: Queries, n_jobs: int | None
) -> None:
    """Run a kernel over all queries; raise an exception for the error it reports.

    ``kernel(first, last)`` handles the queries from ``first`` to ``last``, and returns an error
    code, 0 for none, and the query with the error.
    """

    def run(first: int, last: int) -> None:
        status, query = kernel(first, last)
        if status:
            raise _complaint(kernels.ERRORS[status], named(queries.ids[query]))

    run_blocks(run, queries.bounds, n_jobs)


def _complaint(status: str, query: str) -> Exception:
    if status == "memory":
        return MemoryError(f"{query} does not fit into memory")
    what = {
        "score": "y_score must be finite",
        "label": "y_true must be finite",
        "huge": "y_score and rho are too large to be summed as float64; divide both by one number;",
    }
    return ValueError(f"{what[status]}, in {query}")


@dataclass(frozen=True)
class PairCounts:
    """Numbers of pairs of the rows of each query."""

    pairs: NDArray[np.int64]  # with different labels
    discordant: NDArray[np.int64]  # those of them in the wrong order
    tied: NDArray[np.int64]  # those of them with equal scores
    apart: NDArray[np.int64]  # with different scores

    def errors(self, ties: str) -> Floats:
        """Count pairs in the wrong order, plus the errors of pairs of equal scores."""
        return np.asarray(self.discordant + 0.5 * _TIES[ties] * self.tied)

    def misranking(self, ties: str = "error") -> Floats:
        """Return the fraction of pairs in the wrong order, of different labels; NaN without any."""
        with np.errstate(invalid="ignore"):  # no pairs: 0 / 0
            return np.asarray(self.errors(ties) / self.pairs)

    def kendall_tau(self) -> Floats:
        """Return Kendall's tau-b; NaN if all labels or all scores are equal."""
        with np.errstate(invalid="ignore"):  # no pairs: 0 / 0
            # One root of the product, which is exact for squares, so that a perfect order gets 1.
            scale = np.sqrt(self.pairs * self.apart.astype(np.float64))
            return np.asarray((self.pairs - self.tied - 2 * self.discordant) / scale)


def count_pairs(data: Judged, n_jobs: int | None) -> PairCounts:
    """Count the pairs of each query."""
    counts = np.empty((data.queries.ids.size, kernels.N_COUNTS), dtype=np.int64)

    def run(first: int, last: int) -> tuple[int, int]:
        return kernels.count_pairs(
            data.scores, data.labels, data.queries.rows, data.queries.bounds, first, last, counts
        )

    run_kernel(run, data.queries, n_jobs)
    return PairCounts(
        pairs=counts[:, kernels.PAIRS],
        discordant=counts[:, kernels.DISCORDANT],
        tied=counts[:, kernels.TIED],
        apart=counts[:, kernels.APART],
    )


def _margin_of_pairs(
    y_score: Any, rho: float, qid: Any, pairs: Any, pairs_weight: Any
) -> tuple[Queries, Floats]:
    scores = as_vector(y_score, "y_score")
    if not np.isfinite(scores).all():
        raise ValueError("y_score must be finite")
    reject_mask(pairs, "pairs")
    rows = np.asarray(pairs)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"pairs must hold integer row numbers; got {rows.dtype}")
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.size == 0:
        raise ValueError(
            f"pairs must have shape (n_pairs, 2), the better row first; got {rows.shape}"
        )
    if rows.min() < 0 or rows.max() >= scores.size:
        raise ValueError(
            f"pairs must name rows from 0 to {scores.size - 1}; got {rows.min()} to {rows.max()}"
        )
    queries = group_rows(qid, scores.size)
    numbers = query_numbers(queries)
    better, worse = rows.T
    query_of_pair = numbers[better]
    mixed = query_of_pair != numbers[worse]
    if mixed.any():
        i = int(mixed.argmax())
        raise ValueError(
            f"pairs must be of rows of one query; pair {i} has rows of "
            f"{named(queries.ids[query_of_pair[i]])} and {named(queries.ids[numbers[worse[i]]])}"
        )
    weights = as_weights(pairs_weight, "pairs_weight", {"pair": len(rows)})
    weights = np.ones(len(rows)) if weights is None else scaled(weights, query_of_pair)
    with np.errstate(over="ignore"):  # an infinite distance is beyond the margin, or wrong
        loss = np.clip(1.0 - (scores[better] - scores[worse]) / rho, 0.0, 1.0)
    total = np.bincount(query_of_pair, weights, minlength=len(queries.ids))
    with np.errstate(invalid="ignore"):  # no pairs: 0 / 0
        values = np.bincount(query_of_pair, weights * loss, minlength=len(queries.ids)) / total
    return queries, values
