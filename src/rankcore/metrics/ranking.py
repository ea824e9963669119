"""Measures of rankings: discounted cumulative gain, and measures of binary relevance."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from rankcore._core.docs import documented
from rankcore.metrics.evaluate_queries import as_cutoff
from rankcore.metrics.one_measure import (
    OF_QUERIES,
    BinaryOptions,
    DCGOptions,
    NDCGOptions,
    PerQuery,
    measured,
)
from rankcore.metrics.registry import Measure

_SHARES = OF_QUERIES % "Between 0 and 1"
_SELECTED = f"""\
{_SHARES}

Notes
-----
O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents."""
_TIED = f"""\
{_SELECTED}
In a group of g tied documents, r of them relevant, a document is relevant with probability
r/g, and then each other one with (r-1)/(g-1): the expectation is a sum over positions."""


@documented(_TIED)
def average_precision(
    y_true: ArrayLike, y_score: ArrayLike, *, k: int | None = None, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute average precision: the mean of the precisions at the relevant documents.

    Its mean over queries is MAP.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.average_precision([1, 0, 1], [3, 2, 1]), 4)
    0.8333
    """
    return measured(Measure("average_precision", k=as_cutoff(k)), y_true, y_score, options)


@documented(_SELECTED)
def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute the fraction of the first k documents that are relevant.

    The divisor is k even for fewer documents, unless the convention differs.

    Parameters
    ----------
    k : int
        Positions that count, at least 1.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.precision_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2)
    0.5
    """
    return measured(Measure("precision", k=as_cutoff(k, needed=True)), y_true, y_score, options)


@documented(precision_at_k, _SELECTED)
def recall_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute the fraction of the relevant documents that are among the first k.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.recall_at_k([1, 0, 1, 1], [4, 3, 2, 1], k=2), 4)
    0.3333
    """
    return measured(Measure("recall", k=as_cutoff(k, needed=True)), y_true, y_score, options)


@documented(precision_at_k, _SELECTED)
def hit_rate(
    y_true: ArrayLike, y_score: ArrayLike, k: int, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute the fraction of queries with a relevant document among the first k.

    Also called success at k. With ties at position k it is the probability.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.hit_rate([0, 1, 1, 0], [2, 1, 2, 1], k=1, qid=[1, 1, 2, 2])
    0.5
    """
    return measured(Measure("hit", k=as_cutoff(k, needed=True)), y_true, y_score, options)


@documented(_SHARES)
def r_precision(
    y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute precision at R, the number of relevant documents.

    Notes
    -----
    O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.r_precision([0, 1, 0, 1, 1], [5, 4, 3, 2, 1]), 4)
    0.3333
    """
    return measured(Measure("r_precision"), y_true, y_score, options)


@documented(_SELECTED)
def reciprocal_rank(
    y_true: ArrayLike, y_score: ArrayLike, *, k: int | None = None, **options: Unpack[BinaryOptions]
) -> float | PerQuery:
    """Compute one over the position of the first relevant document.

    Its mean over queries is MRR.

    Examples
    --------
    >>> import rankcore as rc
    >>> rc.metrics.reciprocal_rank([0, 1, 0, 1, 1], [5, 4, 3, 2, 1])
    0.5
    """
    return measured(Measure("reciprocal_rank", k=as_cutoff(k)), y_true, y_score, options)


@documented(OF_QUERIES % "At least 0")
def phi_measure(
    y_true: ArrayLike,
    y_score: ArrayLike,
    Z: int | None = None,
    m: int | None = None,
    **options: Unpack[BinaryOptions],
) -> float | PerQuery:
    """Compute a Phi measure (Elsas, Carvalho and Carbonell, 2008): sum of i / r_i over Z.

    Here r_i is the position of the i-th relevant document, and i runs from 1 to m. It is average
    precision for Z and m the number of relevant documents, and reciprocal rank for Z = m = 1. With
    Z = k and m the relevant documents found, it is a lower bound of precision at k, with equality
    if and only if these are at the top.

    Parameters
    ----------
    Z : int, optional
        Divisor of the sum; None: the number of relevant documents.
    m : int, optional
        Relevant documents that count; None: all.

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
        Measure("phi", Z=as_cutoff(Z, "Z"), m=as_cutoff(m, "m")), y_true, y_score, options
    )


@documented(OF_QUERIES % "Between 0 and 1")
def ndcg_score(
    y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[NDCGOptions]
) -> float | PerQuery:
    """Compute normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    The discounted cumulative gain, divided by that of the ideal ranking.

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
    measure = Measure("ndcg", k=as_cutoff(options.get("k")))
    return measured(measure, y_true, y_score, options, NDCGOptions)


@documented(OF_QUERIES % "Any number")
def dcg_score(
    y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[DCGOptions]
) -> float | PerQuery:
    """Compute discounted cumulative gain: the sum of gain / discount over positions.

    Notes
    -----
    O(n) for ``k`` up to 64 in longer queries, else O(n log n) for a query of n documents.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.dcg_score([2, 0, 1], [0.3, 0.9, 0.1]), 4)
    2.3928
    """
    measure = Measure("dcg", k=as_cutoff(options.get("k")))
    return measured(measure, y_true, y_score, options, DCGOptions)
