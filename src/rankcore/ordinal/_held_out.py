"""Latent scores of ordinal learners on held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, isspmatrix
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from rankcore._core.front import take_apart, transformed
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import as_matrix
from rankcore._core.labels import encode, is_rising
from rankcore._core.numbers import Floats


@dataclass
class HeldOutFits:
    """Copies of a learner, fitted to subsets of the rows."""

    estimator: Any
    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    weights: Floats | None

    def fit(self, rows: NDArray[Any]) -> Any:
        """A copy fitted to some rows."""
        copied = clone(self.estimator)
        steps = getattr(copied, "steps", None)
        prefix = "" if steps is None else f"{steps[-1][0]}__"
        given: dict[str, Any] = {f"{prefix}classes": self.classes}
        if self.weights is not None:
            given[f"{prefix}sample_weight"] = self.weights[rows]
        return copied.fit(_taken(self.X, rows), self.labels[rows], **given)

    def held_out(self, part: tuple[Any, Any]) -> tuple[NDArray[Any], Floats]:
        """Held-out rows of a fold, and their scores on the scale of the training scores."""
        learned, held_out = (np.asarray(rows) for rows in part)
        fitted = self.fit(learned)
        center, scale = moments(self._scores(fitted, learned))
        return held_out, (self._scores(fitted, held_out) - center) / scale

    def _scores(self, fitted: Any, rows: NDArray[Any]) -> Floats:
        return latent_scores(fitted, _taken(self.X, rows), self.classes)


def parts_of(cv: Any, seed: Any, X: Any, labels: NDArray[Any]) -> list[tuple[Any, Any]]:
    """Training and held-out rows of each fold of a cross-validation."""
    from sklearn.model_selection import StratifiedKFold, check_cv

    if not isinstance(cv, int) or isinstance(cv, bool):
        return list(check_cv(cv, labels, classifier=True).split(X, labels))
    if cv < 2:
        raise ValueError(f"cv must be at least 2; found {cv}")
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31))
    most = int(np.unique(labels, return_counts=True)[1].max())
    if most < cv:
        raise ValueError(f"cv={cv} parts require a label with {cv} rows; the maximum is {most}")
    with warnings.catch_warnings():  # a label may have fewer rows than there are folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
        return list(folds.split(np.zeros(labels.size), labels))


def is_frozen(model: Any) -> bool:
    """Whether an estimator is a `sklearn.frozen.FrozenEstimator`."""
    return type(model).__name__ == "FrozenEstimator"


def thawed(model: Any) -> Any:
    """An estimator without a surrounding `FrozenEstimator`."""
    return model.estimator if is_frozen(model) else model


def last_step(model: Any) -> Any:
    """The last step of a pipeline; other models unchanged."""
    return model[-1] if hasattr(model, "steps") else model


def latent_scores(model: Any, X: Any, known: NDArray[Any]) -> Floats:
    """One score per row that increases with the rank.

    The result of `project`; without it, the mean rank under the scores of `decision_function`,
    minus their mean. ``known`` are the labels, lowest rank first.
    """
    model = thawed(model)
    if hasattr(model, "steps"):
        front, model = take_apart(model)
        X = transformed(front, X)
    if hasattr(model, "project"):
        return np.asarray(model.project(X), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        raise TypeError(
            "estimator must be an ordinal learner, with project or decision_function; found "
            f"{type(model).__name__}"
        )
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    by_rank = is_rising(known)
    if scores.ndim == 1:
        return scores if by_rank else -scores
    if not by_rank:
        scores = scores[:, np.argsort(encode(np.asarray(model.classes_), known))]
    ranks = np.arange(scores.shape[1])
    return scores @ (ranks - ranks.mean())


def moments(scores: Floats) -> tuple[float, float]:
    """Mean and standard deviation; the latter is 1 if all scores are equal."""
    return float(scores.mean()), float(scores.std()) or 1.0


def sliceable(X: Any, estimator: Any) -> tuple[Any, int]:
    """Input that can be indexed by rows, sparse input as CSR, and its number of rows.

    Rows of a learner are validated here; those of a pipeline by its first step, which may accept
    texts.
    """
    if take_apart(thawed(estimator))[0] and not issparse(X):
        texts = isinstance(X, list) and X and isinstance(X[0], str | bytes)
        indexed = X if texts or hasattr(X, "shape") else np.asarray(X)
        return indexed, _num_samples(indexed)
    rows = as_rows(X)
    if issparse(X):
        if X.format == "csr":
            return X, rows.n_rows
        return csr_matrix(as_matrix(rows)) if isspmatrix(X) else as_matrix(rows), rows.n_rows
    return X if hasattr(X, "iloc") or hasattr(X, "shape") else np.asarray(X), rows.n_rows


def _taken(X: Any, rows: NDArray[Any]) -> Any:
    if rows.size == _num_samples(X) and rows[0] == 0:
        return X
    return _safe_indexing(X, rows)
