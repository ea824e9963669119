"""Constant feature behind thresholds and intercepts, scaled to the length of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankcore._core.params import number_or, real
from rankcore._core.state import OnlineState

# What an array of a state that is not known yet holds.
UNKNOWN = -1.0


# Names of parameters, and the types they are saved as.
BuiltIn = Mapping[str, Callable[[Any], Any]]

# Of a ``threshold_scale`` or ``intercept_scaling``: wide enough for any data, narrow enough for its
# square times a step to stay a number.
SCALE = number_or(("auto",), real(1e-100, 1e100))


def scale_setting(value: Any) -> float | str:
    """The parameter as stored with a state."""
    return value if isinstance(value, str) else float(value)


# Parameters that are built into a state, as it saves them: with thresholds, and with intercepts.
OF_THRESHOLDS: BuiltIn = {"average": bool, "threshold_scale": scale_setting}
OF_INTERCEPTS: BuiltIn = {
    "average": bool,
    "fit_intercept": bool,
    "intercept_scaling": scale_setting,
}


def new_scale(settings: Mapping[str, Any]) -> np.ndarray:
    """The square of the constant, an array of one; `UNKNOWN` until rows are seen, if "auto"."""
    value = _constant(settings)
    return np.array([UNKNOWN if isinstance(value, str) else value**2])


def _constant(settings: Mapping[str, Any]) -> float | str:
    """The constant feature that a state is built with, 0 for none."""
    if not settings.get("fit_intercept", True):
        return 0.0
    found: float | str = settings.get("threshold_scale") or settings["intercept_scaling"]
    return found


def fix_scale(state: OnlineState, lengths: int, mean_square: Callable[[], float]) -> None:
    """Set the constant by the mean squared length of the first rows, unless it is set."""
    scale = state.others.get("scale")
    if scale is not None and scale[0] == UNKNOWN:
        scale[0] = lengths**2 * mean_square()


def check_known_scale(state: OnlineState) -> None:
    """Raise unless a restored state has the scale of its setting."""
    scale, setting = float(state.others["scale"][0]), _constant(state.settings)
    if scale and not setting:
        raise ValueError("it has a scale of intercepts, and no intercepts")
    if isinstance(setting, str):
        known = 1e-200 <= scale <= 1e200 or (scale == UNKNOWN and state.t == 0)
    else:
        known = scale == setting**2
    if not known:
        raise ValueError(f"its squared scale {scale} is not that of its setting {setting!r}")
