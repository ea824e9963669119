"""Measures of rankings: discounted cumulative gain, and measures of binary relevance."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from rankcore.metrics.conventions import Convention, Gain, resolve
from rankcore.metrics.evaluate_queries import as_cutoff
from rankcore.metrics.one_measure import PerQuery, measured
from rankcore.metrics.registry import Measure


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute average precision: the mean of the precisions at the relevant documents.

    Its mean over queries is MAP.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    k : int, optional
        Positions that count, at least 1. None: the convention's, by default all.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

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
    return measured(
        Measure("average_precision", k=as_cutoff(k)),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int,
    *,
    qid: ArrayLike | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the fraction of the first k documents that are relevant.

    The divisor is k even for fewer documents, unless the convention differs.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    k : int
        Positions that count, at least 1.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: "skip" leaves it out of the mean (NaN in ``per_query``),
        "raise" is an error; with any number its value is 0. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.precision_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2)
    0.5
    """
    return measured(
        Measure("precision", k=as_cutoff(k, needed=True)),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def recall_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int,
    *,
    qid: ArrayLike | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the fraction of the relevant documents that are among the first k.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    k : int
        Positions that count, at least 1.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.recall_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2), 4)
    0.3333
    """
    return measured(
        Measure("recall", k=as_cutoff(k, needed=True)),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def hit_rate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int,
    *,
    qid: ArrayLike | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the fraction of queries with a relevant document among the first k.

    Also called success at k. With ties at position k it is the probability.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    k : int
        Positions that count, at least 1.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: "skip" leaves it out of the mean (NaN in ``per_query``),
        "raise" is an error; with any number its value is 0. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.hit_rate([0, 1, 1, 0], [2, 1, 2, 1], k=1, qid=[1, 1, 2, 2])
    0.5
    """
    return measured(
        Measure("hit", k=as_cutoff(k, needed=True)),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def r_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute precision at R, the number of relevant documents.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.r_precision([0, 1, 0, 1, 1], [5, 4, 3, 2, 1]), 4)
    0.3333
    """
    return measured(
        Measure("r_precision"),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def reciprocal_rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute one over the position of the first relevant document.

    Its mean over queries is MRR.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    k : int, optional
        Positions that count; None: all.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.reciprocal_rank([0, 1, 0, 1, 1], [5, 4, 3, 2, 1])
    0.5
    """
    return measured(
        Measure("reciprocal_rank", k=as_cutoff(k)),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def phi_measure(
    y_true: ArrayLike,
    y_score: ArrayLike,
    Z: int | None = None,
    m: int | None = None,
    *,
    qid: ArrayLike | None = None,
    rel: float | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    empty: float | str | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute a Phi measure (Elsas, Carvalho and Carbonell, 2008): sum of i / r_i over Z.

    Here r_i is the position of the i-th relevant document, and i runs from 1 to m. It is average
    precision for Z and m the number of relevant documents, and reciprocal rank for Z = m = 1. With
    Z = k and m the relevant documents found, it is a lower bound of precision at k, with equality
    if and only if these are at the top.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    Z : int, optional
        Divisor of the sum; None: the number of relevant documents.
    m : int, optional
        Relevant documents that count; None: all.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    rel : float, optional
        Smallest relevant label. None: the convention's, by default 1.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query without relevant documents: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        At least 0. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

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
    return measured(
        Measure("phi", Z=as_cutoff(Z, "Z"), m=as_cutoff(m, "m")),
        resolve(convention, rel=rel, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


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
    """Compute normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    The discounted cumulative gain, divided by that of the ideal ranking.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    k : int, optional
        Positions that count, at least 1. None: the convention's, by default all.
    gain : {"exp2", "linear"}, sequence of floats or callable, optional
        Gain of a label, as for `Convention`. None: the convention's, by default ``2**y - 1``.
    discount : {"log2", "letor"}, optional
        Divisor of the gain at a position, as for `Convention`. None: the convention's, by default
        ``log2(1 + position)``.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    empty : float, "skip" or "raise", optional
        A query in which nothing has gain: its value; left out of the mean (NaN in ``per_query``);
        or an error. None: the convention's, by default 0.
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, negative gains, bad weights, unknown
        options, or a query that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

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
    return measured(
        Measure("ndcg", k=as_cutoff(k)),
        resolve(convention, gain=gain, discount=discount, ties=ties, empty=empty),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )


def dcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    k: int | None = None,
    gain: Gain | None = None,
    discount: Literal["log2", "letor"] | None = None,
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None = None,
    convention: str | Convention | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute discounted cumulative gain: the sum of gain / discount over positions.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; any finite numbers.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Compared as float64, unless a convention differs.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    k : int, optional
        Positions that count; None: all.
    gain : {"exp2", "linear"}, sequence of floats or callable, optional
        Gain of a label, as for `Convention`. None: the convention's, by default ``2**y - 1``.
    discount : {"log2", "letor"}, optional
        Divisor of the gain at a position, as for `Convention`. None: the convention's, by default
        ``log2(1 + position)``.
    ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
        Documents of equal score: the expectation over all their orders, the order of the rows, the
        reverse of it, or the order that is best or worst. None: the convention's, by default
        "average".
    convention : str or Convention, optional
        Default of the choices above, by the name of a tool or as a `Convention`.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    docid : array-like, shape (n,), optional
        Document ids, whose order replaces that of the rows where it breaks ties.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Any number. With ``per_query``, the ids and values of the queries, in order of first
        appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, bad weights, unknown options, or a query
        that a convention treats as an error.
    TypeError
        For labels, scores or weights that are not real numbers.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.dcg_score([2, 0, 1], [0.3, 0.9, 0.1]), 4)
    2.3928
    """
    return measured(
        Measure("dcg", k=as_cutoff(k)),
        resolve(convention, gain=gain, discount=discount, ties=ties),
        y_true,
        y_score,
        qid=qid,
        per_query=per_query,
        query_weight=query_weight,
        docid=docid,
        n_jobs=n_jobs,
    )
