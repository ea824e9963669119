"""Shapley values by their definition: every set of features."""

from math import factorial

import numpy as np


def shapley_values(score, row, background):
    """Mean contribution of each feature of a row to its score, relative to background rows."""
    d = len(row)
    sets = np.arange(2**d)
    chosen = (sets[:, np.newaxis] >> np.arange(d) & 1).astype(bool)
    sizes = chosen.sum(axis=1)
    worth = np.zeros(2**d)
    for other in background:
        worth += score(np.where(chosen, row, other)) / len(background)
    values = np.zeros(d)
    for j in range(d):
        for without in sets[~chosen[:, j]]:
            size = sizes[without]
            weight = factorial(size) * factorial(d - 1 - size) / factorial(d)
            values[j] += weight * (worth[without | 1 << j] - worth[without])
    return values
