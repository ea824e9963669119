"""Maximum number of hypotheses of voting learners."""

from __future__ import annotations

from rankcore._core.params import COUNT, Options
from rankcore._core.warning import warn

# Limits of "auto": this number, or this number of bytes.
MOST, MOST_BYTES = 5000, 2**25
# What ``max_hypotheses`` accepts.
MAX_HYPOTHESES = Options("auto") | COUNT | None


def limited(value: int | str | None, n_features: int) -> int | None:
    """Resolve ``max_hypotheses`` to a number of hypotheses; None for all."""
    if isinstance(value, str):
        return max(1, min(MOST, MOST_BYTES // (8 * n_features)))
    return None if value is None else int(value)


def warn_of_dropped_votes(kept: int, seen: int, fraction: float) -> None:
    """Warn if the kept hypotheses have less than half of the votes."""
    if kept < seen and fraction < 0.5:
        warn(
            f"max_hypotheses='auto' keeps {kept} of {seen} hypotheses, which hold {fraction:.0%} "
            "of the votes. Set max_hypotheses to a number to keep more of them, or to None for all "
            "(n_features numbers each); an averaged model has them all in the memory of one",
        )
