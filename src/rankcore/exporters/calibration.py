"""Probabilities of ranks, as exporters read them off a calibrated learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._ext import calibration


@dataclass(frozen=True)
class Calibration:
    """Probabilities and a rank from a score: ``rc_calibration`` of the C headers."""

    # (m, k - 1): P(above each rank) at each knot; without knots, thresholds of cumulative logits
    curves: Floats
    knots: Floats  # (m,), ascending, or (0,)
    slope: float  # of cumulative logits
    center: float  # scores are reduced by it, then divided by the scale
    scale: float
    costs: Floats  # (k, k): of a prediction (column) where a rank (row) is true

    def probabilities(self, scores: Floats) -> Floats:
        """Probability of each rank, shape (n, k), as Python computes it."""
        found = np.empty((scores.size, self.costs.shape[0]))
        scaled = (np.ascontiguousarray(scores, dtype=np.float64) - self.center) / self.scale
        calibration.probabilities(scaled, self.curves, self.knots, self.slope, found)
        return found


def taken_apart(scoring: Scoring) -> tuple[Scoring, Calibration | None]:
    """Scoring form and calibration of the learner inside; None for other models."""
    if scoring.form != "calibrated":
        return scoring, None
    slope, center, scale = (float(value) for value in scoring.arrays["moments"])
    own = ("curves", "knots", "moments", "costs")
    inner = Scoring(
        str(scoring.facts["of"]),
        {name: array for name, array in scoring.arrays.items() if name not in own},
        {name: fact for name, fact in scoring.facts.items() if name != "of"},
    )
    curves, knots, costs = (
        np.ascontiguousarray(scoring.arrays.get(name, np.empty(0)), dtype=np.float64)
        for name in ("curves", "knots", "costs")
    )
    return inner, Calibration(curves, knots, slope, center, scale, costs)
