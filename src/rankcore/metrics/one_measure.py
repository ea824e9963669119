"""One measure of all queries: its mean, or its value for each."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.queries import query_mean
from rankcore.metrics.conventions import Convention, Gain, resolve
from rankcore.metrics.evaluate_queries import measure_queries
from rankcore.metrics.judged import judged
from rankcore.metrics.names import Measure

PerQuery = tuple[NDArray[Any], NDArray[np.float64]]


class Options(TypedDict, total=False):
    """Keywords of all measures that conventions define."""

    qid: ArrayLike | None
    ties: Literal["average", "first", "last", "optimistic", "pessimistic"] | None
    convention: str | Convention | None
    per_query: bool
    query_weight: ArrayLike | None
    docid: ArrayLike | None
    n_jobs: int | None


class BinaryOptions(Options, total=False):
    """Keywords of measures of binary relevance."""

    rel: float | None
    empty: float | str | None


class DCGOptions(Options, total=False):
    """Keywords of discounted cumulative gain."""

    k: int | None
    gain: Gain | None
    discount: Literal["log2", "letor"] | None


class NDCGOptions(DCGOptions, total=False):
    """Keywords of normalised discounted cumulative gain."""

    empty: float | str | None


def measured(
    measure: Measure, y_true: Any, y_score: Any, options: Options, known: type = BinaryOptions
) -> float | PerQuery:
    """The mean of a measure over queries, or its values; ``known`` declares the options."""
    given: dict[str, Any] = {**options}
    for name in given.keys() - known.__annotations__.keys():
        raise TypeError(f"{measure.kind} got an unexpected keyword argument {name!r}")
    choices = {name: given.get(name) for name in ("gain", "discount", "rel", "ties", "empty")}
    meant = resolve(given.get("convention"), **choices)
    data = judged(y_true, y_score, given.get("qid"))
    ranked = data.by_id(given.get("docid"))
    (values,) = measure_queries(ranked, [measure], meant, n_jobs=given.get("n_jobs"))
    return mean_or_values(
        (data.queries.ids, values), given.get("per_query"), given.get("query_weight")
    )


def mean_or_values(found: PerQuery, per_query: Any, query_weight: Any) -> float | PerQuery:
    """The mean over queries, or their ids and values."""
    return found if per_query else query_mean(found[1], query_weight)
