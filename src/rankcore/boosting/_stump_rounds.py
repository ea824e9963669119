"""Rounds of boosting with stumps: search, step, new weights.

`StumpRounds` are those of any rows; `MemoryStumps` those of rows in memory, whose weights it sums
as floats, with bounds that rule out most columns. On a cluster, stumps come from histograms
(`rankcore.boosting.worker_rounds`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import n_threads
from rankcore._ext import stumps
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Binning, Bins
from rankcore.boosting._normalizer_search import NormalizerSearch
from rankcore.boosting._pair_weights import (
    EDGE_MARGIN,
    MAX_MOVED,
    MAX_STEP,
    MIN_TOTAL,
    check_weight,
    listed_weights,
    overflowing,
    steps_of,
    weights_of,
)
from rankcore.boosting._streamed_bins import BinEdges, DiskRows, bin_rows, scores_of
from rankcore.boosting._stump_search import Stump, StumpSearch, TwoLabelSearch
from rankcore.boosting._training import Rounds
from rankcore.boosting.params import PairParams, Schedule
from rankcore.boosting.stump_model import StumpSum
from rankcore.ranking.pairs import Pairing


@dataclass(frozen=True)
class Step:
    """Rule for the length of steps."""

    rule: str  # {"third", "discrete", "exact", "mohri"}
    smoothing: float
    rate: float  # factor of steps

    @classmethod
    def of(cls, params: PairParams, n_pairs: int) -> Self:
        """Resolve the rule of a fit to ``n_pairs`` pairs."""
        smoothing = 0.5 / n_pairs if params.smoothing == "auto" else float(params.smoothing)
        return cls(params.step, smoothing, Schedule.of(params).learning_rate)

    def length(
        self, edge: float, measure: Callable[[], tuple[float, float, float]]
    ) -> tuple[float, float]:
        """Return the step of a stump and its smoothing; ``measure`` is `StumpRounds.measure`."""
        if self.rule == "third":
            return self.rate * _half_log(1 + edge, 1 - edge), 0.0
        rightly, wrongly, both = measure()
        smoothing = self.smoothing + both * (self.rule == "mohri")
        return self.rate * _half_log(rightly + smoothing, wrongly + smoothing), smoothing


class StumpRounds(Rounds):
    """Rounds that add stumps to ``model``."""

    model: StumpSum

    def __init__(self, model: StumpSum, bins: Bins | BinEdges, step: Step) -> None:
        self.model, self._bins, self._step = model, bins, step

    @abstractmethod
    def best(self) -> Stump:
        """Return the best stump; its bin is -1 if there is none."""

    @abstractmethod
    def measure(self, stump: Stump) -> tuple[float, float, float]:
        """Return the fractions of pairs ordered correctly, wrongly, and firing on both rows."""

    @abstractmethod
    def advance(self, stump: Stump, alpha: float) -> float:
        """Update the weights by a step; return the ratio of their sum to the previous sum."""

    def round(self) -> dict[str, float] | None:
        stump = self.best()
        if stump.bin < 0 or not abs(stump.edge) > EDGE_MARGIN:
            return None
        alpha, smoothing = self._step.length(stump.edge, lambda: self.measure(stump))
        normalizer = self.advance(stump, alpha)
        threshold = self._bins.threshold(stump.feature, stump.bin)
        self.model.add(stump.feature, threshold, stump.fires_missing, alpha)
        return _statistics_of(stump.edge, alpha, smoothing, normalizer, self._step.rate)


class MemoryStumps(StumpRounds):
    """Rounds on rows in memory.

    Documents of ``pairing`` are in descending order of label, unless its pairs are listed.
    """

    _binning: Bins

    def __init__(
        self, params: PairParams, rows: Rows | DiskRows, pairing: Pairing, model: StumpSum
    ) -> None:
        n_jobs = min(n_threads(params.n_jobs), rows.n_features)  # threads share the features
        bins = bin_rows(rows, pairing.docs, params.max_bins, model.zero_missing, None, n_jobs)
        super().__init__(model, bins, Step.of(params, int(pairing.n_pairs.sum())))
        self._binning = bins
        scores = scores_of(model, rows, pairing.docs)
        steps, total = steps_of(pairing, params.balance == "query")
        check_weight(total)
        self._weights: LabelWeights | ListedWeights
        factors: Floats | None = None
        if pairing.listed_pairs is None:
            self._weights, factors, levels = weights_of(scores, pairing, steps)
        else:
            self._weights = listed_weights(scores, pairing, steps)
        n = pairing.docs.size
        self._gradients, self._fires = np.empty(n), np.empty(n, dtype=np.uint8)
        self._moved, self._first_total = 0.0, total
        self.done = len(model) > 0 and not self._weights.centre()
        self._total = self._weights.differentiate(self._gradients, None)
        if not self.done and not self._total < inf:
            raise overflowing()
        self.done |= self._vanished or (len(model) > 0 and self._ordered(pairing.docs))
        self._search: StumpSearch
        sparse = bins.n_entries is not None and bins.narrow
        if params.select == "normalizer":
            self._search = NormalizerSearch(bins, n_jobs, self._weights)
        elif sparse and isinstance(bins, Binning) and factors is not None and levels.size == 3:
            self._search = TwoLabelSearch(bins, factors, int(levels[1]), n_jobs)
        else:
            self._search = StumpSearch(bins, n_jobs)

    def close(self) -> None:
        """Shut down the threads."""
        self._search.close()

    def best(self) -> Stump:
        stump = self._search.best(self._gradients)
        if stump.bin >= 0:
            columns = self._binning.columns
            stumps.mark(columns, stump.feature, stump.bin, stump.fires_missing, self._fires)
        return stump

    def measure(self, stump: Stump) -> tuple[float, float, float]:
        return self._weights.measure(self._fires)

    def advance(self, stump: Stump, alpha: float) -> float:
        fires = self._fires
        # Only differences of scores matter: if a stump fires on the zeros of a sparse matrix, the
        # step is subtracted from the other rows, which are few.
        if self._fires_at_zero(stump):
            np.subtract(1, fires, out=fires)
            alpha = -alpha
        self._weights.advance(fires, alpha)
        self._search.follow(stump, fires, exp(-alpha))
        before, self._total = self._total, self._weights.differentiate(self._gradients, None)
        normalizer = self._total / before
        self.done = abs(stump.edge) >= 1 - EDGE_MARGIN or self._vanished
        self._moved += abs(alpha)
        if self._moved > MAX_MOVED and not self.done:
            self._recentre()
        return normalizer

    @property
    def _vanished(self) -> bool:
        """Whether the total weight of all pairs has vanished."""
        return not self._total > MIN_TOTAL * self._first_total

    def _recentre(self) -> None:
        """Recompute the weights around 1."""
        self._search.renew()
        if not self._weights.centre():
            self.done = True
            return
        self._moved = 0.0
        self._total = self._weights.differentiate(self._gradients, None)

    def _ordered(self, docs: NDArray[np.int64]) -> bool:
        """Return whether the last stump orders every pair."""
        assert isinstance(self._binning, Binning)  # warm_start requires rows in memory
        rows, last = self._binning.rows, len(self.model) - 1
        fires = np.empty(rows.n_rows, dtype=np.uint8)
        self.model.fire(last, rows, fires)
        rightly, wrongly, _ = self._weights.measure(fires[docs])
        return (rightly - wrongly) * np.sign(self.model.alphas[last]) >= 1 - EDGE_MARGIN

    def _fires_at_zero(self, stump: Stump) -> bool:
        binning = self._binning
        if binning.n_entries is None:
            return False
        code = binning.zero_bin[stump.feature]
        if code == binning.n_bins[stump.feature]:
            return bool(stump.fires_missing)
        return bool(code >= stump.bin)


def _statistics_of(
    edge: float, alpha: float, smoothing: float, normalizer: float, rate: float
) -> dict[str, float]:
    """Return the statistics of a round for the history; products over rounds are added later."""
    width, size = 1 + 2 * smoothing, min(abs(edge), 1 - EDGE_MARGIN)
    # sqrt(width^2 - size^2) - 2 smoothing, without cancellation of two large numbers.
    cap = (1 + 4 * smoothing - size**2) / (sqrt(width**2 - size**2) + 2 * smoothing)
    return {
        "edge": edge,
        "alpha": alpha,
        "normalizer": normalizer,
        # Z is convex in the step, and 1 without one.
        "cap": 1 - rate + rate * cap,
    }


def _half_log(numerator: float, denominator: float) -> float:
    """Return half the logarithm of a ratio, clipped to `MAX_STEP`."""
    if numerator <= 0 or denominator <= 0:
        return MAX_STEP * ((numerator > 0) - (denominator > 0))
    return min(max(0.5 * log(numerator / denominator), -MAX_STEP), MAX_STEP)
