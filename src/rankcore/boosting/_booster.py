"""One round of boosting after another: search, step, new weights."""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import stumps
from rankcore._ext.pair_weights import SPREAD, LabelWeights, ListedWeights
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Binning
from rankcore.boosting._stump_search import BoundedSearch, FiringSearch, NormalizerSearch, Search
from rankcore.boosting._stump_sum import StumpSum
from rankcore.ranking._pairs import Pairing

# An |edge| this close to 1 takes an infinite step: every pair that differs is ordered alike.
LEAST = 1e-12
LONGEST = 0.5 * log((2 - LEAST) / LEAST)
# Of the weight of all pairs at the start: what is left when there is nothing more to learn.
SPENT = 1e-250
# Sum of |alpha| after which the weights are brought back around 1.
RECENTRED = 200.0


class Rounds:
    """The rounds of a fit.

    Parameters
    ----------
    rows : Rows
    pairing : Pairing
        Its documents by descending label, unless its pairs are listed.
    state : StumpSum
        In and out. Stumps are added to those it has.
    step : {"third", "discrete", "exact", "mohri"}
    select : {"edge", "normalizer"}
    max_bins : int or None
    smoothing : "auto" or float
    balanced : bool
        Whether queries weigh alike at first.
    plain : bool
        Whether every column is looked at in every round.
    n_jobs : int
        Threads.

    Attributes
    ----------
    done : bool
        Whether no further round can improve the model.
    """

    def __init__(
        self,
        rows: Rows,
        pairing: Pairing,
        state: StumpSum,
        *,
        step: str,
        select: str,
        max_bins: int | None,
        smoothing: Any,
        balanced: bool,
        plain: bool,
        n_jobs: int,
    ) -> None:
        self.step, self.state = step, state
        self._binning = Binning(rows, pairing.docs, max_bins, state.zero_missing)
        n = pairing.docs.size
        scores = state.score(rows)[pairing.docs] if len(state) else np.zeros(n)
        visited = pairing.visited()
        n_pairs = int(pairing.n_pairs[visited].sum())
        self._smoothing = 0.5 / n_pairs if smoothing == "auto" else float(smoothing)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            steps = pairing.steps(balanced)
            total = float(pairing.weights @ steps)
        if not 0 < total < inf:
            raise ValueError(
                "the weights of some pairs vanish beside those of others: reduce the "
                "ratio of the weights"
            )
        self._weights: LabelWeights | ListedWeights
        factors, levels = None, None
        if pairing.listed is None:
            levels, queries = _levels(pairing)
            factors, masses = _factors(scores, pairing, levels, queries)
            sums = np.empty((2, levels.size - 1))
            self._weights = LabelWeights(factors, masses, levels, queries, steps, sums)
        else:
            self._weights = ListedWeights(*_listed(scores, pairing, steps), n)
        del scores
        self._search: Search
        if select == "normalizer":
            self._search = NormalizerSearch(self._binning, n_jobs, self._weights)
        elif plain:
            self._search = Search(self._binning, n_jobs)
        elif self._firing(levels, max_bins):
            assert factors is not None
            assert levels is not None
            self._search = FiringSearch(self._binning, factors, int(levels[1]), n_jobs)
        else:
            self._search = BoundedSearch(self._binning, n_jobs)
        self._potentials, self._fires = np.empty(n), np.empty(n, dtype=np.uint8)
        self._moved, self._first_total = 0.0, total
        self.done = len(state) > 0 and not self._weights.centre()
        self._total = self._weights.potentials(self._potentials)
        if not self.done and not self._total < inf:
            raise ValueError(
                "warm_start cannot continue: the model ranks pairs of these rows wrongly by more "
                "than the range of numbers allows for"
            )
        self.done |= self._spent() or (len(state) > 0 and self._ordered(pairing.docs))

    def _firing(self, levels: NDArray[np.int64] | None, max_bins: int | None) -> bool:
        """Whether there are two labels, one query and sparse columns of at most 255 bins."""
        sparse = self._binning.n_entries is not None
        return sparse and levels is not None and levels.size == 3 and max_bins is not None

    def close(self) -> None:
        """End the threads."""
        self._search.close()

    def round(self) -> dict[str, float] | None:
        """Add a stump; returns figures of the round, or None if no stump improves the model."""
        stump = self._search.best(self._potentials)
        if stump.bin < 0 or not abs(stump.edge) > LEAST:
            return None
        fires = self._fires
        stumps.mark(self._binning.columns, stump.feature, stump.bin, stump.side, fires)
        alpha, smoothing = self._alpha(stump.edge)
        threshold = self._binning.threshold(stump.feature, stump.bin)
        self.state.add(stump.feature, threshold, stump.side, alpha)
        # Only differences of scores matter: where it fires on the zeros of a sparse matrix, let it
        # take from the others instead, which are few.
        by = alpha
        if self._fires_at_zero(stump.feature, stump.bin, stump.side):
            np.subtract(1, fires, out=fires)
            by = -alpha
        self._weights.advance(fires, by)
        self._moved += abs(by)
        self._search.follow(stump, fires, exp(-by))
        before = self._total
        self._total = self._weights.potentials(self._potentials)
        normalizer = self._total / before
        self.done = abs(stump.edge) >= 1 - LEAST or self._spent()
        if self._moved > RECENTRED and not self.done:
            self._recentre()
        width, edge = 1 + 2 * smoothing, min(abs(stump.edge), 1 - LEAST)
        return {
            "edge": stump.edge,
            "alpha": alpha,
            "normalizer": normalizer,
            # sqrt(width^2 - edge^2) - 2 smoothing, without the difference of two great numbers.
            "cap": (1 + 4 * smoothing - edge**2) / (sqrt(width**2 - edge**2) + 2 * smoothing),
        }

    def _alpha(self, edge: float) -> tuple[float, float]:
        """The step, and what it has been smoothed by."""
        if self.step == "third":
            return _half_log(1 + edge, 1 - edge), 0.0
        rightly, wrongly, both = self._weights.measure(self._fires)
        smoothing = self._smoothing + both * (self.step == "mohri")
        return _half_log(rightly + smoothing, wrongly + smoothing), smoothing

    def _ordered(self, docs: NDArray[np.int64]) -> bool:
        """Whether the last stump that there is orders every pair."""
        rows, last = self._binning.rows, len(self.state) - 1
        fires = np.empty(rows.n_rows, dtype=np.uint8)
        self.state.fire(last, rows, fires)
        rightly, wrongly, _ = self._weights.measure(fires[docs])
        return (rightly - wrongly) * np.sign(self.state.alphas[last]) >= 1 - LEAST

    def _spent(self) -> bool:
        """Whether nothing is left of the weight of all pairs."""
        return not self._total > SPENT * self._first_total

    def _fires_at_zero(self, feature: int, bin: int, side: int) -> bool:
        binning = self._binning
        if binning.n_entries is None:
            return False
        code = binning.zero_bin[feature]
        return bool(side if code == binning.n_bins[feature] else code >= bin)

    def _recentre(self) -> None:
        if not self._weights.centre():
            self.done = True
            return
        self._search.renew()
        self._moved = 0.0
        self._total = self._weights.potentials(self._potentials)


def _half_log(numerator: float, denominator: float) -> float:
    """Half the logarithm of a ratio, within the longest step."""
    if numerator <= 0 or denominator <= 0:
        return LONGEST * ((numerator > 0) - (denominator > 0))
    return min(max(0.5 * log(numerator / denominator), -LONGEST), LONGEST)


def _levels(pairing: Pairing) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where levels begin among the documents, and queries among the levels."""
    labels, bounds = pairing.labels, pairing.bounds
    new = np.ones(labels.size + 1, dtype=bool)
    new[1:-1] = labels[1:] != labels[:-1]
    new[bounds] = True
    levels = np.flatnonzero(new)
    return levels, np.searchsorted(levels, bounds)


def _factors(
    scores: NDArray[np.float64],
    pairing: Pairing,
    levels: NDArray[np.int64],
    queries: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """exp(-score) of each document, and exp(score) in the last level, times its weight."""
    starts, stops = pairing.bounds[:-1], pairing.bounds[1:]
    middle = 0.5 * (np.minimum.reduceat(scores, starts) + np.maximum.reduceat(scores, starts))
    signs = np.full(scores.size, -1.0)
    signs[_ranges(levels[queries[1:] - 1], stops)] = 1.0
    shifted = scores - np.repeat(middle, stops - starts)
    factors = np.exp(signs * np.clip(shifted, -SPREAD / 2, SPREAD / 2))
    if pairing.doc_weights is None:
        return factors, None
    return factors * pairing.doc_weights, pairing.doc_weights**2


def _ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers of several ranges."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)


def _listed(
    scores: NDArray[np.float64], pairing: Pairing, steps: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
    """Weights, winners and losers of listed pairs."""
    assert pairing.listed is not None
    offsets, winners, losers, weights = pairing.listed
    counts = np.diff(offsets)
    base = np.repeat(pairing.bounds[:-1], counts)
    winners, losers = (winners + base).astype(np.int32), (losers + base).astype(np.int32)
    total = np.repeat(steps, counts) * (1.0 if weights is None else weights)
    with np.errstate(over="ignore"):
        return total * np.exp(scores[losers] - scores[winners]), winners, losers
