"""Measures of rankings: how high the relevant documents stand, query by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluate_queries import as_cutoff, measure_queries, rows_by_id
from rankcore.metrics.judged import judged
from rankcore.metrics.names import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]
Gain = str | Sequence[float] | Callable[[NDArray[np.float64]], Any]


def ndcg_score(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    gain: Gain | None = None,
    discount: str | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    The sum of gain over discount down the ranking, divided by that of the best ranking.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, greater for more relevant; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, greater for higher in the ranking; finite.
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
    return _mean_or_values(
        Measure("ndcg", k=as_cutoff(k)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def dcg_score(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    gain: Gain | None = None,
    discount: str | None = None,
    ties: str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
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
    return _mean_or_values(
        Measure("dcg", k=as_cutoff(k)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def average_precision(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Average precision: the mean of the precisions at the relevant documents.

    Its mean over queries is MAP.

    Parameters
    ----------
    k : int, optional
        Positions looked at; None: all.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

    Raises
    ------
    ValueError, TypeError
        As `ndcg_score`.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.
    In a group of g tied documents, r of them relevant, a document is relevant with probability
    r/g, and then each other one with (r-1)/(g-1): the expectation is a sum over positions.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.average_precision([1, 0, 1], [3, 2, 1]), 4)
    0.8333
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("average_precision", k=as_cutoff(k)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def precision_at_k(
    y_true: Any,
    y_score: Any,
    k: int,
    *,
    qid: Any = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Share of the first k documents that are relevant.

    A query of fewer documents still divides by k, unless the convention says otherwise.

    Parameters
    ----------
    k : int
        Positions looked at, at least 1.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

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
    >>> rc.metrics.precision_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2)
    0.5
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("precision", k=as_cutoff(k, needed=True)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def recall_at_k(
    y_true: Any,
    y_score: Any,
    k: int,
    *,
    qid: Any = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Share of the relevant documents that are among the first k.

    Parameters
    ----------
    k : int
        Positions looked at, at least 1.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

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
    >>> round(rc.metrics.recall_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2), 4)
    0.3333
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("recall", k=as_cutoff(k, needed=True)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def hit_rate(
    y_true: Any,
    y_score: Any,
    k: int,
    *,
    qid: Any = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Share of the queries that have a relevant document among the first k.

    Also called success at k. Of a query with ties at the edge, the probability.

    Parameters
    ----------
    k : int
        Positions looked at, at least 1.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

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
    >>> rc.metrics.hit_rate([0, 1, 1, 0], [2, 1, 2, 1], k=1, qid=[1, 1, 2, 2])
    0.5
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("hit", k=as_cutoff(k, needed=True)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def r_precision(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Precision among as many documents as are relevant.

    Parameters
    ----------
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

    Raises
    ------
    ValueError, TypeError
        As `ndcg_score`.

    Notes
    -----
    O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.r_precision([0, 1, 0, 1, 1], [5, 4, 3, 2, 1]), 4)
    0.3333
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("r_precision"), meant, y_true, y_score, qid, per_query, query_weight, docid, n_jobs
    )


def reciprocal_rank(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    k: int | None = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """One over the position of the first relevant document.

    Its mean over queries is MRR.

    Parameters
    ----------
    k : int, optional
        Positions looked at; None: all.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; the latter if ``per_query``.

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
    >>> rc.metrics.reciprocal_rank([0, 1, 0, 1, 1], [5, 4, 3, 2, 1])
    0.5
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("reciprocal_rank", k=as_cutoff(k)),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def phi_measure(
    y_true: Any,
    y_score: Any,
    Z: int | None = None,
    m: int | None = None,
    *,
    qid: Any = None,
    rel: float | None = None,
    ties: str | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: Any = None,
    docid: Any = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """The family of Elsas, Carvalho and Carbonell (2008): the sum of i over r_i, over Z.

    Here r_i is the position of the i-th relevant document, and i goes up to m. It is average
    precision for Z and m the number of relevant documents, and reciprocal rank for Z = m = 1.
    With Z = k and m the relevant documents found, it is a lower bound of precision at k, equal to
    it if and only if these stand at the top.

    Parameters
    ----------
    Z : int, optional
        What the sum is divided by; None: the number of relevant documents.
    m : int, optional
        How many relevant documents are looked at; None: all.
    rel : float, optional
        The smallest label that is relevant; None: the convention's, 1.
    y_true, y_score, qid, ties, empty, convention, per_query, query_weight, docid, n_jobs
        As `ndcg_score`.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        At least 0; the latter if ``per_query``.

    Raises
    ------
    ValueError, TypeError
        As `ndcg_score`.

    Notes
    -----
    O(n log n) for a query of n documents; if the m-th relevant one is in a group of g tied
    documents, that group takes O(g m).

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.phi_measure([1, 0, 1], [3, 2, 1], Z=3, m=2), 4)
    0.5556
    """
    meant = resolve(convention, rel=rel, ties=ties, empty=empty)
    return _mean_or_values(
        Measure("phi", Z=as_cutoff(Z, "Z"), m=as_cutoff(m, "m")),
        meant,
        y_true,
        y_score,
        qid,
        per_query,
        query_weight,
        docid,
        n_jobs,
    )


def _mean_or_values(
    measure: Measure,
    convention: Convention,
    y_true: Any,
    y_score: Any,
    qid: Any,
    per_query: bool,
    query_weight: Any,
    docid: Any,
    n_jobs: int | None,
) -> float | PerQuery:
    data = judged(y_true, y_score, qid)
    rows = None if docid is None else rows_by_id(data.queries, docid)
    (values,) = measure_queries(data, [measure], convention, rows=rows, n_jobs=n_jobs)
    return (data.queries.ids, values) if per_query else query_mean(values, query_weight)
