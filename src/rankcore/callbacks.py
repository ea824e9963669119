"""Callbacks of a fit, called after each pass, round or step: to stop, to log, to save.

A callback is any function of an `Iteration`; returning True ends the fit. Callbacks can be
combined: ``fit(..., callbacks=[LogEvaluation(10), TimeLimit(60)])``.
"""

from __future__ import annotations

import sys
from os import PathLike
from time import monotonic
from typing import TextIO

from rankcore._core.monitor import EarlyStopping, Iteration, Result
from rankcore._core.params import check_count
from rankcore.io.model_file import save

__all__ = ["Checkpoint", "EarlyStopping", "Iteration", "LogEvaluation", "Result", "TimeLimit"]


class LogEvaluation:
    """Print the measures on held-out rows.

    Parameters
    ----------
    period : int, default=1
        Number of iterations between lines.
    stream : text stream, optional
        Output stream; standard output by default.
    """

    def __init__(self, period: int = 1, stream: TextIO | None = None) -> None:
        check_count(period, "period")
        self.period, self.stream = period, stream

    def __call__(self, iteration: Iteration) -> None:
        """Print a line every ``period`` iterations."""
        if iteration.number % self.period == 0:
            values = [f"{name} {result.value:.6g}" for name, result in iteration.results.items()]
            print(f"[{iteration.number}]", "  ".join(values), file=self.stream or sys.stdout)


class Checkpoint:
    """Save the model periodically, in a file that `rankcore.load` reads.

    Parameters
    ----------
    path : str or path
        File to write. It is replaced atomically: after a crash the previous file remains.
    period : int, default=1
        Number of iterations between saves.
    """

    def __init__(self, path: str | PathLike[str], period: int = 1) -> None:
        check_count(period, "period")
        self.path, self.period = path, period

    def __call__(self, iteration: Iteration) -> None:
        """Save every ``period`` iterations."""
        if iteration.number % self.period == 0:
            save(iteration.model, self.path)


class TimeLimit:
    """End a fit after a time limit, at the end of the current iteration.

    Parameters
    ----------
    seconds : float
        Time limit, counted from the creation of the callback.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be above 0; got {seconds!r}")
        self.seconds, self._end = seconds, monotonic() + seconds

    def __call__(self, iteration: Iteration) -> bool:
        """Return whether the time limit is reached."""
        return monotonic() >= self._end
