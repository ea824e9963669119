"""Values of the input that change the rank of a row, for linear scores and trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.contributions import Tasks, column_means, dense_values, linear_score
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.features import Feature
from rankcore._core.numbers import Floats, largest
from rankcore._ext.rows import dense_rows
from rankcore.explain._results import is_known
from rankcore.explain._texts import separated_words, without_word
from rankcore.ordinal.decisions import cheapest

# A rank changes where scores cross, or just beyond: relative distance beyond a crossing.
_BEYOND = 1e-9
# Values of changed rows that trees score at a time.
_VALUES = 2**22
# Relative distances beyond a value that scaling rounded.
_FURTHER = (0.0, 1e-15, 1e-12, 1e-9, 1e-6)
# Numbers of the background, and words of a text, that are tried.
_NUMBERS, _WORDS = 1000, 200


class ChangedRanks(Protocol):
    """Ranks of a row with one changed value, in the columns of the learner."""

    now: int  # rank of the unchanged row

    def numeric(self) -> tuple[NDArray[np.int64], Floats]:
        """Return columns, and the values just beyond which the rank may change."""

    def codes(self, column: int) -> list[int]:
        """Return the codes of the categories of a column that has no labels."""

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        """Predict ranks with one changed value each."""


@dataclass(frozen=True)
class RankScores:
    """Scores of a row at the thresholds, and its ranks with changed values."""

    parts: Floats  # (n_features, n_ranks - 1)
    bases: Floats
    distances: Floats
    changed: ChangedRanks


def nearest_moves(
    explained: ExplainedModel, scores: RankScores, x: Any, row: Floats, background: Any
) -> NDArray[Any]:
    """Find each feature's nearest value at which the rank is higher, and lower, by line.

    Of categories the first one. NaN if there is none, None if none was tried.
    """
    features, changed = explained.features, scores.changed
    numbers = _moved_columns(explained, changed, x, row, background)
    exact = [
        feature.exact and not _is_tried(explained, feature, x, background) for feature in features
    ]
    if all(exact):
        return numbers[:, [feature.columns[0] for feature in features]]
    moves = np.full((2, len(features)), None, dtype=object)
    for j, feature in enumerate(features):
        if exact[j]:
            moves[:, j] = numbers[:, feature.columns[0]]
        elif feature.word is None:
            candidates = _candidates(explained, feature, x, background, changed)
            if candidates is not None:
                ranks = _ranks_with(explained, x, feature, candidates)
                moves[:, j] = _first_of(candidates, ranks - changed.now)
    strongest = largest(np.abs(scores.parts).max(axis=1), _WORDS)
    texts: dict[Any, list[int]] = {}
    for j in strongest:
        if features[j].word is not None:
            texts.setdefault((features[j].source, id(features[j].vectorizer)), []).append(j)
    for numbers_of_words in texts.values():
        _set_words(moves, explained, x, numbers_of_words, changed.now)
    all_numbers = all(isinstance(value, float) for value in moves.ravel().tolist())
    return moves.astype(np.float64) if all_numbers else moves


def _is_tried(explained: ExplainedModel, feature: Feature, x: Any, background: Any) -> bool:
    """Return whether values of the background are tried in place of a number.

    A whole number must stay one, and a missing one has no distance to a threshold.
    """
    if background is None:
        return False
    if explained.is_whole(background, feature):
        return True
    return bool(np.isnan(explained.column(x, feature)[0]))


def _ranks_with(
    explained: ExplainedModel, x: Any, feature: Feature, values: Sequence[Any]
) -> NDArray[np.int64]:
    """Predict the rank of a row for other values of a column of the input."""
    if not values:
        return np.empty(0, dtype=np.int64)
    return explained.ranks(explained.with_values(x, {feature.source: values}))


def _first_of(candidates: Sequence[Any], changes: NDArray[np.int64]) -> list[Any]:
    """Return the first candidates of a higher and of a lower rank; NaN if there is none."""
    places = [np.flatnonzero(sign * changes > 0) for sign in (1, -1)]
    return [candidates[place[0]] if place.size else np.nan for place in places]


def _candidates(
    explained: ExplainedModel, feature: Feature, x: Any, background: Any, changed: ChangedRanks
) -> list[Any] | None:
    """Return values to try: categories in their order, or numbers by distance; None if unknown."""
    now = explained.column(x, feature)[0]
    if feature.labels is None:
        if background is None:
            return None
        distinct = np.unique(explained.column(background, feature))
        distinct = distinct[~np.isnan(distinct) & (distinct != now)]
        distinct = distinct[
            np.linspace(0, distinct.size - 1, min(distinct.size, _NUMBERS)).astype(int)
        ]
        start = now if now == now or not distinct.size else np.median(distinct)
        return distinct[np.argsort(np.abs(distinct - start), kind="stable")].tolist()
    labels: list[Any] = feature.labels
    if background is not None:
        seen = {label for label in explained.column(background, feature) if is_known(label)}
        labels = [label for label in labels or sorted(seen) if label in seen]
    elif not labels:
        labels = changed.codes(feature.columns[0])
    return [label for label in labels if is_known(label) and label != now]


def _set_words(
    moves: NDArray[Any], explained: ExplainedModel, x: Any, numbers: list[int], now: int
) -> None:
    """Try a text without each of its words, and with each other word appended."""
    features = [explained.features[j] for j in numbers]
    first = features[0]
    words = separated_words(first.vectorizer, explained.column(x, first)[0])
    if words is None:
        return
    present = explained.values(x)[0, numbers] == "present"
    edited = [
        without_word(words, str(feature.word)) if has else f"{words} {feature.word}"
        for feature, has in zip(features, present.tolist(), strict=True)
    ]
    changes = _ranks_with(explained, x, first, edited) - now
    # A pair of words around a stop word is still there.
    places = [first.vectorizer.vocabulary_[feature.word] for feature in features]
    weights = first.vectorizer.transform(edited).tocsr()[np.arange(len(places)), places]
    differs = (np.asarray(weights).ravel() != 0) != present
    for j, has, change in zip(
        np.array(numbers)[differs].tolist(),
        present[differs].tolist(),
        changes[differs].tolist(),
        strict=True,
    ):
        other = "absent" if has else "present"
        moves[:, j] = [other if sign * change > 0 else np.nan for sign in (1, -1)]


def _moved_columns(
    explained: ExplainedModel, changed: ChangedRanks, x: Any, row: Floats, background: Any
) -> Floats:
    """Find the nearest moves of the exact columns of the learner, in units of the input.

    Shape (2, n_columns): where the rank is higher, and lower.
    """
    exact = np.zeros(row.size, dtype=bool)
    exact[[feature.columns[0] for feature in explained.features if feature.exact]] = True
    columns, values = changed.numeric()
    low, high = np.full(row.size, -np.inf), np.full(row.size, np.inf)
    if background is not None:
        low, high = explained.ranges(background)
    distances = np.abs(values - row[columns])
    wanted = exact[columns] & (distances > 0) & (values >= low[columns]) & (values <= high[columns])
    columns, values, distances = columns[wanted], values[wanted], distances[wanted]
    change = changed.ranks(columns, values) - changed.now
    farthest_first = np.argsort(-distances, kind="stable")
    moves = np.full((2, row.size), np.nan)
    for moved, sign in zip(moves, (1, -1), strict=True):
        kept = farthest_first[sign * change[farthest_first] > 0]
        moved[columns[kept]] = values[kept]  # the last of several values of a column is kept
        if explained.front:
            at = np.flatnonzero(~np.isnan(moved))
            reached = _unscaled(explained, changed, x, row, at, moved[at], sign)
            inside = (reached[1] >= low[at]) & (reached[1] <= high[at])
            moved[at] = np.where(inside, reached[0], np.nan)
    return moves


def _unscaled(
    explained: ExplainedModel,
    changed: ChangedRanks,
    x: Any,
    row: Floats,
    columns: NDArray[np.int64],
    values: Floats,
    sign: int,
) -> tuple[Floats, Floats]:
    """Return the values at which the rank changes, in units of the input and of the learner.

    Scaling rounds, so some values must go a little further.
    """
    filled = row.copy()
    filled[columns] = values
    now, then = explained.unscaled(np.stack([row, filled]))[:, columns]
    sources = [explained.features[j].source for j in explained.of_columns[columns]]
    moves = np.full((2, columns.size), np.nan)
    for further in _FURTHER:
        left = np.flatnonzero(np.isnan(moves[0]))
        if not left.size:
            break
        trial = then + further * np.sign(then - now) * np.maximum(np.abs(then), np.abs(then - now))
        changes = {source: [value] for source, value in zip(sources, trial.tolist(), strict=True)}
        encoded = dense_values(explained.rows(explained.with_values(x, changes)))[0, columns]
        reached = sign * (changed.ranks(columns, encoded) - changed.now) > 0
        kept = left[reached[left]]
        moves[:, kept] = trial[kept], encoded[kept]
    return moves[0], moves[1]


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

    def codes(self, column: int) -> list[int]:
        return []

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        change = (values - self.row[columns])[:, np.newaxis]
        return np.asarray(self.rank_of(self.scores + change * self.weights[columns]))


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
    """Return the score nearest to ``score`` at which each rank but the lowest begins."""
    place = int(np.searchsorted(changes, score, "right"))
    starts = np.empty(n_ranks - 1)
    for rank in range(1, n_ranks):
        if rank <= now:
            below = np.flatnonzero(ranks[:place] < rank)
            starts[rank - 1] = changes[below[-1]] if below.size else -np.inf
        else:
            above = np.flatnonzero(ranks[place + 1 :] >= rank)
            starts[rank - 1] = changes[place + above[0]] if above.size else np.inf
    return starts


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

    def codes(self, column: int) -> list[int]:
        return [*range(self._codes.get(column, -1) + 1)]

    def ranks(self, columns: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
        step = max(1, _VALUES // max(self._row.size, 1))
        ranks = np.empty(len(values), dtype=np.int64)
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            changed = np.repeat(self._row[np.newaxis], len(values[part]), axis=0)
            changed[np.arange(len(changed)), columns[part]] = values[part]
            ranks[part] = self._of_rows(changed)
        return ranks

    def _of_rows(self, matrix: Floats) -> NDArray[np.int32]:
        """Predict ranks of rows with encoded categories."""
        model = self._learner._state.model
        table = model.probabilities(model.score(dense_rows(matrix, "x", True)))
        return cheapest(table, self._learner.costs_)


def _crossings(learner: Any, row: Floats) -> tuple[Floats, dict[int, int]]:
    """Return (column, value) pairs: the nearest value on the other side of each split.

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
