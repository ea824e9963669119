"""Learner interface of ranking SVMs: an iteration is a Newton step."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from rankcore._core.monitor import Monitor
from rankcore._core.numbers import Floats
from rankcore._core.sources import Window
from rankcore._core.training import Learner
from rankcore.progress import Progress, report
from rankcore.ranking.svm._newton import Solution, Step


class NewtonLearner(Learner):
    """Learner of ranking SVMs by the steps of `newton_steps`.

    ``problem`` converts elements to models.
    """

    def __init__(
        self,
        fitted: Any,
        problem: Any,
        steps: Generator[tuple[Floats, Step], bool | None, Solution],
        monitor: Monitor,
    ) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self._problem, self._steps = problem, steps
        self._solution: Solution | None = None
        self._stopped = True
        self.monitor = monitor

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """As `Learner.learn`."""
        try:
            w, step = next(self._steps)
        except StopIteration as end:
            self._solution = end.value
            return
        fitted = self.fitted
        fitted._note(step)
        if self.monitor.used:
            fitted._state.model = self._problem.model(w)
            fitted.objective_, fitted.gap_ = step.objective, step.share
            fitted.n_iter_ = number
        self._step = step
        report(Progress(number, self.n_iterations, 1, 1, step.share, "gap", "steps"))

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """As `Learner.outputs`."""
        return [self.fitted._scores(one.rows, one.queries) for one in held_out]

    def line(self, number: int) -> str:
        """As `Learner.line`."""
        return step_line(self.fitted, number, self._step)

    def exhausted(self) -> None:
        """As `Learner.exhausted`: as reported by the solution."""
        self._stopped = False

    def solution(self) -> Solution:
        """The best element found; ends the steps."""
        if self._solution is None:
            try:
                self._steps.send(self._stopped)
            except StopIteration as end:
                self._solution = end.value
        assert self._solution is not None
        return self._solution


def step_line(model: Any, number: int, step: Step) -> str:
    """A line for ``verbose``."""
    return (
        f"C={model.C:g}, step {number}: objective {step.objective:.8g}, "
        f"at most {step.share:.1e} of it above the minimum"
    )
