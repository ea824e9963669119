"""Pair weights by a ranking measure: NDCG, average precision or a function.

The weight of a pair is that of RankBoost times the change of the measure of its query when both
documents swap their places in the order by score. `MetricPairWeights` sums them to gradients and
hessians of documents (`rankcore._ext.metric_weights`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import metric_weights
from rankcore.ranking.pairs import Pairing

# Differences of scores are clipped to this, as in the kernel metric_weights.
WIDEST = 60.0
# Maximum label, as gains are 2**label - 1.
MAX_LABEL = 60.0


def check_pair_weight(value: Any, name: str) -> None:
    """Raise unless a parameter is a valid ``kind`` of `MetricWeights`."""
    if value is None or callable(value) or value in ("map", "ndcg"):
        return
    if not isinstance(value, str) or not re.fullmatch(r"ndcg@[1-9]\d{0,8}", value):
        raise ValueError(
            f"{name} must be None, 'ndcg', 'ndcg@k' such as 'ndcg@10', 'map' or a function of "
            f"the labels and places of a query; got {value!r}"
        )


class MetricPairWeights:
    """Per-row sums of metric-weighted pairs.

    Documents of ``pairing`` are in descending order of label; ``steps`` has a weight for each
    query. ``kind`` is "ndcg", "ndcg@k", "map", or a function of the labels and ranks (from 1) of
    the documents of a query that returns weights of shape (n, n), by winner and loser.
    """

    def __init__(
        self, pairing: Pairing, steps: Floats, kind: str | Callable[[Any, Any], Any], scores: Floats
    ) -> None:
        self._kind, self._scores = kind, scores.copy()
        self._bounds, self._labels = pairing.bounds, pairing.labels
        self._row_weights = pairing.doc_weights
        n = scores.size
        self._places, self._room = np.empty(n, dtype=np.int64), np.empty((2, n + 1))
        self._discounts: Floats | None = None
        self._gains, self._scales = pairing.labels, steps
        if kind == "map":
            self._gains = (pairing.labels > 0).astype(np.float64)
            n_relevant = np.add.reduceat(self._gains, pairing.bounds[:-1])
            self._scales = steps / np.maximum(n_relevant, 1)
        elif isinstance(kind, str):
            low, high = pairing.labels.min(initial=0.0), pairing.labels.max(initial=0.0)
            if low < 0 or high > MAX_LABEL:
                raise ValueError(
                    f"pair_weight={kind!r} requires labels from 0 to {MAX_LABEL:.0f}, as gains are "
                    f"2**label - 1; got {low if low < 0 else high:g}: number the levels from 0"
                )
            longest = int(np.diff(pairing.bounds).max())
            k = min(int(kind[5:] or longest), longest)
            self._discounts = 1 / np.log2(np.arange(2.0, k + 2.0))
            self._gains = np.exp2(pairing.labels) - 1
            # Descending order of labels is the ideal order.
            places = np.arange(n) - np.repeat(pairing.bounds[:-1], np.diff(pairing.bounds))
            ideal = np.where(places < k, self._discounts[np.minimum(places, k - 1)], 0.0)
            best = np.add.reduceat(ideal * self._gains, pairing.bounds[:-1])
            self._scales = np.divide(steps, best, out=np.zeros(steps.size), where=best > 0)
        of = np.repeat(np.arange(steps.size), np.diff(pairing.bounds))
        new = np.ones(n + 1, dtype=bool)
        new[1:-1] = (self._labels[1:] != self._labels[:-1]) | (of[1:] != of[:-1])
        starts = np.flatnonzero(new)
        self._levels = np.repeat(starts[1:], np.diff(starts))
        self._query_of = of

    def move(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Add the value of each row's leaf to its score."""
        self._scores += values[leaf_of]

    def differentiate(self, gradients: Floats, hessians: Floats) -> float:
        """Write gradients and hessians of the rows, for weights of pairs scaled to sum 1.

        Returns the sum before scaling; 0 if no pair changes the measure.
        """
        self._order = np.lexsort((-self._scores, self._query_of)).astype(np.int32)
        total = self._weigh(None, gradients, hessians, None)
        if total > 0:
            gradients /= total
            hessians /= total
        return total

    def between(self, leaf_of: NDArray[np.int32], n_leaves: int) -> Floats:
        """Return the weights of pairs between leaves, of sum 1, for the last `differentiate`."""
        out = np.empty((n_leaves, n_leaves))
        total = self._weigh(leaf_of, None, None, out)
        return out / total

    def _weigh(self, leaf_of: Any, gradients: Any, hessians: Any, between: Any) -> float:
        if callable(self._kind):
            return self._weigh_by(self._kind, leaf_of, gradients, hessians, between)
        return metric_weights.weigh(
            self._scores,
            self._order,
            self._bounds,
            self._levels,
            self._gains,
            self._discounts,
            self._row_weights,
            self._scales,
            leaf_of,
            gradients,
            hessians,
            between,
            self._places,
            self._room,
        )

    def _weigh_by(
        self, kind: Any, leaf_of: Any, gradients: Any, hessians: Any, between: Any
    ) -> float:
        """Return the weights by a function of each query."""
        total = 0.0
        for out in (gradients, hessians, between):
            if out is not None:
                out[:] = 0
        for q, (first, last) in enumerate(zip(self._bounds[:-1], self._bounds[1:], strict=True)):
            query = slice(first, last)
            labels, scores = self._labels[query], self._scores[query]
            places = np.empty(labels.size, dtype=np.int64)
            places[self._order[query] - first] = np.arange(1, labels.size + 1)
            weights = np.asarray(kind(labels.copy(), places), dtype=np.float64)
            if weights.shape != (labels.size, labels.size) or not (weights >= 0).all():
                raise ValueError(
                    f"pair_weight must return weights of shape ({labels.size}, {labels.size}), "
                    f"by winner and loser, non-negative; got shape {weights.shape}"
                )
            apart = np.clip(np.subtract.outer(scores, scores), -WIDEST, WIDEST)
            weights = np.where(labels[:, None] > labels, weights, 0.0) * np.exp(-apart)
            weights *= self._scales[q]
            if self._row_weights is not None:
                weights *= np.multiply.outer(self._row_weights[query], self._row_weights[query])
            total += float(weights.sum())
            if gradients is not None:
                won, lost = weights.sum(axis=1), weights.sum(axis=0)
                gradients[query], hessians[query] = won - lost, won + lost
            if between is not None:
                rows = leaf_of[query]
                np.add.at(between, (rows[:, None], rows), weights)
        return total
