"""Decision values in scikit-learn's form, of scores of ranks."""

from __future__ import annotations

import numpy as np

from rankcore._ext import ordinal as kernels


def cumulated(tasks: np.ndarray) -> np.ndarray:
    """Scores of ranks, (n, k): for each the sum of the scores of the tasks below it, (n, k - 1)."""
    scores = np.zeros((tasks.shape[0], tasks.shape[1] + 1))
    np.cumsum(tasks, axis=1, out=scores[:, 1:])
    return scores


def ranks_of(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Number of ascending thresholds that each score reaches."""
    ranks = np.empty(scores.size, dtype=np.int32)
    kernels.threshold_ranks(scores, thresholds, ranks)
    return ranks


def margins(scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Margin of each rank's score over the best other rank, above 0 for the predicted rank alone.

    Scores of ranks that are cumulative sums begin with 0 for the lowest rank, whatever the row; the
    difference to the best other rank says as much about every rank. Of two ranks only the upper one
    has a column, shape (n,).
    """
    n = np.arange(ranks.size)
    least = np.finfo(np.float64).tiny  # a tie is won by the predicted rank
    if scores.shape[1] == 2:
        won = scores[:, 1] - scores[:, 0]
        return np.where(ranks == 1, np.where(won > 0, won, least), np.minimum(won, 0.0))
    found = scores - scores[n, ranks][:, None]
    found[n, ranks] = -np.inf
    margin = -found.max(axis=1)
    np.minimum(found, 0.0, out=found)
    found[n, ranks] = np.where(margin > 0, margin, least)
    return found
