"""Learning from clicks: logs, click models, propensities, weighted pairs."""

from rankcore.clicks.log import ClickLog
from rankcore.clicks.reading import ClickFile, open_clicks, read_clicks
from rankcore.clicks.simulation import User, simulate_clicks, simulate_sessions

__all__ = [
    "ClickFile",
    "ClickLog",
    "User",
    "open_clicks",
    "read_clicks",
    "simulate_clicks",
    "simulate_sessions",
]
