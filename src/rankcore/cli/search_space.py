"""Search space of ``rankcore tune``: distributions of the parameters of each learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Draw = Callable[[np.random.Generator], Any]


def _logarithmic(low: float, high: float) -> Draw:
    """A number whose logarithm is uniform, with three digits."""
    import math

    def draw(rng: np.random.Generator) -> float:
        return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")

    return draw


def _integer(low: int, high: int) -> Draw:
    """A whole number whose logarithm is uniform."""
    number = _logarithmic(low, high + 0.999)
    return lambda rng: int(number(rng))


def _one_of(*choices: Any) -> Draw:
    return lambda rng: choices[int(rng.integers(len(choices)))]


_PASSES = {"max_iter": _integer(2, 50)}
_STUMPS = {
    "n_estimators": _integer(20, 500),
    "learning_rate": _logarithmic(0.05, 1.0),
    "missing": _one_of("learn", "zero"),
}
# By the name of the learner in the registry.
SPACES: Mapping[str, Mapping[str, Draw]] = {
    "prank": {**_PASSES, "threshold_scale": _one_of("auto", 1.0)},
    "cusum": {**_PASSES, "margin": _one_of(0.0, 0.3, 1.0, 3.0)},
    "pa-cusum": {**_PASSES, "C": _logarithmic(1e-3, 10), "margin": _one_of(0.0, 1.0)},
    "oap-bpm": {"max_iter": _integer(1, 10), "tau": _one_of(0.1, 0.3, 0.6)},
    "widrow-hoff": {**_PASSES, "eta0": _logarithmic(1e-3, 1.0)},
    "kernel-prank": {
        "max_iter": _integer(2, 20),
        "gamma": _logarithmic(1e-3, 10),
        "budget": _one_of(None, 1000),
    },
    "kernel-cusum": {"max_iter": _integer(2, 20), "gamma": _logarithmic(1e-3, 10)},
    "multiclass": _PASSES,
    "ordinal-boost": {
        "n_estimators": _integer(20, 300),
        "max_leaf_nodes": _integer(4, 63),
        "learning_rate": _logarithmic(0.02, 0.3),
        "min_samples_leaf": _integer(1, 50),
        "l2_leaf": _logarithmic(0.1, 10),
        "tasks": _one_of("shared", "average"),
    },
    "pairwise": {
        "max_iter": _integer(1, 50),
        "margin": _one_of(0.0, 0.1, 1.0),
        "balance": _one_of("query", None),
    },
    "committee": {"max_iter": _integer(5, 50), "committee_size": _one_of(5, 20, 50)},
    "ranksvm": {"C": _logarithmic(1e-5, 100), "balance": _one_of("query", None)},
    "rankboost": _STUMPS,
    "bipartite-rankboost": {"n_estimators": _integer(20, 500)},
    "rankboost-trees": {
        "n_estimators": _integer(20, 300),
        "max_leaf_nodes": _integer(4, 63),
        "learning_rate": _logarithmic(0.02, 0.3),
        "min_samples_leaf": _integer(1, 50),
        "l2_leaf": _one_of(0.0, 0.01, 0.1),
    },
}
# Candidates if no learner is named: one of each family.
FOR_QUERIES = ("ranksvm", "pairwise", "rankboost", "rankboost-trees")
FOR_LABELS = ("prank", "cusum", "pa-cusum", "oap-bpm", "widrow-hoff")
# Their cost grows with the square of the number of rows: a trial of 5000 takes about 10 seconds.
FOR_FEW_LABELS, FEW = ("kernel-prank", "kernel-cusum"), 5000


def families(in_queries: bool, n_rows: int) -> tuple[str, ...]:
    """The learners that are tried if none is named."""
    if in_queries:
        return FOR_QUERIES
    return FOR_LABELS + (FOR_FEW_LABELS if n_rows <= FEW else ())


def draw(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """Parameters of a learner, drawn from its space; raise ValueError if it has none."""
    if name not in SPACES:
        raise ValueError(f"tune has no parameters to draw for {name}; it has {', '.join(SPACES)}")
    return {parameter: one(rng) for parameter, one in SPACES[name].items()}
