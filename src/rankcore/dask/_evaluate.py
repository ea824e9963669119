"""Measures of Dask collections by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.arguments import DaskColumn
from rankcore._core.queries import group_rows
from rankcore.dask._engine import Client, count_of, engine_of, release
from rankcore.dask._regrouping import shards_on
from rankcore.dask._run import Run
from rankcore.dask._shards import Shard, check_queries, naming, pieces_of
from rankcore.metrics.conventions import Convention
from rankcore.metrics.evaluation import Evaluation
from rankcore.metrics.evaluation import evaluate as evaluate_here


def evaluate(
    y_true: DaskColumn,
    y_score: DaskColumn,
    *,
    qid: DaskColumn,
    metrics: str | Iterable[str] = ("ndcg@10", "map", "mrr", "P@10"),
    convention: str | Convention | None = None,
    n_shards: int | None = None,
    regroup: bool = False,
    client: Client | None = None,
) -> Evaluation:
    """`rankcore.metrics.evaluate` for Dask collections.

    Parameters
    ----------
    y_true, y_score, qid : dask arrays or series, or lists of delayed blocks, with equal divisions
    metrics, convention
        As for `rankcore.metrics.evaluate`.
    n_shards : int, optional
        Number of parts into which neighbouring blocks are joined; by default one per thread.
    regroup : bool, default=False
        Whether to move rows between workers so that queries are whole.
    client : distributed.Client, optional
        By default the current client.

    Returns
    -------
    Evaluation
        Equal to that of the same rows in memory, to the bit; with ``regroup`` queries are in
        another order, and means may differ in the last digit.

    Raises
    ------
    ValueError
        If a query has rows in two shards, or input is invalid.
    """
    engine = engine_of(client)
    n_shards = count_of(n_shards, "n_shards", engine)
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    pieces = pieces_of((y_score, y_true, qid, None), n_shards, (None, False))
    run = Run(engine, "evaluate", token_hex(4))
    held: list[Any] = []
    try:
        held = engine.compute(shards_on(engine, pieces, n_shards, run.token, regroup))
        tasks = [
            run.submit(_part, one, number, names, convention, what=str(number))
            for number, one in enumerate(held)
        ]
        parts = [part for part in run.gather(tasks) if part is not None]
    finally:
        release([*run.futures, *held])
    if not parts:
        raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
    check_queries([queries for queries, _ in parts])
    return _merged([evaluation for _, evaluation in parts])


def _part(
    shard: Shard | None, number: int, metrics: list[str], convention: Any
) -> tuple[NDArray[Any], Evaluation] | None:
    """Queries and evaluation of a shard; None if it is empty."""
    if shard is None:
        return None
    with naming(f"shard {number}"):
        if shard.qid is None:
            raise ValueError("measures of collections require qid; found qid=None")
        scores = np.asarray(shard.X)
        evaluation = evaluate_here(
            shard.y, scores, qid=shard.qid, metrics=metrics, convention=convention
        )
        return np.unique(group_rows(shard.qid, shard.y.size).ids), evaluation


def _merged(parts: Sequence[Evaluation]) -> Evaluation:
    per_query = {
        name: np.concatenate([part.per_query[name] for part in parts])
        for name in parts[0].per_query
    }
    qid = np.concatenate([part.qid for part in parts])
    return Evaluation(per_query, qid, parts[0].convention, over=parts[0].over)
