"""PRank: one direction and ordered thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.model_spec import Field, Specified
from rankcore._core.numbers import check_scores
from rankcore._core.state import MOST_COUNTED, OnlineState, are_counts
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project
from rankcore.ordinal._base import OnlineOrdinalClassifier, Zeros
from rankcore.ordinal._parameters import AveragingParams, EpochParams, MarginParams
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._scale import OF_PRANK, margin_of

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
        return float(np.sqrt(self._fitted_state().others["scale"][0]))

    def _cuts(self) -> np.ndarray:
        return self._parameters()[1]

    def _projected(self, rows: Rows) -> np.ndarray:
        scores = np.empty(rows.n_rows)
        project(rows, self._parameters()[0], scores)
        return check_scores(scores)


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

    _arrays: ClassVar = {"weights": Field(("features",)), "steps": Field(("tasks",), "int64")}
    _built_in: ClassVar = OF_PRANK

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        state = self._fitted_state()
        return state.averaged(
            lambda: (state.mean("weights"), scale_of(state) * state.mean("steps"))
        )

    def _other_arrays(self, n_ranks: int, zeros: Zeros) -> dict[str, np.ndarray]:
        return {"thresholds": zeros(n_ranks - 1), **super()._other_arrays(n_ranks, zeros)}

    def _derive(self, state: OnlineState) -> None:
        state.others["thresholds"] = scale_of(state) * state.others["steps"]

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        check_thresholds(state.others)

    def _bind(self, state: OnlineState) -> Any:
        return kernels.PRankState(
            state.by_feature["weights"],
            state.others["steps"],
            state.others["thresholds"],
            state.by_feature.get("weights_sums"),
            state.others.get("steps_sums"),
            scale_of(state),
            margin_of(state),
            self.tie == "strict",
        )


def scale_of(state: OnlineState) -> float:
    """Return the squared scale of the thresholds: the length of their steps."""
    return float(state.others["scale"][0])


def check_thresholds(
    others: Mapping[str, np.ndarray], names: Sequence[str] = ("thresholds",), axis: int = -1
) -> None:
    """Raise ValueError unless loaded thresholds ascend along ``axis``, and steps are countable."""
    if not are_counts(np.maximum(others["steps"], -others["steps"])):
        raise ValueError(f"the thresholds of the model moved by more than {MOST_COUNTED} steps")
    for name in ("steps", *names):
        if (np.diff(others[name], axis=axis) < 0).any():
            raise ValueError(f"the {name} of the model must ascend from rank to rank")
