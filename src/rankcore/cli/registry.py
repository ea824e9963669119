"""The learners of the command line and the demo, by name.

Their names and summaries stand here and not in the declarations of the learners, because the help
of ``train`` would have to import scikit-learn to read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from rankcore._core.declaration import declaration_of


@dataclass(frozen=True)
class Learner:
    """An estimator with preset parameters, under one name."""

    name: str
    estimator: str  # name of a class in `rankcore`, or module:Class
    summary: str  # one line for the help
    # parameters that differ from the estimator's defaults
    params: Mapping[str, Any] = field(default_factory=dict)
    # whether it scores documents of queries, instead of predicting labels
    ranks_queries: bool = False

    @property
    def scale_invariant(self) -> bool:
        """Whether the learner needs no features on one scale, and takes NaN; imports it."""
        declared = declaration_of(self._kind())
        return declared is not None and declared.scale_invariant

    def accepts(self) -> list[str]:
        """Return the names of the estimator's parameters, in alphabetical order."""
        return sorted(signature(self._kind()).parameters)

    def make(self, **params: Any) -> Any:
        """Build an estimator from the presets, overridden by ``params``; all must exist."""
        accepted = self.accepts()
        for name in params:
            if name not in accepted:
                raise ValueError(_unknown(f"parameter of {self.name}", name, accepted))
        return self._kind()(**{**self.params, **params})

    def _kind(self) -> Any:
        import rankcore

        if ":" in self.estimator:
            return own_class(self.estimator)
        return getattr(rankcore, self.estimator)


# The settings of the paper.
PUBLISHED = {
    "average": False,
    "threshold_scale": 1.0,
    "margin": 0.0,
    "max_iter": 1,
    "shuffle": False,
    "standardize": False,
}

# One line here adds a learner to --model and the demo.
LEARNERS = [
    Learner("prank", "PRank", "perceptron ranking, averaged"),
    Learner("prank-published", "PRank", "PRank as in its paper: one pass, not averaged", PUBLISHED),
    Learner("voted-prank", "VotedPRank", "votes of PRank's hypotheses", {"output": "median"}),
    Learner("cusum", "CuSumRank", "cumulative-sum ordinal scoring, averaged"),
    Learner("pa-cusum", "CuSumRank", "passive-aggressive CuSum Rank, averaged", {"update": "pa1"}),
    Learner("oap-bpm", "OAPBPM", "mean of 100 PRanks that sample the stream"),
    Learner("oap-bagging", "OAPBagging", "votes of 100 PRanks that sample the stream"),
    Learner("oap-voting", "OAPVoting", "votes of 100 sampled PRanks, weighted by successes"),
    Learner("kernel-prank", "KernelPRank", "PRank with a kernel, averaged"),
    Learner("widrow-hoff", "WidrowHoff", "online least squares, rounded"),
    Learner("multiclass", "MulticlassPerceptron", "multiclass perceptron, averaged"),
]

# Not in the demo, whose plot has no space for more curves.
MORE_LEARNERS = [
    Learner("kernel-cusum", "KernelCuSumRank", "CuSum Rank with a kernel, averaged"),
    Learner("logistic", "OrdinalLogistic", "ordinal logistic regression, with probabilities"),
    Learner("kernel-oap", "KernelOAPBPM", "mean of 100 kernel PRanks that sample the stream"),
    Learner("ordinal-boost", "OrdinalBoost", "boosted trees, with probabilities of ranks"),
]

# Learners of queries.
RANKERS = [
    Learner(
        "committee",
        "PairwisePerceptron",
        "the best 20 hypotheses of a perceptron on pairs",
        {"variant": "committee"},
        True,
    ),
    Learner("pairwise", "PairwisePerceptron", "perceptron on pairs, averaged", {}, True),
    Learner("ranksvm", "RankSVM", "ranking SVM, linear", {}, True),
    Learner("rankboost", "RankBoost", "300 threshold stumps, boosted on pairs", {}, True),
    Learner(
        "rankboost-trees",
        "RankBoost",
        "100 trees of 31 leaves, boosted on pairs",
        {"max_leaf_nodes": 31},
        True,
    ),
    Learner(
        "bipartite-rankboost", "BipartiteRankBoost", "threshold stumps for two labels", {}, True
    ),
]


EVERY_LEARNER = [*LEARNERS, *MORE_LEARNERS, *RANKERS]

# Default learners: those that the study of defaults recommends for their cost.
FOR_LABELS, FOR_QUERIES = "prank", "pairwise"
# Default learners of rows with categories.
TREES_FOR_LABELS, TREES_FOR_QUERIES = "ordinal-boost", "rankboost-trees"


def find_learner(name: str, own: bool = False) -> Learner:
    """Look up a learner by its name; with ``own`` also module:Class.

    >>> find_learner("pa-cusum").make(max_iter=5)
    CuSumRank(max_iter=5, update='pa1')
    """
    for learner in EVERY_LEARNER:
        if learner.name == name:
            return learner
    if ":" in name:
        if not own:
            raise ValueError(
                f"--model {name} is your own class, which only cv supports: a model file cannot "
                "contain its code"
            )
        own_class(name)
        return Learner(name, name, "your own class")
    raise ValueError(_unknown("model", name, [learner.name for learner in EVERY_LEARNER]))


def own_class(name: str) -> Any:
    """Import module:Class, a learner of ordered labels, from the current directory or a package."""
    import sys
    from importlib import import_module

    from rankcore.ordinal.base import OnlineOrdinalClassifier

    module, _, kind = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as with `python -m`, but not with the script of a command
    try:
        learner_class = getattr(import_module(module), kind)
    except Exception as error:  # code of the module may raise any exception
        raise ValueError(
            f"--model {name} requires a class {kind!r} in a module {module!r}; importing it raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not (isinstance(learner_class, type) and issubclass(learner_class, OnlineOrdinalClassifier)):
        raise ValueError(
            f"--model {name} must be a subclass of rankcore.PythonRule or another learner of "
            f"ordered labels; got {learner_class!r}"
        )
    return learner_class


def _unknown(what: str, name: str, accepted: Sequence[str]) -> str:
    from rankcore._core.params import nearest_parameter

    name = name if len(name) <= 60 else f"{name[:60]}..."
    nearest = nearest_parameter(name, accepted)
    hint = f" (did you mean {nearest}?)" if nearest else ""
    return f"unknown {what}: {name}{hint}; accepted are {', '.join(accepted)}"
