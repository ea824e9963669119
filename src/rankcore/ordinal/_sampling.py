"""Ensembles whose members sample a stream: parameters, draws, and what must hold of their mean."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_scalar

from rankcore._core.params import check_flag, check_option, check_real
from rankcore._core.state import OnlineState
from rankcore.ordinal.prank import check_rule


def least_draws(settings: dict[str, Any]) -> np.ndarray:
    """For each further time a member takes an example, the least 32-bit draw that means it."""
    if settings["sampling"] == "bernoulli":
        least = [1 - settings["tau"]]
    else:  # Poisson with mean 1: at most n times with this probability
        least = list(np.cumsum([math.exp(-1) / math.factorial(n) for n in range(13)]))
    return np.array([round(p * 2**32) for p in least], dtype=np.uint64)


def check_sampling(model: Any) -> None:
    """Raise on a parameter of an ensemble or of its members' rule outside its range."""
    check_scalar(model.n_estimators, "n_estimators", Integral, min_val=1)
    check_real(model.tau, "tau", 2.0**-32, 1)
    check_option(model.sampling, "sampling", ("bernoulli", "poisson"))
    check_flag(model.average_members, "average_members")
    check_rule(model.tie, model.threshold_scale)


def sampling_settings(model: Any) -> dict[str, Any]:
    """The parameters of an ensemble that are built into its arrays."""
    return {
        "n_estimators": int(model.n_estimators),
        "tau": float(model.tau),
        "sampling": model.sampling,
        "average_members": bool(model.average_members),
        "threshold_scale": float(model.threshold_scale),
    }


def check_means(state: OnlineState, totals: np.ndarray) -> None:
    """Raise unless the mean thresholds are those of the members' summed steps."""
    scale, n = state.settings["threshold_scale"] ** 2, state.settings["n_estimators"]
    if not (
        np.array_equal(totals, state.others["totals"])
        and np.array_equal(scale * (totals / n), state.others["mean_thresholds"])
    ):
        raise ValueError("its mean thresholds are not the mean of its members' thresholds")
