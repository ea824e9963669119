"""Rankings of items by few calls of a pairwise preference.

The preference may be a model, a person, or a language model: slow, costly, noisy or inconsistent.
"""

from rankcore.preference.forms import Batch, Choice, Indexed, Judges, Order, from_scores
from rankcore.preference.games import rate
from rankcore.preference.journal import Journal
from rankcore.preference.learned import PairwisePreference
from rankcore.preference.ledger import PreferenceError, RankingProgress, Retry
from rankcore.preference.losses import WeightAxioms, check_weight, order_loss, preference_loss
from rankcore.preference.methods import CallPlan, call_plan
from rankcore.preference.ordering import quicksort_rank, sort_by_degree
from rankcore.preference.planning import Plan, plan
from rankcore.preference.ranker import PreferenceRanker
from rankcore.preference.ratings import Ratings
from rankcore.preference.regret import Regret, preference_regret, ranking_regret

__all__ = [
    "Batch",
    "CallPlan",
    "Choice",
    "Indexed",
    "Journal",
    "Judges",
    "Order",
    "PairwisePreference",
    "Plan",
    "PreferenceError",
    "PreferenceRanker",
    "RankingProgress",
    "Ratings",
    "Regret",
    "Retry",
    "WeightAxioms",
    "call_plan",
    "check_weight",
    "from_scores",
    "order_loss",
    "plan",
    "preference_loss",
    "preference_regret",
    "quicksort_rank",
    "ranking_regret",
    "rate",
    "sort_by_degree",
]
