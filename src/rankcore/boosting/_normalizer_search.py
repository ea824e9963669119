"""Search for the stump that leaves the minimum weight of pairs, ``select="normalizer"``.

The normalizer of a stump is the sum of the weights of all pairs after a step of exact length. It
depends on the pairs within each query, not on gradients of rows only, so that all columns are
evaluated in each round, by the kernel `rankcore._ext.normalizer_search`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import normalizer_search
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._binning import Bins
from rankcore.boosting._stump_search import Stump, StumpSearch


@dataclass(frozen=True)
class PairFactors:
    """Factors of the weights of pairs, of sum 1: those of the winner and of the loser."""

    as_winner: Floats  # (n_rows,)
    as_loser: Floats  # (n_rows,)
    # (n_levels,): sums over the rows of a query with the same label.
    levels_as_winner: Floats
    levels_as_loser: Floats

    @classmethod
    def empty(cls, n_rows: int, n_levels: int) -> PairFactors:
        """Allocate the factors, which `LabelWeights.split` writes."""
        return cls(np.empty(n_rows), np.empty(n_rows), np.empty(n_levels), np.empty(n_levels))


class NormalizerSearch(StumpSearch):
    """Search of all columns for the stump with the minimum normalizer.

    O(entries * labels of a query) per round; with listed pairs, O(entries + features * (rows +
    pairs)).
    """

    def __init__(self, bins: Bins, n_jobs: int, weights: LabelWeights | ListedWeights) -> None:
        super().__init__(bins, n_jobs)
        self._weights = weights
        self._merits = np.empty(self._all.size)
        n = bins.columns.n_rows
        self._order = [np.empty(n, dtype=np.int32) for _ in range(n_jobs)]
        self._counts = [np.empty(self._size + 2, dtype=np.int64) for _ in range(n_jobs)]
        self._scans: list[normalizer_search.LabelScan] | list[normalizer_search.PairScan]
        if isinstance(weights, LabelWeights):
            m = weights.shape(None, None, None)
            level_of = np.empty(n, dtype=np.int32)
            first, last = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
            weights.shape(level_of, first, last)
            self._factors = PairFactors.empty(n, m)

            def scan() -> normalizer_search.LabelScan:
                return normalizer_search.LabelScan(
                    level_of,
                    first,
                    last,
                    self._factors.as_winner,
                    self._factors.as_loser,
                    self._factors.levels_as_winner,
                    self._factors.levels_as_loser,
                    np.zeros(m),
                    np.zeros(m),
                    np.zeros(m),
                    np.zeros(m),
                    np.empty(m, dtype=np.int32),
                    np.zeros(m, dtype=np.uint8),
                )

            self._scans = [scan() for _ in range(n_jobs)]
        else:
            _, winners, losers = weights.listed()
            rows, others = np.concatenate([winners, losers]), np.concatenate([losers, winners])
            order = np.argsort(rows, kind="stable")
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            pair = np.tile(np.arange(winners.size, dtype=np.int32), 2)
            wins = np.repeat(np.array([1, 0], dtype=np.uint8), winners.size)
            self._of_pairs = np.empty(winners.size)
            others, wins, pair = others[order], wins[order], pair[order]
            self._scans = [
                normalizer_search.PairScan(
                    starts,
                    others,
                    wins,
                    pair,
                    self._of_pairs,
                    np.zeros(n, dtype=np.uint8),
                    np.zeros(n, dtype=np.uint8),
                )
                for _ in range(n_jobs)
            ]

    def best(self, gradients: Floats) -> Stump:
        """Return the stump with the minimum normalizer; ties as in `StumpSearch.best`."""
        if isinstance(self._weights, LabelWeights):
            self._weights.split(
                self._factors.as_winner,
                self._factors.as_loser,
                self._factors.levels_as_winner,
                self._factors.levels_as_loser,
            )
        else:
            weights, _, _ = self._weights.listed()
            np.divide(weights, weights.sum(), out=self._of_pairs)
        self._evaluate(gradients, self._all)
        return self._stump(int(self._merits.argmax()))

    def _evaluate_part(self, gradients: Floats, features: NDArray[np.int32], job: int) -> None:
        n = features.size
        edges, merits = np.empty(n), np.empty(n)
        bins, fires_missing = np.empty(n, np.int32), np.empty(n, np.uint8)
        normalizer_search.evaluate(
            self._bins.columns,
            self._scans[job],
            features,
            self._order[job],
            self._counts[job],
            edges,
            merits,
            bins,
            fires_missing,
        )
        self._edges[features] = edges
        self._merits[features] = merits
        self._bins_of[features] = bins
        self._fires_missing[features] = fires_missing
