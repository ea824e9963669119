"""What happens after each pass, round or step of a fit: held-out rows, callbacks, an early end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np

from rankcore.callbacks import EarlyStopping, Iteration, Result

Callback = Callable[[Iteration], Any]


class HeldOut(Protocol):
    """Rows that are held out, and the measures on them."""

    @property
    def names(self) -> list[str]:
        """What ``history_`` calls the measures."""
        ...

    @property
    def directions(self) -> list[bool]:
        """Whether each measure is to grow."""
        ...

    def measure(self, output: Any) -> list[float]:
        """Values of the measures for what the model gives for the rows."""
        ...


class Watch:
    """Looks at a model that is being fitted.

    Parameters
    ----------
    model : estimator
        What the estimator will be if all goes well. What is measured goes into its state.
    held_out : sequence of HeldOut
        The first measure on the first of them decides on early stopping.
    callbacks : iterable of callables, or None
        Called with an `Iteration` each time; the fit ends after one returns True.

    Attributes
    ----------
    best : int
        The number, from 1 on, of the best value so far; 0 if there is none.
    patience : int or None
        Values in a row that may fail to improve; None if the fit does not stop early.

    Raises
    ------
    ValueError, TypeError
        If early stopping has nothing to look at, or a callback cannot be called.
    """

    def __init__(
        self, model: Any, held_out: Sequence[HeldOut], callbacks: Iterable[Callback] | None
    ) -> None:
        self._model, self.held_out = model, list(held_out)
        self._callbacks = [callbacks] if callable(callbacks) else list(callbacks or ())
        for callback in self._callbacks:
            if not callable(callback):
                raise TypeError(
                    "callbacks must be functions of an iteration, such as those of "
                    f"rankcore.callbacks; found {callback!r:.60}"
                )
            tool = type(callback).__module__.partition(".")[0]
            if tool in ("lightgbm", "xgboost"):
                raise TypeError(
                    f"found a callback of {tool}, which looks at its own booster: set "
                    "early_stopping_rounds, or use those of rankcore.callbacks"
                )
        patience = [one.rounds for one in self._callbacks if isinstance(one, EarlyStopping)]
        if getattr(model, "early_stopping_rounds", None) is not None:
            patience.append(model.early_stopping_rounds)
        self.patience: int | None = min(patience, default=None)
        if self.patience is not None and not self.held_out:
            raise ValueError("early_stopping_rounds requires eval_set; found no held-out rows")
        self.best, self._best_merit = 0, -np.inf
        known, self._logs = model._state.validation, {}
        self._directions: dict[str, bool] = {}
        for one in self.held_out:
            for name, direction in zip(one.names, one.directions, strict=True):
                self._logs[name] = known.get(name, [])
                self._directions[name] = direction
        lengths = {len(log) for log in self._logs.values()}
        if len(lengths) > 1:  # a fit that goes on has other measures than it began with
            self._logs = {name: [] for name in self._logs}
        model._state.validation = self._logs
        for number, value in enumerate(self.values, 1):
            self._rate(number, value)

    @property
    def values(self) -> list[float]:
        """The first measure on the first held-out rows, each time."""
        return next(iter(self._logs.values()), [])

    @property
    def used(self) -> bool:
        """Whether the model is measured or shown to callbacks."""
        return bool(self.held_out or self._callbacks)

    @property
    def keeps_best(self) -> bool:
        """Whether the fit ends with the model of the best value."""
        return self.patience is not None

    def measure(self, outputs: Sequence[Any]) -> bool:
        """Measure what the model gives for the held-out rows; whether it is the best so far."""
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
        """Whether the fit ends here: a callback says so, or nothing has improved for too long."""
        stop = False
        if self._callbacks:
            results = self._results()
            for callback in self._callbacks:
                # A copy: what a callback sets is not for the user's estimator.
                answer = callback(Iteration(number, results, copy(self._model)))
                if not isinstance(answer, bool | np.bool_ | None):
                    raise TypeError(
                        "a callback must return True, to end the fit, False or nothing; found "
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
        """The latest values, for a line of progress."""
        return "".join(f", {name} {one.value:.4f}" for name, one in self._results().items())


def measure_names(metrics: Sequence[Any], taken: Iterable[str], n_sets: int) -> list[list[str]]:
    """What ``history_`` calls measures, given as names or as functions, on each held-out set.

    Parameters
    ----------
    metrics : sequence of str or callable
    taken : iterable of str
        Names that ``history_`` has already.
    n_sets : int
        One set has the names of the measures; several have them with a number before each.
    """
    taken, names = set(taken if n_sets == 1 else ()), []
    for metric in metrics:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "measure")
        name, number = (f"valid_{name}" if name in taken else name), 1
        while name in taken:
            number += 1
            name = f"{name.rsplit(' ')[0]} {number}"
        taken.add(name)
        names.append(name)
    if n_sets == 1:
        return [names]
    return [[f"valid_{number}_{name}" for name in names] for number in range(n_sets)]


def as_metrics(eval_metric: Any) -> list[Any]:
    """The measures of an ``eval_metric``, which is one or a list of them."""
    return list(eval_metric) if isinstance(eval_metric, list | tuple) else [eval_metric]


def as_eval_sets(
    eval_set: Any, eval_X: Any, eval_y: Any, more: Mapping[str, Any]
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Held-out rows, in any of the forms that learners take them in.

    Parameters
    ----------
    eval_set : (X, y), a list of such pairs, or None
    eval_X, eval_y : array-like, a list or tuple of them, or None
    more : mapping of str to (array-like, list of them, or None)
        What else there is of each set, by the name of the argument.

    Returns
    -------
    list of (X, y, dict)

    Raises
    ------
    ValueError, TypeError
        If these are in another form, or do not fit together.
    """
    if (eval_X is None) != (eval_y is None):
        raise ValueError("eval_X and eval_y must come together; found one of them")
    if eval_X is not None:
        if eval_set is not None:
            raise ValueError(
                "found both eval_set and eval_X, which have the same meaning: give one"
            )
        several = isinstance(eval_X, list | tuple) and _are_tables(eval_X)
        if several and len(eval_X) != len(eval_y):
            raise ValueError(f"found {len(eval_X)} eval_X and {len(eval_y)} eval_y")
        eval_set = list(zip(eval_X, eval_y, strict=True)) if several else [(eval_X, eval_y)]
    if eval_set is None:
        for name, values in more.items():
            if values is not None:
                raise ValueError(f"{name} requires eval_set; found eval_set=None")
        return []
    sets = eval_set if isinstance(eval_set, list) else [eval_set]
    if not sets or not all(isinstance(one, tuple) and len(one) == 2 for one in sets):
        kinds = ", ".join(type(one).__name__ for one in sets[:3])
        raise TypeError(
            "eval_set must be a pair (X, y), a tuple, or a list of such pairs; found a "
            f"{type(eval_set).__name__} of {len(sets)}: {kinds}"
        )
    found: list[dict[str, Any]] = [{} for _ in sets]
    for name, values in more.items():
        each = _for_each(values, len(sets), name)
        for one, value in zip(found, each, strict=True):
            one[name] = value
    return [(X, y, one) for (X, y), one in zip(sets, found, strict=True)]


def _are_tables(values: Any) -> bool:
    """Whether these are feature matrices, rather than the rows of one."""
    return all(hasattr(one, "shape") and len(one.shape) == 2 for one in values)


def _for_each(values: Any, n: int, name: str) -> list[Any]:
    """One array for each set; a single set may have it as it is or in a list of one."""
    if values is None or isinstance(values, str):  # a string names a column of each
        return [values] * n
    listed = isinstance(values, list | tuple) and all(
        one is None or np.ndim(one) == 1 for one in values
    )
    if n == 1 and not (listed and len(values) == 1):
        return [values]
    if not listed or len(values) != n:
        raise ValueError(f"{name} must be a list of {n} arrays, one for each eval_set")
    return list(values)
