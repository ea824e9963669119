"""Folds, and measures of learners on rows, for cv, tune and evaluate."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from rankcore._core.labels import encode, find_classes, words_of
from rankcore.cli.learning import fit
from rankcore.cli.registry import Learner
from rankcore.cli.rows import Rows
from rankcore.cli.scaling import Scale, on_scale
from rankcore.metrics import Convention, Evaluation, accuracy_within, evaluate, rank_loss
from rankcore.metrics.scorers import ranking_scores
from rankcore.model_selection import QueryKFold

Part = tuple[np.ndarray, np.ndarray]


def split(rows: Rows, by_query: bool, folds: int, seed: int) -> list[Part]:
    """Split into training and held-out rows; queries stay whole, labels are stratified."""
    y = rows.y
    X = np.zeros((y.size, 1))
    if by_query:
        return list(QueryKFold(folds, shuffle=True, random_state=seed).split(X, y, qid=rows.qid))
    if y.size < folds:
        raise ValueError(f"--folds {folds} requires as many rows; got {y.size}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
        return list(parts.split(X, y))


def measure(
    estimator: Any, learner: Learner, scale: Scale, rows: Rows, part: Part, metrics: Any
) -> dict[str, float]:
    """Fit on some rows, and measure on others."""
    training, test = part
    _, (learned, left_out) = on_scale(scale, learner, rows.take(training), rows.take(test))
    fit(estimator, learner, learned)
    # A fold may lack labels; words have the order of the estimator's classes.
    classes = find_classes(rows.y) if rows.y.dtype.kind in "biuf" else None
    return measured(estimator, learner, left_out, metrics, classes)


def measured(
    estimator: Any,
    learner: Learner,
    rows: Rows,
    metrics: list[str] | None,
    classes: np.ndarray | None = None,
) -> dict[str, float]:
    """Measure a fitted learner on rows: its order of documents, or its predicted labels."""
    if learner.ranks_queries or metrics:
        return dict(ranking_measures(estimator, rows, metrics))
    classes = estimator.ranks_ if classes is None else classes
    return label_measures(encode(rows.y, classes), encode(estimator.predict(rows.X), classes))


def ranking_measures(
    model: Any,
    rows: Rows,
    metrics: list[str] | None,
    convention: Convention | None = None,
    classes: list[Any] | None = None,
) -> Evaluation:
    """Measure the order of rows within their queries; by default a few common ones.

    ``classes`` are labels that are words, lowest first; by default those of the model.
    """
    scores = ranking_scores(model, rows.X, rows.qid)
    return evaluate(
        rows.y,
        scores,
        qid=rows.qid,
        metrics=metrics or None,
        convention=convention,
        classes=words_of(model) if classes is None else classes,
    )


def label_measures(ranks: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Measure predicted ranks."""
    return {
        "rank_loss": rank_loss(ranks, predicted),
        "accuracy": accuracy_within(ranks, predicted, 0),
        "within_1_rank": accuracy_within(ranks, predicted, 1),
    }
