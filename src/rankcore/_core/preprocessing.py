"""Preprocessing steps of a pipeline: transformed rows, feature names and displayed values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import _safe_indexing, get_tags

from rankcore._core.frames import frame_of, is_frame
from rankcore._core.ids import as_names
from rankcore._core.inputs import n_rows_of
from rankcore._core.numbers import Floats


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
    found: list[Any] = []
    for _, step in steps:
        if step is not None and not isinstance(step, str):
            found += flat_steps(step.steps) if hasattr(step, "steps") else [step]
    return found


def transformed(front: Sequence[Any], X: Any) -> Any:
    """Transform rows by fitted steps."""
    for step in front:
        X = step.transform(X)
    return X


def takes_texts(front: Sequence[Any]) -> bool:
    """Return whether each row is a text, without columns."""
    tags = get_tags(front[0]).input_tags if front else None
    return tags is not None and tags.string and not tags.two_d_array


# ------------------------------------------------------------------------ names


def feature_names(model: Any, given: Sequence[str] | None = None) -> list[str]:
    """Return the names of the features of a fitted learner, alone or in a pipeline.

    By default the names that the learner was fitted to, else those of the preceding steps
    (``get_feature_names_out``), else column numbers.
    """
    steps, learner = split_pipeline(model)
    return names_after(steps, learner, given)


def names_after(front: Sequence[Any], learner: Any, given: Sequence[str] | None) -> list[str]:
    """Implement `feature_names` for separate steps and learner."""
    d = learner.n_features_in_
    if given is not None:
        names = [*map(str, as_names(given, "feature_names"))]
        if len(names) != d:
            raise ValueError(
                f"feature_names must have one name for each of {d} features; found {len(names)}"
            )
        return names
    if hasattr(learner, "feature_names_in_"):
        return [*map(str, learner.feature_names_in_)]
    found = _names_out(front, None)
    return found if found is not None and len(found) == d else numbered(d)


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
        given = None if names is None else np.array(names, dtype=object)
        try:
            names = [*map(str, step.get_feature_names_out(given))]
        except (AttributeError, ValueError):
            if type(step).__name__ != "ColumnTransformer":
                raise
            names = _names_of_parts(step)
    return names


def _names_of_parts(step: Any) -> list[str]:
    """Return names, prefixed by the part where scikit-learn would prefix them."""
    found: list[str] = []
    for name, part in parts_of_columns(step):
        width = width_of(step.output_indices_[name])
        own = _names_out(flat_steps([("", part)]), None)
        own = own if own is not None and len(own) == width else numbered(width)
        found += [f"{name}__{one}" for one in own]
    return found


# ------------------------------------------------------------------------ values


class Display:
    """Values of features in original units, before column-wise scaling."""

    def __init__(self, front: Sequence[Any]) -> None:
        n = len(front)
        while n and (is_scaler(front[n - 1]) or hasattr(front[n - 1], "get_support")):
            n -= 1
        self._head, self._tail = front[:n], front[n:]
        first = front[0] if n == 1 else None
        self._split = first if type(first).__name__ == "ColumnTransformer" else None

    @property
    def scales(self) -> bool:
        """Whether displayed values differ from those of the learner."""
        return bool(self._tail) or (
            self._split is not None
            and any(
                Display(flat_steps([("", part)])).scales
                for _, part in parts_of_columns(self._split)
            )
        )

    def values(self, X: Any) -> Floats:
        """Convert the columns of the learner's rows to dense displayed values."""
        if self._split is None:
            shown = _dense(transformed(self._head, X))
        else:
            shown = self._of_parts(self._split, X)
        for step in self._tail:
            if not is_scaler(step):
                shown = shown[:, step.get_support()]
        return shown

    def _of_parts(self, step: Any, X: Any) -> Floats:
        shown = np.empty((n_rows_of(X), max(one.stop for one in step.output_indices_.values())))
        for name, part, columns in step.transformers_:
            where = step.output_indices_[name]
            if width_of(where):
                own = _safe_indexing(X, _labels(step, columns, X), axis=1)
                front = [] if isinstance(part, str) else flat_steps([("", part)])
                shown[:, where] = Display(front).values(own)
        return shown

    def before(self, values: Floats) -> Floats:
        """Convert the learner's rows to the units of `values`, shape (n, n_columns)."""
        place = np.arange(values.shape[1])
        for step in reversed(self._tail):
            if is_scaler(step):
                values = np.asarray(step.inverse_transform(values))
                continue
            support = np.flatnonzero(step.get_support())
            whole = np.zeros((len(values), step.get_support().size))
            whole[:, support] = values
            values, place = whole, support[place]
        if self._split is not None:
            values = values.copy()
            for name, part in parts_of_columns(self._split):
                where = self._split.output_indices_[name]
                inside = Display(flat_steps([("", part)]))
                values[:, where] = inside.before(values[:, where])
        return values[:, place]

    def after(self, values: Floats) -> Floats:
        """Convert rows in the units of `values` to the learner's, shape (n, n_columns)."""
        if self._split is not None:
            values = values.copy()
            for name, part in parts_of_columns(self._split):
                where = self._split.output_indices_[name]
                values[:, where] = Display(flat_steps([("", part)])).after(values[:, where])
        if not self._tail:
            return values
        place = np.arange(self._tail[0].n_features_in_)
        for step in self._tail:
            place = place if is_scaler(step) else place[step.get_support()]
        whole = np.zeros((len(values), self._tail[0].n_features_in_))
        whole[:, place] = values
        with warnings.catch_warnings():  # the columns have no names here
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            for step in self._tail:
                whole = np.asarray(step.transform(whole))
        return whole


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


def _labels(step: Any, columns: Any, X: Any) -> Any:
    """Return the columns of a part by name, if both the step and the rows have names."""
    if not is_frame(X) or not hasattr(step, "feature_names_in_"):
        return columns
    texts = columns if isinstance(columns, list | tuple) else [columns]
    if isinstance(columns, slice) or any(isinstance(one, str) for one in texts):
        return columns
    found = step.feature_names_in_[columns]
    return found if isinstance(found, str) else [*found]


def _dense(X: Any) -> Floats:
    """Convert rows to a dense matrix; non-numeric columns of a frame become NaN."""
    frame = frame_of(X)
    if frame is not None:
        return np.column_stack([_numbers(frame.values(j)) for j in range(len(frame.names))])
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def _numbers(column: Any) -> Floats:
    """Convert a column of a frame to numbers."""
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):  # categories, whose values the learner shows
        return np.full(len(column), np.nan)
