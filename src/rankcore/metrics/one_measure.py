"""One measure of all queries: its mean, or its value for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention
from rankcore.metrics.evaluate_queries import measure_queries, rows_by_id
from rankcore.metrics.judged import judged
from rankcore.metrics.names import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]


def mean_or_values(
    measure: Measure,
    convention: Convention,
    y_true: Any,
    y_score: Any,
    qid: Any,
    per_query: bool,
    query_weight: Any,
    docid: Any,
    n_jobs: int | None,
) -> float | PerQuery:
    """Mean of a measure over queries; or the query ids and its values.

    The parameters are those of the public functions, as the user gave them.
    """
    data = judged(y_true, y_score, qid)
    rows = None if docid is None else rows_by_id(data.queries, docid)
    (values,) = measure_queries(data, [measure], convention, rows=rows, n_jobs=n_jobs)
    return (data.queries.ids, values) if per_query else query_mean(values, query_weight)
