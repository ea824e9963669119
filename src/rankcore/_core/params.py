"""Checks of parameters: each names what is required and what was found."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_scalar

# Rules for the length of a step, in the order of rankcore_capi.h.
STEP_RULES = ("perceptron", "pa", "pa1", "pa2")


def check_option(value: Any, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a string parameter is one of its options."""
    if not isinstance(value, str) or value not in options:
        accepted = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {accepted}; found {value!r}")


def check_real(value: Any, name: str, min_val: float, max_val: float = np.inf) -> None:
    """Raise unless a parameter is a number from a closed range."""
    if isinstance(value, np.floating):  # float32 has no room for the bounds
        value = float(value)
    check_scalar(value, name, Real, min_val=min_val, max_val=max_val)
    try:
        float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must be in the range of float64; found a greater integer"
        ) from None
    if value != value:  # NaN passes every comparison that check_scalar makes
        raise ValueError(f"{name} must be a number from {min_val} to {max_val}; found nan")


def check_flag(value: Any, name: str) -> None:
    """Raise unless a parameter is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; found {value!r}")


def as_generator(random_state: Any) -> np.random.Generator:
    """A NumPy Generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
