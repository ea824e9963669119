"""Structured perceptrons as the trainer sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankcore._core.params import as_generator
from rankcore._core.sources import Window
from rankcore.ordinal._training import PassLearner


class ExampleLearner(PassLearner):
    """A structured perceptron that is being fitted, with the state that learns."""

    _loss = "loss"

    def __init__(self, fitted: Any, n_examples: int) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self.generator, self.shuffle = as_generator(fitted.random_state), bool(fitted.shuffle)
        self._order = np.arange(n_examples, dtype=np.int32)

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """As `Learner.learn`."""
        if self.shuffle:
            generator.shuffle(self._order)
        state = self.fitted._state
        self.fitted._run_pass(state, window.rows, self._order, number, self.n_iterations)

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """As `Learner.outputs`: there are no held-out examples."""
        return []
