"""Rank-biased overlap: the similarity of two rankings, whose items need not be the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.ids import as_column
from rankcore._core.numbers import Floats, as_vector, check_lengths
from rankcore._core.params import Options
from rankcore._core.queries import Queries, group_rows, query_numbers
from rankcore._ext.concordance import sort_queries
from rankcore.metrics.one_measure import PerQuery, mean_or_values

Ints: TypeAlias = NDArray[np.int64]

_TIES = Options("average", "normalized", "together")


class RunLike(Protocol):
    """Documents of queries with scores, as `rankcore.datasets.Run`."""

    @property
    def qid(self) -> NDArray[Any]:
        """The query of each document."""

    @property
    def docid(self) -> NDArray[Any]:
        """The documents."""

    @property
    def score(self) -> NDArray[Any]:
        """Their scores, higher for a better rank."""


def rbo(
    a: ArrayLike | Mapping[Any, float] | RunLike,
    b: ArrayLike | Mapping[Any, float] | RunLike,
    *,
    p: float = 0.9,
    ties: Literal["average", "normalized", "together"] = "average",
    qid: ArrayLike | None = None,
    per_query: bool = False,
    query_weight: ArrayLike | None = None,
) -> float | PerQuery:
    """Compute the extrapolated rank-biased overlap of two rankings (Webber et al., 2010).

    The overlap of two rankings to depth d is the fraction of items that both have in their first d
    positions. RBO is its mean over depths for a user who goes on from each to the next with
    probability ``p``. Beyond the end of a ranking, the overlap is extrapolated: the missing items
    agree as often as those before.

    Parameters
    ----------
    a, b : array-like, shape (n,), or mapping, or Run
        Scores of the same n items, higher for a better rank; NaN for an item that a ranking lacks.
        Or scores by item, as ``{"x": 0.9, "y": 0.2}``; or two `rankcore.datasets.Run`, whose
        documents are compared within each query.
    p : float, default=0.9
        Persistence, above 0 and below 1. The first ten depths have 86% of the weight at 0.9, and
        all of it but 1e-10 at 0.1.
    ties : {"average", "normalized", "together"}, default="average"
        Items of equal score (Corsi and Urbano, 2024): they are in an unknown order, and the overlap
        to each depth is its expectation over all orders (RBO^a; see Notes); this, divided by the
        geometric mean of what each ranking has with itself, so that equal rankings have 1 (RBO^b);
        or they share the first of their positions, as in sports (RBO^w).
    qid : array-like, shape (n,), optional
        The query of each row, for arrays: any type, any order. None: all rows are one query.
    per_query : bool, default=False
        Whether to return the value of every query instead of the mean.
    query_weight : array-like, shape (n_queries,), optional
        Non-negative weights of the queries in the mean, in order of first appearance.

    Returns
    -------
    float, or (ndarray of query ids, ndarray of values)
        Between 0 and 1; NaN if a ranking is empty: such queries are left out of the mean. With
        ``per_query``, the ids and values of the queries, in order of first appearance.

    Raises
    ------
    ValueError
        On empty input, different lengths, infinity, bad weights, a ``p`` beyond its range, unknown
        options, or ``qid`` with runs or mappings.
    TypeError
        For scores that are not real numbers, or two rankings of different kinds.

    Notes
    -----
    O(n log n) for a query of n items; 300 bytes per item.

    With ties of RBO^a in rankings of equal length, the result is the mean of RBO over all orders of
    tied items. In rankings of different lengths it is not, and may differ by a hundredth: the
    extrapolation multiplies two expectations of overlaps, those at the ends of the rankings.

    References
    ----------
    W. Webber, A. Moffat and J. Zobel. A similarity measure for indefinite rankings. ACM
    Transactions on Information Systems 28(4), 2010.

    M. Corsi and J. Urbano. The treatment of ties in rank-biased overlap. SIGIR 2024.

    Examples
    --------
    >>> import rankcore as rc
    >>> round(rc.metrics.rbo([3, 2, 1], [3, 1, 2], p=0.9), 4)
    0.955
    >>> round(rc.metrics.rbo({"x": 3, "y": 2, "z": 2}, {"y": 1}, p=0.5), 4)
    0.1458
    """
    if not isinstance(p, int | float | np.floating) or not 0 < p < 1:
        raise ValueError(f"p must be a number in (0, 1); got {p!r}")
    _TIES.check(ties, "ties")
    queries, scores = _rows(a, b, qid)
    values = _overlaps(queries, scores, float(p), ties)
    return mean_or_values((queries.ids, values), per_query, query_weight)


def _rows(a: Any, b: Any, qid: Any) -> tuple[Queries, list[Floats]]:
    """Return the items by query, and their scores in both rankings; NaN where an item is absent."""
    forms = [_form(ranking) for ranking in (a, b)]
    if forms[0] != forms[1]:
        raise TypeError(f"a and b must be rankings of one kind; got {forms[0]} and {forms[1]}")
    if forms[0] == "scores":
        scores = [as_vector(ranking, name) for ranking, name in ((a, "a"), (b, "b"))]
        check_lengths(a=scores[0], b=scores[1])
        if not scores[0].size:
            raise ValueError("a and b are empty; a measure requires at least one item")
        queries = group_rows(qid, scores[0].size)
    else:
        if qid is not None:
            raise ValueError(f"qid must be omitted, because a and b are {forms[0]}; got both")
        queries, scores = _joined(a, b)
    for column, name in zip(scores, "ab", strict=True):
        if np.isinf(column).any():
            raise ValueError(f"{name} must be finite, or NaN for items without a rank; got inf")
    return queries, scores


def _form(ranking: Any) -> str:
    if isinstance(ranking, Mapping):
        return "scores by item"
    return "runs" if hasattr(ranking, "docid") else "scores"


def _joined(a: Any, b: Any) -> tuple[Queries, list[Floats]]:
    """Join the items of two runs or mappings, one row each."""
    if isinstance(a, Mapping):
        sizes = [len(a), len(b)]
        items: NDArray[Any] = as_column([*a, *b], "the items of a and b")
        query, ids = np.zeros(items.size, dtype=np.int64), np.zeros(1, dtype=np.int64)
        columns = [as_vector([*ranking.values()], name) for ranking, name in ((a, "a"), (b, "b"))]
    else:
        sizes = [a.docid.size, b.docid.size]
        items = np.concatenate([a.docid, b.docid])
        queries = group_rows(np.concatenate([a.qid, b.qid]), items.size)
        query, ids = query_numbers(queries), queries.ids
        columns = [as_vector(a.score, "a"), as_vector(b.score, "b")]
    if items.dtype == object:  # of several types, which have no order
        places: dict[Any, int] = {}
        number = np.array([places.setdefault(item, len(places)) for item in items.tolist()])
    else:
        number = np.unique(items, return_inverse=True)[1]
    _, first, row = np.unique(
        query * np.int64(items.size) + number, return_index=True, return_inverse=True
    )
    scores = [np.full(first.size, np.nan) for _ in "ab"]
    scores[0][row[: sizes[0]]], scores[1][row[sizes[0] :]] = columns
    grouped = group_rows(query[first], first.size) if first.size else group_rows(None, 0)
    return replace(grouped, ids=ids), scores


# ---------------------------------------------------------------- overlap


class _Ranking:
    """Positions, from 1, of the first and last item of each tied group, by item and by depth."""

    def __init__(self, queries: Queries, scores: Floats) -> None:
        n_queries, sizes = queries.ids.size, np.diff(queries.bounds)
        order = np.empty(scores.size, dtype=np.int64)
        last = np.where(np.isnan(scores), -np.inf, scores)
        sort_queries(last, queries.rows, queries.bounds, 0, n_queries, order)
        ranked = ~np.isnan(scores[order])
        order, of = order[ranked], np.repeat(np.arange(n_queries), sizes)[ranked]
        score = scores[order]
        self.sizes = np.bincount(of, minlength=n_queries)
        starts = np.cumsum(self.sizes) - self.sizes
        self.position = np.arange(1, order.size + 1) - starts[of]
        begins = np.ones(order.size, dtype=bool)
        begins[1:] = (of[1:] != of[:-1]) | (score[1:] != score[:-1])
        group = np.cumsum(begins) - 1
        heads = np.flatnonzero(begins)
        ends = np.append(heads, order.size)[1:] - 1
        self.query = of
        self.group_first, self.group_last = self.position[heads][group], self.position[ends][group]
        # By item; 0 if it is not ranked.
        self.first, self.last = np.zeros((2, scores.size), dtype=np.int64)
        self.first[order], self.last[order] = self.group_first, self.group_last

    def by_depth(self, starts: Ints, n_depths: int) -> tuple[Ints, Ints]:
        """Return the group at each depth of each query; 0 below the end of the ranking."""
        first, last = np.zeros((2, n_depths), dtype=np.int64)
        slots = starts[self.query] + self.position - 1
        first[slots], last[slots] = self.group_first, self.group_last
        return first, last


def _overlaps(queries: Queries, scores: list[Floats], p: float, ties: str) -> Floats:
    """Compute the extrapolated overlap of each query; NaN if one of its rankings is empty."""
    query, n_queries = query_numbers(queries), queries.ids.size
    rankings = [_Ranking(queries, column) for column in scores]
    sizes = np.array([ranking.sizes for ranking in rankings])
    short, long = sizes.min(axis=0), sizes.max(axis=0)
    starts = np.cumsum(long) - long
    n_depths = int(long.sum())
    of = np.repeat(np.arange(n_queries), long)  # by depth
    depth = np.arange(1, n_depths + 1) - starts[of]
    # The shorter ranking S and the longer one L, by item and by depth.
    swapped = sizes[0] > sizes[1]
    (first_s, last_s), (first_l, last_l) = _chosen(
        swapped[query], [(ranking.first, ranking.last) for ranking in rankings]
    )
    (top_s, end_s), (top_l, end_l) = _chosen(
        swapped[of], [ranking.by_depth(starts, n_depths) for ranking in rankings]
    )

    def count(items: NDArray[np.bool_], start: Ints, stop: Ints) -> Ints:
        """Count, at each depth, the items with start <= depth <= stop."""
        items = items & (start <= stop)
        base = starts[query[items]] - 1
        change = np.bincount(base + start[items], minlength=n_depths + 1)
        change -= np.bincount(base + stop[items] + 1, minlength=n_depths + 1)
        counts: Ints = np.cumsum(change)[:n_depths]
        return counts

    both, only_l = (first_s > 0) & (first_l > 0), (first_s == 0) & (first_l > 0)
    end = long[query]
    if ties == "together":
        seen: Floats = count(both, np.maximum(first_s, first_l), end).astype(np.float64)
        unseen = np.ones(n_depths)
        scale = (np.where(depth <= short[of], end_s, depth) + end_l) / 2
    else:
        # Fractions of a group that are expected within the depth; 1 where it ends.
        part_s = np.where(end_s > 0, (depth - top_s + 1) / (end_s - top_s + 1), 1.0)
        part_l = (depth - top_l + 1) / (end_l - top_l + 1)
        seen = (
            count(both, np.maximum(last_s, last_l), end)
            + part_s * count(both, np.maximum(first_s, last_l), last_s - 1)
            + part_l * count(both, np.maximum(last_s, first_l), last_l - 1)
            + part_s
            * part_l
            * count(both, np.maximum(first_s, first_l), np.minimum(last_s, last_l) - 1)
        )
        whole, begun = count(only_l, last_l, end), count(only_l, first_l, last_l - 1)
        unseen = (whole + part_l * begun) / np.maximum(whole + begun, 1)
        scale = depth.astype(np.float64)
        if ties == "normalized":
            square_s = np.where(end_s > 0, top_s - 1 + (end_s - top_s + 1) * part_s**2, depth)
            scale = np.sqrt(square_s * (top_l - 1 + (end_l - top_l + 1) * part_l**2))

    values = np.full(n_queries, np.nan)
    ends = np.flatnonzero(short)
    if not ends.size:
        return values
    agreement = seen / scale
    at_short = np.zeros(n_queries)
    at_short[ends] = agreement[starts[ends] + short[ends] - 1]
    beyond = np.maximum(depth - short[of], 0)
    agreement = (seen + beyond * at_short[of] * unseen) / scale
    limit = np.zeros(n_queries)
    at_end = seen[starts[ends] + long[ends] - 1]
    limit[ends] = (at_end + (long - short)[ends] * at_short[ends]) / long[ends]
    # The weights of all depths sum to 1: equal rankings have exactly 1.
    terms = (1 - p) * p ** (depth - 1.0) * (agreement - limit[of])
    sums = np.bincount(of, terms, minlength=n_queries)
    values[ends] = np.clip(limit + sums, 0.0, 1.0)[ends]
    return values


def _chosen(swapped: NDArray[np.bool_], pairs: list[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """Swap the arrays of two rankings where the first is the longer one."""
    (first_a, last_a), (first_b, last_b) = pairs
    return [
        (np.where(swapped, first_b, first_a), np.where(swapped, last_b, last_a)),
        (np.where(swapped, first_a, first_b), np.where(swapped, last_a, last_b)),
    ]
