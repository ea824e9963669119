"""`evaluate`: the measures of `rankcore.metrics.evaluate` for Dask collections.

Each shard is measured on its worker, query by query; the client joins the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import DaskColumn
from rankcore._core.labels import as_grades, check_words
from rankcore._core.queries import group_rows
from rankcore.dask._cluster import Client, Shards, client_of, count_shards
from rankcore.dask._shards import Columns, Shard, check_whole
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
    classes: ArrayLike | None = None,
    n_shards: int | None = None,
    regroup: bool = False,
    client: Client | None = None,
) -> Evaluation:
    """Evaluate Dask collections, as `rankcore.metrics.evaluate`.

    Parameters
    ----------
    y_true, y_score, qid : dask arrays or series, or lists of delayed blocks, with equal divisions
    metrics, convention, classes
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
        That of the same rows in memory; with ``regroup`` queries are in another order.

    Raises
    ------
    ValueError
        If a query has rows in two shards, or input is invalid.
    """
    client = client_of(client)
    n_shards = count_shards(n_shards, client)
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    wanted = Columns(y_score, y_true, qid).delayed_shards(n_shards, regroup)
    with Shards(client, "evaluate", wanted) as shards:
        found = shards.gather(measure, metrics=names, convention=convention, classes=classes)
        numbers = [k for k, one in zip(shards.numbers, found, strict=True) if one is not None]
    parts = [one for one in found if one is not None]
    if not parts:
        raise ValueError("Found 0 sample(s) while a minimum of 1 is required.")
    check_whole([queries for queries, _ in parts], numbers)
    return merged([evaluation for _, evaluation in parts])


def measure(
    shard: Shard | None, metrics: list[str], convention: Any, classes: Any
) -> tuple[NDArray[Any], Evaluation] | None:
    """Return the queries and the evaluation of a shard, whose X has scores; None if it is empty."""
    if shard is None:
        return None
    if shard.qid is None:
        raise ValueError("measures of collections require qid; got qid=None")
    scores = np.asarray(shard.X)
    words = shard.order if classes is None else classes
    labels, _ = as_grades(shard.y, None if words is None else check_words(words), "evaluate")
    found = evaluate_here(labels, scores, qid=shard.qid, metrics=metrics, convention=convention)
    return np.unique(group_rows(shard.qid, shard.y.size).ids), found


def merged(parts: Sequence[Evaluation]) -> Evaluation:
    """Join evaluations of different queries."""
    per_query = {
        name: np.concatenate([part.per_query[name] for part in parts])
        for name in parts[0].per_query
    }
    qid = np.concatenate([part.qid for part in parts])
    sizes = np.concatenate([part.sizes for part in parts])
    return Evaluation(per_query, qid, parts[0].convention, over=parts[0].over, sizes=sizes)
