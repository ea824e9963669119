"""Weights of pairs at the scores of a model, for the kernels that update them.

The weight of a pair is exp(score of the loser - score of the winner) times a factor of its query
and the weights of both rows. `LabelWeights` has all pairs of different labels, as products of one
factor per row, O(rows); `ListedWeights` has one number per listed pair.
"""

from __future__ import annotations

from math import inf, log

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats, ranges
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import SPREAD, LabelWeights
from rankcore.ranking.pairs import Pairing

# If |edge| is this close to 1, the step would be infinite: all pairs that differ agree in order.
EDGE_MARGIN = 1e-12
MAX_STEP = 0.5 * log((2 - EDGE_MARGIN) / EDGE_MARGIN)
# Boosting ends when the weight of all pairs falls to this fraction of the initial weight.
MIN_TOTAL = 1e-250
# Sum of the lengths of steps after which the weights are rescaled to about 1.
MAX_MOVED = 200.0


def steps_of(pairing: Pairing, balanced: bool) -> tuple[Floats, float]:
    """Return the factors of pair weights by query, and the total; raise unless finite."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steps = pairing.steps(balanced)
        total = float(pairing.weights @ steps)
    if not total < inf:
        raise vanishing()
    return steps, total


def vanishing() -> ValueError:
    """Return the error for pair weights of too large a range."""
    return ValueError(
        "the weights of some pairs underflow or overflow: reduce the ratio of the weights"
    )


def overflowing() -> ValueError:
    """Return the error for weights that overflow at the scores of a continued model."""
    return ValueError(
        "warm_start cannot continue: weights of pairs overflow, since the model's scores of these "
        "rows are wrong by too much; fit without warm_start"
    )


def check_weight(total: float) -> None:
    """Raise ValueError if the weights of all pairs have vanished."""
    if not 0 < total < inf:
        raise vanishing()


def weights_of(
    scores: Floats, pairing: Pairing, steps: Floats
) -> tuple[LabelWeights, Floats, NDArray[np.int64]]:
    """Return pair weights by label, their factors, and where each level of labels begins."""
    labels, bounds = pairing.labels, pairing.bounds
    new = np.ones(labels.size + 1, dtype=bool)
    new[1:-1] = labels[1:] != labels[:-1]
    new[bounds] = True
    levels = np.flatnonzero(new)
    queries = np.searchsorted(levels, bounds)
    factors, masses = _factors_of(scores, pairing, levels, queries)
    sums = np.empty((2, levels.size - 1))
    return LabelWeights(factors, masses, levels, queries, steps, sums), factors, levels


def _factors_of(
    scores: Floats, pairing: Pairing, levels: NDArray[np.int64], queries: NDArray[np.int64]
) -> tuple[Floats, Floats | None]:
    """Return exp(-score), or exp(score) in the last level, times the weight of each document."""
    starts, stops = pairing.bounds[:-1], pairing.bounds[1:]
    middle = 0.5 * (np.minimum.reduceat(scores, starts) + np.maximum.reduceat(scores, starts))
    signs = np.full(scores.size, -1.0)
    first = levels[queries[1:] - 1]  # of the last level of each query
    signs[ranges(first, stops - first)] = 1.0
    shifted = scores - np.repeat(middle, stops - starts)
    factors = np.exp(signs * np.clip(shifted, -SPREAD / 2, SPREAD / 2))
    if pairing.doc_weights is None:
        return factors, None
    return factors * pairing.doc_weights, pairing.doc_weights**2


def listed_weights(scores: Floats, pairing: Pairing, steps: Floats) -> ListedWeights:
    """Return the weights of listed pairs."""
    listed = pairing.listed_pairs
    assert listed is not None
    counts = np.diff(listed.offsets)
    base = np.repeat(pairing.bounds[:-1], counts)
    winners = (listed.winners + base).astype(np.int32)
    losers = (listed.losers + base).astype(np.int32)
    total = np.repeat(steps, counts) * (1.0 if listed.weights is None else listed.weights)
    with np.errstate(over="ignore"):
        weights = total * np.exp(scores[losers] - scores[winners])
    return ListedWeights(weights, winners, losers, scores.size)
