"""The learners that the command line and the demo know by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any


@dataclass(frozen=True)
class Learner:
    """An estimator with preset parameters, under one name.

    Attributes
    ----------
    name : str
        Its name on the command line and in the demo.
    estimator : str
        Name of the class in `rankcore`.
    summary : str
        One line for the help.
    params : mapping
        Parameters that differ from the estimator's defaults.
    ranks_queries : bool
        Whether it scores documents of queries, rather than predicting labels.
    """

    name: str
    estimator: str
    summary: str
    params: Mapping[str, Any] = field(default_factory=dict)
    ranks_queries: bool = False

    def accepts(self) -> list[str]:
        """Names of the estimator's parameters, in alphabetical order."""
        import rankcore

        return sorted(getattr(rankcore, self.estimator)().get_params())

    def make(self, **params: Any) -> Any:
        """Build a new estimator from the presets and ``params``, which win.

        Raises
        ------
        ValueError
            If a parameter is not one of `accepts`; suggests the nearest.
        """
        import rankcore

        accepted = self.accepts()
        for name in params:
            if name not in accepted:
                raise ValueError(_unknown(f"parameter of {self.name}", name, accepted))
        return getattr(rankcore, self.estimator)(**{**self.params, **params})


# The settings of the paper.
PUBLISHED = {"average": False, "threshold_scale": 1.0, "max_iter": 1, "shuffle": False}

# A learner joins --model and the demo by a line here, and by nothing else.
LEARNERS = [
    Learner("prank", "PRank", "perceptron ranking, averaged"),
    Learner("prank-published", "PRank", "PRank as in its paper: one pass, not averaged", PUBLISHED),
    Learner("voted-prank", "VotedPRank", "votes of PRank's hypotheses", {"output": "median"}),
    Learner("cusum", "CuSumRank", "cumulative-sum ordinal scoring, averaged"),
    Learner("pa-cusum", "CuSumRank", "passive-aggressive CuSum Rank, averaged", {"update": "pa1"}),
    Learner("oap-bpm", "OAPBPM", "mean of 100 PRanks that sample the stream"),
    Learner("oap-bagging", "OAPBagging", "votes of 100 PRanks that sample the stream"),
    Learner("oap-voting", "OAPVoting", "the same, weighted by their successes"),
    Learner("kernel-prank", "KernelPRank", "PRank with a kernel, averaged"),
    Learner("widrow-hoff", "WidrowHoff", "online least squares, rounded"),
    Learner("multiclass", "MulticlassPerceptron", "multiclass perceptron, averaged"),
]

# Not in the demo, whose figure has no room for more curves.
KERNEL_LEARNERS = [
    Learner("kernel-cusum", "KernelCuSumRank", "CuSum Rank with a kernel, averaged"),
    Learner("kernel-oap", "KernelOAPBPM", "mean of 100 kernel PRanks that sample the stream"),
]

# The same for learners of queries.
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
        {"n_estimators": 100, "max_leaf_nodes": 31, "learning_rate": 0.1},
        True,
    ),
    Learner(
        "bipartite-rankboost",
        "BipartiteRankBoost",
        "threshold stumps for two labels",
        {},
        True,
    ),
]


EVERY_LEARNER = [*LEARNERS, *KERNEL_LEARNERS, *RANKERS]

# Taken where none is named: what the study of defaults recommends for its price.
FOR_LABELS, FOR_QUERIES = "prank", "pairwise"


def find_learner(name: str) -> Learner:
    """Look up a learner.

    Raises
    ------
    ValueError
        If there is none of that name; suggests the nearest and lists all.

    Examples
    --------
    >>> find_learner("pa-cusum").make(max_iter=5)
    CuSumRank(max_iter=5, update='pa1')
    """
    for learner in EVERY_LEARNER:
        if learner.name == name:
            return learner
    raise ValueError(_unknown("model", name, [one.name for one in EVERY_LEARNER]))


def _unknown(what: str, name: str, accepted: Iterable[str]) -> str:
    accepted = list(accepted)
    name = name if len(name) <= 60 else f"{name[:60]}..."
    by_letters = {one.lower(): one for one in accepted}
    nearest = get_close_matches(name.lower(), by_letters, n=1)
    hint = f" (did you mean {by_letters[nearest[0]]}?)" if nearest else ""
    return f"unknown {what}: {name}{hint}; accepted are {', '.join(accepted)}"
