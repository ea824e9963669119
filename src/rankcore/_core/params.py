"""Checks of parameters: each names what is required and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import Parameter, signature
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
            f"{name} must be in the range of float64; found a larger integer"
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


# What LightGBM, XGBoost and scikit-learn call the parameters of learners here.
FAMILIAR = {
    "num_leaves": "max_leaf_nodes",
    "max_leaves": "max_leaf_nodes",
    "min_child_samples": "min_samples_leaf",
    "min_data_in_leaf": "min_samples_leaf",
    "min_child_weight": "min_pair_weight",
    "min_sum_hessian_in_leaf": "min_pair_weight",
    "reg_lambda": "l2_leaf",
    "lambda_l2": "l2_leaf",
    "l2_regularization": "l2_leaf",
    "num_iterations": "n_estimators",
    "num_boost_round": "n_estimators",
    "max_bin": "max_bins",
    "eta": "learning_rate",
    "eta0": "learning_rate",
    "bagging_fraction": "subsample",
    "feature_fraction": "colsample",
    "colsample_bytree": "colsample",
    "monotone_constraints": "monotonic_cst",
    "categorical_feature": "categorical_features",
    "early_stopping_round": "early_stopping_rounds",
    "metric": "eval_metric",
    "n_iter": "max_iter",
    "epochs": "max_iter",
    "n_epochs": "max_iter",
    "seed": "random_state",
    "nthread": "n_jobs",
    "num_threads": "n_jobs",
}


def check_names(learner: type, params: Mapping[str, Any]) -> None:
    """Raise unless all names are parameters of a learner's constructor.

    Raises
    ------
    TypeError
        With the name that was meant, if another library calls it so or it is almost the same.
    """
    known = signature(learner.__init__).parameters  # type: ignore[misc]
    if any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
        return  # a subclass that passes names on
    for name in params:
        if name in known:
            continue
        meant = FAMILIAR.get(name)
        if meant not in known:
            meant = next(iter(get_close_matches(name, known, 1)), None)
        listed = ", ".join(one for one in known if one != "self")
        hint = f"use {meant}" if meant else f"its parameters are {listed}"
        raise TypeError(f"{learner.__name__} has no parameter {name!r}: {hint}")
