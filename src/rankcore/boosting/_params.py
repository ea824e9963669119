"""Checks of the parameters of RankBoost and its bipartite form."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_scalar

from rankcore._core.params import check_flag, check_option, check_real
from rankcore._core.threads import check_n_jobs
from rankcore.boosting._binning import MAX_BINS
from rankcore.boosting._focus import check_pair_weight
from rankcore.ranking._validation import check_metric

# Parameters that only stumps have, or trees, and what they are by default.
OF_STUMPS = {"select": "edge", "smoothing": "auto", "search": "auto"}
OF_TREES = {
    "max_depth": None,
    "leaf_step": "search",
    "min_samples_leaf": 20,
    "min_pair_weight": 0.0,
    "l2_leaf": 0.0,
    "subsample": 1.0,
    "colsample": 1.0,
}
# Enough leaves to separate all rows that fit into memory.
MAX_LEAVES = 2**24


def grows_trees(model: Any) -> bool:
    """Whether the weak rankers of an estimator are trees."""
    return model.weak == "tree" or (model.weak == "auto" and model.max_leaf_nodes != 2)


def check_params(model: Any) -> None:
    """Raise unless the parameters of an estimator are valid."""
    check_option(model.step, "step", model._steps)
    check_option(model.select, "select", ("edge", "normalizer"))
    check_option(model.missing, "missing", ("learn", "zero"))
    check_option(model.search, "search", ("auto", "plain"))
    if model.balance is not None:
        check_option(model.balance, "balance", ("query",))
    check_scalar(model.n_estimators, "n_estimators", Integral, min_val=1)
    check_scalar(model.verbose, "verbose", Integral, min_val=0)
    if model.max_bins is not None:
        check_scalar(model.max_bins, "max_bins", Integral, min_val=2, max_val=MAX_BINS)
    if model.early_stopping_rounds is not None:
        check_scalar(model.early_stopping_rounds, "early_stopping_rounds", Integral, min_val=1)
    if not (isinstance(model.smoothing, str) and model.smoothing == "auto"):
        if isinstance(model.smoothing, str):
            raise ValueError(
                f"smoothing must be 'auto' or a number from 0 on, found {model.smoothing!r}"
            )
        check_real(model.smoothing, "smoothing", 0, 1e100)
    check_flag(model.warm_start, "warm_start")
    check_n_jobs(model.n_jobs)
    check_metric(model.eval_metric, "eval_metric")
    _check_tree_params(model)


def _check_tree_params(model: Any) -> None:
    check_option(model.weak, "weak", ("auto", "stump", "tree"))
    check_option(model.leaf_step, "leaf_step", ("search", "newton"))
    if model.max_leaf_nodes is not None:
        check_scalar(
            model.max_leaf_nodes, "max_leaf_nodes", Integral, min_val=2, max_val=MAX_LEAVES
        )
    elif model.max_depth is None:
        raise ValueError("max_leaf_nodes=None requires max_depth; found max_depth=None")
    if model.max_depth is not None:
        unlimited = model.max_leaf_nodes is None
        most = MAX_LEAVES.bit_length() - 1 if unlimited else None
        check_scalar(model.max_depth, "max_depth", Integral, min_val=1, max_val=most)
    check_scalar(model.min_samples_leaf, "min_samples_leaf", Integral, min_val=1)
    check_real(model.min_pair_weight, "min_pair_weight", 0, 2)
    check_real(model.l2_leaf, "l2_leaf", 0, 1e100)
    for name in ("learning_rate", "subsample", "colsample"):
        check_real(getattr(model, name), name, 0, 1)
        if not getattr(model, name) > 0:
            raise ValueError(f"{name} must be above 0; found 0")
    check_pair_weight(model.pair_weight)
    if model.weak == "stump" and model.max_leaf_nodes != 2:
        raise ValueError(
            f"stumps have two leaves; found weak='stump' and max_leaf_nodes="
            f"{model.max_leaf_nodes}: leave weak out, or set it to 'tree'"
        )
    trees = grows_trees(model)
    for name in ("monotonic_cst", "pair_weight"):
        if not trees and getattr(model, name) is not None:
            raise ValueError(f"{name} requires trees; found stumps: set max_leaf_nodes or weak")
    others = {**OF_STUMPS, "step": model._steps[0]} if trees else OF_TREES
    for name, value in others.items():
        found = getattr(model, name)
        if found != value and trees:
            raise ValueError(f"{name} is for stumps; found {name}={found!r} with trees")
        if found != value:
            raise ValueError(
                f"{name} is for trees; found {name}={found!r} with stumps: set max_leaf_nodes or "
                "weak='tree'"
            )


def monotone_signs(
    given: Any,
    n_features: int,
    names: NDArray[Any] | None,
    categorical: NDArray[np.bool_] | None,
) -> NDArray[np.int8] | None:
    """Monotone constraints by column, 1, 0 or -1; None if there are none.

    Parameters
    ----------
    given : array-like, dict or None
        The parameter ``monotonic_cst``.
    n_features : int
    names : ndarray of str, shape (n_features,), or None
    categorical : ndarray of bool, shape (n_features,), or None
        Columns that cannot have any.
    """
    if given is None:
        return None
    if isinstance(given, dict):
        columns = {} if names is None else {name: i for i, name in enumerate(names.tolist())}
        signs = np.zeros(n_features)
        for name, sign in given.items():
            if name not in columns:
                raise ValueError(f"monotonic_cst names a feature that X has not: {name!r}")
            signs[columns[name]] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotonic_cst must be {n_features} of the numbers -1, 0 and 1, one per feature, or a "
            f"dict from names of features to them; found {given!r}"
        )
    if categorical is not None and signs[categorical].any():
        raise ValueError(f"monotonic_cst must be 0 for categorical features; found {given!r}")
    return signs.astype(np.int8) if signs.any() else None
