"""A shard of rows for boosting with stumps: its bins, weights and exact sums.

A shard returns integers: weights of rows or queries, scaled by a power of two that all shards
share, and rounded. Each weight depends only on its query, or on its row and on sums over all
shards; so totals depend neither on the number of shards nor on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import stumps
from rankcore._ext.exact_sums import bin_sums, to_fixed
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._booster import weights_of
from rankcore.boosting._given_bins import GivenBins
from rankcore.ranking._pairs import Pairing

Words = NDArray[np.int64]


class Move(NamedTuple):
    """A stump and its step, or, if ``bin`` is -1, a rescaling of the weights to about 1."""

    feature: int
    bin: int
    side: int
    alpha: float
    # Rescaling of `PairedLabels`: exponents of the powers of two that multiply its factors.
    powers: tuple[int, ...] = ()


CENTRE = Move(-1, -1, 0, 0.0)


@dataclass(frozen=True)
class Sums:
    """Sums of the weights of one shard or of several."""

    totals: tuple[int, ...]
    bins: tuple[Words, ...]  # sums by bin for each total; empty unless requested
    in_range: bool = True  # whether no query's weights have underflowed


def added(parts: Sequence[Sums]) -> Sums:
    """Total of several shards, which does not depend on their order."""
    first, *others = parts
    bins = tuple(array.copy() for array in first.bins)
    for part in others:
        for array, more in zip(bins, part.bins, strict=True):
            array += more
    totals = tuple(map(sum, zip(*(part.totals for part in parts), strict=True)))
    return Sums(totals, bins, all(part.in_range for part in parts))


class WholeQueries:
    """Pairs of queries that lie in one shard; the total is the sum of all weights."""

    def __init__(self, pairing: Pairing, balanced: bool) -> None:
        n = pairing.docs.size
        self._potentials, self._words = np.empty(n), np.empty(n, dtype=np.int64)
        n_queries = pairing.n_pairs.size
        self._of_queries = np.empty((n_queries, 4))
        self._totals = np.empty(n_queries)
        self._room = np.empty(n_queries, dtype=np.int64)
        self._weights: LabelWeights | None = None
        if n_queries:
            self._weights, _, _ = weights_of(np.zeros(n), pairing, pairing.steps(balanced))

    def advance(self, fires: NDArray[np.uint8], alpha: float) -> None:
        """Add ``alpha`` to the scores where a stump fires."""
        if self._weights is not None:
            self._weights.advance(fires, alpha)

    def centre(self, powers: tuple[int, ...]) -> bool:
        """Rescale the factors to about 1; return False if their range is too large."""
        return self._weights is None or self._weights.centre()

    def words(self, exponents: tuple[int, ...]) -> tuple[tuple[int, ...], list[Words]]:
        """Totals, and the integers of each row that are summed by bin."""
        if self._weights is None:
            return (0,), [self._words]
        self._weights.potentials_by_query(self._potentials, self._totals)
        total = to_fixed(self._totals, exponents[0], self._room)
        to_fixed(self._potentials, exponents[0], self._words)
        return (total,), [self._words]

    def measure(self, fires: NDArray[np.uint8], exponents: tuple[int, ...]) -> tuple[int, ...]:
        """Weights of pairs ordered correctly, wrongly, firing on both rows; and of all pairs."""
        if self._weights is None:
            return 0, 0, 0, 0
        self._weights.measure_by_query(fires, self._of_queries)
        return tuple(
            to_fixed(np.ascontiguousarray(self._of_queries[:, k]), exponents[0], self._room)
            for k in range(4)
        )


class PairedLabels:
    """Pairs of two labels in one query, which is divided among the shards.

    The weight of a pair is the product of a factor of its winner and one of its loser, initially
    their row weights. The totals are the sum of the winners' factors and that of the losers'.
    """

    def __init__(self, weights: Floats, n_winning: int) -> None:
        self._n, self._factors = n_winning, weights.copy()
        self._words = np.zeros((2, weights.size), dtype=np.int64)

    @property
    def _parts(self) -> list[slice]:
        return [slice(0, self._n), slice(self._n, None)]

    def advance(self, fires: NDArray[np.uint8], alpha: float) -> None:
        """As `WholeQueries.advance`."""
        for part, by in zip(self._parts, (exp(-alpha), exp(alpha)), strict=True):
            self._factors[part] *= np.array([1.0, by])[fires[part]]

    def centre(self, powers: tuple[int, ...]) -> bool:
        """As `WholeQueries.centre`."""
        for part, power in zip(self._parts, powers, strict=True):
            self._factors[part] = np.ldexp(self._factors[part], power)
        return True

    def words(self, exponents: tuple[int, ...]) -> tuple[tuple[int, ...], list[Words]]:
        """As `WholeQueries.words`."""
        totals = tuple(
            to_fixed(self._factors[part], exponent, words[part])
            for part, exponent, words in zip(self._parts, exponents, self._words, strict=True)
        )
        return totals, list(self._words)


class StumpShard:
    """Bins of a shard's rows, and weights that are updated move by move.

    ``pairing`` has whole queries, with documents in descending order of label. If None, pairs are
    `PairedLabels` with ``weights`` of the rows, of which the first ``n_winning`` have the higher
    label.

    Results depend only on the moves. Weights are a cache: a shard that is moved to another process
    recomputes them from the first move.
    """

    def __init__(
        self,
        bins: GivenBins,
        pairing: Pairing | None,
        balanced: bool,
        n_winning: int = 0,
        weights: Floats | None = None,
    ) -> None:
        self.bins, self._pairing, self._balanced = bins, pairing, balanced
        self._n_winning, self._row_weights = n_winning, weights
        self._bounds = np.concatenate([[0], np.cumsum(bins.n_bins.astype(np.int64) + 1)])
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_weights", "_followed", "_in_range", "_lock", "_sums")
        return {name: value for name, value in vars(self).items() if name not in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._weights: WholeQueries | PairedLabels | None = None
        self._followed: list[Move] = []
        self._in_range = True
        self._sums: list[Words] = []
        self._lock = Lock()

    def __sizeof__(self) -> int:
        return self.bins.n_bytes + 40 * self.bins.n_rows

    def look(self, moves: Sequence[Move], exponents: tuple[int, ...], by_bin: bool) -> Sums:
        """Sums of the weights after some moves, scaled by two to the power of the exponents.

        The next call overwrites the sums by bin.
        """
        with self._lock:
            weights = self._follow(moves)
            totals, rows = weights.words(exponents)
            while by_bin and len(self._sums) < len(rows):
                self._sums.append(np.empty(self._bounds[-1], dtype=np.int64))
            found = self._sums[: len(rows) if by_bin else 0]
            for words, sums in zip(rows, found, strict=False):
                bin_sums(self.bins.columns, words, self._bounds, sums)
            return Sums(totals, tuple(found), self._in_range)

    def measure(self, moves: Sequence[Move], stump: Move, exponents: tuple[int, ...]) -> Sums:
        """As `WholeQueries.measure`, after some moves."""
        with self._lock:
            weights = self._follow(moves)
            assert isinstance(weights, WholeQueries)  # for `PairedLabels` the sums by bin suffice
            return Sums(weights.measure(self._fires(stump), exponents), ())

    def _follow(self, moves: Sequence[Move]) -> WholeQueries | PairedLabels:
        n = len(self._followed)
        weights = self._weights
        if weights is None or list(moves[:n]) != self._followed:
            n, self._in_range = 0, True
            if self._pairing is None:
                assert self._row_weights is not None
                weights = PairedLabels(self._row_weights, self._n_winning)
            else:
                weights = WholeQueries(self._pairing, self._balanced)
        self._weights = None  # in case of an error
        for move in moves[n:]:
            if move.bin < 0:
                self._in_range &= weights.centre(move.powers)
            elif self.bins.n_rows:
                weights.advance(self._fires(move), move.alpha)
        self._weights, self._followed = weights, list(moves)
        return weights

    def _fires(self, move: Move) -> NDArray[np.uint8]:
        fires = np.empty(self.bins.n_rows, dtype=np.uint8)
        stumps.mark(self.bins.columns, move.feature, move.bin, move.side, fires)
        return fires
