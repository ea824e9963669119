"""Latent scores of rows, their conversion to ranks by thresholds or votes, and decision values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import is_rising
from rankcore._core.numbers import check_reached
from rankcore._core.params import check_declared
from rankcore._core.scoring import Scoring
from rankcore._ext import ordinal as kernels
from rankcore._ext.ensemble import tally
from rankcore._ext.rows import Rows


class LatentScoreMixin:
    """An ordinal learner with one latent score per row. Not public."""

    _more_rows: Callable[[Any], Rows]  # of `Specified`
    ranks_: np.ndarray

    @abstractmethod
    def _projected(self, rows: Rows) -> np.ndarray:
        """Implement `project`."""

    @consistent_read
    def project(self, X: RowsLike) -> np.ndarray:
        """Latent score: one number per row, higher for higher ranks.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            With a direction and thresholds, the projection on the direction, which the thresholds
            divide into ranks. For `WidrowHoff` the score, and for voting learners the mean rank, on
            the scale 1 .. n_classes; for `CuSumRank` the sum of all task scores. It can be used to
            order rows, for example with NDCG or AUC.
        """
        check_fitted(self)
        return self._projected(self._more_rows(X))


class Thresholds(LatentScoreMixin):
    """A latent score that ascending thresholds divide into ranks. Not public."""

    _parameters: Callable[[], Any]  # of which the thresholds are the last

    def _cuts(self) -> np.ndarray:
        """Return the thresholds."""
        thresholds: np.ndarray = self._parameters()[-1]
        return thresholds

    @property
    @consistent_read
    def thresholds_(self) -> np.ndarray:
        """Ascending thresholds between the ranks, shape (n_classes - 1,)."""
        return self._cuts().copy()

    def _ranks(self, rows: Rows) -> np.ndarray:
        return ranks_of(self._projected(rows), self._cuts())

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        scores, thresholds = self._projected(rows), self._cuts()
        return cumulated(scores[:, None] - thresholds), ranks_of(scores, thresholds)


def cumulated(tasks: np.ndarray) -> np.ndarray:
    """Scores of ranks, (n, k): cumulative sums of the scores of tasks, (n, k - 1)."""
    scores = np.zeros((tasks.shape[0], tasks.shape[1] + 1))
    np.cumsum(tasks, axis=1, out=scores[:, 1:])
    return scores


def ranks_of(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Count the ascending thresholds that each score reaches."""
    ranks = np.empty(scores.size, dtype=np.int32)
    kernels.threshold_ranks(scores, thresholds, ranks)
    return ranks


def margins(scores: np.ndarray, ranks: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
    """Margin of each rank's score over the best other rank, above 0 only for the predicted rank.

    Cumulative sums are 0 for the lowest rank in every row; the difference to the best other rank is
    equally informative for every rank. For two ranks only the upper one has a column, shape (n,).
    ``order`` has the rank of each column of the result, if it is not its number.
    """
    if order is not None and not is_rising(order):
        scores, ranks = scores[:, order], np.argsort(order)[ranks]
    n = np.arange(ranks.size)
    least = np.finfo(np.float64).tiny  # the predicted rank wins ties
    if scores.shape[1] == 2:
        won = scores[:, 1] - scores[:, 0]
        return np.where(ranks == 1, np.where(won > 0, won, least), np.minimum(won, 0.0))
    found = scores - scores[n, ranks][:, None]
    found[n, ranks] = -np.inf
    margin = -found.max(axis=1)
    np.minimum(found, 0.0, out=found)
    found[n, ranks] = np.where(margin > 0, margin, least)
    return found


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


class VotesRanks(LatentScoreMixin):
    """A learner with models that vote on the rank. A subclass provides ``_voters``."""

    _one_direction = True
    output: Literal["round", "mean", "median", "plurality"]

    @abstractmethod
    def _voters(self) -> Voters:
        """Return the models that vote."""

    def _tally(self, rows: Rows) -> np.ndarray:
        """Count the votes for each rank, shape (n_rows, n_ranks), int64."""
        return count_votes(rows, self._voters())

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        voters = self._voters()
        parts = {
            "weights": voters.weights,
            "thresholds": voters.thresholds,
            "votes": voters.votes,
        }
        return Scoring("votes", parts, {"output": self.output})

    def _projected(self, rows: Rows) -> np.ndarray:
        votes = self._tally(rows)
        return votes @ np.arange(1, votes.shape[1] + 1) / votes.sum(axis=1)

    def _ranks(self, rows: Rows) -> np.ndarray:
        return self._winners(self._tally(rows))

    def _measured(self, rows: Rows) -> np.ndarray:
        return self._projected(rows) - 1 if self.output == "mean" else self._ranks(rows)

    def _winners(self, votes: np.ndarray) -> np.ndarray:
        """Return the rank that the votes select."""
        check_declared(self, "output")
        if self.output == "plurality":
            return votes.argmax(axis=1)
        if self.output == "median":
            cumulative = votes.cumsum(axis=1)
            return (2 * cumulative >= cumulative[:, -1:]).argmax(axis=1)
        # The mean rank, halves up, in integers: floor((2 * sum + total) / (2 * total)).
        total = votes.sum(axis=1)
        return (2 * (votes @ np.arange(votes.shape[1])) + total) // (2 * total)

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        votes = self._tally(rows)
        winners = self._winners(votes)
        shares = votes / votes.sum(axis=1, keepdims=True)
        if self.output == "plurality":
            return shares, winners
        # The median and the mean minimise absolute and squared distance.
        distance = np.abs(np.subtract.outer(np.arange(votes.shape[1]), np.arange(votes.shape[1])))
        return -(shares @ (distance if self.output == "median" else distance**2)), winners

    @consistent_read
    def predict(self, X: RowsLike) -> np.ndarray:
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
                f"output='mean' requires numeric labels; found {self.ranks_.tolist()}. Use "
                "output='round', or project for mean ranks 1 .. n_classes"
            )
        ranks = np.arange(1, self.ranks_.size + 1)
        return np.interp(self.project(X), ranks, self.ranks_.astype(np.float64))
