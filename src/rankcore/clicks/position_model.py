"""Position-based model, and its identifiability from a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array
from scipy.sparse.csgraph import connected_components

from rankcore._core.numbers import Floats
from rankcore._core.params import check_params
from rankcore._ext.clicks import position_pass
from rankcore.clicks._counts import Counts, clicks, count
from rankcore.clicks._maximum import MARGIN, maximise
from rankcore.clicks.log import ClickLog, Log
from rankcore.clicks.models import ClickModel, Z, interval

# Documents of queries whose errors are computed at a time.
ROWS = 1 << 14
# Standard errors take the inverse of a matrix of positions.
MOST_POSITIONS = 4096


class PositionBasedModel(ClickModel):
    """Position-based model: a click requires examination of the position and attraction.

    P(click on d of q at position p) = examination[p] * attraction[q, d]. Both are estimated by
    expectation maximisation over counts. Only ratios are identified: the examination of the first
    position that was shown is 1.

    Parameters
    ----------
    smoothing : float, default=0.0
        Number of attractive and of unattractive impressions added to each document of a query. 0
        gives maximum likelihood.
    tol : float, default=1e-6
        Passes end when no probability changes by more than this.
    max_iter : int, default=2000
        Maximum number of passes.

    Attributes
    ----------
    examination_ : ndarray of float64, shape (n_positions,)
        Examination by position, relative to the first; NaN at positions without impressions.
    examination_interval_ : ndarray of float64, shape (n_positions, 2)
        95% intervals.
    examination_error_ : ndarray of float64, shape (n_positions,)
        Standard errors.
    attraction_ : ndarray of float64, shape (n_pairs,)
        Probability of a click on each document of a query at the first position.
    attraction_interval_ : ndarray of float64, shape (n_pairs, 2)
    attraction_error_ : ndarray of float64, shape (n_pairs,)
    query_, document_ : ndarray, shape (n_pairs,)
        Ids of the documents of queries.
    n_iter_ : int
        Number of passes.

    Raises
    ------
    ValueError
        From ``fit``, if the log does not identify the ratios: see `propensities`.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If ``max_iter`` passes do not suffice.

    Notes
    -----
    A pass is O(cells), where a cell is a document of a query at one position. Standard errors are
    computed from the inverse of the expected information of the logarithms of all parameters.

    Plain form: ``tests/reference/clicks.py``, ``position_pass``.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, PositionBasedModel
    >>> log = ClickLog(["q"] * 8, [*"ab" * 2, *"ba" * 2], [1, 2] * 4, [1, 0, 1, 1, 0, 0, 1, 1])
    >>> model = PositionBasedModel().fit(log)
    >>> model.examination_.round(2), model.attraction_.round(2)
    (array([1.  , 0.59]), array([1.  , 0.59]))
    """

    def __init__(self, smoothing: float = 0.0, tol: float = 1e-6, max_iter: int = 2000) -> None:
        self.smoothing = smoothing
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, log: Log) -> Self:
        """Learn from a log.

        Parameters
        ----------
        log : ClickLog or windows of one

        Returns
        -------
        self
        """
        check_params(self)
        counts = count(log, clicks, 2)
        check_linked(counts)
        positions, self.n_iter_ = fit_positions(counts, self.smoothing, self.tol, self.max_iter)
        self._pairs = counts.pairs
        self.examination_, self.attraction_ = positions.examination, positions.attraction
        self.examination_error_, self.attraction_error_ = positions.errors(counts)
        spread = Z * self.examination_error_ / self.examination_
        self.examination_interval_ = self.examination_[:, None] * np.exp(
            np.stack([-spread, spread], axis=1)
        )
        self.query_, self.document_ = counts.pairs.query_ids, counts.pairs.document_ids
        self._overall = float(self.attraction_.mean())
        examined = counts.events.sum(axis=1) * self.examination_[counts.position]
        examinations = np.bincount(counts.pair, examined, self.attraction_.size)
        self._examined = examinations.astype(np.float64)
        # From the information; without clicks, from the number of examinations.
        ends = interval(np.zeros(self._examined.size), self._examined)
        seen = self.attraction_error_ > 0
        spread = Z * self.attraction_error_[seen] / self.attraction_[seen]
        ends[seen] = self.attraction_[seen, None] * np.exp(np.stack([-spread, spread], axis=1))
        self.attraction_interval_ = np.minimum(ends, 1.0)
        return self

    def _evidence(self) -> tuple[Floats, Floats]:
        a, error = self.attraction_, self.attraction_error_
        with np.errstate(divide="ignore", invalid="ignore"):
            return a, np.where((error > 0) & (a < 1), a * (1 - a) / error**2, self._examined)

    def _probabilities(self, log: ClickLog) -> Floats:
        attraction = np.append(self.attraction_, self._overall)[self._pairs.of(log)]
        examined = np.nan_to_num(self.examination_)
        examination = examined[np.minimum(log.position, examined.size) - 1]
        return np.clip(examination * attraction, 0.0, 1.0)


@dataclass(frozen=True)
class Positions:
    """Parameters of a position-based model."""

    examination: Floats  # (n_positions,), NaN without impressions
    attraction: Floats  # (n_pairs,)

    def errors(self, counts: Counts) -> tuple[Floats, Floats]:
        """Compute standard errors of the logarithms of both, from their expected information."""
        # The expected information of each cell on the logarithm of its click probability.
        p = self.examination[counts.position] * self.attraction[counts.pair]
        weights = counts.events.sum(axis=1) * p / np.maximum(1.0 - p, MARGIN)
        # Positions that were not shown take no part: logs may have few of large numbers.
        shown = np.flatnonzero(~np.isnan(self.examination))
        if shown.size > MOST_POSITIONS:
            raise ValueError(
                f"a position-based model requires a log of at most {MOST_POSITIONS} positions; "
                f"got {shown.size}: drop impressions at lower positions"
            )
        table = counts.table(weights).tocsc()[:, shown].tocsr()
        pair_information = np.bincount(counts.pair, weights, self.attraction.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = counts.table(
                np.where(weights > 0, weights / pair_information[counts.pair], 0.0)
            )
            share = share.tocsc()[:, shown].tocsr()
            own = np.where(pair_information > 0, 1.0 / pair_information, 0.0)
        # Information on positions after eliminating attraction: a graph Laplacian of positions,
        # whose rows sum to 0.
        linked = (table.T @ share).toarray()
        np.fill_diagonal(linked, 0.0)
        left = np.diag(linked.sum(axis=1)) - linked
        covariance = np.zeros_like(left)
        free = np.flatnonzero(linked.sum(axis=1) > 0)[1:]
        covariance[np.ix_(free, free)] = np.linalg.inv(left[np.ix_(free, free)])
        shared = np.empty(own.size)
        for first in range(0, own.size, ROWS):
            rows = share[first : first + ROWS].toarray()
            shared[first : first + ROWS] = (rows @ covariance * rows).sum(axis=1)
        error = np.zeros(self.examination.size)
        error[shown] = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return self.examination * error, self.attraction * np.sqrt(own + shared)


def fit_positions(
    counts: Counts, smoothing: float, tol: float, max_iter: int
) -> tuple[Positions, int]:
    """Maximise the likelihood; return also the number of iterations."""
    position_events, pair_events = counts.by_position(), counts.by_pair()
    shown = position_events.sum(axis=1)
    n_positions = len(position_events)
    trials = pair_events.sum(axis=1) + 2 * smoothing
    with np.errstate(invalid="ignore"):
        rate = np.nan_to_num(position_events[:, 1] / shown)
    examination = np.clip(rate / max(rate.max(), MARGIN), 0.05, 0.95)
    attraction = np.clip((pair_events[:, 1] + smoothing) / trials, 0.0, 0.95)
    examined = np.empty(n_positions)
    attracted = np.empty(trials.size)

    def step(at: Floats) -> tuple[Floats, float]:
        theta = at[:n_positions]
        gamma = at[n_positions:]
        value = position_pass(
            counts.pair, counts.position, counts.events, theta, gamma, examined, attracted
        )
        if smoothing:
            value += smoothing * float(np.log(gamma * (1.0 - gamma)).sum())
        following = np.concatenate(
            [examined / np.maximum(shown, 1.0), (attracted + smoothing) / trials]
        )
        return np.clip(following, 0.0, 1.0 - MARGIN), value

    maximum, n = maximise(step, np.concatenate([examination, attraction]), tol, max_iter)
    theta = maximum[:n_positions]
    gamma = maximum[n_positions:]
    scale = theta[np.flatnonzero(shown)[0]]
    return Positions(np.where(shown > 0, theta / scale, np.nan), gamma * scale), n


def check_linked(counts: Counts) -> None:
    """Raise ValueError unless the clicks link all positions that were shown."""
    shown = counts.by_position().sum(axis=1)
    clicked = counts.by_pair()[:, 1] > 0
    links = counts.table(np.where(clicked[counts.pair], 1.0, 0.0))
    links.eliminate_zeros()
    _, part = connected_components(block_array([[None, links.T], [links, None]]), directed=False)
    places = np.flatnonzero(shown)
    part = part[: shown.size][places]
    apart = places[part != part[0]] + 1
    if apart.size:
        raise ValueError(not_linked(int(places[0]) + 1, apart))


def not_linked(first: int, apart: NDArray[Any]) -> str:
    """Explain why a log does not identify propensities, and what to log."""
    return (
        f"the log does not identify the propensities of positions {listed(apart)} relative to "
        f"position {first}: no clicked document links them, so that less examination and less "
        "relevant documents look the same. Show documents of a query at several positions: swap "
        f"the one at position {first} with one at a position drawn at random in a share of the "
        "sessions, or log several rankers; or give features of the documents to "
        "method='regression-em'"
    )


def listed(positions: NDArray[Any]) -> str:
    """List the first few positions for messages."""
    return ", ".join(map(str, positions[:5].tolist())) + ", ..." * (positions.size > 5)
