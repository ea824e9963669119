"""Parameters that the boosted learners share: constraints, and values derived from them.

For example whether weak rankers are trees, the learning rate and number of rounds of "auto", and
monotone constraints by the number of each feature.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core import params
from rankcore.boosting._binning import MAX_BINS
from rankcore.boosting._metric_weights import check_pair_weight

# Parameters of stumps only, and of trees only, with their defaults, which they must have with the
# other kind.
OF_STUMPS = {"select": "edge", "smoothing": "auto", "step": "third"}
OF_TREES = {
    "max_depth": None,
    "leaf_step": "search",
    "min_samples_leaf": "auto",
    "min_pair_weight": 0.0,
    "l2_leaf": 0.0,
    "subsample": 1.0,
    "max_features": 1.0,
}
# Enough leaves to separate all rows that fit into memory.
MAX_LEAVES = 2**24
# Constraints on the parameters of trees.
GROWTH: params.Constraints = {
    "n_estimators": params.COUNT,
    "early_stopping_rounds": params.COUNT | None,
    "n_jobs": params.N_JOBS,
    "verbose": params.VERBOSE,
    "max_bins": params.Integer(2, MAX_BINS) | None,
    "max_leaf_nodes": params.Integer(2, MAX_LEAVES) | None,
    "max_depth": params.COUNT | None,
    "min_samples_leaf": params.Options("auto") | params.COUNT,
    "l2_leaf": params.Real(0, 1e100),
    "learning_rate": params.Real(0, 1, closed="right"),
    "subsample": params.Real(0, 1, closed="right"),
    "max_features": params.Real(0, 1, closed="right"),
}


def grows_trees(model: PairParams) -> bool:
    """Return whether the weak rankers of an estimator are trees."""
    return model.weak == "tree" or (model.weak == "auto" and model.max_leaf_nodes != 2)


class Schedule(NamedTuple):
    """Maximum number of rounds, and learning rate, of a fit."""

    n_estimators: int
    learning_rate: float

    @classmethod
    def of(cls, model: PairParams) -> Schedule:
        """Resolve parameters that are "auto"."""
        auto = AUTO_TREES if grows_trees(model) else AUTO_STUMPS
        rounds, rate = model.n_estimators, model.learning_rate
        return cls(
            auto.n_estimators if isinstance(rounds, str) else int(rounds),
            auto.learning_rate if isinstance(rate, str) else float(rate),
        )


AUTO_STUMPS = Schedule(300, 1.0)
AUTO_TREES = Schedule(100, 0.1)


def resolve_min_samples_leaf(min_samples_leaf: str | int, n_rows: int) -> int:
    """Return the minimum number of rows in a leaf; "auto" depends on the number of rows."""
    if isinstance(min_samples_leaf, str):
        return min(20, max(1, n_rows // 5))
    return int(min_samples_leaf)


def check_leaves(model: Any) -> None:
    """Raise unless something limits the number of leaves."""
    if model.max_leaf_nodes is None:
        if model.max_depth is None:
            raise ValueError("max_leaf_nodes=None requires max_depth; got max_depth=None")
        params.check_integer(model.max_depth, "max_depth", 1, MAX_LEAVES.bit_length() - 1)


class PairParams(Protocol):
    """Parameters of RankBoost and BipartiteRankBoost that rounds read."""

    n_estimators: Literal["auto"] | int
    step: str
    select: str
    max_bins: int | None
    missing: Literal["learn", "zero"]
    smoothing: Literal["auto"] | float
    balance: Literal["query"] | None
    n_jobs: int | None
    weak: Literal["auto", "stump", "tree"]
    max_leaf_nodes: int | None
    learning_rate: Literal["auto"] | float
    leaf_step: Literal["search", "newton"]
    min_samples_leaf: Literal["auto"] | int
    min_pair_weight: float
    l2_leaf: float
    subsample: float
    max_features: float
    pair_weight: Any
    random_state: Any


# Constraints on the parameters of RankBoost and BipartiteRankBoost.
PAIR_CONSTRAINTS: params.Constraints = {
    **GROWTH,
    "n_estimators": params.Options("auto") | params.COUNT,
    "learning_rate": params.Options("auto") | params.Real(0, 1, closed="right"),
    "smoothing": params.Options("auto") | params.Real(0, 1e100),
    "min_pair_weight": params.Real(0, 2),
    "pair_weight": params.Checked(check_pair_weight, "the name of a measure or a function"),
}


def check_weak(model: PairParams) -> None:
    """Raise if parameters of RankBoost or BipartiteRankBoost exclude each other."""
    check_leaves(model)
    if model.weak == "stump" and model.max_leaf_nodes != 2:
        raise ValueError(
            f"weak='stump' requires max_leaf_nodes=2; got max_leaf_nodes="
            f"{model.max_leaf_nodes}: omit weak, or set it to 'tree'"
        )
    trees = grows_trees(model)
    for name in ("monotonic_cst", "pair_weight"):
        if not trees and getattr(model, name) is not None:
            raise ValueError(f"{name} requires trees; got stumps: set max_leaf_nodes or weak")
    for name, default in (OF_STUMPS if trees else OF_TREES).items():
        value = getattr(model, name)
        if value != default and trees:
            raise ValueError(f"{name} is for stumps; got {name}={value!r} with trees")
        if value != default:
            raise ValueError(
                f"{name} is for trees; got {name}={value!r} with stumps: set max_leaf_nodes "
                "or weak='tree'"
            )


def monotone_signs(
    constraints: Any,
    n_features: int,
    names: NDArray[Any] | None,
    categorical: NDArray[np.bool_] | None,
) -> NDArray[np.int8] | None:
    """Return the monotone constraint of each column, 1, 0 or -1; None if there are none."""
    if constraints is None:
        return None
    if isinstance(constraints, dict):
        columns = {} if names is None else {name: i for i, name in enumerate(names.tolist())}
        signs = np.zeros(n_features)
        for name, sign in constraints.items():
            if name not in columns:
                raise ValueError(f"monotonic_cst names a column not in X: {name!r}")
            signs[columns[name]] = sign
    else:
        signs = np.asarray(constraints)
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotonic_cst must be -1, 0 or 1 for each of {n_features} features, or a dict from "
            f"names of features to these; got {constraints!r}"
        )
    if categorical is not None and signs[categorical].any():
        raise ValueError(f"monotonic_cst must be 0 for categorical features; got {constraints!r}")
    return signs.astype(np.int8) if signs.any() else None
