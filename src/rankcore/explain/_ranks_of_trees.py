"""Scores and counterfactuals of one row for trees with ordered labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.rows import dense_rows
from rankcore.explain._subject import Subject
from rankcore.ordinal._decisions import cheapest

# Values of changed rows that are scored at a time.
_VALUES = 2**22


def has_task_scores(scoring: Scoring) -> bool:
    """Whether the model has trees for ordered labels, and scores that are sums of them."""
    return scoring.form == "ordinal_trees" and scoring.facts["tasks"] != "average"


def task_scores(subject: Subject, x: Any, background: Any) -> tuple[Floats, Floats]:
    """Contributions to the score of each task, shape (n_features, n_tasks), and bases."""
    learner, biases = subject.learner, subject.scoring.arrays["biases"]
    if subject.scoring.has_one_score:
        parts, base = subject.dense(x, background)
        return np.repeat(parts.T, biases.size, axis=1), base - biases
    sums = [subject.dense(x, background, label) for label in learner.ranks_.tolist()]
    parts = np.concatenate([part for part, _ in sums])
    return np.diff(parts, axis=0).T, np.diff([base for _, base in sums])


def moves(learner: Any, row: Floats) -> tuple[Floats, Floats]:
    """Nearest value of each feature at which the rank is higher, and at which it is lower.

    Exact, as splits change the path of the row only at these values. For categories, the lowest
    number. NaN if there is none, and for missing values, which have no distance.
    """
    features, values = _crossings(learner, row)
    step = max(1, _VALUES // max(row.size, 1))
    ranks = [_ranks(learner, row[np.newaxis])]
    for first in range(0, values.size, step):
        raise_signals()
        part = slice(first, first + step)
        changed = np.repeat(row[np.newaxis], values[part].size, axis=0)
        changed[np.arange(len(changed)), features[part]] = values[part]
        ranks.append(_ranks(learner, changed))
    distances = np.abs(values - row[features])
    if learner.is_categorical_ is not None:
        distances = np.where(learner.is_categorical_[features], values, distances)
    farthest_first = np.argsort(-distances, kind="stable")
    farthest_first = farthest_first[~np.isnan(distances[farthest_first])]
    change = (np.concatenate(ranks)[1:] - ranks[0])[farthest_first]
    found = []
    for wanted in (change > 0, change < 0):
        kept, moved = farthest_first[wanted], np.full(row.size, np.nan)
        moved[features[kept]] = values[kept]  # the last of several values of a feature is kept
        found.append(moved)
    return found[0], found[1]


def _ranks(learner: Any, matrix: Floats) -> NDArray[np.int32]:
    """Predicted ranks of rows with encoded categories."""
    model = learner._state.model
    table = model.probabilities(model.score(dense_rows(matrix, "x", True)))
    return cheapest(table, learner.costs_)


def _crossings(learner: Any, row: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Features, and their values nearest to that of the row beyond each split; all categories."""
    pairs, codes = set(), dict[int, int]()
    for tree in learner._state.model.together().trees:
        for node, (feature, cut) in enumerate(
            zip(tree.features.tolist(), tree.thresholds.tolist(), strict=True)
        ):
            if cut < np.inf:
                value = cut if cut < row[feature] else float(np.nextafter(cut, np.inf))
                if np.isfinite(value):  # else all values take one child, missing ones the other
                    pairs.add((feature, value))
            else:
                codes[feature] = max(codes.get(feature, 0), *tree.categories(node))
    known = learner._categories.labels if codes else {}
    for feature, last in codes.items():
        pairs |= {(feature, code) for code in range(max(last + 1, len(known.get(feature, []))))}
    table = np.array(sorted(pairs), dtype=np.float64).reshape(-1, 2)
    return table[:, 0].astype(np.int64), np.ascontiguousarray(table[:, 1])
