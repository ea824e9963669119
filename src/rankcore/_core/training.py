"""The training loop of all learners and sources of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from rankcore._core.monitor import Monitor
from rankcore._core.sources import Source, Window
from rankcore._core.warning import warn
from rankcore.progress import Progress, translated


class Learner(ABC):
    """Learner during a fit. Its iterations are passes, rounds or steps."""

    # Result of a successful ``fit``; the log of its state has statistics of each iteration.
    fitted: Any
    generator: Any = None  # draws the order of rows that are kept in memory
    seed: int = 0  # of the order of windows and of the rows in each, see `Source.seed`
    n_iterations: int  # maximum
    shuffle: bool = False  # whether each pass visits the rows in a new order

    def open(self, number: int) -> None:  # noqa: B027 - few learners need it
        """Begin an iteration; a learner that counts examples opens a record in the log."""

    @abstractmethod
    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """Learn a window of rows in iteration ``number``, from 1.

        An iteration that does not extend the log ends the fit.
        """

    def close(self) -> None:  # noqa: B027 - few learners need it
        """End an iteration; raise ValueError if it could not learn anything."""

    @abstractmethod
    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Predict each set of held-out rows."""

    def parameters(self) -> Any:
        """Copy the parameters, for `restore`."""
        return self.fitted._state.parameters()

    def restore(self, parameters: Any) -> None:
        """Restore the parameters of an earlier iteration."""
        self.fitted._state.restore(parameters)

    @abstractmethod
    def line(self, number: int) -> str:
        """Return a line about the latest iteration, for ``verbose``."""

    def converged(self, measured: bool) -> bool:
        """Return whether further iterations would improve neither the model nor its measures."""
        return False

    def exhausted(self) -> None:  # noqa: B027 - few learners need it
        """Warn if all iterations were made and the model still improved."""

    def idle(self) -> str | None:
        """Explain why the fit learned nothing, with a remedy; None if it learned something."""
        return None


class Trainer:
    """Runs the iterations of a fit; ``best`` has the parameters of the best previous one."""

    def __init__(
        self, learner: Learner, source: Source, monitor: Monitor, best: Any = None
    ) -> None:
        self._learner = learner
        self._source = source
        self._monitor = monitor
        self._best = best
        if monitor.resumed and monitor.keeps_best:
            self._best = learner.parameters()

    def run(self) -> Any:
        """Make all iterations; return the fitted estimator."""
        learner, monitor = self._learner, self._monitor
        fitted = learner.fitted
        verbose = fitted.verbose
        for number in range(len(fitted._state.log) + 1, learner.n_iterations + 1):
            learner.open(number)
            self._learn_windows(number)
            learner.close()
            if len(fitted._state.log) < number:
                break
            if monitor.held_out:
                improved = monitor.measure(learner.outputs(monitor.held_out))
                if improved and monitor.keeps_best:
                    self._best = learner.parameters()
            if verbose and number % verbose == 0:
                print(f"[{type(fitted).__name__}] {learner.line(number)}{monitor.text()}")
            if monitor.ends(number) or learner.converged(bool(monitor.held_out)):
                break
        else:
            learner.exhausted()
        if not monitor.resumed and (reason := learner.idle()) is not None:
            warn(f"{type(fitted).__name__} learned nothing: {reason}")
        if self._best is not None:
            learner.restore(self._best)
            fitted.best_iteration_ = monitor.best
        return fitted

    def _learn_windows(self, number: int) -> None:
        """Make one iteration over the windows of the source."""
        learner, source = self._learner, self._source
        if source.kept:
            for window in source.windows(0, None):
                learner.learn(window, learner.generator, number)
            return
        order = (learner.seed, number) if learner.shuffle else None
        self._done = self._last = 0
        with translated(self._in_bytes):
            for window in source.windows(learner.fitted.n_features_in_, order):
                self._last, self._done = self._done, window.done
                # The order of rows depends only on the place of the window, so that a fit that
                # was resumed after a pass learns as one that was not interrupted.
                place = [learner.seed, number, window.number]
                learner.learn(window, np.random.default_rng(place), number)

    def _in_bytes(self, now: Progress) -> Progress:
        total = max(self._source.size, 1)
        position = self._last + (self._done - self._last) * now.done // max(now.total, 1)
        done = min(position, total)
        return Progress(now.epoch, now.n_epochs, done, total, now.value, now.measure, "bytes")
