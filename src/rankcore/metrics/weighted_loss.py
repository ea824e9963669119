"""Ranking loss whose pairs are weighed by position."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import PairWeights
from rankcore._core.numbers import Floats
from rankcore._ext import weighted_loss as kernels
from rankcore.metrics.evaluate_queries import as_cutoff, judged, named
from rankcore.metrics.one_measure import PerQuery, mean_or_values
from rankcore.metrics.pairwise import run_kernel

Positions = NDArray[np.int64]
Weigh = Callable[[Positions, Positions], Any]

_ALL = np.iinfo(np.int64).max
# Pairs compared at a time where all pairs are compared.
_PAIRS = 1 << 20

# Values by position, in descending order; the weight of a pair is their difference.
_VALUES: dict[str, Callable[[Floats], Floats]] = {
    "difference": lambda position: -position,
    "reciprocal": lambda position: 1.0 / position,
    "dcg": lambda position: 1.0 / np.log2(1.0 + position),
}
_NAMED = {"unit": False, "top_k": True, "bipartite": True, **dict.fromkeys(_VALUES, False)}


def weighted_ranking_loss(
    y_true: ArrayLike,
    y_score: ArrayLike,
    w: PairWeights = "unit",
    *,
    qid: ArrayLike | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float | PerQuery:
    """Compute the weight of pairs in the wrong order, divided by the number of all pairs.

    The loss L_w of Ailon and Mohri (2010): ``2 / (n (n - 1))`` times the sum of ``w(i, j)`` over
    pairs of rows in the wrong order, where ``i`` and ``j`` are their positions in the order of the
    labels.

    Parameters
    ----------
    y_true : array-like of numbers, shape (n,)
        True labels, higher for better; finite. The position of a row is 1 plus the number of rows
        with higher labels. Rows with equal labels share a position; such pairs do not count.
    y_score : array-like of numbers, shape (n,)
        Scores, higher for a better rank; finite. Equal scores are in row order.
    w : str, (str, int), array-like of shape (m, m), or callable, default="unit"
        Weight of a pair whose rows have positions i < j by label:

        - ``"unit"``: 1;
        - ``("top_k", k)``: 1 if i <= k;
        - ``("bipartite", m)``: 1 if i <= m < j;
        - ``"difference"``: j - i;
        - ``"reciprocal"``: 1/i - 1/j;
        - ``"dcg"``: 1/log2(1 + i) - 1/log2(1 + j);
        - a symmetric table, with ``w[i - 1, j - 1]``, at least as large as the longest query;
        - a function of two arrays, i and j, of equal length, that returns an array of that length.
    qid : array-like, shape (n,), optional
        The query of each row: any type, any order. None: all rows are one query.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.
    n_jobs : int, optional
        Threads, for weights given by name; -1 for one per processor. The values do not depend on
        it.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        At least 0, which is perfect, and the value of queries of one row. With ``per_query``, the
        ids and values of the queries, in order of first appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, unknown weights, a table that is too
        small or not symmetric, or weights that are negative or not finite.
    TypeError
        For labels or scores that are not real numbers.

    Notes
    -----
    O(n log n) for a query of n rows for weights given by name, else O(n^2). Counts are exact. The
    weights "reciprocal" and "dcg" are summed as values of positions times counts, in double-double:
    the loss is right to a few units of 2**-53 of the unit loss.

    Examples
    --------
    >>> import rankcore as rc
    >>> y, s = [5, 4, 3, 2, 1], [4, 5, 2, 3, 1]
    >>> rc.metrics.weighted_ranking_loss(y, s)
    0.2
    >>> rc.metrics.weighted_ranking_loss(y, s, ("top_k", 2))
    0.1
    >>> round(rc.metrics.weighted_ranking_loss(y, s, lambda i, j: 1 / i - 1 / j), 6)
    0.058333
    """
    named_weight = _named_weight(w)
    data = judged(y_true, y_score, qid)
    queries = data.queries
    values = np.empty(len(queries.ids))
    if named_weight is not None:
        name, m = named_weight
        longest = int(np.diff(queries.bounds).max())
        position_values = None
        if name in _VALUES:
            position_values = _VALUES[name](np.arange(1.0, longest + 1))
        k = m if name == "top_k" else _ALL
        split = m if name == "bipartite" else 0

        def run(first: int, last: int) -> tuple[int, int]:
            return kernels.position_losses(
                data.scores,
                data.labels,
                queries.rows,
                queries.bounds,
                first,
                last,
                k,
                split,
                position_values,
                values,
            )

        run_kernel(run, queries, n_jobs)
    else:
        weigh = w if callable(w) else _lookup(w, int(np.diff(queries.bounds).max()))
        for i in range(values.size):
            rows: Any = slice(queries.bounds[i], queries.bounds[i + 1])
            if queries.rows is not None:
                rows = queries.rows[rows]
            values[i] = _loss(weigh, data.labels[rows], data.scores[rows], named(queries.ids[i]))
    return mean_or_values((queries.ids, values), per_query, query_weight)


def weight_table(w: Any, n: int) -> Floats:
    """Return the weights of all pairs of positions 1 .. n, with a zero diagonal.

    ``w`` is as in `weighted_ranking_loss`.
    """
    table: Floats
    i, j = np.indices((n, n)) + 1
    name, number = _named_weight(w) or ("", 0)
    if name in _VALUES:
        values = _VALUES[name](np.arange(1.0, n + 1))
        table = np.abs(values[:, None] - values)
    elif name:
        first, second = i <= number, j <= number
        pairs = {"unit": True, "top_k": first | second, "bipartite": first != second}
        table = np.full((n, n), pairs[name], dtype=np.float64)
    elif callable(w):
        weights = np.asarray(w(i.ravel(), j.ravel()), dtype=np.float64)
        table = np.broadcast_to(weights, (n * n,)).reshape(n, n).copy()
    else:
        table = np.asarray(w, dtype=np.float64)
        if table.ndim != 2 or min(table.shape) < n:
            raise ValueError(f"w must be a table for {n} positions; got shape {table.shape}")
        table = table[:n, :n].copy()
    np.fill_diagonal(table, 0.0)
    if not (np.isfinite(table) & (table >= 0)).all():
        raise ValueError("w must be finite and not negative")
    return table


def _named_weight(w: Any) -> tuple[str, int] | None:
    """Return a weight's name and its number, or 0; None for tables and functions."""
    number: Any = None
    if isinstance(w, tuple) and len(w) == 2 and isinstance(w[0], str):
        w, number = w
    if not isinstance(w, str):
        return None
    if w not in _NAMED:
        raise ValueError(f"w must be one of {list(_NAMED)}, a table or a callable; got {w!r}")
    if not _NAMED[w]:
        if number is not None:
            raise ValueError(f"the weight {w!r} takes no number; got {number!r}")
        return w, 0
    checked = as_cutoff(number, f"w=({w!r}, number): the number", needed=True)
    assert checked is not None
    return w, checked


def _lookup(w: Any, longest: int) -> Weigh:
    """Return a function that reads weights from a table."""
    table = np.asarray(w)
    if table.dtype.kind not in "biuf" or table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"w must be a name, a square table of numbers or a callable; got {w!r}")
    table = table.astype(np.float64)
    if table.shape[0] < longest:
        raise ValueError(
            f"w is a table for {table.shape[0]} positions, and a query has {longest} rows"
        )
    if not (table == table.T).all():
        raise ValueError("w must be symmetric: the weight of positions i, j is that of j, i")
    return lambda i, j: table[i - 1, j - 1]


def _loss(weigh: Weigh, labels: Floats, scores: Floats, query: str) -> float:
    """Compute the loss of one query, pair by pair."""
    n = labels.size
    for name, x in (("y_score", scores), ("y_true", labels)):
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, in {query}")
    if n < 2:
        return 0.0
    _, level, sizes = np.unique(-labels, return_inverse=True, return_counts=True)
    before: Positions = np.cumsum(sizes) - sizes
    position = (before + 1)[level][np.argsort(-scores, kind="stable")]
    sums = []
    step = max(1, _PAIRS // n)
    for start in range(0, n - 1, step):
        above = position[start : start + step]
        # For each row, the rows below it: the upper triangle from the diagonal of the block on.
        worse, better = np.nonzero(np.triu(above[:, None] > position[None, start:], 1))
        i = position[start:][better]
        j = above[worse]
        weights = np.asarray(weigh(i, j), dtype=np.float64)
        if weights.shape not in ((), i.shape):
            raise ValueError(
                f"w must return one weight for each of {i.size} pairs; got shape {weights.shape}"
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(f"w must be finite and not negative, in {query}")
        sums.append(float(np.broadcast_to(weights, i.shape).sum()))
    return math.fsum(sums) / (n * (n - 1) / 2)
