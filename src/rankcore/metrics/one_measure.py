"""One measure: its mean over queries, or its value for each query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention
from rankcore.metrics.evaluate_queries import judged, measure_queries
from rankcore.metrics.registry import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]


def measured(
    measure: Measure,
    convention: Convention,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: ArrayLike | None,
    per_query: bool,
    query_weight: ArrayLike | None,
    docid: ArrayLike | None,
    n_jobs: int | None,
) -> float | PerQuery:
    """Compute the mean of a measure over queries, or its values."""
    data = judged(y_true, y_score, qid, n_jobs)
    ranked = data.by_id(docid)
    (values,) = measure_queries(ranked, [measure], convention, n_jobs=n_jobs)
    return mean_or_values((data.queries.ids, values), per_query, query_weight)


def mean_or_values(values: PerQuery, per_query: Any, query_weight: Any) -> float | PerQuery:
    """Return the mean over queries, or ids and values of the queries."""
    return values if per_query else query_mean(values[1], query_weight)
