"""Latent scores of ordinal learners on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, isspmatrix
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples

from rankcore._core.inputs import are_texts, as_rows, take_rows
from rankcore._core.kernels import as_matrix
from rankcore._core.labels import encode, is_rising
from rankcore._core.numbers import Floats
from rankcore._core.preprocessing import split_pipeline, transformed, unwrap_frozen


@dataclass(frozen=True)
class HeldOutScores:
    """A fitted learner, and scores of held-out rows on the scale of its training scores."""

    fitted: Any
    # Mean and standard deviation of the learner's scores of its training rows.
    center: float
    scale: float
    rows: NDArray[Any]  # the held-out rows
    scores: Floats  # standardised, of each of ``rows``


@dataclass
class HeldOutFits:
    """Copies of a learner, fitted to subsets of the rows."""

    estimator: Any
    X: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    weights: Floats | None

    def fit(self, rows: NDArray[Any]) -> Any:
        """Fit a copy to some rows."""
        copied = clone(self.estimator)
        steps = getattr(copied, "steps", None)
        prefix = "" if steps is None else f"{steps[-1][0]}__"
        arguments: dict[str, Any] = {f"{prefix}classes": self.classes}
        if self.weights is not None:
            arguments[f"{prefix}sample_weight"] = self.weights[rows]
        _check_accepts(last_step(copied), [name.removeprefix(prefix) for name in arguments])
        # With metadata routing a pipeline takes no arguments with the name of a step.
        with config_context(enable_metadata_routing=False):
            return copied.fit(_taken(self.X, rows), self.labels[rows], **arguments)

    def frozen(self) -> HeldOutScores:
        """Score all rows by the fitted learner, which must not have learned from them."""
        rows = np.arange(self.labels.size)
        scores = self._scores(self.estimator, rows)
        center, scale = moments(scores)
        return HeldOutScores(self.estimator, center, scale, rows, (scores - center) / scale)

    def cross_validated(self, parts: Sequence[tuple[Any, Any]]) -> HeldOutScores:
        """Score the held-out rows of each fold by a copy fitted to the others; fit one to all."""
        held_out, scores = [], []
        for learned, others in parts:
            fold = self._fold(np.asarray(learned), np.asarray(others))
            held_out.append(fold.rows)
            scores.append(fold.scores)
        whole = self._fold(np.arange(self.labels.size), np.arange(0))
        return HeldOutScores(
            whole.fitted,
            whole.center,
            whole.scale,
            np.concatenate(held_out),
            np.concatenate(scores),
        )

    def _fold(self, learned: NDArray[Any], held_out: NDArray[Any]) -> HeldOutScores:
        """Fit to some rows and score others."""
        fitted = self.fit(learned)
        center, scale = moments(self._scores(fitted, learned))
        scores = np.empty(0)
        if held_out.size:
            scores = (self._scores(fitted, held_out) - center) / scale
        return HeldOutScores(fitted, center, scale, held_out, scores)

    def _scores(self, fitted: Any, rows: NDArray[Any]) -> Floats:
        return latent_scores(fitted, _taken(self.X, rows), self.classes)


def _check_accepts(learner: Any, names: list[str]) -> None:
    """Raise TypeError unless the fit of a learner has the named parameters."""
    accepted = signature(learner.fit).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in accepted.values()):
        return
    for name in names:
        if name not in accepted:
            raise TypeError(
                f"CalibratedOrdinal: estimator must be an ordinal learner, whose fit takes {name}=;"
                f" got {type(learner).__name__}: use a learner of rankcore, such as PRank, or "
                "sklearn.calibration.CalibratedClassifierCV"
            )


def parts_of(
    cv: Any, seed: Any, X: Any, ranks: NDArray[np.int32], groups: ArrayLike | None
) -> list[tuple[Any, Any]]:
    """Return the training and held-out rows of each fold of a cross-validation.

    Folds see ranks, as splitters reject some labels, such as 2.5. An integer ``cv`` with ``groups``
    keeps the rows of each group together.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

    if not isinstance(cv, int) or isinstance(cv, bool):
        splitter = check_cv(cv, ranks, classifier=True)
        if groups is None and _splits_by_groups(splitter):
            raise ValueError(
                f"cv={splitter} splits by groups, and there are none: pass the group of each row, "
                "as in fit(X, y, groups=users)"
            )
        return list(splitter.split(X, ranks, groups))
    if cv < 2:
        raise ValueError(f"cv must be at least 2; got {cv}")
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31))
    most = int(np.bincount(ranks).max())
    if most < cv:
        raise ValueError(f"cv={cv} exceeds the number of rows of every label (at most {most})")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    with warnings.catch_warnings():  # a label may have fewer rows than there are folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = kind(cv, shuffle=True, random_state=seed)
        return list(folds.split(np.zeros(ranks.size), ranks, groups))


def _splits_by_groups(splitter: Any) -> bool:
    """Return whether a splitter of scikit-learn requires groups."""
    if not hasattr(splitter, "get_metadata_routing"):
        return False
    return bool(splitter.get_metadata_routing().consumes("split", ["groups"]))


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or another model itself."""
    return model[-1] if hasattr(model, "steps") else model


def latent_scores(model: Any, X: Any, labels: NDArray[Any]) -> Floats:
    """Compute one score per row that increases with the rank.

    The result of `project`; without it, the mean rank under the scores of `decision_function`,
    minus their mean. ``known`` are the labels, lowest rank first.
    """
    model = unwrap_frozen(model)
    if hasattr(model, "steps"):
        front, model = split_pipeline(model)
        X = transformed(front, X)
    if hasattr(model, "project"):
        return np.asarray(model.project(X), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        raise TypeError(
            "estimator must be an ordinal learner, with project or decision_function; got "
            f"{type(model).__name__}"
        )
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    by_rank = is_rising(labels)
    if scores.ndim == 1:
        return scores if by_rank else -scores
    if not by_rank:
        scores = scores[:, np.argsort(encode(np.asarray(model.classes_), labels))]
    ranks = np.arange(scores.shape[1])
    return scores @ (ranks - ranks.mean())


def accepts_nan(model: Any) -> bool:
    """Return whether an estimator accepts missing values."""
    return bool(get_tags(unwrap_frozen(model)).input_tags.allow_nan)


def moments(scores: Floats) -> tuple[float, float]:
    """Return mean and standard deviation; the latter is 1 if all scores are equal."""
    return float(scores.mean()), float(scores.std()) or 1.0


def sliceable(X: Any, estimator: Any) -> tuple[Any, int]:
    """Return input that can be indexed by rows, sparse input as CSR, and its number of rows.

    Rows are validated here, unless the first step of a pipeline may accept texts, or the learner
    missing values and categories.
    """
    inner = unwrap_frozen(estimator)
    nan = accepts_nan(inner)
    if (nan or split_pipeline(inner)[0]) and not issparse(X):
        texts = isinstance(X, list) and are_texts(X)
        indexed = X if texts or hasattr(X, "shape") else np.asarray(X)
        return indexed, _num_samples(indexed)
    rows = as_rows(X, nan=nan)
    if issparse(X):
        if X.format == "csr":
            return X, rows.n_rows
        return csr_matrix(as_matrix(rows)) if isspmatrix(X) else as_matrix(rows), rows.n_rows
    return X if hasattr(X, "shape") else np.asarray(X), rows.n_rows


def _taken(X: Any, rows: NDArray[Any]) -> Any:
    if rows.size == _num_samples(X) and rows[0] == 0:
        return X
    return take_rows(X, rows)
