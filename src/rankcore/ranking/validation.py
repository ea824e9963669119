"""Measures of held-out rows of rankers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.eval_sets import as_metrics
from rankcore._core.numbers import Floats
from rankcore._core.params import Checked
from rankcore._core.queries import Queries, query_numbers
from rankcore._ext.rows import Rows
from rankcore.metrics import evaluate
from rankcore.metrics.names import greater_is_better


@dataclass(frozen=True)
class Validation:
    """Held-out rows, and their measures."""

    rows: Rows
    labels: Floats
    queries: Queries  # grouped once for all measures
    metrics: list[Any]
    names: list[str]  # their names in ``history_``

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return query_numbers(self.queries)

    @property
    def directions(self) -> list[bool]:
        """For each measure, whether higher is better."""
        return [merit(metric, 1.0) > 0 for metric in self.metrics]

    def check(self) -> None:
        """Raise ValueError if a named measure is not defined for the labels."""
        for metric in self.metrics:
            check_defined(metric, self.labels, self.queries, "eval_metric")

    def measure(self, scores: Floats) -> list[float]:
        """Compute the measures for scores of the rows."""
        return [
            measure(
                metric, self.labels, scores, self._numbers if callable(metric) else self.queries
            )
            for metric in self.metrics
        ]


def merit(metric: Any, value: Any) -> Any:
    """Return values of a measure, negated if it is a loss."""
    return value if not isinstance(metric, str) or greater_is_better(metric) else -value


def measure(metric: Any, labels: Any, scores: Any, qid: Any, query_weight: Any = None) -> float:
    """Measure scores by a named measure or a function of labels, scores and qid.

    ``query_weight``, in order of first appearance, is for named measures. Raises ValueError unless
    the value is finite.
    """
    if callable(metric):
        value = float(metric(labels, scores, qid))
    else:
        evaluation = evaluate(labels, scores, qid=qid, metrics=[metric], query_weight=query_weight)
        value = float(evaluation[metric])
    if not np.isfinite(value):
        raise ValueError(
            f"the measure {metric!r} returned {value}: it may be undefined for these labels"
        )
    return value


def check_defined(metric: Any, labels: Floats, queries: Any, name: str) -> None:
    """Raise ValueError before a fit if a named measure is undefined for labels.

    ``name`` is the name of the parameter.
    """
    if not callable(metric):
        in_order = np.arange(labels.size, dtype=np.float64)  # some measures reject ties
        try:
            evaluate(labels, in_order, qid=queries, metrics=[metric])
        except ValueError as error:
            raise ValueError(f"{name}={metric!r} cannot measure these labels: {error}") from error


def check_metric(metric: Any, name: str) -> None:
    """Raise unless a parameter is a function or the name of a measure."""
    if not callable(metric) and not isinstance(metric, str):
        raise TypeError(
            f"{name} must be the name of a measure, such as 'ndcg@10', or a function of labels, "
            f"scores and qid; got {metric!r}"
        )
    if isinstance(metric, str):
        try:
            evaluate([1.0, 0.0], [1.0, 0.0], metrics=[metric])
        except ValueError as error:
            raise ValueError(f"{name} must name a measure: {error}") from None


def _check_metrics(value: Any, name: str) -> None:
    """Raise unless a parameter is a measure or a list of them."""
    for metric in as_metrics(value):
        check_metric(metric, name)


# What parameters of one measure, and of one or more, accept.
METRIC = Checked(check_metric, "the name of a measure or a function")
METRICS = Checked(_check_metrics, "names of measures or functions")
