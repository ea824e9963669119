"""Constraints on the parameters of RankBoost and its bipartite form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core import params
from rankcore.boosting._binning import MAX_BINS
from rankcore.boosting._focus import check_pair_weight

# Parameters that only stumps have, or trees, and what they are by default.
OF_STUMPS = {"select": "edge", "smoothing": "auto"}
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


CONSTRAINTS: dict[str, params.Constraint] = {
    "select": params.option("edge", "normalizer"),
    "missing": params.option("learn", "zero"),
    "max_bins": params.optional(params.integer(2, MAX_BINS)),
    "smoothing": params.number_or(("auto",), params.real(0, 1e100)),
    "weak": params.option("auto", "stump", "tree"),
    "leaf_step": params.option("search", "newton"),
    "max_leaf_nodes": params.optional(params.integer(2, MAX_LEAVES)),
    "max_depth": params.optional(params.check_count),
    "min_samples_leaf": params.check_count,
    "min_pair_weight": params.real(0, 2),
    "l2_leaf": params.real(0, 1e100),
    "learning_rate": params.positive(1),
    "subsample": params.positive(1),
    "colsample": params.positive(1),
    "pair_weight": check_pair_weight,
}


def check_together(model: Any) -> None:
    """Raise unless the valid parameters of an estimator fit each other."""
    if model.max_leaf_nodes is None:
        if model.max_depth is None:
            raise ValueError("max_leaf_nodes=None requires max_depth; found max_depth=None")
        params.integer(1, MAX_LEAVES.bit_length() - 1)(model.max_depth, "max_depth")
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
    """Monotone constraints by column, 1, 0 or -1, of ``monotonic_cst``; None if there are none."""
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
