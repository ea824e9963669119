"""Compare rankers by the clicks on one list that interleaves their rankings."""

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
