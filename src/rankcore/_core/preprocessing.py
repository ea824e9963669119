"""Preprocessing steps of a pipeline: transformed rows, and names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from rankcore._core.ids import as_names


def is_frozen(model: Any) -> bool:
    """Return whether an estimator is a `sklearn.frozen.FrozenEstimator`."""
    return type(model).__name__ == "FrozenEstimator"


def unwrap_frozen(model: Any) -> Any:
    """Return an estimator without a surrounding `FrozenEstimator`."""
    return model.estimator if is_frozen(model) else model


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """Return the fitted preprocessing steps and the learner of a pipeline or a search."""
    front: list[Any] = []
    model = getattr(model, "best_estimator_", model)
    while hasattr(model, "steps"):
        front += flat_steps(model.steps[:-1])
        model = model.steps[-1][1]
    return front, model


def flat_steps(steps: Sequence[tuple[str, Any]]) -> list[Any]:
    """Return the steps with nested pipelines flattened, without "passthrough"."""
    flat: list[Any] = []
    for _, step in steps:
        if step is not None and not isinstance(step, str):
            flat += flat_steps(step.steps) if hasattr(step, "steps") else [step]
    return flat


def transformed(front: Sequence[Any], X: Any) -> Any:
    """Transform rows by fitted steps."""
    for step in front:
        X = step.transform(X)
    return X


# ------------------------------------------------------------------------ names


def feature_names(model: Any, default_names: Sequence[str] | None = None) -> list[str]:
    """Return the names of the features of a fitted learner, alone or in a pipeline.

    By default the names that the learner was fitted to, else those of the preceding steps
    (``get_feature_names_out``), else column numbers.
    """
    steps, learner = split_pipeline(model)
    return names_after(steps, learner, default_names)


def names_after(
    front: Sequence[Any], learner: Any, default_names: Sequence[str] | None
) -> list[str]:
    """Implement `feature_names` for separate steps and learner."""
    d = learner.n_features_in_
    if default_names is not None:
        names = [*map(str, as_names(default_names, "feature_names"))]
        if len(names) != d:
            raise ValueError(
                f"feature_names must have one name for each of {d} features; got {len(names)}"
            )
        return names
    if hasattr(learner, "feature_names_in_"):
        return [*map(str, learner.feature_names_in_)]
    after_steps = _names_out(front, None)
    return after_steps if after_steps is not None and len(after_steps) == d else numbered(d)


def numbered(n: int) -> list[str]:
    """Return default names of columns."""
    return [f"column {j}" for j in range(n)]


def _names_out(front: Sequence[Any], names: list[str] | None) -> list[str] | None:
    """Return the names of the columns after some steps; None if unknown."""
    for step in front:
        if names is None and not hasattr(step, "feature_names_in_"):
            n = getattr(step, "n_features_in_", None)
            names = None if n is None else numbered(n)
        if not hasattr(step, "get_feature_names_out"):  # HashingVectorizer
            names = None
            continue
        name_array = None if names is None else np.array(names, dtype=object)
        try:
            names = [*map(str, step.get_feature_names_out(name_array))]
        except (AttributeError, ValueError):
            if type(step).__name__ != "ColumnTransformer":
                raise
            names = _names_of_parts(step)
    return names


def _names_of_parts(step: Any) -> list[str]:
    """Return names, prefixed by the part where scikit-learn would prefix them."""
    names: list[str] = []
    for name, part in parts_of_columns(step):
        width = width_of(step.output_indices_[name])
        own = _names_out(flat_steps([("", part)]), None)
        own = own if own is not None and len(own) == width else numbered(width)
        names += [f"{name}__{own_name}" for own_name in own]
    return names


def is_scaler(step: Any) -> bool:
    """Return whether each column is scaled separately, and can be scaled back."""
    if type(step).__name__ == "FunctionTransformer":
        return step.func is None and step.inverse_func is None
    scales = isinstance(step, OneToOneFeatureMixin) and hasattr(step, "inverse_transform")
    return scales and not hasattr(step, "categories_")


def parts_of_columns(step: Any) -> list[tuple[str, Any]]:
    """Return names and transformers of a ColumnTransformer that keep columns."""
    return [
        (name, part)
        for name, part, _ in step.transformers_
        if not isinstance(part, str) and width_of(step.output_indices_[name])
    ]


def width_of(where: slice) -> int:
    """Return the number of columns in a slice."""
    return int(where.stop - where.start)
