"""One measure: its mean over queries, or its value for each query."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention, Gain, resolve
from rankcore.metrics.evaluate_queries import judged, measure_queries
from rankcore.metrics.registry import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]
# Shared sections of docstrings; the range of values is inserted.
OF_QUERIES = """\
Measures of queries.

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
    Smallest relevant label; None: that of the convention (by default 1).
gain : {"exp2", "linear"}, sequence of floats or callable, optional
    Gain of a label; None: that of the convention (``2**y - 1``). See `Convention`.
discount : {"log2", "letor"}, optional
    Divisor of the gain at a position; None: that of the convention (``log2(1 + position)``).
ties : {"average", "first", "last", "optimistic", "pessimistic"}, optional
    Documents of equal score: the expectation over all their orders, the order of the rows,
    the reverse of it, or the order that is best or worst. None: the convention's, "average".
empty : float, "skip" or "raise", optional
    A query in which nothing is relevant (for NDCG: nothing has gain): its value; left out of the
    mean (NaN in ``per_query``); or an error. None: the convention's, 0.
convention : str or Convention, optional
    Default of the choices above, by the name of a tool or as a `Convention`.
per_query : bool
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
    %s.
    The latter if ``per_query``, in order of first appearance.

Raises
------
ValueError
    On empty input, different lengths, NaN or infinity, bad weights or unknown options.
TypeError
    For labels, scores or weights that are not real numbers."""


class Options(TypedDict, total=False):
    """Keywords of all measures that conventions define."""

    qid: ArrayLike | None
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None
    convention: str | Convention | None
    per_query: bool
    query_weight: ArrayLike | None
    docid: ArrayLike | None
    n_jobs: int | None


class BinaryOptions(Options, total=False):
    """Keywords of measures of binary relevance."""

    rel: float | None
    empty: float | str | None


class DCGOptions(Options, total=False):
    """Keywords of discounted cumulative gain."""

    k: int | None
    gain: Gain | None
    discount: Literal["log2", "letor"] | None


class NDCGOptions(DCGOptions, total=False):
    """Keywords of normalised discounted cumulative gain."""

    empty: float | str | None


def measured(
    measure: Measure, y_true: Any, y_score: Any, options: Options, known: type = BinaryOptions
) -> float | PerQuery:
    """Compute a measure's mean over queries, or values; ``known`` declares the options."""
    given: dict[str, Any] = {**options}
    for name in given.keys() - known.__annotations__.keys():
        raise TypeError(f"{measure.kind} got an unexpected keyword argument {name!r}")
    choices = {name: given.get(name) for name in ("gain", "discount", "rel", "ties", "empty")}
    meant = resolve(given.get("convention"), **choices)
    data = judged(y_true, y_score, given.get("qid"), given.get("n_jobs"))
    ranked = data.by_id(given.get("docid"))
    (values,) = measure_queries(ranked, [measure], meant, n_jobs=given.get("n_jobs"))
    return mean_or_values(
        (data.queries.ids, values), given.get("per_query"), given.get("query_weight")
    )


def mean_or_values(found: PerQuery, per_query: Any, query_weight: Any) -> float | PerQuery:
    """Return the mean over queries, or ids and values of the queries."""
    return found if per_query else query_mean(found[1], query_weight)
