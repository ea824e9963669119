"""Rounds of boosting with stumps: search, step, new weights.

`next_stump` is the round of all fits. `StumpRounds` sums weights as floats, with bounds that rule
out most columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import stumps
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Binning, Bins
from rankcore.boosting._normalizer_search import NormalizerSearch
from rankcore.boosting._pair_rounds import EDGE_MARGIN, MAX_STEP, PairRounds
from rankcore.boosting._streamed_bins import BinEdges, DiskRows
from rankcore.boosting._stump_search import Stump, StumpSearch, TwoLabelSearch
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
        """Take the rule of a fit to ``n_pairs`` pairs."""
        smoothing = 0.5 / n_pairs if params.smoothing == "auto" else float(params.smoothing)
        return cls(params.step, smoothing, Schedule.of(params).learning_rate)

    def length(
        self, edge: float, measure: Callable[[], tuple[float, float, float]]
    ) -> tuple[float, float]:
        """Return the step of a stump and its smoothing; ``measure`` is that of `Weighed`."""
        if self.rule == "third":
            return self.rate * _half_log(1 + edge, 1 - edge), 0.0
        rightly, wrongly, both = measure()
        smoothing = self.smoothing + both * (self.rule == "mohri")
        return self.rate * _half_log(rightly + smoothing, wrongly + smoothing), smoothing


class Round(NamedTuple):
    """An added stump, and the figures of its round."""

    feature: int
    threshold: float
    fires_missing: int
    alpha: float
    figures: dict[str, float]


class Weighed(ABC):
    """Weights of pairs of rows."""

    @abstractmethod
    def best(self) -> Stump:
        """Return the best stump; its bin is -1 if there is none."""

    @abstractmethod
    def measure(self, stump: Stump) -> tuple[float, float, float]:
        """Return the fractions of pairs ordered correctly, wrongly, and firing on both rows."""

    @abstractmethod
    def advance(self, stump: Stump, alpha: float) -> float:
        """Update the weights by a step; return the ratio of their sum to the previous sum."""


def next_stump(weighed: Weighed, bins: Bins | BinEdges, step: Step) -> Round | None:
    """Add the best stump to weights of binned rows; None if no stump improves the model."""
    stump = weighed.best()
    if stump.bin < 0 or not abs(stump.edge) > EDGE_MARGIN:
        return None
    alpha, smoothing = step.length(stump.edge, lambda: weighed.measure(stump))
    threshold = bins.threshold(stump.feature, stump.bin)
    normalizer = weighed.advance(stump, alpha)
    figures = _figures_of(stump.edge, alpha, smoothing, normalizer, step.rate)
    return Round(stump.feature, threshold, stump.fires_missing, alpha, figures)


class StumpRounds(PairRounds, Weighed):
    """Rounds that add stumps to a `StumpSum`."""

    state: StumpSum

    def __init__(
        self, params: PairParams, rows: Rows | DiskRows, pairing: Pairing, state: StumpSum
    ) -> None:
        super().__init__(params, rows, pairing, state)
        self._step = Step.of(params, int(pairing.n_pairs.sum()))
        self._search: StumpSearch
        factors, levels = self._factors, self._levels
        binning, n_jobs = self._binning, self._n_jobs
        sparse = binning.n_entries is not None and binning.narrow
        if params.select == "normalizer":
            self._search = NormalizerSearch(binning, n_jobs, self._weights)
        elif (
            sparse
            and isinstance(binning, Binning)
            and factors is not None
            and levels is not None
            and levels.size == 3
        ):
            self._search = TwoLabelSearch(binning, factors, int(levels[1]), n_jobs)
        else:
            self._search = StumpSearch(binning, n_jobs)
        self.done |= len(state) > 0 and self._ordered(pairing.docs)

    def _allocate(self, n: int) -> None:
        self._gradients, self._fires = np.empty(n), np.empty(n, dtype=np.uint8)

    def _differentiate(self) -> float:
        return self._weights.differentiate(self._gradients, None)

    def _recentre(self) -> None:
        self._search.renew()
        super()._recentre()

    def close(self) -> None:
        """Shut down the threads."""
        self._search.close()

    def round(self) -> dict[str, float] | None:
        """Add a stump; returns figures of the round, or None if no stump improves the model."""
        made = next_stump(self, self._binning, self._step)
        if made is None:
            return None
        self.state.add(made.feature, made.threshold, made.fires_missing, made.alpha)
        return made.figures

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
        if self._fires_at_zero(stump.feature, stump.bin, stump.fires_missing):
            np.subtract(1, fires, out=fires)
            alpha = -alpha
        self._weights.advance(fires, alpha)
        self._search.follow(stump, fires, exp(-alpha))
        return self._finish(abs(alpha), abs(stump.edge) >= 1 - EDGE_MARGIN)

    def _ordered(self, docs: NDArray[np.int64]) -> bool:
        """Return whether the last stump orders every pair."""
        assert isinstance(self._binning, Binning)  # warm_start requires rows in memory
        rows, last = self._binning.rows, len(self.state) - 1
        fires = np.empty(rows.n_rows, dtype=np.uint8)
        self.state.fire(last, rows, fires)
        rightly, wrongly, _ = self._weights.measure(fires[docs])
        return (rightly - wrongly) * np.sign(self.state.alphas[last]) >= 1 - EDGE_MARGIN

    def _fires_at_zero(self, feature: int, bin: int, fires_missing: int) -> bool:
        binning = self._binning
        if binning.n_entries is None:
            return False
        code = binning.zero_bin[feature]
        return bool(fires_missing if code == binning.n_bins[feature] else code >= bin)


def _figures_of(
    edge: float, alpha: float, smoothing: float, normalizer: float, rate: float
) -> dict[str, float]:
    """Return figures of a round for the history; products over rounds follow later."""
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
