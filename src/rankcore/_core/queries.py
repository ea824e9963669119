"""Rows grouped by query, and means over queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.ids import check_missing, unchanged
from rankcore._core.numbers import Floats, as_weights, weighted_mean
from rankcore._core.threads import for_each, n_threads

# Rows between two checks for signals: about a tenth of a second.
_BLOCK_ROWS = 4_000_000
# Rows whose ids are compared with the next ones at a time, so that what is found fits a cache.
_RUN_ROWS = 1 << 18


@dataclass(frozen=True)
class Queries:
    """The rows of each query."""

    ids: NDArray[Any]  # (n_queries,): query ids, in order of first appearance
    # (n_queries + 1,): query ``i`` has places ``bounds[i]`` to ``bounds[i + 1]``.
    bounds: NDArray[np.int64]
    rows: NDArray[np.int64] | None  # (n,): the row at each place; None if places are rows

    @property
    def largest(self) -> int:
        """Rows of the largest query."""
        return int(np.diff(self.bounds).max())


def group_rows(qid: Any, n: int, n_jobs: int | None = None) -> Queries:
    """Group rows by query; rows of a query stay in order.

    Ids are integers, strings or other values that are equal within a query; rows of a query need
    not be contiguous. None: all rows belong to one query, 0. One pass, which threads share, if
    queries are contiguous, else a sort of the rows, with up to 60 bytes per row.
    """
    if isinstance(qid, Queries):
        if qid.bounds[-1] != n:
            raise ValueError(f"the queries have {qid.bounds[-1]} rows; found {n}")
        return qid
    if qid is None:
        return Queries(np.zeros(1, dtype=np.int64), np.array([0, n], dtype=np.int64), None)
    ids = unchanged(qid, "qid")
    if ids.ndim != 1 or ids.size != n:
        raise ValueError(
            f"qid must name the query of each of the {n} rows; found shape {ids.shape} "
            "(group sizes are not row-wise: use np.repeat(np.arange(len(group)), group))"
        )
    if ids.dtype == object:
        return _group_objects(ids)
    starts = _starts(ids, n_jobs)
    heads = ids[starts]
    if np.any(heads != heads):
        check_missing(ids, "qid")
    distinct, first, number = np.unique(heads, return_index=True, return_inverse=True)
    if distinct.size == heads.size:
        return Queries(heads, np.append(starts, n).astype(np.int64), None)
    return _regroup(ids, first, number, starts, n)


def _starts(ids: NDArray[Any], n_jobs: int | None) -> NDArray[np.int64]:
    """First row of each run of equal ids."""
    found: dict[int, NDArray[np.int64]] = {}

    def look(first: int) -> None:
        part = ids[first : first + _RUN_ROWS + 1]
        found[first] = np.flatnonzero(part[1:] != part[:-1]) + (first + 1)

    firsts = range(0, ids.size, _RUN_ROWS)
    for_each(look, firsts, n_threads(n_jobs))
    return np.concatenate([[0], *(found[first] for first in firsts)])


def kind_of_ids(ids: NDArray[Any]) -> str:
    """Kind of query ids, of the first one: ids of different kinds are never equal."""
    if ids.dtype.kind in "biuf" or isinstance(ids.flat[0], Number):
        return "numbers"
    return type(ids.flat[0]).__name__.removesuffix("_")


def _regroup(
    heads_of: NDArray[Any], first: NDArray[Any], number: NDArray[Any], starts: NDArray[Any], n: int
) -> Queries:
    """Group runs of rows: runs of one query have the same ``number``, with first run ``first``."""
    appearance = np.argsort(first, kind="stable")
    place = np.empty_like(appearance)
    place[appearance] = np.arange(appearance.size)
    lengths = np.diff(np.append(starts, n))
    of_row = np.repeat(place[number], lengths)
    rows = np.argsort(of_row, kind="stable").astype(np.int64, copy=False)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=first.size))])
    return Queries(heads_of[starts[first[appearance]]], bounds.astype(np.int64), rows)


def _group_objects(ids: NDArray[Any]) -> Queries:
    """Group ids of any hashable type, which NumPy cannot sort."""
    numbers: dict[Any, int] = {}
    try:
        of_row = np.array([numbers.setdefault(one, len(numbers)) for one in ids.tolist()])
    except TypeError as error:
        raise TypeError(f"qid must hold hashable ids: {error}") from None
    names = np.fromiter(numbers, object, len(numbers))
    check_missing(names, "qid", ids)
    grouped = group_rows(of_row, ids.size)
    return Queries(names, grouped.bounds, grouped.rows)


def query_numbers(queries: Queries) -> NDArray[np.int64]:
    """Return the number of the query of each row, in order of first appearance."""
    of = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    if queries.rows is None:
        return of
    numbers = np.empty_like(of)
    numbers[queries.rows] = of
    return numbers


def whole_folds(
    folds: Iterable[tuple[Any, Any]], queries: Queries, numbers: NDArray[np.int64]
) -> Iterator[tuple[Any, Any]]:
    """Yield the folds of a cross-validation; ValueError for one that divides a query."""
    for train, test in folds:
        both = np.intersect1d(numbers[train], numbers[test])
        if both.size:
            raise ValueError(
                "cv must keep the rows of a query together; found a fold that divides query "
                f"{queries.ids[both[0]]!r}: use rankcore.model_selection.QueryKFold"
            )
        yield train, test


def query_mean(values: Floats, query_weight: Any = None) -> float:
    """Mean over queries without omitted ones (NaN); NaN if all are omitted."""
    counted = ~np.isnan(values)
    if query_weight is None:
        return float(values[counted].mean()) if counted.any() else float("nan")
    weights = as_weights(query_weight, "query_weight", {"query": values.size})
    assert weights is not None
    weights = weights[counted]
    return weighted_mean(values[counted], weights) if weights.any() else float("nan")


def run_blocks(
    run: Callable[[int, int], None], bounds: NDArray[np.int64], n_jobs: int | None
) -> None:
    """Run ``run(first, last)`` over ranges of all queries, in threads."""
    threads = n_threads(n_jobs)
    n_queries, n = bounds.size - 1, int(bounds[-1])
    n_blocks = max(-(-n // _BLOCK_ROWS), 4 * threads if threads > 1 else 1)
    cuts = np.searchsorted(bounds, np.linspace(0, n, n_blocks + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [n_queries]])).tolist()
    parts = list(pairwise(edges))
    for_each(lambda part: run(*part), parts, threads)
