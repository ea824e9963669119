"""Sets of neighbouring ranks that grow from the most probable one, for conformal prediction."""

from __future__ import annotations

import numpy as np

from rankcore._core.numbers import Floats


def before_each(probabilities: Floats) -> Floats:
    """Probability of a growing set before each rank is added, 0 for the first; shape (n, k).

    The set begins with the most probable rank (the lower one of equals), and takes in the more
    probable one of its two neighbours (the lower one of equals) until it has all. So ranks whose
    sum is at most q are neighbours, for any q. O(n k).
    """
    n, k = probabilities.shape
    rows = np.arange(n)
    # A neighbour beyond the ends is less probable than any.
    fenced = np.full((n, k + 2), -1.0)
    fenced[:, 1:-1] = probabilities
    low = fenced.argmax(axis=1)
    high = low.copy()
    total = fenced[rows, low]
    found = np.zeros((n, k + 2))
    for _ in range(k - 1):
        below, above = fenced[rows, low - 1], fenced[rows, high + 1]
        down = below >= above
        low = np.where(down, low - 1, low)
        high = np.where(down, high, high + 1)
        found[rows, np.where(down, low, high)] = total
        total = total + np.where(down, below, above)
    return found[:, 1:-1]


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """The bound that a further, exchangeable score keeps with at least a given probability.

    The ceil((n + 1) * coverage)-th smallest; infinity if there are too few (Vovk et al. 2005).
    """
    place = int(np.ceil((scores.size + 1) * coverage - 1e-9))
    return float(np.sort(scores)[place - 1]) if place <= scores.size else float("inf")
