"""Warnings located at the user's line, once per fit, and those that all learners share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Packages whose lines are not the user's: ours, and those that call our fits in searches.
INNER = ("rankcore", "sklearn", "joblib")
# Places in the source of `warn` calls made so far, within `warns_once`; None outside.
_warned: ContextVar[set[tuple[str, int]] | None] = ContextVar("warned", default=None)

# Mean weight below which steps and losses are so small that little is learned.
SMALL_WEIGHT = 0.01


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, unless `warns_once` has had it from this place."""
    level, frame = 1, sys._getframe()
    caller = sys._getframe(1)
    place = caller.f_code.co_filename, caller.f_lineno
    warned = _warned.get()
    if warned is not None and place in warned:
        return
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
    if warned is not None:  # not if a filter made an error of it, which the next fit raises again
        warned.add(place)


def warns_once(function: Function) -> Function:
    """Decorate a function that makes several fits: a call issues each kind of warning once.

    Messages of one kind may have different numbers. Fits in other threads and processes issue
    their own warnings.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _warned.get() is not None:  # an outer call counts
            return function(*args, **kwargs)
        token = _warned.set(set())
        try:
            return function(*args, **kwargs)
        finally:
            _warned.reset(token)

    return call  # type: ignore[return-value]


def warn_of_small_weights(mean: float) -> None:
    """Warn of a mean positive weight that is small for learners that multiply by weights."""
    # The message has no numbers of these rows, so that a search with many fits warns once.
    if mean < SMALL_WEIGHT:
        warn(
            f"the mean weight is below {SMALL_WEIGHT}; weights multiply the steps or the loss of "
            "this learner, which then learns little: multiply them by the number of rows, as in "
            "sample_weight * len(y)"
        )
