"""Measures of graded relevance: discounted cumulative gain."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from rankcore._core.docs import documented
from rankcore.metrics.evaluate_queries import as_cutoff
from rankcore.metrics.names import Measure
from rankcore.metrics.one_measure import OF_QUERIES, DCGOptions, NDCGOptions, PerQuery, measured


@documented(OF_QUERIES % "Between 0 and 1")
def ndcg_score(
    y_true: ArrayLike, y_score: ArrayLike, **options: Unpack[NDCGOptions]
) -> float | PerQuery:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002).

    The sum of gain over discount down the ranking, divided by that of the best ranking.

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
    """Discounted cumulative gain: the sum of gain over discount down the ranking.

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
