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
from rankcore.metrics import (
    Convention,
    Evaluation,
    evaluate,
    make_scorer,
)
from rankcore.metrics.names import label_measure, parse
from rankcore.metrics.ordinal import ORDINAL
from rankcore.metrics.scorers import ranking_scores
from rankcore.model_selection import QueryKFold

Part = tuple[np.ndarray, np.ndarray]
# Measures of predicted ranks in reports, by their titles.
REPORTED = {"rank_loss": "rank_loss", "accuracy": "accuracy", "within_1_rank": "accuracy_within"}


def separated(metrics: list[str] | None) -> tuple[list[str], list[str]]:
    """Separate the names of ranking measures from those of predicted ranks and probabilities."""
    names = metrics or []
    ranking = [name for name in names if label_measure(name) is None]
    for name in ranking:
        parse(name)  # raises for unknown names
    return ranking, [name for name in names if label_measure(name) is not None]


def split(rows: Rows, folds: int, seed: int) -> list[Part]:
    """Split into training and held-out rows; queries stay whole, or labels are stratified."""
    y = rows.y
    X = np.zeros((y.size, 1))
    if rows.in_queries:
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
    ranking, of_labels = separated(metrics)
    if learner.ranks_queries and of_labels:
        raise ValueError(
            f"{of_labels[0]} measures predicted ranks, and {learner.name} orders the documents "
            "of queries: choose a ranking measure, such as ndcg@10"
        )
    if learner.ranks_queries or (ranking and not of_labels):
        return dict(ranking_measures(estimator, rows, ranking))
    values = label_measures(estimator, rows, of_labels, classes)
    return values | dict(ranking_measures(estimator, rows, ranking)) if ranking else values


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
        labels=words_of(model) if classes is None else classes,
    )


def label_measures(
    model: Any, rows: Rows, metrics: list[str] | None = None, classes: np.ndarray | None = None
) -> dict[str, float]:
    """Measure predicted ranks and their probabilities; by default a few common measures.

    ``classes`` are all labels, lowest first; by default those of the model.
    """
    has_table = hasattr(model, "predict_proba")
    classes = model.ranks_ if classes is None else classes
    ranks = encode(rows.y, classes)
    predicted = encode(model.predict(rows.X), classes)
    if not metrics:
        values = rank_measures(ranks, predicted)
        metrics = ["ranked_probability_score"] if has_table else []
    else:
        values = {}
    for name in metrics:
        if name in ORDINAL:
            values[name] = float(ORDINAL[name][0](ranks, predicted))
        elif has_table:
            values[name] = 0.0 - make_scorer(name)(model, rows.X, rows.y)  # all are losses
        else:
            raise ValueError(
                f"{name} requires probabilities of ranks, which {type(model).__name__} lacks: "
                "choose --model ordinal-boost or logistic, or train with --calibrate"
            )
    return values


def rank_measures(ranks: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Measure predicted ranks by a few common measures."""
    return {title: float(ORDINAL[name][0](ranks, predicted)) for title, name in REPORTED.items()}
