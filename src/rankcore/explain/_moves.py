"""Values of features that change the rank of a row, for linear scores and trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.contributions import Tasks, column_means, column_ranges, linear_score
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.numbers import Floats
from rankcore._ext.rows import dense_rows
from rankcore.ordinal.decisions import cheapest

# A rank changes where scores cross, or just beyond: relative distance beyond a crossing.
_BEYOND = 1e-9
# Values of changed rows that trees score at a time.
_VALUES = 2**22


class ChangedRanks(Protocol):
    """Ranks of a row with changed values, in the columns of the learner."""

    now: int  # rank of the unchanged row

    def numeric(self) -> tuple[NDArray[np.int64], Floats]:
        """Return columns, and for each the values just beyond which the rank may change."""

    def codes(self, column: int) -> Floats:
        """Return the codes of the categories of a column that has no labels."""

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        """Predict ranks with one changed value each."""

    def ranks_with(self, columns: list[int], values: Floats) -> NDArray[np.int64]:
        """Predict ranks with changed values in several columns, shape (n, n_columns)."""


def nearest_moves(
    explained: ExplainedModel, changed: ChangedRanks, x: Any, row: Floats, background: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find each feature's nearest value at which the rank is higher, and lower.

    Of categories the first one.
    """
    features = explained.features
    numeric = np.array([not feature.is_categorical for feature in features])
    columns, values = changed.numeric()
    wanted = numeric[explained.of_columns[columns]] & (values != row[columns])
    if background is not None:
        low, high = column_ranges(explained.rows(background))
        wanted &= (values >= low[columns]) & (values <= high[columns])
    distances = np.abs(values - row[columns])
    wanted &= ~np.isnan(distances)
    columns, values, distances = columns[wanted], values[wanted], distances[wanted]
    ranks = changed.ranks(columns, values)
    farthest_first = np.argsort(-distances, kind="stable")
    found = []
    for sign in (1, -1):
        kept = farthest_first[sign * (ranks[farthest_first] - changed.now) > 0]
        moved = np.full(row.size, np.nan)
        moved[columns[kept]] = values[kept]  # the last of several values of a column is kept
        shown = explained.unscaled(np.where(np.isnan(moved), row, moved)[np.newaxis])[0]
        found.append(np.where(np.isnan(moved), np.nan, shown))
    if numeric.all():
        up, down = (moved[[one.columns[0] for one in features]] for moved in found)
        return up, down
    result = np.full((2, len(features)), np.nan, dtype=object)
    seen = None if background is None else explained.values(background)
    now = explained.values(x)[0]
    for j, feature in enumerate(features):
        if not feature.is_categorical:
            result[:, j] = [moved[feature.columns[0]] for moved in found]
            continue
        labels = feature.labels
        codes = changed.codes(feature.columns[0])[:, np.newaxis]
        if feature.codes is None:
            labels = [int(code) for code in codes[:, 0]]
        else:
            codes = explained.coded(j, x)
        possible = None if seen is None else set(seen[:, j].tolist())
        of_codes = changed.ranks_with(feature.columns, codes).tolist()
        for k, sign in enumerate((1, -1)):
            for label, after in zip(labels or [], of_codes, strict=True):
                allowed = label != now[j] and (possible is None or label in possible)
                if allowed and sign * (after - changed.now) > 0:
                    result[k, j] = label
                    break
    return result[0], result[1]


@dataclass(frozen=True)
class RankScores:
    """Scores of a row at the thresholds, and its ranks with changed values."""

    parts: Floats  # (n_features, n_ranks - 1)
    bases: Floats
    distances: Floats
    changed: ChangedRanks


# ------------------------------------------------------------------------- linear scores


@dataclass
class _LinearRanks:
    """Ranks by scores that are linear in each value."""

    row: Floats
    weights: Floats  # (n_columns, n_scores)
    scores: Floats  # (n_scores,): of the row
    rank_of: Callable[[Floats], NDArray[Any]]  # of scores on the last axis
    # Changes of a value at which the rank may change, for slopes of shape (n, n_scores).
    crossings: Callable[[Floats], Floats]

    def __post_init__(self) -> None:
        self.now = int(self.rank_of(self.scores))

    def numeric(self) -> tuple[NDArray[np.int64], Floats]:
        used = np.flatnonzero(self.weights.any(axis=1))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            change = self.crossings(self.weights[used])
        change = np.where(np.isfinite(change), change, 0.0)
        # A tiny change may move a row on a threshold in either direction.
        least = _BEYOND * np.maximum(1.0, np.abs(self.row[used]))[:, np.newaxis]
        change = np.concatenate([change * (1 + _BEYOND), least, -least], axis=1)
        values = self.row[used][:, np.newaxis] + change
        return np.repeat(used, change.shape[1]), values.ravel()

    def codes(self, column: int) -> Floats:
        return np.empty(0)

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        change = (values - self.row[columns])[:, np.newaxis]
        return np.asarray(self.rank_of(self.scores + change * self.weights[columns]))

    def ranks_with(self, columns: list[int], values: Floats) -> NDArray[np.int64]:
        change = (values - self.row[columns]) @ self.weights[columns]
        return np.asarray(self.rank_of(self.scores + change))


def scores_of_tasks(
    explained: ExplainedModel, tasks: Tasks, background: Any, row: Floats
) -> RankScores:
    """Return the linear scores of the tasks of ranks."""
    mean = np.zeros(row.size)
    if background is not None:
        mean = column_means(explained.rows(background))
    parts = np.zeros((len(explained.features), tasks.thresholds.size))
    np.add.at(parts, explained.of_columns, tasks.weights * (row - mean)[:, np.newaxis])
    distances = row @ tasks.weights - tasks.thresholds

    def crossings(slopes: Floats) -> Floats:
        """Find crossings of two cumulative sums of scores, including those of single tasks."""
        steps = np.array([*combinations(range(distances.size + 1), 2)])
        sums = np.concatenate([[0.0], distances.cumsum()])
        rises = np.concatenate([np.zeros((len(slopes), 1)), slopes.cumsum(axis=1)], axis=1)
        gaps = sums[steps[:, 1]] - sums[steps[:, 0]]
        return np.asarray(-gaps / (rises[:, steps[:, 1]] - rises[:, steps[:, 0]]))

    def ranks(scores: Floats) -> NDArray[Any]:
        return _ranks(tasks, scores)

    changed = _LinearRanks(row, tasks.weights, distances, ranks, crossings)
    return RankScores(parts, mean @ tasks.weights - tasks.thresholds, distances, changed)


def _ranks(tasks: Tasks, scores: Floats) -> NDArray[np.int64]:
    """Compute ranks from the scores of tasks, on the last axis."""
    if tasks.rule == "count":
        return np.asarray((scores >= 0).sum(axis=-1))
    sums = np.concatenate([np.zeros((*scores.shape[:-1], 1)), scores.cumsum(axis=-1)], axis=-1)
    if tasks.tie == "low":
        return sums.argmax(axis=-1)
    return sums.shape[-1] - 1 - sums[..., ::-1].argmax(axis=-1)


def scores_of_calibrated(
    explained: ExplainedModel, x: Any, background: Any, row: Floats
) -> RankScores:
    """Return one linear score, of which the prediction is a step function."""
    learner = explained.learner
    parts, base = explained.dense(x, background)
    weights, _ = linear_score(explained.scoring, row.size, None, explained.name)
    score = learner.project(explained.transformed(x))
    changes, ranks = learner._rank_changes()
    now = int(learner._ranks_of_scores(score)[0])
    thresholds = _thresholds_around(float(score[0]), now, changes, ranks, learner.ranks_.size)

    def crossings(slopes: Floats) -> Floats:
        return np.asarray((changes - score) / slopes)

    def rank_of(scores: Floats) -> NDArray[Any]:
        return np.asarray(learner._ranks_of_scores(scores[..., 0]))

    changed = _LinearRanks(row, weights[:, np.newaxis], score, rank_of, crossings)
    each = np.repeat(parts.T, thresholds.size, axis=1)
    return RankScores(each, base - thresholds, score - thresholds, changed)


def _thresholds_around(
    score: float, now: int, changes: Floats, ranks: NDArray[np.int32], n_ranks: int
) -> Floats:
    """Return where a rank begins nearest to the score: below it if reached, else above."""
    here = int(np.searchsorted(changes, score, "right"))
    found = np.empty(n_ranks - 1)
    for rank in range(1, n_ranks):
        if rank <= now:
            below = np.flatnonzero(ranks[:here] < rank)
            found[rank - 1] = changes[below[-1]] if below.size else -np.inf
        else:
            above = np.flatnonzero(ranks[here + 1 :] >= rank)
            found[rank - 1] = changes[here + above[0]] if above.size else np.inf
    return found


# ------------------------------------------------------------------------- trees


def scores_of_trees(explained: ExplainedModel, x: Any, background: Any, row: Floats) -> RankScores:
    """Return the scores of tasks that are sums of trees."""
    learner = explained.learner
    biases = explained.scoring.arrays["biases"]
    if explained.scoring.has_one_score:
        part, base = explained.dense(x, background)
        parts = np.repeat(part.T, biases.size, axis=1)
        bases = base - biases
    else:
        sums = [explained.dense(x, background, label) for label in learner.ranks_.tolist()]
        parts = np.diff(np.concatenate([part for part, _ in sums]), axis=0).T
        bases = np.diff([base for _, base in sums])
    return RankScores(parts, bases, bases + parts.sum(axis=0), _TreeRanks(learner, row))


class _TreeRanks:
    """Ranks by trees, which predict every change."""

    def __init__(self, learner: Any, row: Floats) -> None:
        self._learner, self._row = learner, row
        self._values, self._codes = _crossings(learner, row)
        self.now = int(self._of_rows(row[np.newaxis])[0])

    def numeric(self) -> tuple[NDArray[np.int64], Floats]:
        return self._values[:, 0].astype(np.int64), np.ascontiguousarray(self._values[:, 1])

    def codes(self, column: int) -> Floats:
        return np.arange(self._codes.get(column, -1) + 1, dtype=np.float64)

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        return self._changed(columns[:, np.newaxis], values[:, np.newaxis])

    def ranks_with(self, columns: list[int], values: Floats) -> NDArray[np.int64]:
        return self._changed(np.repeat([columns], len(values), axis=0), values)

    def _changed(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        """Predict copies of the row with other values in some columns, a line for each copy."""
        step = max(1, _VALUES // max(self._row.size, 1))
        ranks = np.empty(len(values), dtype=np.int64)
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            changed = np.repeat(self._row[np.newaxis], len(values[part]), axis=0)
            np.put_along_axis(changed, columns[part], values[part], axis=1)
            ranks[part] = self._of_rows(changed)
        return ranks

    def _of_rows(self, matrix: Floats) -> NDArray[np.int32]:
        """Predict ranks of rows with encoded categories."""
        model = self._learner._state.model
        table = model.probabilities(model.score(dense_rows(matrix, "x", True)))
        return cheapest(table, self._learner.costs_)


def _crossings(learner: Any, row: Floats) -> tuple[Floats, dict[int, int]]:
    """Return columns with their values nearest to the row's beyond each split, shape (n, 2).

    And the maximum code in the splits of each categorical column.
    """
    pairs = set()
    codes: dict[int, int] = {}
    # The trees of all scores have the same splits.
    for tree in learner._state.model.sums[0].trees:
        for node, (feature, cut) in enumerate(
            zip(tree.features.tolist(), tree.thresholds.tolist(), strict=True)
        ):
            if cut < np.inf:
                value = cut if cut < row[feature] else float(np.nextafter(cut, np.inf))
                if np.isfinite(value):  # else all values take one child, missing ones the other
                    pairs.add((feature, value))
            else:
                codes[feature] = max(codes.get(feature, 0), max(tree.categories(node)))
    return np.array(sorted(pairs), dtype=np.float64).reshape(-1, 2), codes
