"""The model that an explanation is about: its preprocessing steps, learner and features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rankcore._core.contributions import (
    column_ranges,
    is_additive,
    used_features,
)
from rankcore._core.features import PRESENCE, Feature, features_of, unscaled
from rankcore._core.frames import Frame, frame_of, is_frame, is_row, row_as_frame
from rankcore._core.inputs import are_texts, as_rows, n_rows_of, take_rows
from rankcore._core.labels import encode
from rankcore._core.model_spec import SerializableMixin
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import split_pipeline, transformed, unwrap_frozen
from rankcore._core.scoring import Scoring
from rankcore._ext.rows import Rows


class ExplainedModel:
    """A fitted model: a learner alone, at the end of a pipeline, or the best of a search.

    Parameters
    ----------
    model : estimator
    feature_names : sequence of str, optional
        Names of the ``features``.

    Raises
    ------
    TypeError
        If a step mixes columns, or the model is none of rankcore.

    Attributes
    ----------
    front : list
        Preprocessing steps, also those within a calibrated learner.
    learner : estimator
        The model that predicts from the rows after these steps.
    scorer : estimator
        The learner with the score that is explained: ``learner``, or the one that it calibrates.
    features : list of Feature
        Columns of the model's input, and words of its texts.
    of_columns : ndarray of int64
        The feature of each column of the learner.
    """

    def __init__(self, model: Any, feature_names: Sequence[str] | None = None) -> None:
        self.front, learner = split_pipeline(unwrap_frozen(model))
        if not isinstance(learner, SerializableMixin):
            raise TypeError(
                "model must be a learner of rankcore that scores rows, or a pipeline or search of "
                f"one; got {type(learner).__name__}"
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
        elif self._takes_texts or (isinstance(x, list | tuple) and len(x) == 1 and are_texts(x)):
            x = x if hasattr(x, "shape") else list(x)
        elif is_row(x):
            x = row_as_frame(x, missing_as_objects=bool(self.front))
        elif not is_frame(x):
            x = x if sparse.issparse(x) else np.asarray(x)
            x = x.reshape((1, -1)) if x.ndim == 1 else x
        if n_rows_of(x) != 1:
            raise ValueError(f"{name} must be one row; got {n_rows_of(x)}")
        return x

    # ---------------------------------------------------------------- values of the input

    def values(self, X: Any) -> NDArray[Any]:
        """Return the values of the features in the input, shape (n, n_features).

        float64; objects if there are categories or words.
        """
        column = self._columns(X)
        kind = object if any(feature.is_categorical for feature in self.features) else np.float64
        table: NDArray[Any] = np.empty((n_rows_of(X), len(self.features)), dtype=kind)
        words: dict[int, list[int]] = {}
        for number, feature in enumerate(self.features):
            if feature.word is None:
                table[:, number] = column(feature)
            else:
                words.setdefault(id(feature.vectorizer), []).append(number)
        for numbers in words.values():
            first = self.features[numbers[0]]
            counts = first.vectorizer.transform(column(first)).tocsc()
            places = [first.vectorizer.vocabulary_[self.features[k].word] for k in numbers]
            present = (counts[:, places] != 0).toarray().astype(int)
            table[:, numbers] = np.array(PRESENCE, dtype=object)[present]
        return table

    def column(self, X: Any, feature: Feature) -> Any:
        """Return the column of the input that a feature comes from: numbers, or a list."""
        return self._columns(X)(feature)

    def is_whole(self, X: Any, feature: Feature) -> bool:
        """Return whether the column of a feature has integers or booleans, by its dtype."""
        frame = frame_of(X)
        if frame is None or feature.is_categorical or feature.word is not None:
            return False
        dtype = str(frame.dtypes[self._place(frame, feature.source)]).lower()
        return dtype.startswith(("int", "uint", "bool"))

    def _columns(self, X: Any) -> Callable[[Feature], Any]:
        """Return a function from a feature to its column of the input: numbers, or a list."""
        frame = frame_of(X)
        matrix = None
        if frame is None and not self._takes_texts:
            matrix = X.toarray() if sparse.issparse(X) else np.asarray(X)

        def column(feature: Feature) -> Any:
            if frame is not None:
                j = self._place(frame, feature.source)
                if feature.labels is None:
                    return np.asarray(frame.values(j), dtype=np.float64)
                # The missing value of pandas compares with nothing.
                return [
                    None if type(value).__name__ == "NAType" else value
                    for value in frame.to_list(j)
                ]
            if matrix is None:
                return list(X)
            values = matrix[:, feature.source]
            if feature.labels is None:
                return np.asarray(values, dtype=np.float64)
            return self._labels(feature, values.tolist())

        return column

    def _labels(self, feature: Feature, values: list[Any]) -> list[Any]:
        """Return the labels of codes, which a learner of a frame gets in matrices."""
        if self.front or not feature.labels:
            return values
        label_of = dict(enumerate(feature.labels))
        return [label_of.get(value, value) for value in values]

    def _place(self, frame: Frame, source: int) -> int:
        """Return the place of a column of the input in a frame."""
        first = self.front[0] if self.front else self.scorer
        names = getattr(first, "feature_names_in_", None)
        return source if names is None else frame.names.index(names[source])

    @property
    def _takes_texts(self) -> bool:
        """Whether each row is a text, without columns."""
        return any(not hasattr(step, "n_features_in_") for step in self.front[:1])

    def with_values(self, x: Any, values: Mapping[int, Any]) -> Any:
        """Return copies of a row, the i-th with the i-th of the new values of each column.

        Labels are given by name.
        """
        n = max(map(len, values.values()))
        frame = frame_of(x)
        if frame is not None:
            rows = frame.take(np.zeros(n, dtype=np.int64))
            for source, column in values.items():
                other = frame_of(rows)
                assert other is not None
                rows = other.with_values(self._place(frame, source), column)
            return rows
        if self._takes_texts:
            return list(values[0])
        matrix = x.toarray() if sparse.issparse(x) else np.asarray(x)
        matrix = matrix.astype(np.float64 if matrix.dtype.kind in "biuf" else object)
        matrix = np.repeat(matrix, n, axis=0)
        for source, column in values.items():
            labels = None if self.front else self.features[source].labels
            matrix[:, source] = [labels.index(label) for label in column] if labels else column
        return type(x)(matrix) if sparse.issparse(x) else matrix

    def ranks(self, X: Any) -> NDArray[np.int64]:
        """Predict ranks of rows of the input, from 0."""
        predicted = np.asarray(self.learner.predict(self.transformed(X)))
        return encode(predicted, self.learner.ranks_).astype(np.int64)

    def unscaled(self, columns: Floats) -> Floats:
        """Convert exact columns of the learner to units of the input; other columns are NaN."""
        if not self.front:
            return columns
        n = getattr(self.front[0], "n_features_in_", 1)
        numbers = unscaled(self.front, columns, n)
        raw = np.full(columns.shape, np.nan)
        for feature in self.features:
            if feature.exact:
                raw[:, feature.columns[0]] = numbers[:, feature.source]
        return raw

    def ranges(self, X: Any) -> tuple[Floats, Floats]:
        """Return the minimum and maximum of each exact column of the learner over rows.

        Missing values of the input are omitted, though a step may fill them.
        """
        if not self.front:
            return column_ranges(self.rows(X))
        exact = [feature for feature in self.features if feature.exact]
        if not exact:
            none = np.full(self.of_columns.size, np.nan)
            return none, none
        if frame_of(X) is None and (sparse.issparse(X) or np.asarray(X).dtype.kind in "biuf"):
            low, high = column_ranges(as_rows(X, "background", True))
            ends = {
                feature.source: [low[feature.source], high[feature.source]] for feature in exact
            }
        else:
            column = self._columns(X)
            each = {feature.source: column(feature) for feature in exact}
            present = {source: values[~np.isnan(values)] for source, values in each.items()}
            ends = {
                source: [values.min(), values.max()] if values.size else [np.nan, np.nan]
                for source, values in present.items()
            }
        encoded = self.rows(self.with_values(take_rows(X, [0]), ends))
        return column_ranges(encoded)

    # ---------------------------------------------------------------- contributions

    def dense(self, X: Any, background: Any = None, output: Any = None) -> tuple[Floats, float]:
        """Return the contributions to the scores of rows as a dense matrix, and the base."""
        behind = None if background is None else self.rows(background)
        return self.of_rows(self.rows(X), behind, output)

    def of_rows(self, rows: Rows, background: Rows | None, output: Any) -> tuple[Floats, float]:
        """Implement `dense` for preprocessed rows."""
        values, base = self.learner._contributed(rows, background, output, self.of_columns)
        return (values if isinstance(values, np.ndarray) else values.toarray()), base
