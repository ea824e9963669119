"""What the learners of streams that wrap another learner have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from rankcore._core.arguments import RowsLike
from rankcore._core.frames import frame_of
from rankcore._core.labels import as_labels, encode, is_rising
from rankcore._core.numbers import Floats
from rankcore.ranking.base import Ranker


def ranks_of(model: Any) -> NDArray[Any]:
    """Return the labels of a fitted learner, lowest rank first."""
    found: NDArray[Any] = model.ranks_ if hasattr(model, "ranks_") else model.classes_
    return found


def encode_labels(model: Any, y: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the rank of each label, 0 for the lowest; ValueError for labels of no class."""
    return encode(as_labels(y, n_rows)[0], ranks_of(model)).astype(np.intp)


def rank_losses(model: Any, X: Any, ranks: NDArray[np.intp]) -> Floats:
    """Return the distance between the predicted and the true rank of each row."""
    predicted = encode_labels(model, model.predict(X), ranks.size)
    return np.abs(predicted - ranks).astype(np.float64)


def probabilities_by_rank(model: Any, X: Any) -> Floats:
    """Return the probability of each rank, lowest first; TypeError if a model has none."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"probabilities of ranks require predict_proba, which {type(model).__name__} lacks: "
            "wrap it in rankcore.online.OnlineCalibration, or use OrdinalLogistic"
        )
    table: Floats = np.asarray(model.predict_proba(X), dtype=np.float64)
    known = ranks_of(model)
    return table if is_rising(known) else table[:, np.argsort(np.argsort(known))]


def _has_probabilities(wrapper: Any) -> bool:
    return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), "predict_proba")


class StreamWrapper(BaseEstimator):
    """Base class of learners that watch another one learn a stream. Not public.

    A subclass provides `_check`, `_begin`, `_observe` and `_follow`.
    """

    estimator: Any
    estimator_: Any

    @abstractmethod
    def _check(self) -> None:
        """Raise if a parameter is invalid."""

    @abstractmethod
    def _begin(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Begin with the first chunk, which the estimator has learned."""

    @abstractmethod
    def _observe(self, X: Any, y: Any) -> Any:
        """Return what `_follow` needs of a further chunk, before the estimator learns it."""

    @abstractmethod
    def _follow(self, observed: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Follow a further chunk, which the estimator has learned."""

    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        grow: bool = False,
    ) -> Self:
        """Predict a chunk, compare the predictions with its labels, and learn it.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Labels.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. Required in the first call unless its y has them all.
        sample_weight : array-like, shape (n_samples,), optional
            Weights in learning, not in comparing.
        grow : bool, default=False
            Whether X may have more columns than before, for an estimator with this argument: the
            new ones follow those it knows, which predict the chunk. Ranks cannot be added.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For invalid parameters, and as the estimator.
        ModuleNotFoundError
            If a detector of river is needed, and river is not installed.
        """
        self._check()
        if "estimator_" in vars(self):
            known = X
            if grow:
                self._check_ranks(classes)
                known = _first_columns(X, self.n_features_in_)
            observed = self._observe(known, y)
            learn_chunk(self.estimator_, X, y, classes, sample_weight, grow)
            self._follow(observed, X, y, sample_weight)
            return self
        learner = self._new_learner()
        learn_chunk(learner, X, y, classes, sample_weight, grow)
        self.estimator_ = learner
        try:
            self._begin(X, y, sample_weight)
        except BaseException:
            del self.estimator_
            raise
        return self

    def _check_ranks(self, classes: Any) -> None:
        """Raise ValueError if ranks are added."""
        if classes is not None and not np.array_equal(np.asarray(classes), self.ranks_):
            raise ValueError(
                f"{type(self).__name__}: grow=True adds columns only, and classes must be those of "
                f"the first call, {self.ranks_.tolist()}; got {np.asarray(classes).tolist()}"
            )

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this learner, or with ``estimator__parameter`` of the estimator.

        After the first rows those of the estimator are also set in ``estimator_``, which learns the
        next rows with them.

        Parameters
        ----------
        **params
            Values by name.

        Returns
        -------
        self
        """
        super().set_params(**params)
        prefix = "estimator__"
        inner = {
            name.removeprefix(prefix): value
            for name, value in params.items()
            if name.startswith(prefix)
        }
        if inner and "estimator_" in vars(self):
            self.estimator_.set_params(**inner)
        return self

    @property
    def ranks_(self) -> NDArray[Any]:
        """Labels, lowest rank first."""
        return ranks_of(self._fitted())

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels in ascending order, as the columns of results."""
        return np.sort(self.ranks_)

    @property
    def n_features_in_(self) -> int:
        """Number of features of X."""
        return int(self._fitted().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, only if X had string column names."""
        names: NDArray[Any] = self._fitted().feature_names_in_
        return names

    def _fitted(self) -> Any:
        """Return the learner; raise NotFittedError before the first rows."""
        if "estimator_" not in vars(self):
            raise NotFittedError(f"{type(self).__name__} has learned no rows: call partial_fit")
        return self.estimator_

    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels, as the estimator predicts them.
        """
        found: NDArray[Any] = self._fitted().predict(X)
        return found

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: RowsLike) -> Floats:
        """Predict the probability of each rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows add up to 1.
        """
        found: Floats = self._fitted().predict_proba(X)
        return found

    def _default(self) -> BaseEstimator:
        """Return the learner for ``estimator=None``."""
        raise ValueError(f"{type(self).__name__}: estimator must be a learner; got None")

    def _new_learner(self) -> Any:
        """Return a new copy of the estimator; raise TypeError if it is no learner of a stream."""
        learner = clone(self._default() if self.estimator is None else self.estimator)
        if isinstance(learner, Ranker) or not hasattr(learner, "partial_fit"):
            raise TypeError(
                f"{type(self).__name__}: estimator must be a learner of ordered labels with "
                f"partial_fit; got {type(learner).__name__}: use PRank or another online learner"
            )
        return learner


def _first_columns(X: Any, n: int) -> Any:
    """Return the first columns of a matrix or data frame; other input as it is, for its error."""
    frame = frame_of(X)
    if frame is not None:
        return frame.first(n)
    matrix = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
    return matrix[:, :n] if np.ndim(matrix) == 2 else X


def learn_chunk(
    learner: Any, X: Any, y: Any, classes: Any, sample_weight: Any, grow: bool = False
) -> None:
    """Call ``partial_fit`` with the arguments that are not None or False."""
    given: dict[str, Any] = {"grow": True} if grow else {}
    if classes is not None:
        given["classes"] = classes
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    learner.partial_fit(X, y, **given)
