"""Constant feature behind thresholds and intercepts, scaled to the length of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankcore._core.params import number_or, real
from rankcore._core.state import OnlineState

# What an array of a state that is not known yet holds.
UNKNOWN = -1.0


# Of a ``threshold_scale`` or ``intercept_scaling``: wide enough for any data, narrow enough for its
# square times a step to stay a number.
SCALE = number_or(("auto",), real(1e-100, 1e100))


def scale_setting(value: Any) -> float | str:
    """The parameter as stored with a state."""
    return value if isinstance(value, str) else float(value)


def new_scale(value: Any) -> np.ndarray:
    """The square of the constant, an array of one; `UNKNOWN` until rows are seen, if "auto"."""
    return np.array([UNKNOWN if isinstance(value, str) else float(value) ** 2])


def fix_scale(state: OnlineState, lengths: int, mean_square: Callable[[], float]) -> None:
    """Set the constant by the first rows, unless it is set.

    Parameters
    ----------
    state : OnlineState
    lengths : int
        Factor of the root mean square length of the rows.
    mean_square : callable
        Mean squared length of the rows.
    """
    scale = state.others.get("scale")
    if scale is not None and scale[0] == UNKNOWN:
        scale[0] = lengths**2 * mean_square()


def check_known_scale(state: OnlineState, setting: Any) -> None:
    """Raise unless a restored state has the scale of its setting."""
    scale = float(state.others["scale"][0])
    if isinstance(setting, str):
        known = 1e-200 <= scale <= 1e200 or (scale == UNKNOWN and state.t == 0)
    else:
        known = scale == setting**2
    if not known:
        raise ValueError(f"its squared scale {scale} is not that of its setting {setting!r}")


def intercept_settings(model: Any) -> dict[str, Any]:
    """Parameters of a learner with intercepts that are built into its arrays."""
    return {
        "average": bool(model.average),
        "fit_intercept": bool(model.fit_intercept),
        "intercept_scaling": scale_setting(model.intercept_scaling),
    }


def new_intercept_scale(model: Any) -> np.ndarray:
    """As `new_scale`; 0 without intercepts."""
    return new_scale(model.intercept_scaling) if model.fit_intercept else np.zeros(1)


def check_intercept_scale(state: OnlineState) -> None:
    """Raise unless a restored state has the scale of its settings."""
    if state.settings["fit_intercept"]:
        check_known_scale(state, state.settings["intercept_scaling"])
    elif state.others["scale"][0] != 0:
        raise ValueError("it has a scale of intercepts, and no intercepts")
