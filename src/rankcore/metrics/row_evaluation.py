"""Measures of ordered labels for each row, for tests of their differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.metrics.conventions import Convention
from rankcore.metrics.evaluation import Evaluation
from rankcore.metrics.names import label_measure
from rankcore.metrics.ordinal import rank_distances
from rankcore.metrics.probabilities import (
    brier_scores,
    checked_probabilities,
    log_losses,
    ranked_probability_scores,
)


class RowEvaluation(Evaluation):
    """Means of measures over rows: a mapping from their names.

    Parameters
    ----------
    per_row : dict of str to ndarray, shape (n,)
        The value of each measure for each row.

    Attributes
    ----------
    per_query : dict of str to ndarray, shape (n,)
        As ``per_row``: each row is a query of its own.
    qid : ndarray, shape (n,)
        Numbers of the rows, from 0.
    unit, units : str
        ``"row"`` and ``"rows"``.
    """

    unit, units, _ids = "row", "rows", "row"

    def __init__(self, per_row: dict[str, Floats]) -> None:
        n = next(iter(per_row.values())).size
        super().__init__(per_row, np.arange(n), Convention())

    @property
    def _caption(self) -> str:
        return "means over rows"


@dataclass(frozen=True)
class Predictions:
    """Predictions compared with the truth."""

    distances: Floats  # (n,): between the true rank and the predicted one
    # Probabilities by rank, (n, k), and the true ranks, (n,); None for predicted labels.
    table: Floats | None = None
    place: NDArray[np.intp] | None = None

    def scores(self, score: Callable[[Floats, NDArray[np.intp]], Floats], name: str) -> Floats:
        """Return a score of the probabilities in each row."""
        if self.table is None or self.place is None:
            raise ValueError(
                f"{name} requires probabilities of all ranks, shape (n, k), as predict_proba "
                "returns; got labels, which rank_loss measures"
            )
        return score(self.table, self.place)


# Measures that are means over rows; others, such as kappa, have no value in a row.
ROW_MEASURES: dict[str, Callable[[Predictions], Floats]] = {
    "rank_loss": lambda predictions: predictions.distances,
    "accuracy": lambda predictions: (predictions.distances == 0).astype(np.float64),
    "accuracy_within": lambda predictions: (predictions.distances <= 1).astype(np.float64),
    "ranked_probability_score": lambda predictions: predictions.scores(
        ranked_probability_scores, "ranked_probability_score"
    ),
    "brier_score": lambda predictions: predictions.scores(brier_scores, "brier_score"),
    "log_loss": lambda predictions: predictions.scores(log_losses, "log_loss"),
}


def default_measures(predictions: Iterable[Any]) -> list[str]:
    """Return the rank loss, and the ranked probability score if all give probabilities."""
    all_probabilities = all(np.ndim(system) == 2 for system in predictions)
    return ["rank_loss", "ranked_probability_score"] if all_probabilities else ["rank_loss"]


def evaluate_rows(y_true: Any, predicted: Any, names: Iterable[str], labels: Any) -> RowEvaluation:
    """Evaluate predicted labels, or probabilities of ranks, row by row.

    Values are finite, as a difference of infinities has no value.
    """
    compared = as_predictions(y_true, predicted, labels)
    values = {name: ROW_MEASURES[name](compared) for name in names}
    for name, row_values in values.items():
        infinite = np.flatnonzero(np.isinf(row_values))
        if infinite.size:
            raise ValueError(
                f"{name} must be finite in each row to be compared; got infinity in "
                f"{infinite.size} of {row_values.size} rows, first in row {infinite[0]}, whose "
                "label "
                "has probability 0: mix the probabilities with a small share of equal ones, such "
                "as (1 - e) * p + e / k, or compare the ranked_probability_score"
            )
    return RowEvaluation(values)


def row_measures(metrics: Iterable[str]) -> list[str]:
    """Return the full names of measures that have a value in each row."""
    names = [label_measure(name) or name for name in metrics]
    if not names:
        raise ValueError("metrics is empty; name at least one, such as 'rank_loss'")
    for name in names:
        if name not in ROW_MEASURES:
            near = get_close_matches(name, ROW_MEASURES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "; rankings of queries require qid"
            raise ValueError(
                "without qid, metrics must name measures that have a value in each row: "
                f"{', '.join(ROW_MEASURES)}; got {name!r}{hint}"
            )
    return names


def as_predictions(y_true: Any, predicted: Any, labels: Any) -> Predictions:
    """Compare predictions of one system with the true labels."""
    if np.ndim(predicted) != 2:
        return Predictions(rank_distances(y_true, predicted, labels))
    table, place, ordered_labels = checked_probabilities(y_true, predicted, labels)
    # The median minimises the expected rank loss.
    median = np.minimum((np.cumsum(table, axis=1) < 0.5).sum(axis=1), ordered_labels.size - 1)
    if labels is None and ordered_labels.dtype.kind in "biuf":
        distances = rank_distances(ordered_labels[place], ordered_labels[median], None)
    else:
        distances = np.abs(place - median).astype(np.float64)
    return Predictions(distances, table, place)
