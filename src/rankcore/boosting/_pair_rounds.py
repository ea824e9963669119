"""Boosting rounds with any weak rankers: the weights of pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats, ranges
from rankcore._core.threads import n_threads
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import SPREAD, LabelWeights
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import MAX_BINS, Binning
from rankcore.boosting._params import BoostingParams
from rankcore.boosting._streamed_bins import DiskRows, StreamedBins
from rankcore.ranking.pairs import Pairing

# If |edge| is this close to 1, the step would be infinite: all pairs that differ agree in order.
LEAST = 1e-12
LONGEST = 0.5 * log((2 - LEAST) / LEAST)
# Boosting ends when the weight of all pairs falls to this share of the initial weight.
SPENT = 1e-250
# Sum of |alpha| after which the weights are rescaled to about 1.
RECENTRED = 200.0


class Rounds:
    """Rounds of a fit in memory; subclasses add weak rankers to ``state``.

    Documents of ``pairing`` are in descending order of label, unless its pairs are listed.
    ``categorical`` is as for `Binning`. Once ``done`` is true, no round can improve the model.
    """

    done: bool

    def __init__(
        self,
        params: BoostingParams,
        rows: Rows | DiskRows,
        pairing: Pairing,
        state: Any,
        categorical: Mapping[int, str] | None = None,
    ) -> None:
        self.state, max_bins = state, params.max_bins
        self._n_jobs = min(n_threads(params.n_jobs), rows.n_features)  # threads share the features
        n = pairing.docs.size
        self._binning: Binning | StreamedBins
        if isinstance(rows, DiskRows):
            self._binning = rows.binned(pairing.docs, max_bins or MAX_BINS, state.zero_missing)
            scores = np.zeros(n)
        else:
            self._binning = Binning(
                rows, pairing.docs, max_bins, state.zero_missing, categorical, self._n_jobs
            )
            scores = state.score(rows)[pairing.docs] if len(state) else np.zeros(n)
        steps, total = steps_of(pairing, params.balance == "query")
        if not total > 0:
            raise vanishing()
        self._weights: LabelWeights | ListedWeights
        self._factors: Floats | None = None
        self._levels: NDArray[np.int64] | None = None
        if pairing.listed_pairs is None:
            self._weights, self._factors, self._levels = weights_of(scores, pairing, steps)
        else:
            weights, winners, losers = _listed(scores, pairing, steps)
            self._weights = ListedWeights(weights, winners, losers, n)
        self._moved, self._first_total = 0.0, total
        self._prepare(n)
        self.done = len(state) > 0 and not self._weights.centre()
        self._total = self._sum()
        if not self.done and not self._total < inf:
            raise ValueError(
                "warm_start cannot continue: weights of pairs overflow, since the model's scores "
                "of these rows are wrong by too much; fit without warm_start"
            )
        self.done |= self._spent()

    @abstractmethod
    def _prepare(self, n: int) -> None:
        """Allocate the arrays that `_sum` writes for n rows."""

    @abstractmethod
    def _sum(self) -> float:
        """Write each row's inputs to a round; return the total weight of all pairs."""

    @abstractmethod
    def round(self) -> dict[str, float] | None:
        """Add a weak ranker; return figures of the round, or None if no ranker is useful."""

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Figures of each round, until none improves the model."""
        while not self.done and (figures := self.round()) is not None:
            yield figures

    @abstractmethod
    def close(self) -> None:
        """Shut down the threads."""

    def _renew(self) -> None:
        """Discard cached sums after the weights are rescaled."""

    def _spent(self) -> bool:
        """Whether the total weight of all pairs has vanished."""
        return not self._total > SPENT * self._first_total

    def _recentre_if_far(self) -> None:
        """Rescale the weights to about 1 after many steps."""
        if self._moved <= RECENTRED or self.done:
            return
        if not self._weights.centre():
            self.done = True
            return
        self._renew()
        self._moved = 0.0
        self._total = self._sum()


def steps_of(pairing: Pairing, balanced: bool) -> tuple[Floats, float]:
    """Factor of each query's pair weights, and total weight; ValueError unless finite."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steps = pairing.steps(balanced)
        total = float(pairing.weights @ steps)
    if not total < inf:
        raise vanishing()
    return steps, total


def vanishing() -> ValueError:
    """The error for pair weights of too large a range."""
    return ValueError(
        "the weights of some pairs underflow or overflow: reduce the ratio of the weights"
    )


def weights_of(
    scores: Floats, pairing: Pairing, steps: Floats
) -> tuple[LabelWeights, Floats, NDArray[np.int64]]:
    """Pair weights by label, their factors, and offsets of the label levels in the documents."""
    labels, bounds = pairing.labels, pairing.bounds
    new = np.ones(labels.size + 1, dtype=bool)
    new[1:-1] = labels[1:] != labels[:-1]
    new[bounds] = True
    levels = np.flatnonzero(new)
    queries = np.searchsorted(levels, bounds)
    factors, masses = _factors_of(scores, pairing, levels, queries)
    sums = np.empty((2, levels.size - 1))
    return LabelWeights(factors, masses, levels, queries, steps, sums), factors, levels


def _factors_of(
    scores: Floats, pairing: Pairing, levels: NDArray[np.int64], queries: NDArray[np.int64]
) -> tuple[Floats, Floats | None]:
    """exp(-score) of each document (exp(score) in the last level) times its weight."""
    starts, stops = pairing.bounds[:-1], pairing.bounds[1:]
    middle = 0.5 * (np.minimum.reduceat(scores, starts) + np.maximum.reduceat(scores, starts))
    signs = np.full(scores.size, -1.0)
    first = levels[queries[1:] - 1]  # of the last level of each query
    signs[ranges(first, stops - first)] = 1.0
    shifted = scores - np.repeat(middle, stops - starts)
    factors = np.exp(signs * np.clip(shifted, -SPREAD / 2, SPREAD / 2))
    if pairing.doc_weights is None:
        return factors, None
    return factors * pairing.doc_weights, pairing.doc_weights**2


def _listed(
    scores: Floats, pairing: Pairing, steps: Floats
) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    """Weights, winners and losers of listed pairs."""
    listed = pairing.listed_pairs
    assert listed is not None
    counts = np.diff(listed.offsets)
    base = np.repeat(pairing.bounds[:-1], counts)
    winners = (listed.winners + base).astype(np.int32)
    losers = (listed.losers + base).astype(np.int32)
    total = np.repeat(steps, counts) * (1.0 if listed.weights is None else listed.weights)
    with np.errstate(over="ignore"):
        return total * np.exp(scores[losers] - scores[winners]), winners, losers
