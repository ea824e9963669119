"""Expectation maximisation, accelerated by extrapolation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankcore._core.numbers import Floats
from rankcore._core.warning import warn

# Maximum distance of probabilities from 1, so that log-likelihoods are finite.
MARGIN = 1e-12


def maximise(
    step: Callable[[Floats], tuple[Floats, float]], start: Floats, tol: float, max_iter: int
) -> tuple[Floats, int]:
    """Repeat steps until no probability changes by more than ``tol``; return also their number.

    ``step`` returns the next probabilities and the log-likelihood of the given ones. Steps are
    extrapolated from two plain ones (squared extrapolation, scheme S3 of Varadhan and Roland 2008),
    unless the log-likelihood would decrease.
    """
    at = start
    then, value = step(start)
    n = 1
    while n < max_iter:
        following, later = step(then)
        n += 1
        if np.abs(following - then).max() <= tol:
            return following, n
        change = then - at
        bend = (following - then) - change
        length = max(1.0, _norm(change) / max(_norm(bend), 1e-300))
        trial = np.clip(at + 2 * length * change + length**2 * bend, 0.0, 1.0 - MARGIN)
        trial[following == 0] = 0.0
        trial[(following > 0) & (trial <= 0)] = following[(following > 0) & (trial <= 0)]
        beyond, value = step(trial)
        n += 1
        if value >= later:
            at = trial
            then = beyond
        else:
            at = following
            then, value = step(following)
            n += 1
    warn(
        f"expectation maximisation did not converge in {max_iter} passes: increase max_iter or tol",
        ConvergenceWarning,
    )
    return then, n


def _norm(x: Floats) -> float:
    return float(np.linalg.norm(x))
