"""Rounds of stumps on shards of rows; the stumps do not depend on the shards.

Shards round their weights to integers, scaled by a power of two that is known beforehand
(`_stump_shard`), so that sums are exact. If weights add up to at most B, the exponent scales 2 B to
between 2**59 and 2**60. A potential is rounded by at most half a unit, so that the sum of n rows
has an error of at most n / 2**59 times B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, frexp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.boosting._booster import LEAST, RECENTRED, SPENT
from rankcore.boosting._given_bins import Cuts
from rankcore.boosting._stump_booster import Round, Step, Weighed, next_stump
from rankcore.boosting._stump_search import Stump
from rankcore.boosting._stump_shard import CENTRE, Move, Sums

# Maximum bits of the sums of all weights; sums of |potential| have one more.
BITS = 60
# Factor of bounds on the weights, for rounding errors.
SLACK = 1 + 1e-6
# Factors of `PairedLabels` beyond two to the power of this are rescaled to about 1.
FAR = 400


class Candidates:
    """All stumps of binned columns, by feature and descending threshold."""

    def __init__(self, cuts: Cuts) -> None:
        n_bins = cuts.n_bins.astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(n_bins + 1)])
        # Bins of each column, highest first; with missing values, also the lowest one.
        least = np.where(cuts.has_missing, 0, 1)
        counts = n_bins - least
        feature = np.repeat(np.arange(n_bins.size), counts)
        after = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        bin = n_bins[feature] - 1 - after
        # If a column has missing values, both sides for them.
        both = (cuts.has_missing[feature] > 0) & (bin > 0)
        twice = np.repeat(np.arange(bin.size), 1 + both)
        self.feature, self.bin = feature[twice], bin[twice]
        self.side = np.zeros(twice.size, dtype=np.int64)
        self.side[np.flatnonzero(np.diff(twice, append=-1) == 0)] = 1
        self._stop = bounds[self.feature] + n_bins[self.feature]
        self._start = bounds[self.feature] + self.bin
        # Buffers for all rounds, as allocating large arrays is slow.
        self._before = np.zeros(bounds[-1] + 1, dtype=np.int64)
        self._room = np.empty(twice.size, dtype=np.int64)
        self.found = np.empty((2, twice.size), dtype=np.int64)
        self.edges = np.empty((2, twice.size))

    def sum(self, by_bin: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Write the sum over the rows where each stump fires."""
        np.cumsum(by_bin, out=self._before[1:])
        # mode="raise" would buffer the results.
        np.take(self._before, self._stop, out=out, mode="clip")
        room = np.take(self._before, self._start, out=self._room, mode="clip")
        out -= room
        np.take(by_bin, self._stop, out=room, mode="clip")
        room *= self.side
        out += room


def exponent_of(bound: float) -> int:
    """Exponent of the power of two that scales twice ``bound`` to just below 2**BITS."""
    if not 0 < bound < inf:
        raise ValueError("the weights of pairs overflow: reduce the weights")
    return min(BITS - frexp(2 * bound)[1], 1000)


@dataclass
class Standing:
    """State between two rounds."""

    bounds: tuple[float, ...]  # upper bounds on the totals
    moves: list[Move] = field(default_factory=list)
    # Sum of |alpha| since the weights were rescaled, and product of all normalizers.
    moved: float = 0.0
    left: float = 1.0
    done: bool = False  # whether no further round can improve the model


class SharedRounds(Weighed):
    """Rounds of a fit, at most ``most``; each updates ``standing``.

    The initial bounds are, up to rounding, the total weight of all pairs; or those of winners and
    of losers, with `PairedLabels`. ``shards`` has the methods ``look`` and ``measure`` of
    `StumpShard`, whose results are summed over all shards.
    """

    def __init__(self, standing: Standing, cuts: Cuts, shards: Any, step: Step, most: int) -> None:
        self.standing, self._cuts, self._shards = standing, cuts, shards
        self._step, self._most = step, most
        self._candidates = Candidates(cuts)
        self._exponents: tuple[int, ...] = ()
        self._sums: Sums | None = None  # of all shards after the last move
        # The current stump's share of each total, and the result of `measure`.
        self._shares: tuple[float, ...] = ()
        self._parts: tuple[float, float, float] | None = None
        standing.done |= self._candidates.bin.size == 0

    def _ask(self, by_bin: bool) -> Sums:
        now = self.standing
        self._exponents = tuple(exponent_of(bound * SLACK) for bound in now.bounds)
        self._sums = self._shards.look(now.moves, self._exponents, by_bin)
        return self._sums

    def round(self) -> Round | None:
        """Add a stump; None if no stump improves the model."""
        made = None if self.standing.done else next_stump(self, self._cuts, self._step)
        self.standing.done |= made is None
        return made

    def measure(self, stump: Stump) -> tuple[float, float, float]:
        if len(self._shares) == 2:
            a, b = self._shares
            self._parts = a * (1 - b), (1 - a) * b, a * b
        else:
            move = Move(stump.feature, stump.bin, stump.side, 0.0)
            found = self._shards.measure(self.standing.moves, move, self._exponents)
            rightly, wrongly, both, whole = found.totals
            self._parts = rightly / whole, wrongly / whole, both / whole
        return self._parts

    def advance(self, stump: Stump, alpha: float) -> float:
        assert self._sums is not None  # of `best`
        now, before = self.standing, self._totals(self._sums)
        now.bounds = self._bounds(stump.edge, before, alpha)
        now.moves.append(Move(stump.feature, stump.bin, stump.side, alpha))
        now.moved += abs(alpha)
        self._recentre()
        self._most -= 1
        ordered = abs(stump.edge) >= 1 - LEAST
        sums = self._ask(not ordered and self._most > 0)
        normalizer = 1.0
        powers = now.moves[-1].powers or (0,) * len(before)
        for after, then, power in zip(self._totals(sums), before, powers, strict=True):
            normalizer *= after / 2.0**power / then
        now.left *= normalizer
        now.done = ordered or not sums.in_range or not now.left > SPENT
        return normalizer

    def _totals(self, sums: Sums) -> list[float]:
        return [
            float(np.ldexp(float(total), -exponent))
            for total, exponent in zip(sums.totals, self._exponents, strict=True)
        ]

    def best(self) -> Stump:
        found, of = self._sums or self._ask(True), self._candidates
        for by_bin, out in zip(found.bins, of.found, strict=False):
            of.sum(by_bin, out)
        sums, totals = of.found[: len(found.bins)], found.totals
        if len(sums) == 1:
            at = int(np.abs(sums[0], out=of.found[1]).argmax())
            edge = int(sums[0, at]) / totals[0]
        else:
            np.divide(sums[0], totals[0], out=of.edges[0])
            of.edges[0] -= np.divide(sums[1], totals[1], out=of.edges[1])
            at = int(np.abs(of.edges[0], out=of.edges[1]).argmax())
            edge = float(of.edges[0, at])
        self._shares = tuple(int(one[at]) / total for one, total in zip(sums, totals, strict=True))
        self._parts = None
        return Stump(int(of.feature[at]), int(of.bin[at]), int(of.side[at]), edge)

    def _bounds(self, edge: float, totals: Sequence[float], alpha: float) -> tuple[float, ...]:
        """Upper bounds on the totals after a step."""
        down, up = exp(-alpha), exp(alpha)
        if len(totals) == 2:
            a, b = self._shares
            return totals[0] * ((1 - a) + a * down), totals[1] * ((1 - b) + b * up)
        if self._parts is not None:
            rightly, wrongly, _ = self._parts
            return (totals[0] * (rightly * down + wrongly * up + 1 - rightly - wrongly),)
        # Z is convex in the stump's effect on a pair: it is largest if no pair is unaffected.
        return (totals[0] * ((1 + edge) / 2 * down + (1 - edge) / 2 * up),)

    def _recentre(self) -> None:
        """Add a move that rescales the weights if they are far from 1."""
        now = self.standing
        if len(now.bounds) == 1:
            if now.moved > RECENTRED:
                now.moves.append(CENTRE)
                now.moved = 0.0
            return
        powers = tuple(-frexp(bound)[1] for bound in now.bounds)
        if max(map(abs, powers)) > FAR:
            now.moves.append(CENTRE._replace(powers=powers))
            scaled = map(np.ldexp, now.bounds, powers)
            now.bounds = tuple(float(bound) for bound in scaled)
