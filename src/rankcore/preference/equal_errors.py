"""Rankings by judges whose error rate does not depend on the distance between items.

Each answer is wrong with the same probability e. An order that c of m answers contradict has the
likelihood e^c (1 - e)^(m - c), which is maximal for the smallest c. Bradley-Terry strengths trust
such a judge too much about distant items, and remain uncertain about a judge without errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lgamma, log

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.preference.forms import Places
from rankcore.preference.plackett_luce import Choices

_SWEEPS = 50
# Numbers of answers below this are rounding errors.
_LEAST = 1e-9
# Numbers per block: small enough for a cache.
_BLOCK = 1 << 15
# Sweeps of Gibbs sampling, starting at the best order.
_SKIPPED, _KEPT = 10, 20


@dataclass
class EqualErrors:
    """An order that no move of one item improves, with its uncertainty."""

    order: Places  # the items, the best first
    error: float  # probability of a wrong answer
    log_evidence: float
    _moves: Floats  # (n, n): probability that the item at a place belongs to each place
    _net: Floats  # (n, n): answers for item i before item j, minus those against
    _odds: float  # logarithm of the odds of a right answer

    @cached_property
    def place(self) -> Places:
        """The place of each item."""
        return np.argsort(self.order)

    @cached_property
    def _wrong(self) -> Floats:
        """Probability that the items of two places are in the wrong order."""
        down = np.cumsum(self._moves[:, ::-1], axis=1)[:, ::-1]  # to that place or behind it
        up = np.cumsum(self._moves, axis=1)
        wrong = np.triu(down + up.T, 1)
        first = np.arange(self.order.size - 1)
        # Two neighbours can change places in one way, not in two.
        wrong[first, first + 1] -= (
            self._moves[first, first + 1] + self._moves[first + 1, first]
        ) / 2
        return np.minimum(wrong + wrong.T, 0.5)

    def beats(self) -> Floats:
        """Probability that item i is before item j, as entry (i, j)."""
        place = self.place
        wrong = self._wrong[np.ix_(place, place)]
        before = place[:, None] < place
        beats = np.where(before, 1 - wrong, wrong)
        np.fill_diagonal(beats, 0.5)
        return beats

    def draws(self, rng: np.random.Generator) -> Places:
        """Places of the items in draws of orders, shape (draws, n).

        Gibbs sampling, in several chains from the best order: each item in turn moves to a place
        drawn conditionally on the order of the other items.
        """
        n = self.order.size
        chains = min(100, max(8, 12_000 // n))
        orders, columns = np.tile(self.order, (chains, 1)), np.arange(n)
        found = []
        for sweep in range(_SKIPPED + _KEPT):
            for item in self.order.tolist():
                here = np.argmax(orders == item, axis=1)[:, None]
                extra = _extra_of_rows(self._net[item][orders], here)
                noise = rng.gumbel(size=extra.shape)
                there = np.argmax(noise - self._odds * extra, axis=1)[:, None]
                back = (columns >= here) & (columns < there)
                on = (columns > there) & (columns <= here)
                source = np.where(columns == there, here, columns + back - on)
                orders = np.take_along_axis(orders, source, axis=1)
            if sweep >= _SKIPPED:
                found.append(np.argsort(orders, axis=1))
        return np.concatenate(found)


def fit_equal_errors(n: int, choices: Choices, order: Places) -> EqualErrors | None:
    """Order of n items that contradicts the fewest pairwise choices, by local search.

    None if there are too few answers to estimate an error rate: an order alone takes log2(n!).
    """
    told = float(choices.weights.sum()) - lgamma(n + 1) / log(2)
    if told <= 0:
        return None
    won, lost = choices.items[:, 0], choices.items[:, 1]
    wins: Floats = np.bincount(won * n + lost, choices.weights, n * n).astype(np.float64)
    wins = wins.reshape(n, n)
    net = wins - wins.T
    order = improved(net, order)
    ordered = wins[np.ix_(order, order)]
    against = float(np.tril(ordered).sum())
    error = (against + 0.5) / (told + 1)
    if error >= 0.5:
        return None
    odds = log((1 - error) / error)
    places = np.arange(n)[:, None]
    extra = _extra_of_rows(net[np.ix_(order, order)], places)
    moves = np.exp(-odds * np.maximum(extra, 0.0))
    total = moves.sum(axis=1)
    evidence = float(choices.weights.sum()) * log(1 - error) - against * odds
    # Of the n! orders, those near the best one are nearly as good; a swap of neighbours counts
    # once.
    evidence += 0.5 * float(np.log(total).sum()) - lgamma(n + 1)
    return EqualErrors(order, error, evidence, moves / total[:, None], net, odds)


def improved(net: Floats, order: Places, least: float = _LEAST) -> Places:
    """Move each item to its best place in an order, until no move gains more than ``least``."""
    order, n = order.copy(), order.size
    rows = max(1, _BLOCK // max(1, n))
    for _ in range(_SWEEPS):
        moving: list[int] = []
        for places in np.split(np.arange(n), range(rows, n, rows)):
            extra = _extra_of_rows(net[np.ix_(order[places], order)], places[:, None])
            moving += order[places[extra.min(axis=1) < -_LEAST]].tolist()
        if not moving:
            break
        for item in moving:
            here = int((order == item).argmax())
            answers = net[item, order]
            sums = np.cumsum(answers)
            sums[:here] -= answers[:here]
            there = int(sums.argmin())
            if sums[there] - sums[here] < -least:
                between = order[min(here, there) : max(here, there) + 1]
                between[:] = np.roll(between, -1 if there > here else 1)
    return order


def _extra_of_rows(net: Floats, here: Places) -> Floats:
    """Additional answers against an order if an item moves to another place.

    ``net`` has the net answers for the item against the item at each place; ``here``, of shape
    (rows, 1), has its place. Rows are items, or orders.
    """
    sums = np.cumsum(net, axis=1)
    moved = np.where(np.arange(net.shape[1]) < here, sums - net, sums)
    return np.asarray(moved - np.take_along_axis(sums, here, axis=1))
