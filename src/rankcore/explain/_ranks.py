"""Explanation of the rank of a row, and counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.contributions import Tasks, column_means, dense_values, tasks_of
from rankcore._core.front import Display, take_apart
from rankcore._core.model_spec import Specified
from rankcore._core.numbers import Floats
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.rows import dense_rows
from rankcore.explain._subject import Shown, Subject, number, signed
from rankcore.metrics.tables import Table
from rankcore.ordinal._decisions import cheapest

# A rank changes where scores cross, or just beyond: relative distance beyond a crossing.
_BEYOND = 1e-9
# Values of changed rows that trees score at a time.
_VALUES = 2**22


@dataclass(frozen=True, repr=False)
class RankExplanation(Shown):
    """Rank of a row, its distance to each threshold, and changes that would change it.

    Attributes
    ----------
    labels : list
        All ranks, lowest first.
    rank : int
        Rank of the row, from 0.
    distances : ndarray of float64, shape (n_ranks - 1,)
        The row's score minus each threshold; negative if it does not reach it. Learners
        with one direction have one score, `CuSumRank` has a score per threshold.
    contributions : ndarray of float64, shape (n_features, n_ranks - 1)
        Contribution of each feature to the score at each threshold, relative to the background.
    bases : ndarray of float64, shape (n_ranks - 1,)
        Distance of the background to each threshold; the sum of contributions plus the base is the
        distance.
    feature_names : list of str
    values : ndarray of float64, shape (n_features,)
        The row.
    up, down : ndarray of float64, shape (n_features,)
        The nearest value of each feature, with the others unchanged, at which a higher or lower
        rank is predicted; NaN if there is none. For trees also NaN if the feature is missing; of
        categories, the lowest number.
    """

    labels: list[Any]
    rank: int
    distances: Floats
    contributions: Floats
    bases: Floats
    feature_names: list[str]
    values: Floats
    up: Floats
    down: Floats

    _plot = "plot_rank"

    def __repr__(self) -> str:
        return f"<RankExplanation: {self.label!r} of {self.labels!r}>"

    @property
    def label(self) -> Any:
        """The predicted label."""
        return self.labels[self.rank]

    @property
    def threshold_names(self) -> list[str]:
        """Labels on both sides of each threshold."""
        return [f"{a} | {b}" for a, b in pairwise(self.labels)]

    def nearest(self) -> int:
        """Index of the threshold nearest to the row."""
        return int(np.abs(self.distances).argmin())

    def headline(self) -> str:
        """Summarise the rank and the nearest threshold."""
        near = self.nearest()
        side = "above" if self.distances[near] >= 0 else "below"
        return (
            f"predicted: {self.label}; nearest threshold: {self.threshold_names[near]}, "
            f"{abs(self.distances[near]):.4f} {side} it"
        )

    def tables(self) -> list[Table]:
        """Tables of thresholds, and of features by their contribution at the nearest one."""
        near = self.nearest()
        thresholds = [
            (name, signed(base), signed(distance), "reached" if distance >= 0 else "not reached")
            for name, base, distance in zip(
                self.threshold_names, self.bases, self.distances, strict=True
            )
        ]
        headings = ("threshold", "background", "this row", "")
        distances = Table(headings, thresholds, "distances of scores above thresholds")
        parts = self.contributions[:, near]
        by_size = np.argsort(-np.abs(parts), kind="stable")[: self._listed]
        moves = np.isfinite(self.up) | np.isfinite(self.down)
        listed = [j for j in by_size.tolist() if parts[j] != 0 or moves[j]]
        rows = [
            (
                self.feature_names[j],
                number(self.values[j]),
                signed(parts[j]),
                _move(self.up[j], self.values[j]),
                _move(self.down[j], self.values[j]),
            )
            for j in listed
        ]
        others = np.flatnonzero(parts).size - np.count_nonzero(parts[listed])
        if others:
            rest = float(parts.sum() - parts[listed].sum())
            rows.append((f"{others} others", "", signed(rest), "", ""))
        caption = f"at threshold {self.threshold_names[near]}; single values that change the rank"
        return [
            distances,
            Table(("feature", "value", "adds", "higher rank at", "lower rank at"), rows, caption),
        ]


def rank(
    model: BaseEstimator,
    x: ArrayLike,
    *,
    background: RowsLike | None = None,
    feature_names: Sequence[str] | None = None,
) -> RankExplanation:
    """Explain the rank of a row: distances to thresholds, contributions and counterfactuals.

    Parameters
    ----------
    model : estimator
        A fitted learner with thresholds: `PRank`, `OAPBPM`, `CuSumRank`, `WidrowHoff`, one with a
        linear kernel, or `OrdinalBoost`; or a pipeline or search that ends in one. For a
        `CalibratedOrdinal`, which predicts by probabilities, pass its ``estimator_``.
    x : array-like, shape (n_features,) or (1, n_features)
        The row, dense, sparse or of a data frame; a text for a pipeline of texts.
    background : array-like or scipy sparse, shape (n, n_features), optional
        Background of the contributions, as for ``contributions``. None: a row of zeros.
    feature_names : sequence of str, optional
        None: the names of the model.

    Returns
    -------
    RankExplanation

    Raises
    ------
    TypeError
        If the learner has no thresholds, or its score is neither linear nor a sum of trees.
    ValueError
        On bad input.

    Notes
    -----
    O(n_features * n_ranks^3): the scores of ranks are linear in each feature, so the
    rank changes only where two of them cross. Trees predict the row once for each different split,
    O(nodes * trees * depth).

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.PRank(random_state=0).fit(X, y)
    >>> why = rc.explain.rank(model, [1, 1], feature_names=["good", "bad"])
    >>> why.label
    2
    >>> model.predict([[why.up[0], 1]])
    array([3])
    """
    subject = Subject(model, feature_names)
    learner, scoring, x = subject.learner, subject.scoring, subject.one_row(x, "x")
    values = subject.values(x)[0]
    labels = learner.ranks_.tolist() if hasattr(learner, "ranks_") else []
    of_trees = scoring.form == "ordinal_trees" and scoring.facts["tasks"] != "average"
    tasks = None if of_trees else _tasks(subject, max(len(labels), 2), bool(take_apart(model)[0]))
    ready = subject.transformed(x)
    row = dense_values(learner._more_rows(ready))[0]
    if tasks is None:
        parts, bases = _task_scores(subject, x, background)
        distances = bases + parts.sum(axis=0)
        up, down = _moves_of_trees(learner, row)
        found = labels.index(learner.predict(ready).tolist()[0])
    else:
        mean = np.zeros(row.size)
        if background is not None:
            mean = column_means(learner._more_rows(subject.transformed(background)))
        parts = tasks.weights * (row - mean)[:, np.newaxis]
        bases = mean @ tasks.weights - tasks.thresholds
        distances = row @ tasks.weights - tasks.thresholds
        up, down = (_moves(tasks, row, distances, sign) for sign in (1, -1))
        found = int(_ranks(tasks, distances))
    if subject.display.scales:
        up, down = (_before(subject.display, row, moved) for moved in (up, down))
    return RankExplanation(labels, found, distances, parts, bases, subject.names, values, up, down)


def _tasks(subject: Subject, k: int, in_pipeline: bool) -> Tasks:
    """Linear scores at the thresholds; TypeError if there are none."""
    try:
        return tasks_of(subject.scoring, subject.inner.n_features_in_, k, subject.name)
    except TypeError as error:
        within = subject.within
        scoring = within._spec().scoring if isinstance(within, Specified) else None
        if scoring is None:
            raise
        # For an estimator without thresholds, the error names the estimator.
        name = type(within).__name__
        tasks_of(scoring, within.n_features_in_, k, name)
        rows = ", of rows as the steps before transform them" if in_pipeline else ""
        raise TypeError(
            f"{subject.name} predicts by probabilities, not by thresholds; explain the rank that "
            f"its {name} predicts: pass the attribute estimator_ of the {subject.name}{rows}"
        ) from error


def _ranks(tasks: Tasks, scores: Floats) -> NDArray[np.int64]:
    """Ranks from the scores of tasks, on the last axis."""
    if tasks.rule == "count":
        return np.asarray((scores >= 0).sum(axis=-1))
    sums = np.concatenate([np.zeros((*scores.shape[:-1], 1)), scores.cumsum(axis=-1)], axis=-1)
    if tasks.tie == "low":
        return sums.argmax(axis=-1)
    return sums.shape[-1] - 1 - sums[..., ::-1].argmax(axis=-1)


def _moves(tasks: Tasks, row: Floats, distances: Floats, sign: int) -> Floats:
    """Nearest value of each feature at which the rank is higher or lower."""
    moved = np.full(row.size, np.nan)
    used = np.flatnonzero(tasks.weights.any(axis=1))
    if not used.size:
        return moved
    slopes = tasks.weights[used]
    now = _ranks(tasks, distances)
    steps = np.array([*combinations(range(distances.size + 1), 2)])
    sums = np.concatenate([[0.0], distances.cumsum()])
    rises = np.concatenate([np.zeros((used.size, 1)), slopes.cumsum(axis=1)], axis=1)
    gaps = sums[steps[:, 1]] - sums[steps[:, 0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Crossings of two cumulative sums, including those of single tasks.
        change = -gaps / (rises[:, steps[:, 1]] - rises[:, steps[:, 0]])
    change = np.where(np.isfinite(change), change, 0.0)
    # A tiny change may move a row on a threshold in either direction.
    least = _BEYOND * np.maximum(1.0, np.abs(row[used]))[:, np.newaxis]
    change = np.concatenate([change * (1 + _BEYOND), least, -least], axis=1)
    after = _ranks(tasks, distances + change[..., np.newaxis] * slopes[:, np.newaxis, :])
    wanted = sign * (after - now) > 0
    size = np.where(wanted, np.abs(change), np.inf)
    best = size.argmin(axis=1)
    n = np.arange(used.size)
    moved[used] = np.where(wanted[n, best], row[used] + change[n, best], np.nan)
    return moved


def _before(display: Display, row: Floats, moved: Floats) -> Floats:
    """Values before scaling, for steps that scale columns one by one."""
    known = np.isfinite(moved)
    return np.where(known, display.before(np.where(known, moved, row)), np.nan)


def _move(value: float, now: float) -> str:
    if value != value:
        return "never" if now == now else ""  # not known of missing values
    return number(value)


# ------------------------------------------------------------------------ trees


def _task_scores(subject: Subject, x: Any, background: Any) -> tuple[Floats, Floats]:
    """Contributions to the score of each task, shape (n_features, n_tasks), and bases."""
    learner, biases = subject.learner, subject.scoring.arrays["biases"]
    if subject.scoring.has_one_score:
        parts, base = subject.dense(x, background)
        return np.repeat(parts.T, biases.size, axis=1), base - biases
    sums = [subject.dense(x, background, label) for label in learner.ranks_.tolist()]
    parts = np.concatenate([part for part, _ in sums])
    return np.diff(parts, axis=0).T, np.diff([base for _, base in sums])


def _moves_of_trees(learner: Any, row: Floats) -> tuple[Floats, Floats]:
    """Nearest value of each feature at which the rank is higher, and at which it is lower.

    Exact, as splits change the path of the row only at these values. For categories, the lowest
    number. NaN if there is none, and for missing values, which have no distance.
    """
    features, values = _crossings(learner, row)
    step = max(1, _VALUES // max(row.size, 1))
    ranks = [_ranks_by_trees(learner, row[np.newaxis])]
    for first in range(0, values.size, step):
        raise_signals()
        part = slice(first, first + step)
        changed = np.repeat(row[np.newaxis], values[part].size, axis=0)
        changed[np.arange(len(changed)), features[part]] = values[part]
        ranks.append(_ranks_by_trees(learner, changed))
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


def _ranks_by_trees(learner: Any, matrix: Floats) -> NDArray[np.int32]:
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
