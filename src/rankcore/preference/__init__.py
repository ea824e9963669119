"""Rankings of items by few calls of a pairwise preference.

The preference may be a model, a person, or a language model: slow, costly, noisy or inconsistent.
"""

from rankcore.preference.comparisons import Comparison, Uncertainty
from rankcore.preference.driver import RankingProgress
from rankcore.preference.forms import Batch, Choice, Indexed, Judges, Order
from rankcore.preference.games import Games, rate, read_games
from rankcore.preference.journal import Journal
from rankcore.preference.ordering import quicksort_rank, sort_by_degree
from rankcore.preference.planning import CallPlan, Plan, call_plan, plan
from rankcore.preference.ranker import PreferenceRanker
from rankcore.preference.ratings import Ratings, Standing
from rankcore.preference.regret import (
    Regret,
    order_loss,
    preference_regret,
    ranking_regret,
)
from rankcore.preference.retries import PreferenceError
from rankcore.preference.rounds import RoundSampler
from rankcore.preference.samplers import Sampler

__all__ = [
    "Batch",
    "CallPlan",
    "Choice",
    "Comparison",
    "Games",
    "Indexed",
    "Journal",
    "Judges",
    "Order",
    "Plan",
    "PreferenceError",
    "PreferenceRanker",
    "RankingProgress",
    "Ratings",
    "Regret",
    "RoundSampler",
    "Sampler",
    "Standing",
    "Uncertainty",
    "call_plan",
    "order_loss",
    "plan",
    "preference_regret",
    "quicksort_rank",
    "ranking_regret",
    "rate",
    "read_games",
    "sort_by_degree",
]
