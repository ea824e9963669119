"""Rounds of stumps on rows that are in shards: the same stumps for any shards.

The weights are summed as integers, which shards have made of them with a power of two that is
known beforehand (`_stump_shard`). Weights that add up to at most B get the exponent that makes of
2 B between 2**59 and 2**60. A potential is rounded by half a unit, so that the sum of those of n
rows is wrong by n / 2**59 of B at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, frexp, inf
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore.boosting._booster import LEAST, RECENTRED, SPENT
from rankcore.boosting._stump_booster import figures_of, step_length
from rankcore.boosting._stump_shard import CENTRE, Move, Sums
from rankcore.boosting._value_groups import Cuts

# Bits of the sums of all weights, at most: sums of magnitudes of potentials have one more.
BITS = 60
# What rounding may add to a bound on the weights.
SLACK = 1 + 1e-6
# Factors of `PairedLabels` are brought back to 1 from beyond two to the power of this.
FAR = 400


@dataclass(frozen=True)
class Chosen:
    """A stump, its edge, and the share of each total where it fires."""

    move: Move
    edge: float
    shares: tuple[float, ...]


class Candidates:
    """All stumps of binned columns, those of a feature by descending threshold."""

    def __init__(self, cuts: Cuts) -> None:
        n_bins = cuts.n_bins.astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(n_bins + 1)])
        # Bins of each column, highest first; with missing values, also the lowest one.
        least = np.where(cuts.has_missing, 0, 1)
        counts = n_bins - least
        feature = np.repeat(np.arange(n_bins.size), counts)
        after = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        bin = n_bins[feature] - 1 - after
        # Missing values above the threshold first, if there are any.
        both = (cuts.has_missing[feature] > 0) & (bin > 0)
        twice = np.repeat(np.arange(bin.size), 1 + both)
        self.feature, self.bin = feature[twice], bin[twice]
        self.side = np.zeros(twice.size, dtype=np.int64)
        self.side[np.flatnonzero(np.diff(twice, append=-1) == 0)] = 1
        self._stop = bounds[self.feature] + n_bins[self.feature]
        self._start = bounds[self.feature] + self.bin
        # Room for what every round needs anew: large arrays come and go page by page.
        self._before = np.zeros(bounds[-1] + 1, dtype=np.int64)
        self._room = np.empty(twice.size, dtype=np.int64)
        self.found = np.empty((2, twice.size), dtype=np.int64)
        self.edges = np.empty((2, twice.size))

    def sum(self, by_bin: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Write the sums of the rows where each stump fires."""
        np.cumsum(by_bin, out=self._before[1:])
        # With "raise" as their mode, results would be copied once more.
        np.take(self._before, self._stop, out=out, mode="clip")
        room = np.take(self._before, self._start, out=self._room, mode="clip")
        out -= room
        np.take(by_bin, self._stop, out=room, mode="clip")
        room *= self.side
        out += room


def exponent_of(bound: float) -> int:
    """The power of two that scales sums of weights to just below 2**BITS."""
    if not 0 < bound < inf:
        raise ValueError("the weights of the pairs are beyond the range of numbers")
    return min(BITS - frexp(2 * bound)[1], 1000)


@dataclass
class Standing:
    """State between two rounds.

    Attributes
    ----------
    bounds : tuple of float
        Upper bounds on the totals.
    moves : list of Move
        So far.
    moved, left : float
        By how much scores have moved since weights were brought to 1; the product of normalizers.
    done : bool
        Whether no further round would improve the model.
    """

    bounds: tuple[float, ...]
    moves: list[Move] = field(default_factory=list)
    moved: float = 0.0
    left: float = 1.0
    done: bool = False


class Round(NamedTuple):
    """A stump that was added, and the figures of its round."""

    feature: int
    threshold: float
    side: int
    alpha: float
    figures: dict[str, float]


class Answers(Protocol):
    """All shards of a fit."""

    def look(self, moves: Sequence[Move], exponents: tuple[int, ...], by_bin: bool) -> Sums:
        """Sum `StumpShard.look` over the shards."""

    def measure(self, moves: Sequence[Move], stump: Move, exponents: tuple[int, ...]) -> Sums:
        """Sum `StumpShard.measure` over the shards."""


class SharedRounds:
    """The rounds of a fit.

    Parameters
    ----------
    standing : Standing
        In and out. At first its bounds are the totals but for rounding: of all pairs; or of the
        winners and the losers of `PairedLabels`.
    cuts : Cuts
    shards : Answers
    step, smoothing, rate
        As for `StumpRounds`; smoothing is a number.
    """

    def __init__(
        self,
        standing: Standing,
        cuts: Cuts,
        shards: Answers,
        *,
        step: str,
        smoothing: float,
        rate: float,
    ) -> None:
        self.standing, self._cuts, self._shards = standing, cuts, shards
        self._step, self._smoothing, self._rate = step, smoothing, rate
        self._candidates = Candidates(cuts)
        self._exponents: tuple[int, ...] = ()
        self._sums: Sums | None = None  # of all shards after the moves so far
        standing.done |= self._candidates.bin.size == 0

    def _ask(self, by_bin: bool) -> Sums:
        now = self.standing
        self._exponents = tuple(exponent_of(bound * SLACK) for bound in now.bounds)
        self._sums = self._shards.look(now.moves, self._exponents, by_bin)
        return self._sums

    def round(self, last: bool) -> Round | None:
        """Add a stump; None if no stump improves the model.

        Parameters
        ----------
        last : bool
            Whether no round will follow.
        """
        now = self.standing
        if now.done:
            return None
        sums = self._sums or self._ask(True)
        chosen = self._choose(sums)
        if not abs(chosen.edge) > LEAST:
            now.done = True
            return None
        split = len(chosen.shares) == 2
        parts = (0.0, 0.0, 0.0)

        def measure() -> tuple[float, float, float]:
            nonlocal parts
            if split:
                a, b = chosen.shares
                parts = a * (1 - b), (1 - a) * b, a * b
            else:
                found = self._shards.measure(now.moves, chosen.move, self._exponents)
                *weights, whole = found.totals
                rightly, wrongly, both = (one / whole for one in weights)
                parts = rightly, wrongly, both
            return parts

        alpha, smoothing = step_length(self._step, chosen.edge, self._smoothing, measure)
        alpha *= self._rate
        before = self._totals(sums)
        bounds = self._bounds(chosen, before, alpha, parts if self._step != "third" else None)
        stump = chosen.move._replace(alpha=alpha)
        now.moves.append(stump)
        now.moved += abs(alpha)
        now.bounds = self._recentred(bounds)
        ordered = abs(chosen.edge) >= 1 - LEAST
        sums = self._ask(not (last or ordered))
        normalizer = 1.0
        powers = now.moves[-1].powers or (0,) * len(bounds)
        for after, then, power in zip(self._totals(sums), before, powers, strict=True):
            normalizer *= after / 2.0**power / then
        now.left *= normalizer
        now.done = ordered or not sums.in_range or not now.left > SPENT
        figures = figures_of(chosen.edge, alpha, smoothing, normalizer, self._rate)
        threshold = self._cuts.threshold(stump.feature, stump.bin)
        return Round(stump.feature, threshold, stump.side, alpha, figures)

    def _totals(self, sums: Sums) -> list[float]:
        return [
            float(np.ldexp(float(total), -exponent))
            for total, exponent in zip(sums.totals, self._exponents, strict=True)
        ]

    def _choose(self, found: Sums) -> Chosen:
        """The stump of maximum |edge|; among ties the first feature, then the highest threshold."""
        of = self._candidates
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
        shares = tuple(int(one[at]) / total for one, total in zip(sums, totals, strict=True))
        move = Move(int(of.feature[at]), int(of.bin[at]), int(of.side[at]), 0.0)
        return Chosen(move, edge, shares)

    def _bounds(
        self,
        chosen: Chosen,
        totals: Sequence[float],
        alpha: float,
        parts: tuple[float, float, float] | None,
    ) -> tuple[float, ...]:
        """Upper bounds on the totals after a step."""
        down, up = exp(-alpha), exp(alpha)
        if len(totals) == 2:
            a, b = chosen.shares
            return totals[0] * ((1 - a) + a * down), totals[1] * ((1 - b) + b * up)
        if parts is not None:
            rightly, wrongly, _ = parts
            return (totals[0] * (rightly * down + wrongly * up + 1 - rightly - wrongly),)
        # Z is convex in the stump's effect on a pair: maximal if it orders as many as it can.
        r = chosen.edge
        return (totals[0] * ((1 + r) / 2 * down + (1 - r) / 2 * up),)

    def _recentred(self, bounds: tuple[float, ...]) -> tuple[float, ...]:
        """The bounds, after another move that rescales the weights if they are far from 1."""
        if len(bounds) == 1:
            if self.standing.moved > RECENTRED:
                self.standing.moves.append(CENTRE)
                self.standing.moved = 0.0
            return bounds
        powers = tuple(-frexp(bound)[1] for bound in bounds)
        if max(map(abs, powers)) <= FAR:
            return bounds
        self.standing.moves.append(CENTRE._replace(powers=powers))
        return tuple(
            float(np.ldexp(bound, power)) for bound, power in zip(bounds, powers, strict=True)
        )
