"""Ensembles whose members sample a stream: parameters, draws, and checks of their mean."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import poisson

from rankcore._core.arguments import Seed
from rankcore._core.docs import parameters
from rankcore._core.params import Constraint, real
from rankcore._core.state import OnlineState
from rankcore.ordinal._scale import BuiltIn, scale_setting
from rankcore.ordinal.prank import scale_of

# Maximum number of times that a member takes a row: a table of draws has a column for each.
MOST_TIMES = 1000


def least_draws(settings: dict[str, Any], weights: np.ndarray | None = None) -> np.ndarray:
    """Minimum 32-bit draws for taking an example once, twice and so on, uint64.

    Shape (1, times); with weights of rows, which multiply the expected number of times, (n_rows,
    times).
    """
    expected = np.ones(1) if weights is None else weights
    if expected.max() > MOST_TIMES:
        raise ValueError(
            "a weight is the number of times that members take a row; weights must be at most "
            f"{MOST_TIMES}; found {expected.max():.3g}; scale them"
        )
    if settings["sampling"] == "bernoulli":
        # The integer part is certain, the fraction is random.
        expected = settings["tau"] * expected
        times = np.arange(math.floor(expected.max()) + 1)
        least = 1 - np.clip(expected[:, None] - times, 0, 1)
    else:  # Poisson: at most n times with this probability
        most = 13 if weights is None else int(poisson.isf(1e-12, weights.max())) + 1
        least = poisson.cdf(np.arange(most), expected[:, None])
    return np.rint(least * 2.0**32).astype(np.uint64)


@parameters
class Sampling:
    """Ensemble of PRanks that sample a stream, with or without a kernel.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or a Poisson(1) number of times (online
        bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {"tau": real(2.0**-32, 1)}
    _built_in: ClassVar[BuiltIn] = {
        "n_estimators": int,
        "tau": float,
        "sampling": str,
        "average_members": bool,
        "threshold_scale": scale_setting,
        "margin": scale_setting,
    }

    n_estimators: int = 100
    tau: float = 0.3
    sampling: Literal["bernoulli", "poisson"] = "bernoulli"
    average_members: bool = True
    _: KW_ONLY
    n_jobs: int | None = None
    random_state: Seed | None = None


def check_means(state: OnlineState, totals: np.ndarray) -> None:
    """Raise unless the mean thresholds agree with the members' summed steps."""
    scale, n = scale_of(state), state.settings["n_estimators"]
    if not (
        np.array_equal(totals, state.others["totals"])
        and np.array_equal(scale * (totals / n), state.others["mean_thresholds"])
    ):
        raise ValueError("its mean thresholds are not the mean of its members' thresholds")
