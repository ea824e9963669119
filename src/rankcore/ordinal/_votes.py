"""Votes of models on the rank.

Learners assign these functions to their own names; they provide ``_voters`` and ``output``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.fitted import check_fitted
from rankcore._core.numbers import check_reached
from rankcore._core.params import check_declared
from rankcore._core.scoring import Scoring
from rankcore._ext.ensemble import tally
from rankcore._ext.rows import Rows

# Products between two checks for signals.
VOTING_VALUES = 2**22


@dataclass(frozen=True)
class Voters:
    """Models that vote on the rank, in tiles."""

    weights: np.ndarray  # (n_tiles, n_features, width)
    thresholds: np.ndarray  # (n_tiles, n_ranks - 1, width)
    votes: np.ndarray  # (n_models,), int64; if all are 0, each model has one vote


def count_votes(rows: Rows, voters: Voters) -> np.ndarray:
    """Count votes of models for each rank of each row: int64, shape (n_rows, n_ranks)."""
    weights = voters.weights
    thresholds = voters.thresholds
    votes = voters.votes if voters.votes.any() else np.ones_like(voters.votes)
    n_tiles, n_tasks, width = thresholds.shape
    out = np.zeros((rows.n_rows, n_tasks + 1), dtype=np.int64)
    # Python checks for signals between two calls, after a few milliseconds of work.
    row = width * max(1, rows.n_values // rows.n_rows)
    n_rows = max(1, VOTING_VALUES // row)
    n_each = max(1, VOTING_VALUES // (row * rows.n_rows))
    for first in range(0, n_tiles, n_each):
        for start in range(0, rows.n_rows, n_rows):
            last = min(first + n_each, n_tiles)
            stop = min(start + n_rows, rows.n_rows)
            reached = tally(rows, weights, thresholds, votes, first, last, start, stop, out)
            check_reached(reached, stop)
    return out


def votes_scoring(learner: Any, arrays: Mapping[str, np.ndarray]) -> Scoring:
    """Describe the votes for files and exporters."""
    voters = learner._voters()
    parts = {
        "weights": voters.weights,
        "thresholds": voters.thresholds,
        "votes": voters.votes,
    }
    return Scoring("votes", parts, {"output": learner.output})


def mean_ranks(learner: Any, rows: Rows) -> np.ndarray:
    """Return the mean rank of the votes, on the scale 1 .. n_classes."""
    votes = count_votes(rows, learner._voters())
    means: np.ndarray = votes @ np.arange(1, votes.shape[1] + 1) / votes.sum(axis=1)
    return means


def ranks_by_votes(learner: Any, rows: Rows) -> np.ndarray:
    """Predict the ranks that the votes select."""
    return _winners(learner, count_votes(rows, learner._voters()))


def measured_by_votes(learner: Any, rows: Rows) -> np.ndarray:
    """Predict ranks, or mean ranks from 0 with ``output="mean"``, for measures."""
    if learner.output == "mean":
        return mean_ranks(learner, rows) - 1
    return ranks_by_votes(learner, rows)


def scores_by_votes(learner: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return a score for each rank and the predicted ranks, by votes."""
    votes = count_votes(rows, learner._voters())
    winners = _winners(learner, votes)
    shares = votes / votes.sum(axis=1, keepdims=True)
    if learner.output == "plurality":
        return shares, winners
    # The median and the mean minimise absolute and squared distance.
    distance = np.abs(np.subtract.outer(np.arange(votes.shape[1]), np.arange(votes.shape[1])))
    return -(shares @ (distance if learner.output == "median" else distance**2)), winners


def _winners(learner: Any, votes: np.ndarray) -> np.ndarray:
    """Return the ranks that votes select."""
    check_declared(learner, "output")
    ranks: np.ndarray
    if learner.output == "plurality":
        ranks = votes.argmax(axis=1)
    elif learner.output == "median":
        cumulative = votes.cumsum(axis=1)
        ranks = (2 * cumulative >= cumulative[:, -1:]).argmax(axis=1)
    else:
        # The mean rank, halves up, in integers: floor((2 * sum + total) / (2 * total)).
        total = votes.sum(axis=1)
        ranks = (2 * (votes @ np.arange(votes.shape[1])) + total) // (2 * total)
    return ranks


@consistent_read
def predict(self: Any, X: RowsLike) -> np.ndarray:
    """Predict the label of each row or, with ``output="mean"``, a real value.

    Parameters
    ----------
    X : array-like or scipy sparse, shape (n_samples, n_features)

    Returns
    -------
    ndarray, shape (n_samples,)
        Labels; with ``output="mean"`` the mean rank on the scale of the (numeric) labels,
        float64.
    """
    check_fitted(self)
    if self.output != "mean":
        return self.ranks_[self._ranks(self._more_rows(X))]
    if self.ranks_.dtype.kind not in "biuf":
        raise ValueError(
            f"output='mean' requires numeric labels; got {self.ranks_.tolist()}. Use "
            "output='round', or project for mean ranks 1 .. n_classes"
        )
    ranks = np.arange(1, self.ranks_.size + 1)
    return np.interp(self._projected(self._more_rows(X)), ranks, self.ranks_.astype(np.float64))
