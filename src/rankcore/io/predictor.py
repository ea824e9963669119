"""Predictions from model files without the learners."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.arguments import RowsLike
from rankcore._core.frames import frame_of, names_of
from rankcore._core.inputs import as_rows, check_matrix
from rankcore._ext.model_scores import Model
from rankcore._ext.rows import Rows
from rankcore.boosting.categories import Categories
from rankcore.io.contents import Arrays, content_of, damaged, is_read_whole, unpacked


class Predictor:
    """Predictor from a model file, without the learner and without scikit-learn.

    For services and commands that start often: opening takes milliseconds, where `load` first
    imports scikit-learn. Rows are scored by the code of ``rankcore_model.h``, with the learner's
    results to the bit. A predictor cannot learn; `load` returns the learner.

    Parameters
    ----------
    path : str or path-like
        File written by `save`. One above 64 MB is memory-mapped: do not overwrite it in place.

    Attributes
    ----------
    learner : str
        Name of the learner, such as ``"PRank"``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, or None
        Names of the features, if the learner was fitted on a data frame.
    ranks_ : ndarray, shape (n_classes,), or None
        Labels, lowest rank first; None for a ranker.
    classes_ : ndarray, shape (n_classes,), or None
        Labels in ascending order, as the columns of `predict_proba`; None for a ranker.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a rankcore model, is damaged, or was written by a newer version.
    TypeError
        If only the learner can score rows (after text steps, or by ranks within queries); use
        `load`.

    See Also
    --------
    load : The learner itself.

    Notes
    -----
    Any number of threads may use one predictor at once. It is pickled as its path.

    Examples
    --------
    >>> import os, tempfile, rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1]], [3, 1, 2]
    >>> path = os.path.join(tempfile.mkdtemp(), "stars.rankcore")
    >>> rc.save(rc.PRank().fit(X, y), path)
    >>> rc.Predictor(path).predict([[2, 0], [0, 2]])
    array([3, 1])
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        with open(path, "rb") as stream:
            content = _aligned(content_of(stream))
        try:
            metadata, arrays = unpacked(content, is_read_whole(content))
            try:
                self._model = Model(content)
                self.ranks_ = arrays["classes"] if self._model.n_ranks else None
                self.feature_names_in_ = _names(arrays)
                self.learner = metadata["learner"]
                self._query_column = json.loads(metadata.get("query_column", "null"))
                self._categories = _categories(metadata, self._model.n_features)
            except Exception as error:  # crafted documents can raise any exception
                raise damaged(error) from error
        except ValueError as error:
            raise ValueError(f"{path} {error}") from error
        self.n_features_in_ = self._model.n_features
        if self._model.reason:
            raise TypeError(
                f"{path} has no scores without its learner ({self._model.reason}): use "
                "rankcore.load"
            )
        self.classes_ = None if self.ranks_ is None else np.sort(self.ranks_)

    def __repr__(self) -> str:
        return f"Predictor({self._path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Predictor, (self._path,)

    @property
    def has_probabilities(self) -> bool:
        """Whether there is `predict_proba`."""
        return self._model.has_probabilities

    @property
    def takes_sparse(self) -> bool:
        """Whether rows may be sparse: not if the model centres its features."""
        return self._model.takes_sparse

    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict labels (ordinal learners) or scores (rankers).

        Parameters
        ----------
        X : array-like, data frame or scipy sparse, shape (n_samples, n_features)
            NaN is a missing value for stumps and trees, and an error for other models. Columns of
            categories that the model learned from a data frame hold the same categories.

        Returns
        -------
        ndarray, shape (n_samples,)

        Raises
        ------
        TypeError, ValueError
            If ``X`` is not numeric, has a different number or different names of features, or is
            sparse and the model centres its features.
        """
        if self.ranks_ is None:
            return self.project(X)
        rows = self._rows(X)
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        self._model.ranks(rows, ranks)
        labels: NDArray[Any] = self.ranks_[ranks]
        return labels

    def project(self, X: RowsLike) -> NDArray[np.float64]:
        """Compute scores: ``project`` of an ordinal learner, ``predict`` of a ranker.

        NaN for learners without one score per row (`MulticlassPerceptron`, `OrdinalBoost` with
        a score for each task).

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            See `predict`.

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        rows = self._rows(X)
        scores = np.empty(rows.n_rows)
        self._model.scores(rows, scores)
        return scores

    def predict_proba(self, X: RowsLike) -> NDArray[np.float64]:
        """Predict the probabilities of labels, for learners with ``predict_proba``.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            See `predict`.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Columns in the order of ``classes_``.

        Raises
        ------
        AttributeError
            If the model has no probabilities.
        """
        if not self.has_probabilities:
            raise AttributeError(
                f"{self.learner} has no probabilities: fit a CalibratedOrdinal of it"
            )
        rows = self._rows(X)
        table = np.empty((rows.n_rows, self._model.n_ranks))
        self._model.probabilities(rows, table)
        return table[:, self._ranks_of_columns()]

    def _ranks_of_columns(self) -> NDArray[np.intp]:
        return np.argsort(np.asarray(self.ranks_))

    def _rows(self, X: Any) -> Rows:
        """Validate rows, as the learner does."""
        check_matrix(X)
        frame = frame_of(X)
        if frame is not None and self._query_column in frame.names:
            X = frame.without(self._query_column)
        if self.feature_names_in_ is not None and (names := names_of(X)) is not None:
            _check_names(names, self.feature_names_in_.tolist())
        if self._categories is not None:
            X = self._categories.encode(X)
        rows = as_rows(X, nan=self._model.takes_nan)
        if rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features; the model has {self.n_features_in_}"
            )
        if rows.columns is not None and not self.takes_sparse:
            raise ValueError(
                "X must be dense, because the model centres its features; got a sparse matrix: "
                "use X.toarray()"
            )
        return rows


def _aligned(content: bytes | mmap.mmap) -> Any:
    """Return the bytes of a file, aligned for doubles."""
    if isinstance(content, mmap.mmap):
        return content
    room: Any = np.empty(-(-len(content) // 8), dtype=np.float64).view(np.uint8)[: len(content)]
    room[:] = np.frombuffer(content, dtype=np.uint8)
    return memoryview(room)


def _categories(metadata: Mapping[str, str], n_features: int) -> Categories | None:
    """Return the categorical features of the learner, or of the one that is calibrated."""
    for key in ("facts", "estimator.facts"):
        categories = json.loads(metadata[key]).get("categories") if key in metadata else None
        if categories is not None:
            return Categories.restored(categories, n_features)
    return None


def _names(arrays: Arrays) -> NDArray[Any] | None:
    """Return the names of the features, which a scaler before the learner may have."""
    for name in ("scaler.feature_names", "feature_names"):
        if name in arrays:
            return arrays[name]
    return None


def _check_names(names: list[Any], expected: list[str]) -> None:
    """Raise ValueError unless the columns of a DataFrame are those of the model, in order."""
    if names != expected:
        where = next(
            (i for i, (a, b) in enumerate(zip(names, expected, strict=False)) if a != b),
            min(len(names), len(expected)),
        )
        at = [
            repr(names_of_side[where]) if where < len(names_of_side) else "none"
            for names_of_side in (names, expected)
        ]
        raise ValueError(
            f"the columns of X must be those of the fit, in their order: column {where} is "
            f"{at[0]}; expected {at[1]}. Use X[predictor.feature_names_in_]"
        )
