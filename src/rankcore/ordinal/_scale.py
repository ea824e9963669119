"""Scales of thresholds, intercepts and margins relative to the length of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankcore._core.params import number_or, real
from rankcore._core.state import OnlineState

# Value of an array of a state that is not known yet.
UNKNOWN = -1.0


# Names of parameters, and the types they are saved as.
BuiltIn = Mapping[str, Callable[[Any], Any]]

# Range of ``threshold_scale`` and ``intercept_scaling``: wide enough for any data, narrow enough
# that the square times a step does not overflow.
SCALE = number_or(("auto",), real(1e-100, 1e100))


def scale_setting(value: Any) -> float | str:
    """The parameter as stored with a state."""
    return value if isinstance(value, str) else float(value)


# Range of ``margin``.
MARGIN = number_or(("auto",), real(0.0, 1e100))
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


def check_known_scale(state: OnlineState) -> None:
    """Raise unless a restored state has the scale of its setting."""
    scale, setting = float(state.others["scale"][0]), _constant(state.settings)
    if scale and not setting:
        raise ValueError("it has a scale of intercepts, and no intercepts")
    square = setting if isinstance(setting, str) else setting**2
    if not _follows(scale, square, state):
        raise ValueError(f"its squared scale {scale} is not that of its setting {setting!r}")
    margin = state.others.get("margin")
    if margin is not None and not _follows(float(margin[0]), state.settings["margin"], state):
        found = state.settings["margin"]
        raise ValueError(f"its margin {margin[0]} is not that of its setting {found!r}")


def _follows(value: float, setting: float | str, state: OnlineState) -> bool:
    if isinstance(setting, str):
        return 1e-200 <= value <= 1e201 or (value == UNKNOWN and state.t == 0)
    return value == setting


def margin_of(state: OnlineState) -> float:
    return float(state.others["margin"][0])


def moves_of(state: OnlineState, examples: Any, mistakes: Any) -> tuple[Any, Any]:
    """Number of examples, and of those that may have moved thresholds: all with a margin."""
    return examples, examples if margin_of(state) else mistakes
