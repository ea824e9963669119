"""Conformal sets of neighbouring ranks, from their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats


def before_each(probabilities: Floats) -> Floats:
    """Return the probability of a growing set before each rank is added, shape (n, k).

    The set starts with the most probable rank, and is extended by the more probable one of its two
    neighbours; ties go to the lower rank. Ranks whose value is at most q are therefore consecutive,
    for any q. O(n k).
    """
    n, k = probabilities.shape
    rows = np.arange(n)
    # Neighbours beyond the ends are less probable than any rank.
    fenced = np.full((n, k + 2), -1.0)
    fenced[:, 1:-1] = probabilities
    low = fenced.argmax(axis=1)
    high = low.copy()
    total = fenced[rows, low]
    before = np.zeros((n, k + 2))
    for _ in range(k - 1):
        below, above = fenced[rows, low - 1], fenced[rows, high + 1]
        down = below >= above
        low = np.where(down, low - 1, low)
        high = np.where(down, high, high + 1)
        before[rows, np.where(down, low, high)] = total
        total = total + np.where(down, below, above)
    return before[:, 1:-1]


def sets_of_ranks(probabilities: Floats, bound: float, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the lowest and highest label of the ranks whose score is at most ``bound``."""
    inside = before_each(probabilities) <= bound
    low = inside.argmax(axis=1)
    high = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    return np.column_stack([labels[low], labels[high]])


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """Return a bound that a further, exchangeable score meets with at least this probability.

    The ceil((n + 1) * coverage)-th smallest; infinity if there are too few (Vovk et al. 2005), and
    0, the score of the most probable rank, if no coverage is required.
    """
    place = int(np.ceil((scores.size + 1) * coverage - 1e-9))
    if place < 1:
        return 0.0
    return float(np.sort(scores)[place - 1]) if place <= scores.size else float("inf")
