"""Held-out measures, callbacks and early stopping, after each iteration of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore._core.params import check_count


@dataclass(frozen=True)
class Result:
    """The latest value of a measure on held-out rows.

    Attributes
    ----------
    value : float
    greater_is_better : bool
        Whether higher values are better; False for losses.
    """

    value: float
    greater_is_better: bool


@dataclass(frozen=True)
class Iteration:
    """State of a fit after a pass, round or step.

    Attributes
    ----------
    number : int
        Number of the completed pass, round or step, from 1.
    results : mapping of str to Result
        Measures on held-out rows after it, by the names in ``history_``.
    model : estimator
        A copy of the current model, for prediction, inspection or saving, not for training. Its
        arrays change when training continues: save it to keep it.
    """

    number: int
    results: Mapping[str, Result]
    model: Any


@dataclass(frozen=True)
class EarlyStopping:
    """End a fit that no longer improves, and keep the model of the best iteration.

    Equivalent to the parameter ``early_stopping_rounds`` of the learners.

    Parameters
    ----------
    rounds : int
        Maximum number of successive iterations without improvement of the first measure on the
        first held-out set.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = np.digitize(X @ [1, 2, 3], [-2, 2])
    >>> model = rc.PRank(max_iter=100, random_state=0)
    >>> stop = rc.callbacks.EarlyStopping(5)
    >>> model = model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]), callbacks=[stop])
    >>> model.n_iter_ == min(model.best_iteration_ + 5, 100)
    True
    """

    rounds: int

    def __post_init__(self) -> None:
        """Raise unless ``rounds`` is a valid number."""
        check_count(self.rounds, "rounds")

    def __call__(self, iteration: Iteration) -> bool:
        """Do nothing: the learner counts iterations, since it keeps the best model."""
        return False


@dataclass(frozen=True)
class Resume:
    """Callback that continues a fit from a saved model, whose passes count.

    Of the passes before, only the last one takes part in the choice of the best pass: the file has
    no other parameters.
    """

    model: Any

    def __call__(self, iteration: Iteration) -> None:
        """Do nothing: the learner starts from the model."""


Callback = Callable[[Iteration], Any]


def as_callbacks(callbacks: Iterable[Callback] | Callback | None) -> list[Callback]:
    """Convert callbacks to a list; raise TypeError for callbacks of other libraries."""
    listed = [callbacks] if callable(callbacks) else list(callbacks or ())
    for callback in listed:
        if not callable(callback):
            raise TypeError(
                "callbacks must be functions of an iteration, such as those of "
                f"rankcore.callbacks; got {callback!r:.60}"
            )
        tool = type(callback).__module__.partition(".")[0]
        if tool in ("lightgbm", "xgboost"):
            raise TypeError(
                "callbacks must be functions of an iteration, such as those of "
                f"rankcore.callbacks; got one of {tool}, for its "
                "own boosters: set early_stopping_rounds"
            )
    return listed


def resumed_model(callbacks: list[Callback]) -> Any:
    """Return the model from which a fit continues, or None."""
    return next((callback.model for callback in callbacks if isinstance(callback, Resume)), None)


class Monitor:
    """Evaluates a model during a fit, and decides when the fit stops.

    Values are stored in the state of the model. Held-out rows have the ``names`` of their measures,
    ``directions`` (whether higher is better), and a method ``measure`` of the model's output. The
    first measure on the first of them is used for early stopping.
    """

    def __init__(
        self, model: Any, held_out: Sequence[Any], callbacks: Iterable[Callback] | None
    ) -> None:
        self._model, self.held_out = model, list(held_out)
        self._callbacks = as_callbacks(callbacks)
        self.resumed = resumed_model(self._callbacks) is not None
        patience = [
            callback.rounds for callback in self._callbacks if isinstance(callback, EarlyStopping)
        ]
        if getattr(model, "early_stopping_rounds", None) is not None:
            patience.append(model.early_stopping_rounds)
        # Maximum number of successive values without improvement; None without early stopping.
        self.patience: int | None = min(patience, default=None)
        if self.patience is not None and not self.held_out:
            raise ValueError("early_stopping_rounds requires eval_set; got no held-out rows")
        self.best, self._best_merit = 0, -np.inf  # number of the best value, from 1; 0 if none
        validation, self._logs = model._state.validation, {}
        self._directions: dict[str, bool] = {}
        for rows in self.held_out:
            for name, direction in zip(rows.names, rows.directions, strict=True):
                self._logs[name] = validation.get(name, [])
                self._directions[name] = direction
        lengths = {len(log) for log in self._logs.values()}
        if len(lengths) > 1:  # a continued fit has different measures
            self._logs = {name: [] for name in self._logs}
        model._state.validation = self._logs
        for number, value in enumerate(self.values, 1):
            if not self.resumed or number == len(self.values):
                self._rate(number, value)

    @property
    def values(self) -> list[float]:
        """Values of the first measure on the first held-out rows."""
        return next(iter(self._logs.values()), [])

    @property
    def used(self) -> bool:
        """Whether the model is measured or passed to callbacks."""
        return bool(self.held_out or self._callbacks)

    @property
    def keeps_best(self) -> bool:
        """Whether the result is the model with the best value."""
        return self.patience is not None

    def measure(self, outputs: Sequence[Any]) -> bool:
        """Measure the outputs for the held-out rows; return whether they are the best so far."""
        for held_out, output in zip(self.held_out, outputs, strict=True):
            for name, value in zip(held_out.names, held_out.measure(output), strict=True):
                self._logs[name].append(value)
        return self._rate(len(self.values), self.values[-1])

    def _rate(self, number: int, value: float) -> bool:
        greater = next(iter(self._directions.values()))
        merit = value if greater else -value
        if self.best and not merit > self._best_merit:
            return False
        self.best, self._best_merit = number, merit
        return True

    def ends(self, number: int) -> bool:
        """Return whether to stop, by a callback or early stopping."""
        stop = False
        if self._callbacks:
            results = self._results()
            for callback in self._callbacks:
                # A copy: attributes set by a callback do not affect the user's estimator.
                answer = callback(Iteration(number, results, copy(self._model)))
                if not isinstance(answer, bool | np.bool_ | None):
                    raise TypeError(
                        "a callback must return True, to end the fit, False or nothing; got "
                        f"{type(answer).__name__}"
                    )
                stop |= bool(answer)
        if self.patience is None:
            return stop
        return stop or len(self.values) - self.best >= self.patience

    def _results(self) -> Mapping[str, Result]:
        return {
            name: Result(log[-1], self._directions[name]) for name, log in self._logs.items() if log
        }

    def text(self) -> str:
        """Format the latest values for a progress line."""
        return "".join(f", {name} {result.value:.4f}" for name, result in self._results().items())
