"""Scoring forms of fitted models, which C, exporters and explanations read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

# Names of all facts and arrays that there are, of any form or of what stands around it.
FACTS = frozenset(
    [
        "decision",
        "tie",
        "output",
        "zero_missing",
        "kernel",
        "degree",
        "rule",
        "reason",
        "of",
        "scaler",
    ]
)
ARRAYS = frozenset(
    [
        "weights",
        "thresholds",
        "intercept",
        "intercepts",
        "votes",
        "offsets",
        "values",
        "missing",
        "at_zero",
        "base",
        "features",
        "children",
        "sides",
        "sets",
        "words",
        "constants",
        "vectors",
        "indices",
        "indptr",
        "norms",
        "sizes",
        "slots",
        "coefs",
        "curves",
        "knots",
        "moments",
        "costs",
        "center",
        "scale",
        "shift",
        "bounds",
    ]
)


@dataclass(frozen=True)
class Scoring:
    """How a fitted model scores a row, as arrays; ``docs/model_file.md`` has each form.

    Attributes
    ----------
    form : str
        ========== ==============================================================================
        linear     one score: weights
        thresholds one score, cut into ranks by thresholds: weights, thresholds
        rounded    one score, rounded to a rank: weights, intercept
        tasks      a score for each threshold: weights (n_features, n_ranks - 1), thresholds
        classes    a score for each rank: weights (n_features, n_ranks), intercepts
        votes      ranks of members: weights (n_tiles, n_features, width), thresholds, votes
        stumps     a step function of each feature: those of ``rc_stumps`` in rankcore.h
        trees      a sum of trees: those of ``rc_trees`` there
        kernel     sums over support vectors: vectors (or values, indices and indptr), norms, lists
                   of some (sizes, slots) with their coefs, constants (gamma and coef0), and
                   thresholds where there are ranks
        none       no score of a row by itself; the fact "reason" says why
        ========== ==============================================================================
    facts : dict of str to str or int
    arrays : mapping of str to ndarray
    """

    form: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, str | int] = field(default_factory=dict)


def no_scoring(reason: str) -> Scoring:
    """Scoring of a model that has no score for a single row."""
    return Scoring("none", {}, {"reason": reason})
