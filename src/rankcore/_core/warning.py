"""Warnings located at the caller's line, and those that learners of all rooms share."""

from __future__ import annotations

import sys
import warnings

# Mean weight below which steps and losses are so small that little is learned.
SMALL_WEIGHT = 0.01


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the nearest frame outside the package."""
    level, frame = 1, sys._getframe()
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rankcore"
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def warn_of_small_weights(mean: float) -> None:
    """Warn of a mean positive weight that is small for learners that multiply by weights."""
    # The message has no numbers of these rows, so that a search with many fits warns once.
    if mean < SMALL_WEIGHT:
        warn(
            f"the mean weight is below {SMALL_WEIGHT}; weights multiply the steps or the loss of "
            "this learner, which then learns little: multiply them by the number of rows, as in "
            "sample_weight * len(y)"
        )
