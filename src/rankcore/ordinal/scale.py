"""Scales of thresholds, intercepts and margins relative to the length of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rankcore._core.params import HALF_LIFE, Options, Real
from rankcore._ext.online_model import UNKNOWN

# Names of parameters, and the types they are saved as.
BuiltIn = Mapping[str, Callable[[Any], Any]]

# Range of ``threshold_scale`` and ``intercept_scaling``: wide enough for any data, narrow enough
# that the square times a step does not overflow.
SCALE = Options("auto") | Real(1e-100, 1e100)


def standardize_setting(value: Any) -> str | bool:
    """Return ``standardize`` as a state stores it."""
    return "auto" if value == "auto" else False


def scale_setting(value: Any) -> float | str:
    """Return a scale or margin as a state stores it."""
    return value if isinstance(value, str) else float(value)


# Range of ``half_life`` of learners that can choose it.
ANY_HALF_LIFE = Options("auto") | HALF_LIFE


def half_life_setting(value: Any) -> float | str | None:
    """Return ``half_life`` as a state stores it."""
    return None if value is None else scale_setting(value)


# Range of ``margin``.
MARGIN = Options("auto") | Real(0, 1e100)
# Automatic margin, in units of the mean squared length of rows, by which a step along a row moves
# its projection. Powers of two are exact. reproduce/defaults.md has the study.
AUTO_MARGIN = 2.0

# Parameters that are built into a state, as saved: with thresholds, with intercepts, with units of
# rows, and with averages that forget.
OF_THRESHOLDS: BuiltIn = {"average": bool, "threshold_scale": scale_setting}
OF_PRANK: BuiltIn = {**OF_THRESHOLDS, "margin": scale_setting}
OF_INTERCEPTS: BuiltIn = {
    "average": bool,
    "fit_intercept": bool,
    "intercept_scaling": scale_setting,
}
OF_UNITS: BuiltIn = {"standardize": standardize_setting}
OF_FORGETTING: BuiltIn = {"half_life": half_life_setting}


def fix_scale(
    model: Any, learner: Any, mean_square: Callable[[], float], share: Callable[[], float]
) -> None:
    """Set the unknown scale and margin of a model, if it has them, from the first rows.

    These have a mean squared norm, and a share of values that are not 0.
    """
    unknown = {name for name in ("scale", "margin") if _value(model, name) == UNKNOWN}
    if not unknown:
        return
    square = mean_square()
    if "scale" in unknown:
        model["scale"][0] = learner._lengths(share) ** 2 * square
    if "margin" in unknown:
        model["margin"][0] = AUTO_MARGIN * square


def forget_scale(model: Any) -> None:
    """Reset the scale and margin of a model, if they are automatic, to unknown."""
    for name in ("scale", "margin"):
        if name in model.arrays:
            model[name][...] = model.forms[name].first(model.settings)


def _value(model: Any, name: str) -> float:
    return float(model[name][0]) if name in model.arrays else 0.0


def check_scale(model: Any) -> None:
    """Raise ValueError unless a restored scale and margin are positive, 0 or unknown."""
    for name in ("scale", "margin"):
        value = _value(model, name)
        if not (value >= 0 or value == UNKNOWN):
            raise ValueError(f"{name} must be >= 0, or {UNKNOWN} if unknown; got {value}")
