"""Comparison of rankers by clicks on interleaved lists."""

from rankcore.interleaving.methods import Balanced, Interleaved, Probabilistic, TeamDraft
from rankcore.interleaving.optimized import Optimized, Plan
from rankcore.interleaving.sequential import SequentialResult, preference, sequential_test

__all__ = [
    "Balanced",
    "Interleaved",
    "Optimized",
    "Plan",
    "Probabilistic",
    "SequentialResult",
    "TeamDraft",
    "preference",
    "sequential_test",
]
