"""Arguments of a ranker's fit, and its rows grouped by query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.inputs import as_rows
from rankcore._core.queries import queries_of, take_queries, warn_without_qid
from rankcore._core.sources import MemoryRows, RowBlocks, Source, check_alone


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows of a fit, with their labels and queries."""

    X: Any
    y: Any
    qid: Any = None
    group: Any = None


@dataclass(frozen=True)
class RankingData:
    """The arguments of a ranker's ``fit``, not validated yet."""

    X: Any
    y: Any = None
    qid: Any = None
    group: Any = None
    sample_weight: Any = None
    pairs: Any = None
    pairs_weight: Any = None
    held_out: list[HeldOut] = field(default_factory=list)
    column: str | None = None  # of queries in X, if an earlier fit named it


def held_out_sets(
    eval_set: Any,
    eval_X: Any = None,
    eval_y: Any = None,
    eval_qid: Any = None,
    eval_group: Any = None,
    column: str | None = None,
) -> list[HeldOut]:
    """Return held-out sets from the arguments of ``fit``; queries may be in a column."""
    more = {"eval_qid": eval_qid, "eval_group": eval_group}
    sets = []
    for X, y, of in as_eval_sets(eval_set, eval_X, eval_y, more):
        group = of["eval_group"]
        X, qid = take_queries(X, of["eval_qid"], group, column)
        sets.append(HeldOut(X, y, qid, group))
    return sets


def ranking_source(
    data: RankingData,
    *,
    as_rows: Callable[[Any], Any] = as_rows,
    whole: Callable[[RowBlocks], tuple[Any, Any, Any]] | None = methodcaller("whole"),
    one_query: bool = False,
) -> Source:
    """Return the rows of a ranker's fit, checked and grouped by query if they are in memory.

    ``whole`` reads X, y and qid from rows on disk; None if the learner reads windows. Without
    queries and pairs, those of the window are None, which causes a warning unless ``one_query``.
    """
    X, y = data.X, data.y
    qid, group = data.qid, data.group
    blocks = X if isinstance(X, RowBlocks) else None
    if blocks is not None:
        check_alone(y=y, qid=qid, group=group, sample_weight=data.sample_weight)
        if whole is None:
            check_alone(pairs=data.pairs, pairs_weight=data.pairs_weight)
            return blocks
        X, y, qid = whole(blocks)
    X, qid = take_queries(X, qid, group, data.column)
    rows = as_rows(X)
    queries = None
    if qid is not None or group is not None:
        queries = queries_of(qid, group, rows.n_rows)
    elif data.pairs is None and not one_query:
        warn_without_qid()
    return MemoryRows(
        X if blocks is None else blocks,
        rows,
        y,
        queries,
        sample_weight=data.sample_weight,
        pairs=data.pairs,
        pairs_weight=data.pairs_weight,
    )
