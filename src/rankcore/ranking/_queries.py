"""Labels and queries of rows, from the arguments of rankers."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import numpy as np

from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.frames import frame_of
from rankcore._core.inputs import as_rows, check_matrix, refuse_mask
from rankcore._core.labels import as_labels
from rankcore._core.numbers import Floats, as_weights
from rankcore._core.queries import Queries, group_rows
from rankcore._core.sources import MemoryRows, RowBlocks, Source, check_alone
from rankcore._core.warning import warn

# X, y, qid and group.
Given = tuple[Any, Any, Any, Any]

# Column of a data frame that has the queries.
QUERY_COLUMN = "qid"
# Rows to predict without qid that exceed this cause a warning.
PLAUSIBLE_ROWS = 2500


def take_queries(X: Any, qid: Any, group: Any) -> tuple[Any, Any]:
    """Return X and qid; if qid is a column of a data frame X, remove it from X.

    A string ``qid`` names the column. Without qid and group, it is "qid" if X has such a column.
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
    name = qid if named else QUERY_COLUMN
    there = any(isinstance(one, str) and one == name for one in frame.names)
    if qid is not None and not named:
        if there:
            raise ValueError(
                f"found both qid and a column named {name!r}, which have the same meaning: drop "
                "the column, or omit qid"
            )
        return X, qid
    if not there:
        if named:
            raise ValueError(f"X has no column named {qid!r}; it has {frame.names}")
        return X, qid
    if group is not None:
        raise ValueError(
            f"found both group and a column named {name!r}, which have the same meaning: pass one"
        )
    return frame.without(name), frame.column(frame.names.index(name))


def held_out_sets(held_out: tuple[Any, ...]) -> list[tuple[Any, Any, Any, Any]]:
    """X, y, qid and group of each held-out set, from the arguments of ``fit``."""
    eval_set, eval_X, eval_y, eval_qid, eval_group = held_out
    more = {"eval_qid": eval_qid, "eval_group": eval_group}
    found = []
    for X, y, of in as_eval_sets(eval_set, eval_X, eval_y, more):
        X, qid = take_queries(X, of["eval_qid"], of["eval_group"])
        found.append((X, y, qid, of["eval_group"]))
    return found


def ranking_source(
    given: Given,
    *,
    as_rows: Callable[[Any], Any] = as_rows,
    whole: Callable[[RowBlocks], tuple[Any, Any, Any]] | None = methodcaller("whole"),
    one_query: bool = False,
    **more: Any,
) -> Source:
    """Rows of a ranker's fit, checked and grouped by query if they are in memory.

    ``given`` is X, y, qid and group. ``whole`` reads X, y and qid from rows on disk; None if the
    learner reads windows. Without queries and pairs, those of the window are None, which causes a
    warning unless ``one_query``. Other arguments are fields of `Window`.
    """
    X, y, qid, group = given
    blocks = X if isinstance(X, RowBlocks) else None
    if blocks is not None:
        check_alone(y=y, qid=qid, group=group, sample_weight=more.get("sample_weight"))
        if whole is None:
            check_alone(**more)
            return blocks
        X, y, qid = whole(blocks)
    X, qid = take_queries(X, qid, group)
    rows = as_rows(X)
    queries = None
    if qid is not None or group is not None:
        queries = queries_of(qid, group, rows.n_rows)
    elif more.get("pairs") is None and not one_query:
        warn_without_qid()
    return MemoryRows(X if blocks is None else blocks, rows, y, queries, **more)


def warn_without_qid() -> None:
    """Warn of a fit without queries: it compares documents of different queries, if there are."""
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
    """Weights of queries, given those of queries or of rows."""
    n_rows, n_queries = int(queries.bounds[-1]), queries.ids.size
    weights = as_weights(sample_weight, "sample_weight", {"row": n_rows, "query": n_queries})
    if weights is None or weights.size == n_queries:
        return weights
    return query_means(weights, queries)


def query_means(values: Floats, queries: Queries) -> Floats:
    """Mean over the rows of each query."""
    in_order = values if queries.rows is None else values[queries.rows]
    sums: Floats = np.add.reduceat(in_order, queries.bounds[:-1])
    return sums / np.diff(queries.bounds)


def as_relevance(y: Any, n_rows: int) -> Floats:
    """Labels as finite numbers; ValueError for integers that float64 cannot represent."""
    labels, _ = as_labels(y, n_rows)
    if labels.dtype.kind not in "biuf":
        raise ValueError(
            f"labels of rankers must be numbers, higher for more relevant; found dtype "
            f"{labels.dtype}"
        )
    numbers = labels.astype(np.float64)
    if labels.dtype.kind in "iu" and np.abs(numbers).max() >= 2**53:  # 2**53 + 1 rounds to it
        lost = numbers.astype(object) != labels
        if lost.any():
            raise ValueError(
                f"labels of rankers are float64, which cannot represent {labels[lost.argmax()]} "
                "exactly: number the levels"
            )
    return numbers


def queries_of(qid: Any, group: Any, n_rows: int) -> Queries:
    """Group rows by query, from ids or sizes of contiguous queries; without either, one query."""
    if group is None:
        return group_rows(qid, n_rows)
    if qid is not None:
        raise ValueError("found both qid and group, which have the same meaning: pass one")
    refuse_mask(group, "group")
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"group must list the sizes of the queries; found {group!r}")
    total = sum(sizes.tolist())  # Python integers do not overflow
    if total != n_rows:
        raise ValueError(f"sizes in group must sum to the number of rows, {n_rows}; found {total}")
    sizes = sizes.astype(np.int64)
    return group_rows(np.repeat(np.arange(sizes.size), sizes), n_rows)
