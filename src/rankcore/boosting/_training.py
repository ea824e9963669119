"""The loop over rounds of boosting, with its log, measures, output and best model.

`Rounds` make the rounds of one fit; `RoundLearner` presents them to the loop of all learners,
`rankcore._core.training`, and `train_rounds` runs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rankcore._core.monitor import Monitor
from rankcore._core.numbers import Floats
from rankcore._core.sources import Source, Window
from rankcore._core.training import Learner, Trainer
from rankcore.progress import Progress, report

# Logged statistics of each round.
STATISTICS = ("edge", "alpha", "normalizer", "bound", "cap")
BOUND = STATISTICS.index("bound")
# Bounds are clipped to this, as JSON has no infinity.
MAX_BOUND = 1e300


class Rounds(ABC):
    """Rounds that each add a weak ranker to ``model``, until they are ``done``.

    Iterating makes rounds, and yields what is logged of each.
    """

    model: Any
    done = False  # whether no further round improves the model

    @abstractmethod
    def round(self) -> Any:
        """Make a round; return its statistics, or None if no weak ranker improves the model."""

    def __iter__(self) -> Iterator[Any]:
        while not self.done and (statistics := self.round()) is not None:
            yield statistics


class RoundLearner(Learner):
    """Learner of boosted models.

    Each of ``rounds`` adds a weak ranker to the model of ``fitted``; there are at most
    ``n_estimators`` in total.
    """

    def __init__(self, fitted: Any, rounds: Iterable[Any], n_estimators: int) -> None:
        self.fitted, self.n_iterations = fitted, n_estimators
        self._rounds, self._n_before = iter(rounds), len(fitted._state.log)
        self._scores: list[Floats] = []

    @property
    def _model(self) -> Any:
        return self.fitted._state.model

    def begin(self, monitor: Monitor) -> None:
        """Measure each round of a continued model that has not been measured."""
        n_measured = len(monitor.values)
        held_out: list[Any] = monitor.held_out
        for rows in held_out:
            self._scores.append(self._model.first(n_measured).score(rows.rows))
        if held_out:
            for member in range(n_measured, len(self._model)):
                self._add(member, held_out)
                monitor.measure(self._outputs(member + 1))

    def _outputs(self, n_rounds: int) -> list[Any]:
        """Return the outputs to measure, from the scores after a number of rounds."""
        return self._scores

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        statistics = next(self._rounds, None)
        if statistics is not None:
            self._note(statistics, number)

    def _note(self, statistics: Any, number: int) -> None:
        """Log the statistics of a round."""
        log = self.fitted._state.log
        before = log[-1] if log else [1.0] * len(STATISTICS)
        bound, cap = before[BOUND] * statistics["normalizer"], before[BOUND + 1] * statistics["cap"]
        bound, cap = min(bound, MAX_BOUND), min(cap, MAX_BOUND)
        log.append([statistics["edge"], statistics["alpha"], statistics["normalizer"], bound, cap])
        measure = "bound on the training error"
        report(Progress(number, self.n_iterations, 1, 1, bound, measure, "rounds"))

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Implement `Learner.outputs`; adds the latest weak ranker to the scores."""
        self._add(len(self._model) - 1, held_out)
        return self._outputs(len(self._model))

    def _add(self, member: int, held_out: list[Any]) -> None:
        for rows, scores in zip(held_out, self._scores, strict=True):
            self._model.add_member(member, rows.rows, scores)

    def parameters(self) -> int:
        """Implement `Learner.parameters`: the number of weak rankers."""
        return len(self._model)

    def restore(self, parameters: int) -> None:
        self.fitted._state.model = self._model.first(parameters)

    def idle(self) -> str | None:
        """Implement `Learner.idle`: the fit added no round."""
        if len(self.fitted._state.log) > self._n_before:
            return None
        if self._n_before >= self.n_iterations:
            return (
                f"the model that warm_start continues has all n_estimators={self.n_iterations} "
                "rounds; raise n_estimators"
            )
        return (
            "no split improves the model: compared rows are equal in each feature or, with trees, "
            f"min_samples_leaf={self.fitted.min_samples_leaf!r} or another limit allows no split "
            "of so few rows; check X, or lower min_samples_leaf"
        )

    def line(self, number: int) -> str:
        statistics = self.fitted._state.log[-1]
        return (
            f"round {number} of {self.n_iterations}: edge {statistics[0]:+.4f}, "
            f"training error at most {statistics[BOUND]:.4f}"
        )


def train_rounds(learner: RoundLearner, source: Source, monitor: Monitor) -> None:
    """Run the rounds of a fit."""
    fitted = learner.fitted
    learner.begin(monitor)
    best = monitor.best if monitor.keeps_best and monitor.best else None
    Trainer(learner, source, monitor, best=best).run()
    if monitor.held_out:
        fitted.best_iteration_ = monitor.best
