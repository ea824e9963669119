"""Passes over the examples of an online learner, until they no longer pay."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankcore._core.state import LearnerState

# Passes in a row that may fail to improve by `tol` before a fit stops.
PATIENCE = 5


def passes(
    model: Any,
    state: LearnerState,
    loss: str,
    more: Callable[[], str] = str,
    first: int = 1,
) -> Iterator[int]:
    """Number the passes of a fit; the caller makes each one.

    Parameters
    ----------
    model : estimator
        Its ``max_iter``, ``tol`` and ``verbose`` apply.
    state : LearnerState
        Its log has examples, total loss and mistakes of each pass.
    loss : str
        What messages call the loss.
    more : callable
        What ``verbose`` adds to a line.
    first : int
        The pass to go on with; the log has those before it, and may have a part of this one.

    Yields
    ------
    int
        Number of the pass, from 1 on.

    Warns
    -----
    ConvergenceWarning
        If all passes were made and the loss still improved by ``tol``.
    """
    best, stale = np.inf, 0
    for epoch in range(1, model.max_iter + 1):
        if epoch > len(state.log):
            state.log.append([0, 0, 0])
        if epoch >= first:
            yield epoch
        examples, total, mistakes = state.log[epoch - 1]
        if model.verbose and epoch % model.verbose == 0 and epoch >= first:
            print(
                f"[{type(model).__name__}] epoch {epoch} of {model.max_iter}: "
                f"{loss} {total / examples:.4f}, {mistakes} mistakes{more()}"
            )
        if model.tol is not None:
            stale = 0 if total / examples < best - model.tol else stale + 1
            best = min(best, total / examples)
            if mistakes == 0 or stale == PATIENCE:
                return
    if model.tol is not None:
        warnings.warn(
            f"max_iter={model.max_iter} passes ended before the {loss} stopped improving by "
            f"tol={model.tol}; raise max_iter, or set tol=None to run a fixed number",
            ConvergenceWarning,
            stacklevel=4,  # the caller of the decorated method that asks for the passes
        )
