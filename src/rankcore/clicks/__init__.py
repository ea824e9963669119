"""Learning from clicks: logs, click models, propensities, weighted pairs."""

from rankcore.clicks.cascade_models import CascadeModel, DynamicBayesianModel
from rankcore.clicks.evaluation import CounterfactualEvaluation, Estimate, evaluate
from rankcore.clicks.learning import ClickJudgments, click_pairs, to_judgments
from rankcore.clicks.log import ClickLog
from rankcore.clicks.models import ClickRates
from rankcore.clicks.online import PairwiseGradientRanker
from rankcore.clicks.position_model import PositionBasedModel
from rankcore.clicks.propensity import Features, Judged, Propensities, propensities
from rankcore.clicks.reading import ClickFile, open_clicks, read_clicks
from rankcore.clicks.simulation import User, simulate_clicks, simulate_sessions
from rankcore.clicks.ubi import read_ubi

__all__ = [
    "CascadeModel",
    "ClickFile",
    "ClickJudgments",
    "ClickLog",
    "ClickRates",
    "CounterfactualEvaluation",
    "DynamicBayesianModel",
    "Estimate",
    "Features",
    "Judged",
    "PairwiseGradientRanker",
    "PositionBasedModel",
    "Propensities",
    "User",
    "click_pairs",
    "evaluate",
    "open_clicks",
    "propensities",
    "read_clicks",
    "read_ubi",
    "simulate_clicks",
    "simulate_sessions",
    "to_judgments",
]
