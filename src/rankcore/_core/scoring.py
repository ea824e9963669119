"""Scoring forms of fitted models, which C, exporters and explanations read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

# Meaning, arrays and facts of each form; ``docs/model_file.md`` has the shapes.
FORMS = {
    "linear": ("one score", "weights", ""),
    "thresholds": ("one score, cut into ranks by thresholds", "weights thresholds", ""),
    "rounded": ("one score, rounded to a rank", "weights intercept", ""),
    "tasks": ("a score for each threshold", "weights thresholds", "decision tie"),
    "classes": ("a score for each rank", "weights intercepts", ""),
    "votes": ("ranks of members", "weights thresholds votes", "output"),
    "stumps": (
        "a step function of each feature, ``rc_stumps`` in rankcore.h",
        "offsets thresholds values missing at_zero base",
        "",
    ),
    "trees": (
        "a sum of trees, ``rc_trees`` there",
        "offsets features children sides thresholds values sets words",
        "zero_missing",
    ),
    "kernel": (
        "sums over support vectors, dense or CSR; thresholds where there are ranks",
        "vectors values indices indptr norms sizes slots coefs constants thresholds",
        "kernel degree rule decision tie",
    ),
    "ordinal_trees": (
        "sums of trees for the tasks of ranks, ``rc_tasks`` in rankcore_ordinal.h",
        "offsets features children sides thresholds values sets words biases costs",
        "zero_missing tasks link",
    ),
    "none": ("no score of a row by itself", "", "reason"),
}
# Parts of calibrated models, and of a scaler in front.
_AROUND = ("", "curves knots moments costs center scale shift bounds", "of scaler")
# Names of all arrays and facts.
ARRAYS, FACTS = (
    frozenset(" ".join(parts[i] for parts in (*FORMS.values(), _AROUND)).split()) for i in (1, 2)
)


@dataclass(frozen=True)
class Scoring:
    """Scoring form of a fitted model: one of `FORMS`, with its arrays and facts."""

    form: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, str | int] = field(default_factory=dict)

    @property
    def has_one_score(self) -> bool:
        """Whether a row has one score, not one for each rank or task."""
        return self.form not in {"classes", "none"} and not self.has_trees_of_tasks

    @property
    def has_trees_of_tasks(self) -> bool:
        """Whether each task has its own trees and score."""
        if self.form != "ordinal_trees":
            return False
        return self.facts["tasks"] != "shared"


def no_scoring(reason: str) -> Scoring:
    """Scoring of a model that has no score for a single row."""
    return Scoring("none", {}, {"reason": reason})
