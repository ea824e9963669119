"""Scales of thresholds, intercepts and margins relative to the length of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankcore._core.params import Options, Real
from rankcore._core.state import OnlineState

# Value of an array of a state that is not known yet.
UNKNOWN = -1.0


# Names of parameters, and the types they are saved as.
BuiltIn = Mapping[str, Callable[[Any], Any]]

# Range of ``threshold_scale`` and ``intercept_scaling``: wide enough for any data, narrow enough
# that the square times a step does not overflow.
SCALE = Options("auto") | Real(1e-100, 1e100)


def scale_setting(value: Any) -> float | str:
    """The parameter as stored with a state."""
    return value if isinstance(value, str) else float(value)


# Range of ``margin``.
MARGIN = Options("auto") | Real(0, 1e100)
# Automatic margin, in units of the mean squared length of rows, by which a step along a row moves
# its projection. Powers of two are exact. reproduce/defaults.md has the study.
AUTO_MARGIN = 2.0

# Parameters that are built into a state, as saved: with thresholds, and with intercepts.
OF_THRESHOLDS: BuiltIn = {"average": bool, "threshold_scale": scale_setting}
OF_PRANK: BuiltIn = {**OF_THRESHOLDS, "margin": scale_setting}
OF_INTERCEPTS: BuiltIn = {
    "average": bool,
    "fit_intercept": bool,
    "intercept_scaling": scale_setting,
}


def new_scale(settings: Mapping[str, Any]) -> np.ndarray:
    """Square of the constant, shape (1,); for "auto", `UNKNOWN` until rows are seen."""
    value = _constant(settings)
    return np.array([UNKNOWN if isinstance(value, str) else value**2])


def new_margin(settings: Mapping[str, Any]) -> np.ndarray:
    """The margin, shape (1,); for "auto", `UNKNOWN` until rows are seen."""
    value = settings["margin"]
    return np.array([UNKNOWN if isinstance(value, str) else value])


def _constant(settings: Mapping[str, Any]) -> float | str:
    """The constant feature of a state, 0 for none."""
    if not settings.get("fit_intercept", True):
        return 0.0
    return settings.get("threshold_scale") or settings["intercept_scaling"]


def fix_scale(
    state: OnlineState, model: Any, mean_square: Callable[[], float], share: Callable[[], float]
) -> None:
    """Set constant and margin, if unknown, by the first rows.

    These have a mean squared norm, and a share of values that are not 0.
    """
    unknown = {name for name in ("scale", "margin") if state.others.get(name, (0.0,))[0] == UNKNOWN}
    if not unknown:
        return
    square = mean_square()
    if "scale" in unknown:
        state.others["scale"][0] = model._lengths(share) ** 2 * square
    if "margin" in unknown:
        state.others["margin"][0] = AUTO_MARGIN * square


def check_scale(state: OnlineState) -> None:
    """Raise ValueError unless a restored scale and margin are positive, 0 or not known yet."""
    for name in ("scale", "margin"):
        value = float(state.others.get(name, (0.0,))[0])
        if not (value >= 0 or value == UNKNOWN):
            raise ValueError(f"its {name} must be >= 0, or {UNKNOWN} if unknown; found {value}")


def margin_of(state: OnlineState) -> float:
    return float(state.others["margin"][0])
