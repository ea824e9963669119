"""The training loop of all learners and sources of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import nullcontext
from copy import copy, deepcopy
from time import monotonic
from typing import Any

import numpy as np

from rankcore._core.monitor import Monitor
from rankcore._core.sources import Position, Source, Window
from rankcore._ext.held_signals import raise_signals, signals_held
from rankcore.progress import Progress, translated

# Seconds between two copies of the state to which an interrupted fit can return.
COPY_SECONDS = 1.0


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
        """Predictions for each set of held-out rows."""

    def parameters(self) -> Any:
        """A copy of the parameters, for `put_back`."""
        return self.fitted._state.parameters()

    def put_back(self, parameters: Any) -> None:
        """Restore the parameters of an earlier iteration."""
        self.fitted._state.put_back(parameters)

    @abstractmethod
    def line(self, number: int) -> str:
        """A line about the latest iteration, for ``verbose``."""

    def converged(self, measured: bool) -> bool:
        """Whether further iterations would improve neither the model nor its measures."""
        return False

    def exhausted(self) -> None:  # noqa: B027 - few learners need it
        """Warn if all iterations were made and the model still improved."""


class Trainer:
    """Runs the iterations of a fit; ``best`` has the parameters of the best previous one."""

    def __init__(
        self, learner: Learner, source: Source, monitor: Monitor, best: Any = None
    ) -> None:
        self._learner, self._source, self._monitor, self._best = learner, source, monitor, best
        # Only a source on disk can start within a pass.
        self._pauses = pauses = None if source.kept else monitor.pauses
        if pauses is None or pauses.resume is None:
            first = len(learner.fitted._state.log) + 1
            self._position = Position(first, 0, learner.seed)
            return
        _, self._position, of_best = pauses.resume
        if of_best is not None:
            self._best = of_best._state.parameters()

    def run(self) -> Any:
        """Make all iterations; returns the fitted estimator."""
        learner, monitor = self._learner, self._monitor
        fitted, first = learner.fitted, self._position.epoch
        verbose = fitted.verbose
        # A resumable fit defers Ctrl-C between two passes, until the next one starts.
        with nullcontext() if self._pauses is None else signals_held():
            for number in range(first, learner.n_iterations + 1):
                if number > first:
                    self._position = Position(number, 0, self._position.seed)
                    self._save(interrupted=False)
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
        if self._best is not None:
            learner.put_back(self._best)
            fitted.best_iteration_ = monitor.best
        return fitted

    def _learn_windows(self, number: int) -> None:
        """One iteration over the windows of the source."""
        if self._source.kept:
            for window in self._source.windows(0, None, 0):
                self._learner.learn(window, self._learner.generator, number)
            return
        with translated(self._in_bytes):
            if self._pauses is None:
                for window in self._windows():
                    self._learn(window)
                return
            # Signals are raised only when the state is consistent or can be restored.
            with signals_held():
                self._learn_interruptibly()

    def _windows(self) -> Iterator[Window]:
        seed, epoch, first = self._position.seed, self._position.epoch, self._position.window
        order = (seed, epoch) if self._learner.shuffle else None
        n_features = self._learner.fitted.n_features_in_
        self._done = self._last = 0
        for window in self._source.windows(n_features, order, first):
            self._last, self._done = self._done, window.done
            yield window

    def _learn(self, window: Window) -> None:
        # Depends only on the position, so that a fit can continue from any position.
        place = [self._position.seed, self._position.epoch, window.number]
        self._learner.learn(window, np.random.default_rng(place), self._position.epoch)

    def _learn_interruptibly(self) -> None:
        state, epoch = self._learner.fitted._state, self._position.epoch
        restore, since = state.snapshot(), monotonic()
        first, n_windows = self._position.window, 0
        try:
            for window in self._windows():
                n_windows += 1
                raise_signals()
                if monotonic() - since > COPY_SECONDS:
                    restore, since = state.snapshot(), monotonic()
                    self._position = Position(epoch, window.number, self._position.seed)
                self._learn(window)
            if not n_windows:
                raise ValueError(
                    f"there is no window {first} of these rows to continue from: the checkpoint is "
                    "damaged, or of other rows"
                )
            raise_signals()
        except KeyboardInterrupt:
            restore()
            self._save(interrupted=True)
            raise

    def _in_bytes(self, now: Progress) -> Progress:
        total = max(self._source.size, 1)
        here = self._last + (self._done - self._last) * now.done // max(now.total, 1)
        done = min(here, total)
        return Progress(now.epoch, now.n_epochs, done, total, now.value, now.measure, "bytes")

    def _save(self, interrupted: bool) -> None:
        if self._pauses is None:
            return
        fitted = self._learner.fitted
        log = fitted._state.log
        opened = log[-1:] if not any(log[-1]) else []
        del log[len(log) - len(opened) :]  # an opened pass without examples does not count
        if log:
            best = self._fitted_best()
            self._pauses.save(fitted, self._position, interrupted, best)
        log.extend(opened)

    def _fitted_best(self) -> Any:
        """A copy of the estimator with the parameters of its best pass; None if there are none."""
        if self._best is None:
            return None
        copied = copy(self._learner.fitted)
        copied._state = deepcopy(copied._state)
        copied._state.put_back(self._best)
        copied.best_iteration_ = self._monitor.best
        return copied
