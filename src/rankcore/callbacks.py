"""Callbacks of a fit, called after each pass, round or step: to stop, to log, to save.

A callback is any function of one `Iteration`; True ends the fit. Those here compose with
each other and with one's own: ``fit(..., callbacks=[LogEvaluation(10), TimeLimit(60)])``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from time import monotonic
from typing import Any, TextIO

__all__ = ["Checkpoint", "EarlyStopping", "Iteration", "LogEvaluation", "Result", "TimeLimit"]


@dataclass(frozen=True)
class Result:
    """The latest value of a measure on held-out rows.

    Attributes
    ----------
    value : float
    greater_is_better : bool
        Whether the measure is to grow; a loss is not.
    """

    value: float
    greater_is_better: bool


@dataclass(frozen=True)
class Iteration:
    """State of a fit after a pass, round or step.

    Attributes
    ----------
    number : int
        The pass, round or step that has ended, from 1 on.
    results : mapping of str to Result
        Measures on held-out rows after it, by the names of ``history_``.
    model : estimator
        A copy of the model as it is now, to predict with, to look at or to save, not to go on
        learning with. Its arrays go on learning when the callback has returned: save what is to be
        kept.
    """

    number: int
    results: Mapping[str, Result]
    model: Any


@dataclass(frozen=True)
class EarlyStopping:
    """End a fit that no longer improves, and keep the model of the best iteration.

    The same as the parameter ``early_stopping_rounds`` of the learners.

    Parameters
    ----------
    rounds : int
        Iterations in a row that may fail to improve the first measure on the first held-out set.

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
        if not isinstance(self.rounds, int) or isinstance(self.rounds, bool) or self.rounds < 1:
            raise ValueError(f"rounds must be an integer from 1 on; found {self.rounds!r}")

    def __call__(self, iteration: Iteration) -> bool:
        """Never end the fit: the learner itself counts, since it keeps the best model."""
        return False


class LogEvaluation:
    """Print the measures on held-out rows.

    Parameters
    ----------
    period : int, default=1
        Iterations from one line to the next.
    stream : text stream, optional
        Standard output by default.
    """

    def __init__(self, period: int = 1, stream: TextIO | None = None) -> None:
        if not isinstance(period, int) or period < 1:
            raise ValueError(f"period must be an integer from 1 on; found {period!r}")
        self.period, self.stream = period, stream

    def __call__(self, iteration: Iteration) -> None:
        """Print a line every so many iterations."""
        if iteration.number % self.period == 0:
            values = [f"{name} {one.value:.6g}" for name, one in iteration.results.items()]
            print(f"[{iteration.number}]", "  ".join(values), file=self.stream or sys.stdout)


class Checkpoint:
    """Save the model periodically, in a file that `rankcore.load` reads.

    Parameters
    ----------
    path : str or path
        Replaced as a whole each time: a crash leaves the file before.
    period : int, default=1
        Iterations from one save to the next.
    """

    def __init__(self, path: str | PathLike[str], period: int = 1) -> None:
        if not isinstance(period, int) or period < 1:
            raise ValueError(f"period must be an integer from 1 on; found {period!r}")
        self.path, self.period = path, period

    def __call__(self, iteration: Iteration) -> None:
        """Save every so many iterations."""
        if iteration.number % self.period == 0:
            import rankcore  # the names at the top are bound on first use

            rankcore.save(iteration.model, self.path)


class TimeLimit:
    """End a fit after a time limit, at the end of the current iteration.

    Parameters
    ----------
    seconds : float
        Counted from the making of the callback.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be above 0; found {seconds!r}")
        self.seconds, self._end = seconds, monotonic() + seconds

    def __call__(self, iteration: Iteration) -> bool:
        """Whether the time limit is reached."""
        return monotonic() >= self._end
