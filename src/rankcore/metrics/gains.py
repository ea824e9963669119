"""Measures of graded relevance: discounted cumulative gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluate_queries import as_cutoff
from rankcore.metrics.judged import judged
from rankcore.metrics.names import Measure
from rankcore.metrics.one_measure import PerQuery, mean_or_values, query_values

Gain = str | Sequence[float] | Callable[[NDArray[np.float64]], Any]


def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain | None = None,
    discount: Literal["log2", "letor"] | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    The sum of gain over discount down the ranking, divided by that of the best ranking.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, larger for more relevant; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, larger for higher in the ranking; finite.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    k : int, optional
        Positions looked at; None: all.
    gain : {"exp2", "linear"}, sequence of floats or callable, optional
        What a label is worth; None: the convention's, ``2**y - 1``. See `Convention`.
    discount : {"log2", "letor"}, optional
        What a position divides it by; None: the convention's, ``log2(1 + position)``.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows,
        the reverse of it, or the order that is best or worst. None: the convention's, "average".
    empty : float, "skip" or "raise", optional
        Value of a query with no gain in it; left out of the mean (NaN in
        ``per_query``), or an error. None: the convention's, 0.
    convention : str or Convention, optional
        Where the choices come from that are not made here: the name of a tool, or your own.
    per_query : bool
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, which then stand in for the order of rows where ties are broken by it.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``, in order of first appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, unknown options, or negative gains.
    TypeError
        For labels or scores that are not numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.
    A group of tied documents gets the mean of their gains times the sum of the discounts of
    their positions, which is the expectation over their orders.

    Examples
    --------
    >>> import rankcore as rc
    >>> y, s, qid = [2, 0, 1, 0, 0, 0], [0.3, 0.9, 0.1, 0.3, 0.2, 0.1], [1, 1, 1, 2, 2, 2]
    >>> round(rc.metrics.ndcg_score(y, s, qid=qid), 4)
    0.3295
    >>> rc.metrics.ndcg_score(y, s, qid=qid, convention="lightgbm", per_query=True)[1].round(4)
    array([0.659, 1.   ])
    """
    meant = resolve(convention, gain=gain, discount=discount, ties=ties, empty=empty)
    measure = Measure("ndcg", k=as_cutoff(k))
    values = query_values(measure, meant, judged(y_true, y_score, qid), docid, n_jobs)
    return mean_or_values(values, per_query, query_weight)


def dcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain | None = None,
    discount: str | None = None,
    ties: str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Discounted cumulative gain: the sum of gain over discount down the ranking.

    Parameters
    ----------
    k : int, optional
        Positions looked at; None: all.
    y_true, y_score, qid, gain, discount, ties, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Any number; the latter if ``per_query``.

    Raises
    ------
    ValueError, TypeError
        As `ndcg_score`.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.dcg_score([2, 0, 1], [0.3, 0.9, 0.1]), 4)
    2.3928
    """
    meant = resolve(convention, gain=gain, discount=discount, ties=ties)
    measure = Measure("dcg", k=as_cutoff(k))
    values = query_values(measure, meant, judged(y_true, y_score, qid), docid, n_jobs)
    return mean_or_values(values, per_query, query_weight)
