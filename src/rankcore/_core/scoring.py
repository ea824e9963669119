"""Scoring forms of fitted models, which C, exporters and explanations read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class FormParts:
    """Names of the arrays and the metadata of a form."""

    arrays: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()


# ``docs/model_file.md`` has the meaning of each form, and the shapes.
FORMS = {
    # One score.
    "linear": FormParts(("weights",)),
    # One score, cut into ranks by thresholds.
    "thresholds": FormParts(("weights", "thresholds")),
    # One score, rounded to a rank.
    "rounded": FormParts(("weights", "intercept")),
    # A score for each threshold.
    "tasks": FormParts(("weights", "thresholds"), ("decision", "tie")),
    # A score for each rank.
    "classes": FormParts(("weights", "intercepts")),
    # Ranks of members.
    "votes": FormParts(("weights", "thresholds", "votes"), ("output",)),
    # A step function of each feature, ``rc_stumps`` in rankcore.h.
    "stumps": FormParts(("offsets", "thresholds", "values", "missing", "at_zero", "base")),
    # A sum of trees, ``rc_trees`` there.
    "trees": FormParts(
        ("offsets", "features", "children", "sides", "thresholds", "values", "sets", "words"),
        ("zero_missing",),
    ),
    # Sums over support vectors, dense or CSR; thresholds where there are ranks. With means and
    # factors, rows are standardized first, and the vectors are.
    "kernel": FormParts(
        (
            "vectors",
            "values",
            "indices",
            "indptr",
            "norms",
            "means",
            "factors",
            "sizes",
            "slots",
            "coefs",
            "constants",
            "thresholds",
        ),
        ("kernel", "degree", "rule", "decision", "tie"),
    ),
    # Sums of trees for the tasks of ranks, ``rc_tasks`` in rankcore_ordinal.h.
    "ordinal_trees": FormParts(
        (
            "offsets",
            "features",
            "children",
            "sides",
            "thresholds",
            "values",
            "sets",
            "words",
            "biases",
            "costs",
        ),
        ("zero_missing", "tasks", "link"),
    ),
    # No score of a row by itself.
    "none": FormParts((), ("reason",)),
}
# Arrays of the form "calibrated", beside those of a score: ``rc_calibration`` in
# rankcore_calibration.h; the moments are slope, center and scale.
CALIBRATION = ("curves", "knots", "moments", "costs")
# Parts of calibrated models, and of a scaler in front.
_AROUND = FormParts((*CALIBRATION, "center", "scale", "shift", "bounds"), ("of", "scaler"))
# Names of all arrays and facts.
ARRAYS = frozenset(name for parts in (*FORMS.values(), _AROUND) for name in parts.arrays)
FACTS = frozenset(name for parts in (*FORMS.values(), _AROUND) for name in parts.facts)


@dataclass(frozen=True)
class Scoring:
    """Scoring form of a fitted model: one of `FORMS`, with its arrays and metadata."""

    form: str
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: dict[str, str | int] = field(default_factory=dict)

    @property
    def of_score(self) -> Scoring:
        """Form of the score alone, without probabilities that follow from it."""
        if self.form != "calibrated":
            return self
        arrays = {name: array for name, array in self.arrays.items() if name not in CALIBRATION}
        facts = {name: value for name, value in self.facts.items() if name != "of"}
        return Scoring(str(self.facts["of"]), arrays, facts)

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
    """Return the scoring of a model that has no score for a single row."""
    return Scoring("none", {}, {"reason": reason})
