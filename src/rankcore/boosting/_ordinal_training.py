"""Learner interface of ordinal boosting: rounds, and measures of probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.labels import encode
from rankcore._core.monitor import Monitor
from rankcore._core.numbers import Floats
from rankcore.boosting._ordinal_rounds import OrdinalRounds
from rankcore.boosting._training import RoundLearner
from rankcore.metrics.probabilities import log_loss, ranked_probability_score
from rankcore.ordinal._curves import expected_costs
from rankcore.ordinal._decisions import cheapest
from rankcore.ordinal._validation import HeldOutLabels, check_eval_metric
from rankcore.progress import Progress, report

# Logged figures of each round.
FIGURES = ("log_loss",)
# Measures of probabilities; all are losses.
OF_TABLES = {"ranked_probability_score": ranked_probability_score, "log_loss": log_loss}


def check_measures(value: Any, name: str) -> None:
    """Raise unless measures are functions or known names, those of probabilities included."""
    check_eval_metric(value, name, OF_TABLES)


class HeldOutTables(HeldOutLabels):
    """Held-out rows, measured by predicted ranks or by probabilities."""

    @property
    def needs_ranks(self) -> bool:
        """Whether any measure uses predicted ranks."""
        return any(metric not in OF_TABLES for metric in self._metrics)

    def measure(self, predicted: tuple[Floats, NDArray[np.int32]]) -> list[float]:
        """Values of the measures for probabilities and predicted ranks."""
        table, ranks = predicted
        metrics, self._metrics = self._metrics, [m for m in self._metrics if m not in OF_TABLES]
        try:
            others = iter(super().measure(ranks))
        finally:
            self._metrics = metrics
        return [self._of_table(m, table) if m in OF_TABLES else next(others) for m in metrics]

    def _of_table(self, metric: str, table: Floats) -> float:
        truth = encode(self._labels, self._classes)
        labels = np.arange(self._classes.size)
        # Probabilities may underflow to 0.
        return float(OF_TABLES[metric](truth, np.maximum(table, 1e-300), labels=labels))


class OrdinalRoundLearner(RoundLearner):
    """Learner of `OrdinalBoost`."""

    def __init__(self, fitted: Any, made: OrdinalRounds, watched: bool) -> None:
        """``watched``: whether there are callbacks, which may predict after each round."""
        self._made, self._watched = made, watched
        rounds: Iterator[float] = iter(made)
        super().__init__(fitted, rounds)
        fitted.costs_ = self.costs()

    def begin(self, monitor: Monitor) -> None:
        """As `Learner.begin`."""
        held_out: list[Any] = monitor.held_out
        self._watched |= any(one.needs_ranks for one in held_out)
        super().begin(monitor)

    def _outputs(self, n_rounds: int) -> list[Any]:
        costs = self.fitted.costs_
        tables = [self._model.probabilities(scores, n_rounds) for scores in self._scores]
        return [(table, cheapest(table, costs)) for table in tables]

    def costs(self) -> Floats:
        """Costs of predictions; for kappa, from the probabilities of the training rows."""
        loss = self.fitted.loss
        if loss == "kappa":
            return expected_costs(loss, self._made.probabilities())
        return expected_costs(loss, np.empty((0, self._model.form.n_ranks)))

    def _note(self, figures: Any, number: int) -> None:
        self.fitted._state.log.append([figures])
        if self._watched and self.fitted.loss == "kappa":  # a pass over the rows
            self.fitted.costs_ = self.costs()
        report(Progress(number, self.n_iterations, 1, 1, figures, "log loss", "rounds"))

    def put_back(self, parameters: int) -> None:
        """As `Learner.put_back`."""
        super().put_back(parameters)
        self._made.go_back(self._model)

    def line(self, number: int) -> str:
        """As `Learner.line`."""
        return (
            f"round {number} of {self.n_iterations}: log loss {self.fitted._state.log[-1][0]:.4f}"
        )
