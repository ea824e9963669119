"""Explanation of the rank of a row, and counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.contributions import dense_values, tasks_of
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.numbers import Floats
from rankcore.explain._moves import (
    nearest_moves,
    scores_of_calibrated,
    scores_of_tasks,
    scores_of_trees,
)
from rankcore.explain._results import ExplanationResult, is_known, number, signed
from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class RankExplanation(ExplanationResult):
    """Rank of a row, its distance to each threshold, and changes that would change it.

    Attributes
    ----------
    labels : list
        All ranks, lowest first.
    rank : int
        Rank that the model predicts for the row, from 0.
    distances : ndarray of float64, shape (n_ranks - 1,)
        The row's score minus each threshold; negative if it does not reach it. Learners
        with one direction have one score, `CuSumRank` has a score per threshold, and `OrdinalBoost`
        with adjacent categories the log-odds between the ranks on both sides. Thresholds of a
        `CalibratedOrdinal` are the scores at which its prediction changes; infinite if there is no
        such score.
    contributions : ndarray of float64, shape (n_features, n_ranks - 1)
        Contribution of each feature to the score at each threshold, relative to the background.
    bases : ndarray of float64, shape (n_ranks - 1,)
        Distance of the background to each threshold; the sum of contributions plus the base is the
        distance.
    feature_names : list of str
    values : ndarray, shape (n_features,)
        The row, as the model gets it: float64, or objects if some features are categories or words;
        a word is "present" or "absent".
    up, down : ndarray, shape (n_features,)
        The nearest value of each feature, with the others unchanged, at which a higher or lower
        rank is predicted; of a category the first one, in their order. NaN if there is none, with a
        background none between its minimum and maximum. Of numbers with several columns, such as
        splines, of missing numbers, and of integers and booleans of a frame (0 and 1), a value of
        the background: the nearest to the row, or to the median if the number is missing, of at
        most 1000 values from its minimum to its maximum; without a background trees have NaN for a
        missing number. A word is removed from the text or added at its end, for the 200 words that
        contribute most. None if none was tried.
    probabilities : ndarray of float64, shape (n_ranks,), or None
        Probability of each rank, if the model has them.
    log_odds : bool
        Whether distances are log-odds between adjacent ranks.
    limited : bool
        Whether ``up`` and ``down`` are values within the range of a background.
    """

    labels: list[Any]
    rank: int
    distances: Floats
    contributions: Floats
    bases: Floats
    feature_names: list[str]
    values: NDArray[Any]
    up: NDArray[Any]
    down: NDArray[Any]
    probabilities: Floats | None = None
    log_odds: bool = False
    limited: bool = False

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
        """Return the threshold nearest to the row's score, below or above its rank."""
        beside = [t for t in (self.rank - 1, self.rank) if 0 <= t < self.distances.size]
        return min(beside, key=lambda t: abs(self.distances[t]))

    def headline(self) -> str:
        """Summarise the rank and the nearest threshold."""
        near = self.nearest()
        distance = self.distances[near]
        probable = ""
        if self.probabilities is not None:
            probable = f" with probability {self.probabilities[self.rank]:.3f}"
        if self.log_odds:
            low, high = self.labels[near : near + 2]
            return f"predicted: {self.label}{probable}; log-odds of {high} against {low}: " + (
                signed(distance)
            )
        side = "above" if distance >= 0 else "below"
        return (
            f"predicted: {self.label}{probable}; nearest threshold: {self.threshold_names[near]}, "
            f"{abs(distance):.4f} {side} it"
        )

    def to_frame(self) -> DataFrame:
        """Convert to a pandas DataFrame, one row per feature.

        Columns are the value, the contribution at each threshold, and the values ``up`` and
        ``down`` that change the rank.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        parts = dict(zip(self.threshold_names, self.contributions.T, strict=True))
        columns = {"value": self.values, **parts, "up": self.up, "down": self.down}
        return pandas.DataFrame(columns, pandas.Index(self.feature_names, name="feature"))

    def tables(self) -> list[Table]:
        """Tabulate thresholds, and features by their contribution at the nearest one."""
        near = self.nearest()
        if self.probabilities is None:
            heading = ""
            texts = ["reached" if distance >= 0 else "not reached" for distance in self.distances]
        else:
            at_least = self.probabilities[::-1].cumsum()[-2::-1]
            heading = "this rank or higher"
            texts = [f"{probability:.3f}" for probability in at_least]
        thresholds = [
            (name, signed(self.bases[t]), signed(self.distances[t]), texts[t])
            for t, name in enumerate(self.threshold_names)
        ]
        headings = ("threshold", "background", "this row", heading)
        what = "log-odds of adjacent ranks" if self.log_odds else "distances above thresholds"
        distances = Table(headings, thresholds, what)
        parts = self.contributions[:, near]
        by_size = np.argsort(-np.abs(parts), kind="stable")[: self._listed]
        moves = _known(self.up) | _known(self.down)
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
        caption += ", within the range of the background" if self.limited else ""
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
        linear kernel, or `OrdinalBoost`; a `CalibratedOrdinal` of one of the linear ones, whose own
        prediction is explained; or a pipeline or search that ends in one.
    x : array-like, shape (n_features,) or (1, n_features)
        The row, dense, sparse or of a data frame; a text for a pipeline of texts.
    background : array-like or scipy sparse, shape (n, n_features), optional
        Background of the contributions, as for ``contributions``. Values that change the rank are
        then those between the minimum and the maximum of each column, and the categories that
        occur. None: a row of zeros; linear learners then return values that no row may have.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.

    Returns
    -------
    RankExplanation

    Raises
    ------
    TypeError
        If the learner has no thresholds, its score is neither linear nor a sum of trees, or a step
        mixes columns.
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
    explained = ExplainedModel(model, feature_names)
    learner = explained.learner
    scoring = explained.scoring
    x = explained.one_row(x, "x")
    labels = learner.ranks_.tolist() if hasattr(learner, "ranks_") else []
    ready = explained.transformed(x)
    row = dense_values(explained.scorer._more_rows(ready))[0]
    log_odds = False
    if hasattr(learner, "_turning_points"):
        scores = scores_of_calibrated(explained, x, background, row)
    elif scoring.form == "ordinal_trees":
        scores = scores_of_trees(explained, x, background, row)
        log_odds = scoring.facts["link"] == "adjacent" and len(labels) > 2
    else:
        tasks = tasks_of(scoring, row.size, max(len(labels), 2), explained.name)
        scores = scores_of_tasks(explained, tasks, background, row)
    probable = learner._probabilities(ready)[0] if hasattr(learner, "_probabilities") else None
    up, down = nearest_moves(explained, scores, x, row, background)
    return RankExplanation(
        labels,
        scores.changed.now,
        scores.distances,
        scores.parts,
        scores.bases,
        explained.names,
        explained.values(x)[0],
        up,
        down,
        probable,
        log_odds,
        background is not None,
    )


def _known(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of the values that are neither NaN nor None."""
    return np.array([is_known(value) for value in values.tolist()], dtype=bool)


def _move(value: Any, now: Any) -> str:
    """Describe a value that changes the rank, rounded away from the row's value."""
    if value is None:
        return ""  # not known
    if value != value:
        return "never" if now == now else ""  # not known of missing values
    if not (isinstance(value, float) and isinstance(now, float) and np.isfinite(value) and value):
        return number(value)
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 3)  # of the last of four digits
    away = np.ceil if value > now else np.floor
    shown = number(value)
    short = float(shown) >= value if value > now else float(shown) <= value
    return shown if short else number(float(away(value / unit) * unit))
