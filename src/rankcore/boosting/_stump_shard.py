"""A shard of rows in shared rounds of stumps: its bins, weights and exact sums.

A shard returns integers: numbers of its rows or queries, times a power of two that is the same
for all shards, rounded. Each number is a function of its query alone, or of its row and of
sums over all shards; so sums over shards depend neither on how many there are nor on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import stumps
from rankcore._ext.exact_sums import bin_sums, to_fixed
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._booster import weights_of
from rankcore.boosting._given_bins import GivenBins
from rankcore.ranking._pairs import Pairing

Words = NDArray[np.int64]


class Move(NamedTuple):
    """A stump and its step; or, if its bin is -1, a rescaling of the weights to about 1."""

    feature: int
    bin: int
    side: int
    alpha: float
    # Exponents of powers of two that multiply numbers; those of `PairedLabels` scale to 1.
    powers: tuple[int, ...] = ()


CENTRE = Move(-1, -1, 0, 0.0)


@dataclass(frozen=True)
class Sums:
    """Sums of the weights of one shard or of several."""

    totals: tuple[int, ...]
    bins: tuple[Words, ...]  # for each total, its sums by bin; empty unless requested
    # Whether the scores of each query are in a range where weights do not underflow.
    in_range: bool = True


def added(parts: Sequence[Sums]) -> Sums:
    """The sums of several shards; in any order, the same."""
    first, *others = parts
    bins = tuple(array.copy() for array in first.bins)
    for part in others:
        for array, more in zip(bins, part.bins, strict=True):
            array += more
    totals = tuple(map(sum, zip(*(part.totals for part in parts), strict=True)))
    return Sums(totals, bins, all(part.in_range for part in parts))


class WholeQueries:
    """Pairs of queries that are whole in the shard; the one total is the sum of all weights."""

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
        """Rescale numbers to about 1; return whether their range leaves them distinct."""
        return self._weights is None or self._weights.centre()

    def words(self, exponents: tuple[int, ...]) -> tuple[tuple[int, ...], list[Words]]:
        """Totals, and the words of each row that are summed by bin."""
        if self._weights is None:
            return (0,), [self._words]
        self._weights.potentials_by_query(self._potentials, self._totals)
        total = to_fixed(self._totals, exponents[0], self._room)
        to_fixed(self._potentials, exponents[0], self._words)
        return (total,), [self._words]

    def measure(self, fires: NDArray[np.uint8], exponents: tuple[int, ...]) -> tuple[int, ...]:
        """Weights of the pairs a stump orders correctly, wrongly, fires on both of; and total."""
        if self._weights is None:
            return 0, 0, 0, 0
        self._weights.measure_by_query(fires, self._of_queries)
        return tuple(
            to_fixed(np.ascontiguousarray(self._of_queries[:, k]), exponents[0], self._room)
            for k in range(4)
        )


class PairedLabels:
    """Pairs of two labels in one query that all shards have parts of.

    A pair weighs the product of a factor of its winner and one of its loser, at first their
    weights: the totals are the sums of either.
    """

    def __init__(self, weights: NDArray[np.float64], n_winning: int) -> None:
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
    """Bins of a shard's rows, and weights that follow a model move by move.

    ``pairing`` has whole queries, documents by descending label. It is None for `PairedLabels`, of
    ``weights`` of the rows, the first ``n_winning`` of which have the upper label.

    An answer is a function of the moves alone: weights are kept only to spare following the model
    from its first move, as a shard does that has been moved to another process.
    """

    def __init__(
        self,
        bins: GivenBins,
        pairing: Pairing | None,
        balanced: bool,
        n_winning: int = 0,
        weights: NDArray[np.float64] | None = None,
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
        """Sums of the weights after some moves, each times two to the power of its exponent.

        The next call overwrites those by bin.
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
        """Weights of the pairs a stump orders correctly, wrongly or not, and of all pairs."""
        with self._lock:
            weights = self._follow(moves)
            assert isinstance(weights, WholeQueries)  # else the sums by bin suffice
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
        self._weights = None  # unless all goes well
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
