"""Parameters of RankBoost and BipartiteRankBoost, with their constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core import params
from rankcore._core.arguments import Measures, Seed
from rankcore.boosting._binning import MAX_BINS
from rankcore.boosting._metric_weights import check_pair_weight

# Parameters of stumps only, and of trees only; with the other kind they must be the defaults.
OF_STUMPS = ("select", "smoothing", "step")
OF_TREES = (
    "max_depth",
    "leaf_step",
    "min_samples_leaf",
    "min_pair_weight",
    "l2_leaf",
    "subsample",
    "colsample",
)
# Enough leaves to separate all rows that fit into memory.
MAX_LEAVES = 2**24
# Constraints on the parameters of trees.
GROWTH: params.Constraints = {
    "max_bins": params.Integer(2, MAX_BINS) | None,
    "max_leaf_nodes": params.Integer(2, MAX_LEAVES) | None,
    "max_depth": params.COUNT | None,
    "min_samples_leaf": params.Options("auto") | params.COUNT,
    "l2_leaf": params.Real(0, 1e100),
    "learning_rate": params.Real(0, 1, closed="right"),
    "subsample": params.Real(0, 1, closed="right"),
    "colsample": params.Real(0, 1, closed="right"),
}


def grows_trees(model: Any) -> bool:
    """Whether the weak rankers of an estimator are trees."""
    return model.weak == "tree" or (model.weak == "auto" and model.max_leaf_nodes != 2)


class Schedule(NamedTuple):
    """Maximum number of rounds, and learning rate, of a fit."""

    n_estimators: int
    learning_rate: float

    @classmethod
    def of(cls, model: BoostingParams) -> Schedule:
        """Resolve parameters that are "auto"."""
        auto = AUTO_TREES if grows_trees(model) else AUTO_STUMPS
        rounds, rate = model.n_estimators, model.learning_rate
        return cls(
            auto.n_estimators if isinstance(rounds, str) else int(rounds),
            auto.learning_rate if isinstance(rate, str) else float(rate),
        )


AUTO_STUMPS = Schedule(300, 1.0)
AUTO_TREES = Schedule(100, 0.1)


def least_rows(min_samples_leaf: str | int, n_rows: int) -> int:
    """Minimum number of rows in a leaf of a tree for this number of rows; resolves "auto"."""
    if isinstance(min_samples_leaf, str):
        return min(20, max(1, n_rows // 5))
    return int(min_samples_leaf)


def check_leaves(model: Any) -> None:
    """Raise unless something limits the number of leaves."""
    if model.max_leaf_nodes is None:
        if model.max_depth is None:
            raise ValueError("max_leaf_nodes=None requires max_depth; found max_depth=None")
        params.check_integer(model.max_depth, "max_depth", 1, MAX_LEAVES.bit_length() - 1)


@dataclass(eq=False, repr=False)
class BoostingParams:
    """Parameters of `RankBoost`."""

    n_estimators: Literal["auto"] | int = "auto"
    step: Literal["third", "discrete"] = "third"
    select: Literal["edge", "normalizer"] = "edge"
    max_bins: int | None = 255
    missing: Literal["learn", "zero"] = "learn"
    smoothing: Literal["auto"] | float = "auto"
    balance: Literal["query"] | None = "query"
    early_stopping_rounds: int | None = None
    eval_metric: Measures = "ndcg@10"
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    weak: Literal["auto", "stump", "tree"] = "auto"
    max_leaf_nodes: int | None = 2
    max_depth: int | None = None
    learning_rate: Literal["auto"] | float = "auto"
    leaf_step: Literal["search", "newton"] = "search"
    min_samples_leaf: Literal["auto"] | int = "auto"
    min_pair_weight: float = 0.0
    l2_leaf: float = 0.0
    subsample: float = 1.0
    colsample: float = 1.0
    monotonic_cst: ArrayLike | Mapping[str, int] | None = None
    categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype"
    pair_weight: str | Callable[..., ArrayLike] | None = None
    random_state: Seed | None = None

    _constraints: ClassVar[params.Constraints] = {
        **GROWTH,
        "n_estimators": params.Options("auto") | params.COUNT,
        "learning_rate": params.Options("auto") | params.Real(0, 1, closed="right"),
        "smoothing": params.Options("auto") | params.Real(0, 1e100),
        "min_pair_weight": params.Real(0, 2),
        "pair_weight": params.Checked(check_pair_weight, "the name of a measure or a function"),
    }

    def _check_together(self) -> None:
        """Raise if parameters exclude each other."""
        check_leaves(self)
        if self.weak == "stump" and self.max_leaf_nodes != 2:
            raise ValueError(
                f"weak='stump' requires max_leaf_nodes=2; found max_leaf_nodes="
                f"{self.max_leaf_nodes}: omit weak, or set it to 'tree'"
            )
        trees = grows_trees(self)
        for name in ("monotonic_cst", "pair_weight"):
            if not trees and getattr(self, name) is not None:
                raise ValueError(f"{name} requires trees; found stumps: set max_leaf_nodes or weak")
        for name in OF_STUMPS if trees else OF_TREES:
            found, default = getattr(self, name), getattr(type(self), name)
            if found != default and trees:
                raise ValueError(f"{name} is for stumps; found {name}={found!r} with trees")
            if found != default:
                raise ValueError(
                    f"{name} is for trees; found {name}={found!r} with stumps: set max_leaf_nodes "
                    "or weak='tree'"
                )


@dataclass(eq=False, repr=False)
class Leading:
    """First parameters of `BipartiteRankBoost`, including ``rel``, which is its own."""

    n_estimators: Literal["auto"] | int = "auto"
    step: Any = "third"
    rel: float | None = None


@dataclass(eq=False, repr=False)
class BipartiteParams(BoostingParams, Leading):
    """Parameters of `BipartiteRankBoost`."""

    step: Literal["third", "exact", "mohri"] = "third"  # type: ignore[assignment]

    _constraints: ClassVar[params.Constraints] = {"rel": params.Real(-1e300, 1e300) | None}


def monotone_signs(
    given: Any, n_features: int, names: NDArray[Any] | None, categorical: NDArray[np.bool_] | None
) -> NDArray[np.int8] | None:
    """Monotone constraint of each column, 1, 0 or -1; None if there are none."""
    if given is None:
        return None
    if isinstance(given, dict):
        columns = {} if names is None else {name: i for i, name in enumerate(names.tolist())}
        signs = np.zeros(n_features)
        for name, sign in given.items():
            if name not in columns:
                raise ValueError(f"monotonic_cst names a column not in X: {name!r}")
            signs[columns[name]] = sign
    else:
        signs = np.asarray(given)
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(
            f"monotonic_cst must be -1, 0 or 1 for each of {n_features} features, or a dict from "
            f"names of features to these; found {given!r}"
        )
    if categorical is not None and signs[categorical].any():
        raise ValueError(f"monotonic_cst must be 0 for categorical features; found {given!r}")
    return signs.astype(np.int8) if signs.any() else None
