"""PRank: one direction and ordered thresholds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.model_spec import Specified
from rankcore._core.numbers import check_reached, check_scores
from rankcore._ext.ordinal import PRankModel, projected_ranks
from rankcore._ext.rows import Rows, project
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._parameters import AveragingParams, EpochParams, MarginParams
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._scale import OF_PRANK

__all__ = ["PRank"]


class Direction(Specified):
    """One direction, whose projections `Thresholds` divide into ranks. Not public.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    """

    _one_direction = True
    _form = "thresholds"

    _parameters: Callable[[], Any]  # weights and thresholds for predictions

    @property
    @consistent_read
    def coef_(self) -> np.ndarray:
        """The direction: weights of the features, shape (n_features,)."""
        return self._parameters()[0].copy()

    @property
    @consistent_read
    def threshold_scale_(self) -> float:
        """The resolved ``threshold_scale``; thresholds move in steps of its square."""
        return float(np.sqrt(self._fitted_state().model["scale"][0]))

    def _projected(self, rows: Rows) -> np.ndarray:
        scores = np.empty(rows.n_rows)
        project(rows, self._parameters()[0], scores)
        return check_scores(scores)

    def _ranks(self, rows: Rows) -> np.ndarray:
        weights, thresholds = self._parameters()
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        check_reached(projected_ranks(rows, weights, thresholds, ranks), rows.n_rows)
        return ranks


@parameters
class PRankParameters(MarginParams, AveragingParams, EpochParams):
    """Parameters of `PRank`."""

    max_iter: int = 10
    average: bool = True
    margin: float | str = "auto"


@documented()
class PRank(PRankParameters, Direction, Thresholds, OnlineOrdinalClassifier):
    """Perceptron ranking: one direction, ordered thresholds, online.

    The rank of a row is the number of thresholds that its projection on the learned direction
    reaches. A misranked row moves each threshold on the wrong side of its projection by one step,
    and the direction by the sum of those steps times the row; a correctly ranked row changes
    nothing, unless its projection is within the ``margin`` of a threshold.

    Attributes
    ----------
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy). ``predict`` is
        ``ranks_[np.searchsorted(thresholds_, X @ coef_, side="right")]``.

    Notes
    -----
    Figure 2 of [1]_; the average is that of [2]_. An update costs O(non-zeros + n_classes), a
    prediction O(non-zeros + log n_classes), the model n_features + n_classes - 1 numbers (twice
    that with ``average``). X is never copied when it is CSR or C-ordered float32 or float64.

    Let s be ``threshold_scale_``, m ``margin_`` and R the maximum length of a row. If weights w and
    thresholds b with ``|w|**2 + |b / s|**2 = 1`` separate the data with margin g, the total rank
    loss over any number of passes, and the number of steps of thresholds, are at most ``((n_classes
    - 1) * R**2 + s**2 + 2 * m) / g**2``; `rankcore.bounds.prank_mistake_bound` has the proof.

    Thresholds are integers times the squared scale, for any margin, as each step is 1 or -1. They
    stay in ascending order: a threshold moves up only if the true rank is below it and the
    projection is at least the threshold minus the margin, down only if the true rank is above it
    and the projection is at most the threshold plus the margin. If two equal thresholds are on the
    same side of the true rank, both move or neither does; if the true rank is between them, the
    lower one can only move down and the upper one only up. Two different thresholds are at least
    one step apart; the lower one moves up only if the true rank is below both, and then the upper
    one does not move down, so that they approach by at most one step.

    A weight is the number of visits of a row per pass, with the fractional part drawn at random in
    each pass: integer weights are equivalent to repeated rows. Integer steps keep the thresholds in
    order; a step multiplied by a weight would leave their lattice.

    Plain form: ``tests/reference/prank.py``, ``prank``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] M. Collins. "Discriminative Training Methods for Hidden Markov Models". EMNLP 2002.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    >>> model = rc.PRank.published(max_iter=2).fit(X, [3, 1, 2, 3])
    >>> model.predict(X)
    array([3, 1, 2, 3])
    >>> model.coef_, model.thresholds_
    (array([ 1., -1.]), array([0., 1.]))
    >>> model.history_["rank_loss"]
    [0.75, 0.0]
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            PRank(random_state=0),
            PRank(average=False, tie="strict", random_state=0),
        ],
    )

    _built_in: ClassVar = OF_PRANK
    _model_class = PRankModel
    _merges = True
