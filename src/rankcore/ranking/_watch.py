"""What happens after each pass, round or step of a fit: held-out rows, callbacks, an early end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.queries import Queries, query_numbers
from rankcore._ext.rows import Rows
from rankcore.metrics import evaluate
from rankcore.metrics.names import greater_is_better


@dataclass(frozen=True)
class Validation:
    """Rows that are held out, and what is measured on them.

    Attributes
    ----------
    rows : Rows
    labels : ndarray of float64
    queries : Queries
        Made once: no measure groups the rows again.
    metric : str or callable
    """

    rows: Rows
    labels: NDArray[np.float64]
    queries: Queries
    metric: Any

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return query_numbers(self.queries)

    def measure(self, scores: NDArray[np.float64]) -> float:
        """Value of the metric for scores of the rows."""
        qid = self._numbers if callable(self.metric) else self.queries
        return measure(self.metric, self.labels, scores, qid)

    def merit(self, value: Any) -> Any:
        """What values of the metric are worth, see `merit`."""
        return merit(self.metric, value)


class Watch:
    """Looks at a model that is being fitted.

    Parameters
    ----------
    model : Ranker
        What the estimator will be if all goes well. What is measured goes into its state.
    validation : Validation or None
    callbacks : iterable of callables, or None
        Called with a copy of the model each time; a true answer of one ends the fit.

    Attributes
    ----------
    values : list of float
        The measure on held-out rows after each time.
    best : int
        The number, from 1 on, of the best value so far; 0 if there is none.
    """

    def __init__(
        self,
        model: Any,
        validation: Validation | None,
        callbacks: Iterable[Callable[[Any], Any]] | None,
    ) -> None:
        self._model, self.validation = model, validation
        self._callbacks = list(callbacks or ())
        self._patience = getattr(model, "early_stopping_rounds", None)
        self.best, self._best_merit = 0, -np.inf
        self.values: list[float] = []
        known = model._state.validation
        model._state.validation = {}
        if validation is not None:
            self.values = known.get(model._metric_name(), self.values)
            model._state.validation[model._metric_name()] = self.values
        for number, value in enumerate(self.values, 1):
            self._rate(number, value)

    @property
    def used(self) -> bool:
        """Whether the model is measured or shown to callbacks."""
        return self.validation is not None or bool(self._callbacks)

    def measure(self, scores: NDArray[np.float64]) -> bool:
        """Measure scores of the held-out rows; whether they are the best so far."""
        assert self.validation is not None
        value = self.validation.measure(scores)
        self.values.append(value)
        return self._rate(len(self.values), value)

    def _rate(self, number: int, value: float) -> bool:
        assert self.validation is not None
        merit = self.validation.merit(value)
        if self.best and not merit > self._best_merit:
            return False
        self.best, self._best_merit = number, merit
        return True

    def ends(self) -> bool:
        """Whether the fit ends here: a callback says so, or nothing has improved for too long."""
        # A copy: what a callback sets is not for the user's estimator.
        stop = [bool(callback(copy(self._model))) for callback in self._callbacks]
        if self._patience is None:
            return any(stop)
        return any(stop) or len(self.values) - self.best >= self._patience

    def text(self) -> str:
        """The latest value, for a line of progress."""
        return f", {self._model._metric_name()} {self.values[-1]:.4f}" if self.values else ""


def merit(metric: Any, value: Any) -> Any:
    """What values of a metric are worth: greater is better, so a loss is negated.

    Parameters
    ----------
    metric : str or callable
        A function is greater for better.
    value : float or ndarray

    Returns
    -------
    float or ndarray
    """
    return value if not isinstance(metric, str) or greater_is_better(metric) else -value


def measure(metric: Any, labels: Any, scores: Any, qid: Any) -> float:
    """Measure scores by name or by a function.

    Parameters
    ----------
    metric : str or callable
        A name that `rankcore.metrics.evaluate` knows, or a function of labels, scores and qid.
    labels, scores : ndarray
    qid : ndarray, or Queries for a name

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the value is not finite.
    """
    if callable(metric):
        value = float(metric(labels, scores, qid))
    else:
        value = float(evaluate(labels, scores, qid=qid, metrics=[metric])[metric])
    if not np.isfinite(value):
        raise ValueError(
            f"the measure {metric!r} gave {value}: it may not be defined for these labels"
        )
    return value


def check_metric(metric: Any, name: str) -> None:
    """Raise unless a parameter is a function or the name of a measure.

    Parameters
    ----------
    metric : object
    name : str
        What error messages call it.
    """
    if not callable(metric) and not isinstance(metric, str):
        raise TypeError(
            f"{name} must be the name of a measure, such as 'ndcg@10', or a function of labels, "
            f"scores and qid; found {metric!r}"
        )
    if isinstance(metric, str):
        evaluate([1.0, 0.0], [1.0, 0.0], metrics=[metric])  # an unknown name says what is near it
