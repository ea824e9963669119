"""Whether a fit ranks its own rows better than the best constant rank."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore._core.labels import encode
from rankcore._core.sources import Source
from rankcore._core.warning import warn
from rankcore._ext.rows import Rows
from rankcore.ordinal._parameters import PUBLISHED

# Maximum number of rows in memory to predict: enough to find a fit that is no better than a
# constant, and few beside the rows of a long fit.
MEASURED_ROWS = 1000
# Rows that are copied at a time.
COPIED_ROWS = 50
# Minimum number of rows of which a warning is worth reading.
FEW_ROWS = 30


def constant_loss(counts: NDArray[np.int64]) -> float:
    """Mean rank loss of the best constant, by the number of rows of each rank."""
    best = int(np.searchsorted(2 * counts.cumsum(), counts.sum()))  # the median
    return float(counts @ np.abs(np.arange(counts.size) - best) / counts.sum())


def warn_of_constant(learner: Any, source: Source) -> None:
    """Warn if a fitted model ranks its training rows no better than the best constant rank.

    The loss while learning usually shows that it does. Otherwise it predicts, because averages
    lose less than the models that they average: some rows in memory, or all rows on disk.

    Not measured are few rows, on which any model may fail; settings of the papers, which are for
    one pass of a stream; and rows with weights, for which the loss of a constant has no weights.
    """
    fitted, counts = learner.fitted, learner.counts
    if not fitted._checks_constant or learner.weighted or _is_published(fitted):
        return
    n, total, _ = fitted._state.log[getattr(fitted, "best_iteration_", 0) - 1]
    if counts.sum() < FEW_ROWS or total / n < constant_loss(counts):
        return
    try:
        loss, constant = _losses(fitted, learner, source)
    except ValueError:  # scores that overflow are an error of `predict`
        return
    if loss < constant:
        return
    name = type(fitted).__name__
    others = " or ".join(one for one in ("KernelPRank", "OrdinalBoost") if one != name)
    warn(
        f"{name} ranks its training rows no better than the best constant label: a model of this "
        f"form does not fit them; try {others}, or other features"
    )


def _is_published(model: Any) -> bool:
    """Whether a model has the settings of the papers, for any number of passes."""
    settings = {name: value for name, value in PUBLISHED.items() if name != "max_iter"}
    return all(getattr(model, name, value) == value for name, value in settings.items())


def _losses(fitted: Any, learner: Any, source: Source) -> tuple[float, float]:
    """Mean rank losses on training rows: of the model, and of the best constant."""
    counts = np.zeros(fitted.ranks_.size, dtype=np.int64)
    total = 0.0
    for window in source.windows(fitted.n_features_in_, None, 0):
        parts: Iterable[tuple[Rows, NDArray[Any]]]
        if not source.kept:
            parts = [(window.rows, encode(window.labels, fitted.ranks_))]
        else:
            parts = _spread(window.rows, learner.ranks)
        for rows, ranks in parts:
            counts += np.bincount(ranks, minlength=counts.size)
            total += float(np.abs(fitted._measured(rows) - ranks).sum())
    return total / counts.sum(), constant_loss(counts)


def _spread(rows: Rows, ranks: NDArray[Any]) -> Iterable[tuple[Rows, NDArray[Any]]]:
    """At most `MEASURED_ROWS` of the rows, with their ranks; a few are copied at a time."""
    if rows.n_rows <= MEASURED_ROWS:
        yield rows, ranks
        return
    chosen = np.linspace(0, rows.n_rows - 1, MEASURED_ROWS).astype(np.int64)
    for some in np.array_split(chosen, MEASURED_ROWS // COPIED_ROWS):
        yield as_rows(some_rows(rows, some)), ranks[some]
