"""Explanations of rankings: pairs, queries, ranks, and global importance.

Explanations use ``contributions``, a method of every learner whose score
is a sum over features; see the guide on explanations. Every result prints as text, displays as HTML
in notebooks, and has a method ``plot``, which requires Matplotlib.
"""

from rankcore._core.contributions import Contributions
from rankcore.explain._contributions import contributions
from rankcore.explain._importance import GlobalImportance, global_importance
from rankcore.explain._pairs import PairExplanation, pair
from rankcore.explain._permutation import PermutationImportance, permutation_importance
from rankcore.explain._queries import QueryExplanation, query
from rankcore.explain._ranks import RankExplanation, rank

__all__ = [
    "Contributions",
    "GlobalImportance",
    "PairExplanation",
    "PermutationImportance",
    "QueryExplanation",
    "RankExplanation",
    "contributions",
    "global_importance",
    "pair",
    "permutation_importance",
    "query",
    "rank",
]
