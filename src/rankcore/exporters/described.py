"""Descriptions of fitted learners and pipelines for exporters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import read_model
from rankcore._core.ids import as_names
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import unwrap_frozen
from rankcore._core.scoring import Scoring
from rankcore._ext import calibration as curves_of
from rankcore.exporters.operations import Step, steps_of, width_after
from rankcore.ordinal.calibrated import CalibratedOrdinal

# The contents of exported files by their paths.
Files: TypeAlias = Mapping[Path, str | bytes]


@dataclass(frozen=True)
class Calibration:
    """Probabilities and rank as functions of a score: ``rc_calibration`` of the C headers."""

    # (m, k - 1): P(above each rank) at each knot; without knots, thresholds of cumulative logits
    curves: Floats
    knots: Floats  # (m,), ascending, or (0,)
    slope: float  # of cumulative logits
    center: float  # subtracted from scores before division by the scale
    scale: float
    costs: Floats  # (k, k): of a prediction (column) where a rank (row) is true

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each rank, shape (n, k), as Python computes it."""
        table = np.empty((scores.size, self.costs.shape[0]))
        scaled = (np.ascontiguousarray(scores, dtype=np.float64) - self.center) / self.scale
        curves_of.probabilities(scaled, self.curves, self.knots, self.slope, table)
        return table


class Units(NamedTuple):
    """Standardisation of rows by a learner itself, before the arrays of its scoring form."""

    means: Floats
    factors: Floats

    @property
    def steps(self) -> list[Step]:
        """The operations on rows."""
        return [Step("subtract", self.means), Step("multiply", self.factors)]


class Answers(NamedTuple):
    """Outputs for rows; None for those that a model does not have."""

    scores: Floats | None
    ranks: NDArray[np.int64] | None = None
    probabilities: Floats | None = None


@dataclass(frozen=True)
class Described:
    """Description of a model to export."""

    model: Any
    learner: str  # name of the class
    scoring: Scoring  # of a calibrated learner, that of the learner inside
    # In front of the learner, those inside a calibrated one and its own standardization too.
    steps: list[Step]
    n_features: int  # of a row that reaches the first step
    names: list[str] | None  # of these features
    classes: NDArray[Any] | None  # of an ordinal learner, lowest rank first
    calibration: Calibration | None = None
    units: Units | None = None  # of a learner that standardises rows, the last steps

    @property
    def n_ranks(self) -> int:
        """Number of ranks; 0 for a model that has only scores."""
        return 0 if self.classes is None else int(self.classes.size)

    @property
    def has_probabilities(self) -> bool:
        """Whether ranks follow from probabilities."""
        return self.calibration is not None or self.scoring.form == "ordinal_trees"

    def named(self, target: str) -> list[str]:
        """Return the names of all features; raise ValueError if there are none."""
        if self.names is None:
            raise ValueError(
                f"{target} requires feature names; this {self.learner} was fitted without: "
                f"pass {self.n_features} feature_names (on the command line --names FILE)"
            )
        return self.names

    def encoded(self, X: Any) -> Any:
        """Encode the categories of a data frame, if the model learned categories."""
        categories = self._categories
        return X if categories is None else categories.encode(X)

    @property
    def categorical(self) -> list[str]:
        """The columns of categories, by name if they have names."""
        numbers = [] if self._categories is None else self._categories.numbers
        return [f"column {j}" if self.names is None else self.names[j] for j in numbers]

    @property
    def _categories(self) -> Any:
        """The categorical features of the learner, or of the one that is calibrated."""
        model = self.model
        if isinstance(model, CalibratedOrdinal):
            model = unwrap_frozen(model.estimator_)
        return getattr(model, "_categories", None)

    def answers(self, X: Any) -> Answers:
        """Compute Python's outputs for rows."""
        rows = X
        last = self.model
        if type(last).__name__ == "Pipeline":
            rows = last[:-1].transform(X) if len(last.steps) > 1 else X
            last = last[-1]
        predicted = np.asarray(last.predict(rows))
        if self.classes is None:
            return Answers(predicted.astype(np.float64, copy=False))
        order = np.argsort(self.classes, kind="stable")
        ranks = order[np.searchsorted(self.classes[order], predicted)].astype(np.int64)
        scores = None
        if self.scoring.form == "ordinal_trees":
            scores = last._scores(rows)[0] if self.scoring.has_one_score else None
        elif hasattr(last, "project"):
            scores = np.asarray(last.project(rows), dtype=np.float64)
        return Answers(scores, ranks, last._probabilities(rows) if self.has_probabilities else None)


def describe(model: Any, feature_names: Sequence[str] | None = None) -> Described:
    """Read a fitted learner, or a pipeline that ends in one.

    Feature names are by default those of the data frame that the first step was fitted to. Raises
    TypeError for a model or step that cannot be exported, ValueError if single rows cannot be
    scored or the names do not match.
    """
    from sklearn.utils.validation import check_is_fitted

    front, last = _steps_and_last(model)
    chosen = ": export its best_estimator_" if hasattr(last, "best_estimator_") else ""
    if chosen or not hasattr(last, "_scoring"):
        raise TypeError(
            f"export takes a rankcore learner, or a pipeline that ends in one; got "
            f"{type(last).__name__}{chosen}"
        )
    check_is_fitted(last)
    name = type(last).__name__
    learner = last
    inside: list[Any] = []
    if isinstance(last, CalibratedOrdinal):
        inside, learner = _steps_and_last(unwrap_frozen(last.estimator_))
        if not hasattr(learner, "_scoring"):
            raise TypeError(
                "export takes a CalibratedOrdinal of a rankcore learner; its estimator is a "
                f"{type(learner).__name__}"
            )
    spec = read_model("export", last, last._spec)
    scoring, calibration = _taken_apart(spec.scoring)
    scoring, units = _without_units(scoring)
    if scoring.form == "none":
        raise ValueError(f"this {name} cannot be exported: {scoring.facts['reason']}")
    steps: list[Step] = []
    for step in front + inside:
        if step is not None and not isinstance(step, str):
            check_is_fitted(step)
        steps += steps_of(step)
    if units is not None:
        steps += units.steps
    first = next((step for step in front if hasattr(step, "n_features_in_")), last)
    n_features = int(first.n_features_in_)
    width = width_after(steps, n_features)
    if width != learner.n_features_in_:
        raise ValueError(
            f"the steps return {width} features, but this {type(learner).__name__} has "
            f"{learner.n_features_in_}: export takes models without a column of queries"
        )
    names = getattr(first, "feature_names_in_", None) if feature_names is None else feature_names
    classes = getattr(last, "ranks_", None)
    return Described(
        model,
        name,
        scoring,
        steps,
        n_features,
        None if names is None else _checked_names(names, n_features),
        None if classes is None else np.asarray(classes),
        calibration,
        units,
    )


def _steps_and_last(model: Any) -> tuple[list[Any], Any]:
    """Return the preprocessing steps, and the learner."""
    if type(model).__name__ != "Pipeline":
        return [], model
    return [step for _, step in model.steps[:-1]], model.steps[-1][1]


def _checked_names(names: Sequence[str], n_features: int) -> list[str]:
    checked = [str(name) for name in as_names(names, "feature_names")]
    if len(checked) != n_features:
        raise ValueError(
            f"feature_names has {len(checked)} names; the model takes {n_features} features"
        )
    if len({*checked}) < len(checked):
        twice = next(name for name in checked if checked.count(name) > 1)
        raise ValueError(f"feature_names must be unique; got {twice!r} more than once")
    return checked


def _without_units(scoring: Scoring) -> tuple[Scoring, Units | None]:
    """Return the scoring form of standardised rows, and their units; None for rows as given."""
    arrays = dict(scoring.arrays)
    if "factors" not in arrays:
        return scoring, None
    means, factors = (np.asarray(arrays.pop(name)) for name in ("means", "factors"))
    return Scoring(scoring.form, arrays, scoring.facts), Units(means, factors)


def _taken_apart(scoring: Scoring) -> tuple[Scoring, Calibration | None]:
    """Return the inner scoring form and the calibration; None for models without one."""
    if scoring.form != "calibrated":
        return scoring, None
    arrays = scoring.arrays
    slope, center, scale = map(float, arrays["moments"])
    curves, knots, costs = (
        np.ascontiguousarray(arrays.get(name, np.empty(0)), dtype=np.float64)
        for name in ("curves", "knots", "costs")
    )
    return scoring.of_score, Calibration(curves, knots, slope, center, scale, costs)
