"""What the learners of streams that wrap another learner have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if

from rankcore._core.arguments import RowsLike
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
    """Base class of learners that watch another one learn a stream. Not public."""

    estimator: Any
    estimator_: Any

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

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        """Let the estimator learn a chunk, in place; begin with a copy of the given one."""
        learner = vars(self).get("estimator_")
        if learner is None:
            learner = clone(self._default() if self.estimator is None else self.estimator)
            if isinstance(learner, Ranker) or not hasattr(learner, "partial_fit"):
                raise TypeError(
                    f"{type(self).__name__}: estimator must be a learner of ordered labels with "
                    f"partial_fit; got {type(learner).__name__}: use PRank or another online "
                    "learner"
                )
        learn_chunk(learner, X, y, classes, sample_weight)
        self.estimator_ = learner


def learn_chunk(learner: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Call ``partial_fit`` with the arguments that are not None."""
    given: dict[str, ArrayLike] = {}
    if classes is not None:
        given["classes"] = classes
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    learner.partial_fit(X, y, **given)
