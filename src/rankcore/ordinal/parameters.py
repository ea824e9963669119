"""Common parameters of learners of ordered labels."""

from __future__ import annotations

from typing import Any

from rankcore._core.concurrency import consistent_read

# The setting of all papers: one pass in the order given, rows as they are, the last parameters, a
# constant feature of 1.
PUBLISHED = {
    "average": False,
    "average_members": False,
    "threshold_scale": 1.0,
    "margin": 0.0,
    "intercept_scaling": 1.0,
    "max_iter": 1,
    "shuffle": False,
    "standardize": False,
}
# Passes of max_iter="auto".
AUTO_PASSES = 20


@property  # type: ignore[misc]
@consistent_read
def resolved_half_life(learner: Any) -> float:
    """The half-life in use: 0 for the last parameters, infinity for all rows alike."""
    return float(learner._fitted_state().model.half_life)


@property  # type: ignore[misc]
@consistent_read
def resolved_margin(learner: Any) -> float:
    """The resolved ``margin``, in units of the projections."""
    return float(learner._fitted_state().model["margin"][0])
