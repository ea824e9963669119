"""Rounds on pairs with any weak rankers.

A round computes the gradients (and hessians) of rows from the weights of pairs, grows a stump or a
tree, and updates the weights by its step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import n_threads
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore._ext.rows import Rows
from rankcore.boosting._pair_weights import listed_weights, steps_of, vanishing, weights_of
from rankcore.boosting._streamed_bins import DiskRows, bin_rows, scores_of
from rankcore.boosting.params import PairParams
from rankcore.ranking.pairs import Pairing

# If |edge| is this close to 1, the step would be infinite: all pairs that differ agree in order.
EDGE_MARGIN = 1e-12
MAX_STEP = 0.5 * log((2 - EDGE_MARGIN) / EDGE_MARGIN)
# Boosting ends when the weight of all pairs falls to this fraction of the initial weight.
MIN_TOTAL = 1e-250
# Sum of the lengths of steps after which the weights are rescaled to about 1.
MAX_MOVED = 200.0


class PairRounds(ABC):
    """Rounds of a fit in memory; subclasses add weak rankers to ``state``.

    Documents of ``pairing`` are in descending order of label, unless its pairs are listed.
    ``categorical`` is as for `Binning`. Once ``done`` is true, no round can improve the model.
    """

    done: bool

    def __init__(
        self,
        params: PairParams,
        rows: Rows | DiskRows,
        pairing: Pairing,
        state: Any,
        categorical: Mapping[int, str] | None = None,
    ) -> None:
        self.state = state
        self._n_jobs = min(n_threads(params.n_jobs), rows.n_features)  # threads share the features
        n = pairing.docs.size
        self._binning = bin_rows(
            rows, pairing.docs, params.max_bins, state.zero_missing, categorical, self._n_jobs
        )
        scores = scores_of(state, rows, pairing.docs)
        steps, total = steps_of(pairing, params.balance == "query")
        if not total > 0:
            raise vanishing()
        self._weights: LabelWeights | ListedWeights
        self._factors: Floats | None = None
        self._levels: NDArray[np.int64] | None = None
        if pairing.listed_pairs is None:
            self._weights, self._factors, self._levels = weights_of(scores, pairing, steps)
        else:
            self._weights = listed_weights(scores, pairing, steps)
        self._moved, self._first_total = 0.0, total
        self._allocate(n)
        self.done = len(state) > 0 and not self._weights.centre()
        self._total = self._differentiate()
        if not self.done and not self._total < inf:
            raise ValueError(
                "warm_start cannot continue: weights of pairs overflow, since the model's scores "
                "of these rows are wrong by too much; fit without warm_start"
            )
        self.done |= self._spent()

    @abstractmethod
    def _allocate(self, n: int) -> None:
        """Allocate the arrays that `_differentiate` writes for n rows."""

    @abstractmethod
    def _differentiate(self) -> float:
        """Write the gradients of rows; return the total weight of all pairs."""

    @abstractmethod
    def round(self) -> dict[str, float] | None:
        """Add a weak ranker; return figures of the round, or None if no ranker is useful."""

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Yield figures of each round, until none improves the model."""
        while not self.done and (figures := self.round()) is not None:
            yield figures

    @abstractmethod
    def close(self) -> None:
        """Shut down the threads."""

    def _finish(self, moved: float, orders_all: bool = False) -> float:
        """Differentiate after a step of weights; return the ratio of their sums after and before.

        ``moved`` is the maximum change of the difference of two scores. Weights are rescaled to
        about 1 after many steps.
        """
        before, self._total = self._total, self._differentiate()
        normalizer = self._total / before
        self._moved += moved
        self.done = orders_all or self._spent()
        if self._moved > MAX_MOVED and not self.done:
            self._recentre()
        return normalizer

    def _spent(self) -> bool:
        """Return whether the total weight of all pairs has vanished."""
        return not self._total > MIN_TOTAL * self._first_total

    def _recentre(self) -> None:
        """Rescale the weights to about 1."""
        if not self._weights.centre():
            self.done = True
            return
        self._moved = 0.0
        self._total = self._differentiate()
