"""Structured perceptrons as the trainer sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankcore._core.params import as_generator
from rankcore._core.sources import Window
from rankcore._core.training import Learner
from rankcore.ordinal._training import pass_line, stalled, warn_of_passes


class ExampleLearner(Learner):
    """A structured perceptron that is being fitted.

    Parameters
    ----------
    fitted : StructuredLearner
        With the state that learns.
    n_examples : int
    """

    def __init__(self, fitted: Any, n_examples: int) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self.generator, self.shuffle = as_generator(fitted.random_state), bool(fitted.shuffle)
        self._order = np.arange(n_examples, dtype=np.int32)

    def open(self, number: int) -> None:
        """As `Learner.open`."""
        self.fitted._state.log.append([0, 0, 0])

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """As `Learner.learn`."""
        if self.shuffle:
            generator.shuffle(self._order)
        state = self.fitted._state
        self.fitted._run_pass(state, window.rows, self._order, number, self.n_iterations)

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """As `Learner.outputs`: there are no held-out examples."""
        return []

    def line(self, number: int) -> str:
        """As `Learner.line`."""
        return pass_line(self.fitted._state.log[-1], number, self.n_iterations, "loss")

    def converged(self, measured: bool) -> bool:
        """As `Learner.converged`."""
        return stalled(self.fitted._state.log, self.fitted.tol)

    def exhausted(self) -> None:
        """As `Learner.exhausted`."""
        warn_of_passes(self.fitted, "loss")
