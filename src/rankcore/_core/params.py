"""Checks of parameters: each names what is required and what was found."""

from __future__ import annotations

from numbers import Integral, Real
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
    if value != value:  # NaN passes every comparison that check_scalar makes
        raise ValueError(f"{name} must be a number from {min_val} to {max_val}; found nan")


def check_flag(value: Any, name: str) -> None:
    """Raise unless a parameter is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; found {value!r}")


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless a number of threads is None, positive or negative."""
    if n_jobs is not None:
        check_scalar(n_jobs, "n_jobs", Integral)
        if n_jobs == 0:
            raise ValueError(
                "n_jobs must be None or 1 for one thread, a positive number of threads, or -1 for "
                "one per processor; found 0"
            )


def n_threads(n_jobs: Any) -> int:
    """Threads that ``n_jobs`` asks for, as joblib counts: None is 1, -1 one per processor.

    Raises
    ------
    TypeError, ValueError
        As `check_n_jobs`.
    """
    check_n_jobs(n_jobs)
    if n_jobs is None:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def as_generator(random_state: Any) -> np.random.Generator:
    """A NumPy Generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
