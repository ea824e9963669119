"""Rounds of stumps on rows that are in shards: the same stumps for any shards.

The weights are summed as integers, which shards have made of them with a power of two that is
known beforehand (`_stump_shard`). Weights that add up to at most B get the exponent that makes of
2 B between 2**59 and 2**60. A potential is rounded by half a unit, so that the sum of those of n
rows is wrong by n / 2**59 of B at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, frexp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.boosting._booster import LEAST, RECENTRED, SPENT
from rankcore.boosting._stump_booster import figures_of, step_length
from rankcore.boosting._stump_shard import CENTRE, Move, Sums
from rankcore.boosting._stump_sum import StumpSum
from rankcore.boosting._value_groups import Cuts

# Bits of the sums of all weights, at most: sums of magnitudes of potentials have one more.
BITS = 60
# What rounding may add to a bound on the weights.
SLACK = 1 + 1e-6
# Factors of `PairedLabels` are brought back to 1 from beyond two to the power of this.
FAR = 400


@dataclass(frozen=True)
class Chosen:
    """A stump, its edge, and what its rows have of each total."""

    move: Move
    edge: float
    shares: tuple[float, ...]


class Candidates:
    """All stumps of binned columns: of a feature the highest threshold first."""

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

    def sums(self, by_bin: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of the rows where each stump fires."""
        before = np.concatenate([[0], np.cumsum(by_bin)])
        return before[self._stop] - before[self._start] + self.side * by_bin[self._stop]


def exponent_of(bound: float) -> int:
    """The power of two that brings sums of weights up to a bound just below 2**BITS."""
    if not 0 < bound < inf:
        raise ValueError("the weights of the pairs are beyond the range of numbers")
    return min(BITS - frexp(2 * bound)[1], 1000)


class SharedRounds:
    """The rounds of a fit.

    Parameters
    ----------
    state : StumpSum
        Out, and empty.
    cuts : Cuts
    look : callable
        Takes the moves so far, exponents and whether to sum by bin: `Sums` of all shards.
    measure : callable
        Takes the moves so far, a stump and exponents: `Sums` of all shards.
    bounds : tuple of float
        The totals, which no rounding has touched, before the first round: of all pairs; or of the
        winners and the losers of `PairedLabels`.
    step, smoothing, rate
        As for `StumpRounds`; smoothing is a number.

    Attributes
    ----------
    done : bool
    """

    def __init__(
        self,
        state: StumpSum,
        cuts: Cuts,
        look: Callable[[Sequence[Move], tuple[int, ...], bool], Sums],
        measure: Callable[[Sequence[Move], Move, tuple[int, ...]], Sums],
        bounds: tuple[float, ...],
        *,
        step: str,
        smoothing: float,
        rate: float,
    ) -> None:
        self.state, self._cuts, self._look, self._measure = state, cuts, look, measure
        self._step, self._smoothing, self._rate = step, smoothing, rate
        self._candidates = Candidates(cuts)
        self._moves: list[Move] = []
        self._moved, self._left, self.done = 0.0, 1.0, self._candidates.bin.size == 0
        self._exponents: tuple[int, ...] = ()
        self._sums = self._ask(bounds, not self.done)

    def _ask(self, bounds: tuple[float, ...], by_bin: bool) -> Sums:
        self._exponents = tuple(exponent_of(bound * SLACK) for bound in bounds)
        return self._look(self._moves, self._exponents, by_bin)

    def round(self, last: bool) -> dict[str, float] | None:
        """Add a stump; returns figures of the round, or None if no stump improves the model.

        Parameters
        ----------
        last : bool
            Whether no round will follow.
        """
        chosen = self._choose()
        if not abs(chosen.edge) > LEAST:
            return None
        split = len(chosen.shares) == 2
        parts = (0.0, 0.0, 0.0)

        def measure() -> tuple[float, float, float]:
            nonlocal parts
            if split:
                a, b = chosen.shares
                parts = a * (1 - b), (1 - a) * b, a * b
            else:
                *found, whole = self._measure(self._moves, chosen.move, self._exponents).totals
                rightly, wrongly, both = (one / whole for one in found)
                parts = rightly, wrongly, both
            return parts

        alpha, smoothing = step_length(self._step, chosen.edge, self._smoothing, measure)
        alpha *= self._rate
        before = self._totals()
        bounds = self._bounds(chosen, alpha, parts if self._step != "third" else None)
        stump = chosen.move._replace(alpha=alpha)
        threshold = self._cuts.threshold(stump.feature, stump.bin)
        self.state.add(stump.feature, threshold, stump.side, alpha)
        self._moves.append(stump)
        self._moved += abs(alpha)
        bounds = self._recentred(bounds)
        ordered = abs(chosen.edge) >= 1 - LEAST
        self._sums = self._ask(bounds, not (last or ordered))
        normalizer = 1.0
        powers = self._moves[-1].powers or (0,) * len(bounds)
        for now, then, power in zip(self._totals(), before, powers, strict=True):
            normalizer *= now / 2.0**power / then
        self._left *= normalizer
        self.done = ordered or not self._sums.in_range or not self._left > SPENT
        return figures_of(chosen.edge, alpha, smoothing, normalizer, self._rate)

    def _totals(self) -> list[float]:
        return [
            float(np.ldexp(float(total), -exponent))
            for total, exponent in zip(self._sums.totals, self._exponents, strict=True)
        ]

    def _choose(self) -> Chosen:
        """The stump of greatest |edge|; of equal ones the first feature, then highest threshold."""
        sums = [self._candidates.sums(by_bin) for by_bin in self._sums.bins]
        totals = self._sums.totals
        edges: NDArray[Any]
        if len(sums) == 1:
            edges = sums[0]
            at = int(np.abs(edges).argmax())
            edge = int(edges[at]) / totals[0]
        else:
            edges = sums[0] / totals[0] - sums[1] / totals[1]
            at = int(np.abs(edges).argmax())
            edge = float(edges[at])
        shares = tuple(int(one[at]) / total for one, total in zip(sums, totals, strict=True))
        found = self._candidates
        move = Move(int(found.feature[at]), int(found.bin[at]), int(found.side[at]), 0.0)
        return Chosen(move, edge, shares)

    def _bounds(
        self, chosen: Chosen, alpha: float, parts: tuple[float, float, float] | None
    ) -> tuple[float, ...]:
        """What the totals can be after a step."""
        down, up = exp(-alpha), exp(alpha)
        totals = self._totals()
        if len(totals) == 2:
            a, b = chosen.shares
            return totals[0] * ((1 - a) + a * down), totals[1] * ((1 - b) + b * up)
        if parts is not None:
            rightly, wrongly, _ = parts
            return (totals[0] * (rightly * down + wrongly * up + 1 - rightly - wrongly),)
        # Z is convex in what a stump does to a pair: greatest if it orders as many as it can.
        r = chosen.edge
        return (totals[0] * ((1 + r) / 2 * down + (1 - r) / 2 * up),)

    def _recentred(self, bounds: tuple[float, ...]) -> tuple[float, ...]:
        """The bounds, after a further move that brings weights back around 1 if they are far."""
        if len(bounds) == 1:
            if self._moved > RECENTRED:
                self._moves.append(CENTRE)
                self._moved = 0.0
            return bounds
        powers = tuple(-frexp(bound)[1] for bound in bounds)
        if max(map(abs, powers)) <= FAR:
            return bounds
        self._moves.append(CENTRE._replace(powers=powers))
        return tuple(
            float(np.ldexp(bound, power)) for bound, power in zip(bounds, powers, strict=True)
        )


def run_rounds(fitted: Any, rounds: SharedRounds) -> None:
    """Make the rounds of an estimator, which has a state, until there is nothing to learn."""
    state, n = fitted._state, fitted.n_estimators
    while len(state.model) < n and not rounds.done:
        figures = rounds.round(len(state.model) + 1 == n)
        if figures is None:
            break
        fitted._note(state, figures)
        fitted._print_round(state, "")
