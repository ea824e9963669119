"""The model that an explanation is about: its preprocessing steps, learner and features."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rankcore._core.contributions import dense_values, is_additive, used_features
from rankcore._core.features import features_of
from rankcore._core.frames import is_frame, is_row, row_as_frame
from rankcore._core.inputs import are_texts, n_rows_of
from rankcore._core.model_spec import SerializableMixin
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import (
    Display,
    split_pipeline,
    takes_texts,
    transformed,
    unwrap_frozen,
)
from rankcore._core.scoring import Scoring
from rankcore._ext.rows import Rows


class ExplainedModel:
    """A fitted model: a learner alone, at the end of a pipeline, or the best of a search.

    Parameters
    ----------
    model : estimator
    feature_names : sequence of str, optional
        Names of the ``features``.

    Attributes
    ----------
    front : list
        Preprocessing steps, also those within a calibrated learner.
    learner : estimator
        The model that predicts from the rows after these steps.
    scorer : estimator
        The learner with the score that is explained: ``learner``, or the one that it calibrates.
    features : list of Feature
        In the columns of the model's input, where the steps keep these apart.
    of_columns : ndarray of int64
        The feature of each column of the learner.
    """

    def __init__(self, model: Any, feature_names: Sequence[str] | None = None) -> None:
        self.front, learner = split_pipeline(unwrap_frozen(model))
        if not isinstance(learner, SerializableMixin):
            raise TypeError(
                "model must be a learner of rankcore that scores rows, or a pipeline or search of "
                f"one; found {type(learner).__name__}"
            )
        check_is_fitted(learner)
        self.learner = self.scorer = cast(Any, learner)
        self.is_calibrated = type(learner).__name__ == "CalibratedOrdinal"
        if self.is_calibrated:
            inside, scorer = split_pipeline(unwrap_frozen(self.learner.estimator_))
            if isinstance(scorer, SerializableMixin):
                self.front, self.scorer = self.front + inside, cast(Any, scorer)
                self.learner = copy(self.learner)
                self.learner.estimator_ = scorer
        self._display = Display(self.front)
        self.features = features_of(self.front, self.scorer, feature_names)
        self.of_columns: NDArray[np.int64] = np.empty(self.scorer.n_features_in_, dtype=np.int64)
        for number, feature in enumerate(self.features):
            self.of_columns[feature.columns] = number

    @property
    def name(self) -> str:
        """Name of the learner with the score, in messages."""
        return type(self.scorer).__name__

    @property
    def query_column(self) -> str | None:
        """The column of queries that the fit named."""
        return vars(self.learner).get("query_column_")

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @property
    def scoring(self) -> Scoring:
        """Scoring form of the learner with the score."""
        scoring = self.scorer._spec().scoring
        if scoring is None:
            raise TypeError(f"{self.name} has no score of a row, which an explanation requires")
        return scoring.of_score

    @property
    def additive(self) -> bool:
        """Whether the contribution of a feature does not depend on the other features."""
        return is_additive(self.scoring, self.of_columns)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Features that affect predictions; all if unknown."""
        if self.is_calibrated and self.scorer is self.learner:  # of a learner of another package
            return np.ones(len(self.features), dtype=bool)
        columns = used_features(self.scoring, self.of_columns.size)
        return np.bincount(self.of_columns, columns, minlength=len(self.features)) > 0

    def score_name(self, output: Any = None) -> str:
        """Name of the score that contributions explain."""
        if self.scoring.has_trees_of_tasks:
            labels = self.scorer.ranks_.tolist()
            return f"log-odds of {labels[-1] if output is None else output} against {labels[0]}"
        return "score" if output is None else f"score of {output}"

    def transformed(self, X: Any) -> Any:
        """Transform rows by the preprocessing steps."""
        return transformed(self.front, X)

    def rows(self, X: Any) -> Rows:
        """Transform, validate and encode rows as the learner gets them."""
        rows: Rows = self.scorer._more_rows(self.transformed(X))
        return rows

    def one_row(self, x: Any, name: str) -> Any:
        """Convert a single row to a matrix, frame or list of one row.

        Before steps it may be a text, or have columns that are not numeric.
        """
        if isinstance(x, str | bytes):
            x = [x]
        elif takes_texts(self.front) or (
            isinstance(x, list | tuple) and len(x) == 1 and are_texts(x)
        ):
            x = x if hasattr(x, "shape") else list(x)
        elif is_row(x):
            x = row_as_frame(x, missing_as_objects=bool(self.front))
        elif not is_frame(x):
            x = x if sparse.issparse(x) else np.asarray(x)
            x = x.reshape((1, -1)) if x.ndim == 1 else x
        if n_rows_of(x) != 1:
            raise ValueError(f"{name} must be one row; found {n_rows_of(x)}")
        return x

    # ---------------------------------------------------------------- values

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of the features for display, shape (n, n_features).

        float64; objects if there are categories, which are shown by their names.
        """
        columns = self._unscaled(X)
        if not any(feature.is_categorical for feature in self.features):
            return np.ascontiguousarray(columns[:, [one.columns[0] for one in self.features]])
        found = np.empty((len(columns), len(self.features)), dtype=object)
        for number, feature in enumerate(self.features):
            found[:, number] = feature.shown(columns[:, feature.columns])
        return found

    def _unscaled(self, X: Any) -> Floats:
        """Return the learner's columns in the units before scaling."""
        if not self._display.scales:
            return dense_values(self.rows(X))
        columns = self._display.values(X)
        mask = getattr(self.scorer, "is_categorical_", None)
        if mask is not None and mask.any():
            columns[:, mask] = dense_values(self.rows(X))[:, mask]
        return columns

    def unscaled(self, columns: Floats) -> Floats:
        """Return preprocessed rows in the units before scaling, shape (n, n_columns)."""
        return self._display.before(columns) if self._display.scales else columns

    def coded(self, number: int, x: Any) -> Floats:
        """Return the columns of a categorical feature for each of its labels, as learned.

        Shape (n_labels, n_columns); the other columns are those of the row x.
        """
        feature = self.features[number]
        assert feature.codes is not None
        if not self._display.scales:
            return feature.codes
        rows = np.repeat(self._unscaled(x), len(feature.codes), axis=0)
        rows[:, feature.columns] = feature.codes
        return self._display.after(np.nan_to_num(rows))[:, feature.columns]

    # ---------------------------------------------------------------- contributions

    def dense(self, X: Any, background: Any = None, output: Any = None) -> tuple[Floats, float]:
        """Return the contributions to the scores of rows as a dense matrix, and the base."""
        behind = None if background is None else self.rows(background)
        return self.of_rows(self.rows(X), behind, output)

    def of_rows(self, rows: Rows, background: Rows | None, output: Any) -> tuple[Floats, float]:
        """Return what `dense` returns, for rows that are preprocessed."""
        values, base = self.learner._contributed(rows, background, output, self.of_columns)
        return (values if isinstance(values, np.ndarray) else values.toarray()), base
