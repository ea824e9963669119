"""The loop over rounds of `rankcore.OrdinalBoost`: log loss, costs and held-out probabilities.

`OrdinalRoundLearner` presents the rounds to the loop of all learners. It measures held-out rows by
their probabilities of ranks, or by the ranks predicted from these, and updates the costs of
predictions, which depend on the training rows if the loss is kappa.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.monitor import Monitor
from rankcore._core.numbers import Floats
from rankcore.boosting._occurring_ranks import OccurringRanks
from rankcore.boosting._ordinal_rounds import MemoryOrdinalRounds
from rankcore.boosting._training import RoundLearner
from rankcore.metrics.probabilities import PROBABILITIES, with_unknown
from rankcore.ordinal.curves import expected_costs
from rankcore.ordinal.decisions import cheapest
from rankcore.ordinal.validation import HeldOutLabels, check_eval_metric
from rankcore.progress import Progress, report

# Logged statistics of each round.
STATISTICS = ("log_loss",)
# Measures of probabilities, by all of their names; all are losses.
OF_TABLES = {**PROBABILITIES, "rps": PROBABILITIES["ranked_probability_score"]}


def check_measures(value: Any, name: str) -> None:
    """Raise unless measures are functions or known names, including those of probabilities."""
    check_eval_metric(value, name, OF_TABLES)


class HeldOutTables(HeldOutLabels):
    """Held-out rows, measured by probabilities and predicted ranks."""

    def _value(self, metric: Any, predicted: tuple[Floats, NDArray[np.int32]]) -> float:
        table, ranks = predicted
        if metric not in OF_TABLES:
            return super()._value(metric, ranks)
        n_labels = max(self._ranks.max(), self._of_classes[-1]) + 1
        table = with_unknown(table, self._of_classes, n_labels)
        # Probabilities may underflow to 0.
        table = np.maximum(table, 1e-300)
        return float(OF_TABLES[metric](self._ranks, table, labels=np.arange(n_labels)))


class OrdinalRoundLearner(RoundLearner):
    """Learner of `OrdinalBoost`."""

    def __init__(
        self, fitted: Any, made: MemoryOrdinalRounds, occurring: OccurringRanks, watched: bool
    ) -> None:
        """Initialise; ``watched`` is whether callbacks may predict after each round."""
        self._made, self._occurring, self._watched = made, occurring, watched
        super().__init__(fitted, made, int(fitted.n_estimators))
        fitted.costs_ = self.costs()

    def begin(self, monitor: Monitor) -> None:
        metrics = [metric for rows in monitor.held_out for metric in rows._metrics]
        self._watched |= any(metric not in OF_TABLES for metric in metrics)  # needs the ranks
        super().begin(monitor)

    def _outputs(self, n_rounds: int) -> list[Any]:
        costs = self.fitted.costs_
        tables = [self._model.probabilities(scores, n_rounds) for scores in self._scores]
        return [(table, cheapest(table, costs)) for table in tables]

    def costs(self) -> Floats:
        """Return the costs of predictions; for kappa, from probabilities of the training rows."""
        loss, table = self.fitted.loss, np.empty((0, self._model.form.n_ranks))
        if loss == "kappa":
            table = self._made.probabilities()
        return expected_costs(loss, table, self._occurring.with_rows)

    def _note(self, statistics: Any, number: int) -> None:
        self.fitted._state.log.append([statistics])
        if self._watched and self.fitted.loss == "kappa":  # a pass over the rows
            self.fitted.costs_ = self.costs()
        report(Progress(number, self.n_iterations, 1, 1, statistics, "log loss", "rounds"))

    def restore(self, parameters: int) -> None:
        super().restore(parameters)
        self._made.go_back(self._model)

    def line(self, number: int) -> str:
        (loss,) = self.fitted._state.log[-1]
        return f"round {number} of {self.n_iterations}: log loss {loss:.4f}"
