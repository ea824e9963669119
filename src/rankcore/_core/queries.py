"""Rows grouped by query, and means over queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import Frame, frame_of
from rankcore._core.ids import check_missing, unchanged
from rankcore._core.inputs import check_matrix, reject_mask
from rankcore._core.numbers import Floats, as_weights, weighted_mean
from rankcore._core.threads import for_each, n_threads
from rankcore._core.warning import warn

# Rows between two checks for signals: about a tenth of a second.
_BLOCK_ROWS = 4_000_000
# Rows whose ids are compared with the next ones at a time, so that what is found fits a cache.
_RUN_ROWS = 1 << 18
# Column of a data frame that has the queries.
QUERY_COLUMN = "qid"
# Rows to predict without qid that exceed this cause a warning.
PLAUSIBLE_ROWS = 2500


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
            raise ValueError(
                f"qid must be the queries of the {n} rows; got those of {qid.bounds[-1]} rows"
            )
        return qid
    if qid is None:
        return Queries(np.zeros(1, dtype=np.int64), np.array([0, n], dtype=np.int64), None)
    ids = unchanged(qid, "qid")
    if ids.ndim != 1 or ids.size != n:
        raise ValueError(
            f"qid must name the query of each of the {n} rows; got shape {ids.shape} "
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
    """Return the first row of each run of equal ids."""
    starts_by_kind: dict[int, NDArray[np.int64]] = {}

    def look(first: int) -> None:
        part = ids[first : first + _RUN_ROWS + 1]
        starts_by_kind[first] = np.flatnonzero(part[1:] != part[:-1]) + (first + 1)

    firsts = range(0, ids.size, _RUN_ROWS)
    for_each(look, firsts, n_threads(n_jobs))
    return np.concatenate([[0], *(starts_by_kind[first] for first in firsts)])


def kind_of_ids(ids: NDArray[Any]) -> str:
    """Return the kind of the first query id; ids of different kinds are never equal."""
    if ids.dtype.kind in "biuf" or isinstance(ids.flat[0], Number):
        return "numbers"
    return type(ids.flat[0]).__name__.removesuffix("_")


def _regroup(
    heads_of: NDArray[Any], first: NDArray[Any], number: NDArray[Any], starts: NDArray[Any], n: int
) -> Queries:
    """Group runs of rows by the ``number`` of their query; ``first`` is each query's first run."""
    appearance = np.argsort(first, kind="stable")
    place = np.empty_like(appearance)
    place[appearance] = np.arange(appearance.size)
    lengths = np.diff(np.append(starts, n))
    query_of_row = np.repeat(place[number], lengths)
    rows = np.argsort(query_of_row, kind="stable").astype(np.int64, copy=False)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(query_of_row, minlength=first.size))])
    return Queries(heads_of[starts[first[appearance]]], bounds.astype(np.int64), rows)


def _group_objects(ids: NDArray[Any]) -> Queries:
    """Group ids of any hashable type, which NumPy cannot sort."""
    numbers: dict[Any, int] = {}
    try:
        number_of_row = np.array(
            [numbers.setdefault(value, len(numbers)) for value in ids.tolist()]
        )
    except TypeError as error:
        raise TypeError(f"qid must hold hashable ids: {error}") from None
    names = np.fromiter(numbers, object, len(numbers))
    check_missing(names, "qid", ids)
    grouped = group_rows(number_of_row, ids.size)
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
    """Yield the folds of a cross-validation; raise ValueError for one that divides a query."""
    for train, test in folds:
        both = np.intersect1d(numbers[train], numbers[test])
        if both.size:
            raise ValueError(
                "cv must keep the rows of a query together; got a fold that divides query "
                f"{queries.ids[both[:1]].tolist()[0]!r}: use rankcore.model_selection.QueryKFold"
            )
        yield train, test


def query_mean(values: Floats, query_weight: Any = None) -> float:
    """Average over queries without omitted ones (NaN); NaN if all are omitted."""
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


def take_queries(X: Any, qid: Any, group: Any, column: str | None = None) -> tuple[Any, Any]:
    """Return X and qid; if qid is a column of a data frame X, remove it from X.

    A string ``qid`` names the column. Without qid and group, it is ``column``, that of the fit, or
    else "qid", if X has it. With qid or group, ``column`` is removed.
    """
    shape = getattr(X, "shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 1):  # texts are for steps of a pipeline
        check_matrix(X)
    named = isinstance(qid, str)
    frame = frame_of(X)
    if frame is None:
        if named:
            raise TypeError(f"qid={qid!r} names a column, which requires a DataFrame X")
        return X, qid
    if column is not None and not named and has_column(frame, column):
        if qid is not None or group is not None:
            return frame.without(column), qid
        return frame.without(column), frame.column(frame.names.index(column))
    name = qid if named else QUERY_COLUMN
    is_column = has_column(frame, name)
    if qid is not None and not named:
        if is_column:
            raise ValueError(
                f"qid and the column {name!r} of X have the same meaning; got both: drop "
                "the column, or omit qid"
            )
        return X, qid
    if not is_column:
        if named:
            raise ValueError(f"X has no column named {qid!r}; it has {frame.names}")
        return X, qid
    if group is not None:
        raise ValueError(
            f"group and the column {name!r} of X have the same meaning; got both: pass one"
        )
    return frame.without(name), frame.column(frame.names.index(name))


def has_column(frame: Frame, name: str) -> bool:
    """Return whether a frame has a column of this name; frames may have names of any type."""
    return any(isinstance(column, str) and column == name for column in frame.names)


def queries_of(qid: Any, group: Any, n_rows: int) -> Queries:
    """Group rows by query, from ids or sizes of contiguous queries; without either, one query."""
    if group is None:
        return group_rows(qid, n_rows)
    if qid is not None:
        raise ValueError("qid and group have the same meaning; got both: pass one")
    reject_mask(group, "group")
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"group must list the sizes of the queries; got {group!r}")
    total = sum(sizes.tolist())  # Python integers do not overflow
    if total != n_rows:
        raise ValueError(f"sizes in group must sum to the number of rows, {n_rows}; got {total}")
    sizes = sizes.astype(np.int64)
    return group_rows(np.repeat(np.arange(sizes.size), sizes), n_rows)


def warn_without_qid() -> None:
    """Warn of a fit without qid, which compares documents of different queries."""
    # The message has no numbers of these rows, so that a search with many fits warns once.
    warn(
        "fit found no qid and compares all rows with each other, as one query. Pass "
        "fit(..., qid=qid), the query of each row; if the n rows are one query, declare it by "
        "qid=np.zeros(n)"
    )


def warn_of_one_query(n_rows: int, largest: int, method: str) -> None:
    """Warn of more rows without qid than a query plausibly has.

    ``largest`` is the number of rows of the largest training query, 0 if the fit had no queries.
    """
    if n_rows <= (2 * largest if largest else PLAUSIBLE_ROWS):
        return
    warn(
        f"{method} found no qid and treats all {n_rows} rows as one query"
        + (f"; the largest training query had {largest} rows" if largest else "")
        + f". Pass {method}(..., qid=qid), the query of each row, or qid=np.zeros({n_rows}) if "
        "they are one query"
    )


def query_weights(sample_weight: Any, queries: Queries) -> Floats | None:
    """Return weights of queries, given those of queries or of rows."""
    n_rows, n_queries = int(queries.bounds[-1]), queries.ids.size
    weights = as_weights(sample_weight, "sample_weight", {"row": n_rows, "query": n_queries})
    if weights is None or weights.size == n_queries:
        return weights
    return query_means(weights, queries)


def query_means(values: Floats, queries: Queries) -> Floats:
    """Average the rows of each query."""
    in_order = values if queries.rows is None else values[queries.rows]
    sums: Floats = np.add.reduceat(in_order, queries.bounds[:-1])
    return sums / np.diff(queries.bounds)
