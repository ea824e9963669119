"""Costs of predictions: losses of pairs of ranks, and the ratio behind kappa."""

from __future__ import annotations

import numpy as np

from rankcore._core.numbers import Floats


def expected_costs(loss: str, probabilities: Floats) -> Floats:
    """Cost of a prediction (column) for a true rank (row)."""
    ranks = np.arange(probabilities.shape[1], dtype=np.float64)
    distance = np.abs(ranks[:, None] - ranks)
    if loss == "absolute":
        return distance
    if loss == "zero_one":
        return (distance > 0).astype(np.float64)
    if loss == "squared":
        return distance**2
    # One minus kappa is a quotient of two sums over rows: the squared distances, and those that
    # chance would have. Dinkelbach (1967): the least quotient is the number for which the least
    # difference of the first and as often the second is 0; each row is then on its own.
    mean = probabilities.mean(axis=0) @ ranks
    spread = probabilities.mean(axis=0) @ (ranks - mean) ** 2
    by_chance = (ranks - mean) ** 2 + spread
    quotient = 0.0
    for _ in range(100):
        costs = distance**2 - quotient * by_chance
        chosen = (probabilities @ costs).argmin(axis=1)
        squared = np.take_along_axis(probabilities @ distance**2, chosen[:, None], axis=1)
        chance = by_chance[chosen].sum()
        found = float(squared.sum() / chance) if chance > 0 else 1.0
        if found == quotient:
            break
        quotient = found
    return distance**2 - quotient * by_chance
