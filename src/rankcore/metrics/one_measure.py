"""One measure of all queries: its mean, or its value for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention
from rankcore.metrics.evaluate_queries import measure_queries
from rankcore.metrics.judged import Judged
from rankcore.metrics.names import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]


def query_values(
    measure: Measure, convention: Convention, data: Judged, docid: Any, n_jobs: int | None
) -> PerQuery:
    """The query ids, and the value of a measure for each."""
    (values,) = measure_queries(data.by_id(docid), [measure], convention, n_jobs=n_jobs)
    return data.queries.ids, values


def mean_or_values(found: PerQuery, per_query: bool, query_weight: Any) -> float | PerQuery:
    """The mean over queries, or what `query_values` found."""
    return found if per_query else query_mean(found[1], query_weight)
