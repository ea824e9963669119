"""Learning from clicks: logs, click models, propensities, weighted pairs."""

from rankcore.clicks.cascade_models import CascadeModel, DynamicBayesianModel
from rankcore.clicks.log import ClickLog
from rankcore.clicks.models import ClickRates
from rankcore.clicks.position_model import PositionBasedModel
from rankcore.clicks.reading import ClickFile, open_clicks, read_clicks
from rankcore.clicks.simulation import User, simulate_clicks, simulate_sessions

__all__ = [
    "CascadeModel",
    "ClickFile",
    "ClickLog",
    "ClickRates",
    "DynamicBayesianModel",
    "PositionBasedModel",
    "User",
    "open_clicks",
    "read_clicks",
    "simulate_clicks",
    "simulate_sessions",
]
