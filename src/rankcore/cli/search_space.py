"""The parameters that ``rankcore tune`` searches, as suggestions of an Optuna trial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from rankcore.cli.registry import TREES_FOR_LABELS, TREES_FOR_QUERIES, find_learner

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

    # A value for the parameter of this name.
    Suggestion = Callable[[BaseTrial, str], Any]


def _logarithmic(low: float, high: float) -> Suggestion:
    return lambda trial, name: trial.suggest_float(name, low, high, log=True)


def _integer(low: int, high: int) -> Suggestion:
    return lambda trial, name: trial.suggest_int(name, low, high, log=True)


def _one_of(*choices: Any) -> Suggestion:
    return lambda trial, name: trial.suggest_categorical(name, choices)


_PASSES = {"max_iter": _integer(2, 50)}
_STUMPS = {
    "n_estimators": _integer(20, 500),
    "learning_rate": _logarithmic(0.05, 1.0),
    "missing": _one_of("learn", "zero"),
}
# By the name of the learner in the registry.
SPACES: Mapping[str, Mapping[str, Suggestion]] = {
    "prank": {**_PASSES, "threshold_scale": _one_of("auto", 1.0), "margin": _one_of("auto", 0.0)},
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
        "tasks": _one_of("vector", "shared"),
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
# Their cost is quadratic in the number of rows: a trial with 5000 takes about 10 seconds.
FOR_FEW_LABELS, FEW = ("kernel-prank", "kernel-cusum"), 5000


def families(
    in_queries: bool, n_rows: int, categories: bool = False, nan: bool = False
) -> tuple[str, ...]:
    """Return the names of the learners to try if none is named; of those that take ``nan``."""
    if categories or (nan and not in_queries):
        return (TREES_FOR_QUERIES if in_queries else TREES_FOR_LABELS,)
    if in_queries:
        return tuple(name for name in FOR_QUERIES if not nan or find_learner(name).scale_invariant)
    return FOR_LABELS + (FOR_FEW_LABELS if n_rows <= FEW else ())


def check_space(name: str) -> None:
    """Raise ValueError for a learner without a search space."""
    if name not in SPACES:
        raise ValueError(f"tune has no parameters to draw for {name}; it has {', '.join(SPACES)}")


def suggest(trial: BaseTrial, name: str, fixed: Collection[str] = ()) -> dict[str, Any]:
    """Suggest values of a learner's parameters, but for the fixed ones.

    Learners share names of parameters, not their ranges: the trial has them as LEARNER.NAME.
    """
    return {
        parameter: suggestion(trial, f"{name}.{parameter}")
        for parameter, suggestion in SPACES[name].items()
        if parameter not in fixed
    }
