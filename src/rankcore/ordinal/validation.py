"""Measures of an ordinal learner's predictions on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from rankcore._core.eval_sets import as_metrics, measure_names
from rankcore._core.labels import as_labels, ranks_beside
from rankcore._ext.rows import Rows
from rankcore.metrics.ordinal import ORDINAL

# For real predictions (the mean of votes) only these are meaningful.
OF_REALS = ("rank_loss", "macro_rank_loss", "max_rank_loss", "accuracy_within")


def check_eval_metric(value: Any, name: str, of_tables: Collection[str] = ()) -> None:
    """Raise unless measures are functions or known names; ``of_tables`` are additional names."""
    accepted = [*ORDINAL, *of_tables]
    if not as_metrics(value):
        raise ValueError(f"{name} must name at least one measure; got none")
    for metric in as_metrics(value):
        if not callable(metric) and not (isinstance(metric, str) and metric in accepted):
            raise ValueError(
                f"{name} must be one or a list of {', '.join(accepted)}, or a function of "
                f"true and predicted labels, higher for better; got {metric!r}"
            )


class HeldOutLabels:
    """Rows held out from an ordinal fit, and the measures on them by ``names`` in ``history_``."""

    def __init__(
        self, rows: Rows, y: Any, classes: np.ndarray, metrics: Sequence[Any], names: list[str]
    ) -> None:
        self.rows = rows
        self.names = names
        self._metrics = metrics
        self._classes = classes
        self._labels = as_labels(y, rows.n_rows)[0]
        self._ranks, self._of_classes = ranks_beside(self._labels, classes)
        self.directions = [
            callable(metric) or ORDINAL.get(metric, (None, False))[1] for metric in metrics
        ]

    def measure(self, predicted: Any) -> list[float]:
        """Compute the measures for predicted ranks, which may be real numbers."""
        values = [self._value(metric, predicted) for metric in self._metrics]
        for metric, value in zip(self._metrics, values, strict=True):
            if not np.isfinite(value):
                raise ValueError(
                    f"the measure {metric!r} must be finite on held-out rows; got {value}"
                )
        return values

    def _value(self, metric: Any, predicted: Any) -> float:
        if callable(metric):
            labels = self._classes[np.rint(predicted).astype(np.intp)]
            return float(metric(self._labels, labels))
        on_scale = np.interp(predicted, np.arange(self._classes.size), self._of_classes)
        taken = on_scale if metric in OF_REALS else np.rint(on_scale)
        return float(ORDINAL[metric][0](self._ranks, taken))


def held_out_labels(
    sets: Sequence[tuple[Any, Any, Any]],
    more_rows: Callable[[Any], Rows],
    classes: np.ndarray,
    eval_metric: Any,
    kind: type[HeldOutLabels] = HeldOutLabels,
) -> list[HeldOutLabels]:
    """Return the held-out sets of a fit, see `rankcore._core.monitor.as_eval_sets`."""
    metrics = as_metrics(eval_metric)
    names = measure_names(metrics, len(sets))
    return [
        kind(more_rows(X), y, classes, metrics, names_of_set)
        for (X, y, _), names_of_set in zip(sets, names, strict=True)
    ]
