"""Baselines for PRank: least squares, and ranks as unordered classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.concurrency import reads
from rankcore._core.docs import documented, parameters
from rankcore._core.model_spec import Field
from rankcore._core.numbers import check_scores
from rankcore._core.params import real
from rankcore._core.scoring import Scoring
from rankcore._core.state import OnlineState, flat
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project, project_many
from rankcore.ordinal._base import OnlineOrdinalClassifier, Zeros
from rankcore.ordinal._parameters import Averages, Intercepts, Passes
from rankcore.ordinal._projecting import Projecting, cumulated

__all__ = ["MulticlassPerceptron", "WidrowHoff"]


@parameters
class WidrowHoffParameters(Intercepts, Averages, Passes):
    """Parameters of `WidrowHoff`."""

    eta0: float = 0.3
    step: Literal["normalized", "constant"] = "normalized"


@documented()
class WidrowHoff(WidrowHoffParameters, Projecting, OnlineOrdinalClassifier):
    """Online least squares on the ranks, rounded: the Widrow-Hoff (LMS) rule.

    Each example, ranked rightly or not, moves the weights along the row so as to lessen the error
    of its score. The rival that PRank's paper compares with.

    Parameters
    ----------
    eta0 : float, default=0.3
        Step size. "normalized" steps make the error of the row itself smaller by this share, and
        converge for rows of any length below 2. "constant" steps are stable only while it is below
        2 over the squared length of the rows, constant included.
    step : {"normalized", "constant"}, default="normalized"
        Whether ``eta0`` is divided by the squared length of the row, or not, as in the paper.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy).
    intercept_ : float

    Notes
    -----
    ``project`` is the real score, on the scale 1 .. n_classes; ``predict`` rounds it, halves up,
    and clips it to the ranks. O(non-zeros) an update and a prediction. Normalised steps are those
    of [2]_, and do not depend on the scale of X.

    An example of weight w is learned as w examples in a row would be: where one step leaves the
    share r of its error, a weighted one leaves r ** w. A step that overshoots (r < 0) is multiplied
    by the weight instead.

    Plain form: ``tests/reference/rivals.py``, ``widrow_hoff``.

    References
    ----------
    .. [1] B. Widrow and M. E. Hoff. "Adaptive switching circuits". 1960.
    .. [2] J. Nagumo and A. Noda. "A learning method for system identification". IEEE Transactions
       on Automatic Control 12, 1967.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.WidrowHoff(max_iter=200, random_state=0).fit([[0.0], [0.5], [1.0]], [1, 2, 3])
    >>> model.predict([[0.1], [0.4], [2.0]])
    array([1, 2, 3])
    """

    _overflow_hint = (
        "rows are too long, or constant steps too large for them: scale X, take "
        "step='normalized', or lower eta0"
    )
    _published: ClassVar[dict[str, Any]] = {"eta0": 0.1, "step": "constant"}
    _one_direction = True
    _lengths = 1  # each example moves the intercept, which needs no head start
    _arrays: ClassVar = {"weights": Field(("features",)), "intercept": Field((1,))}

    _constraints: ClassVar = {"eta0": real(1e-100, 1e100)}

    @property
    @reads
    def coef_(self) -> np.ndarray:
        """Weights of the features, shape (n_features,)."""
        return self._parameters()[0].copy()

    @property
    @reads
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._parameters()[1][0])

    def _other_arrays(self, n_ranks: int, zeros: Zeros) -> dict[str, np.ndarray]:
        # The number of ranks is not in any array's shape, but scoring needs it.
        of_ranks = {"n_ranks": np.array([n_ranks], dtype=np.int64)}
        return of_ranks | super()._other_arrays(n_ranks, zeros)

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        if state.others["n_ranks"][0] != n_ranks:
            raise ValueError("its number of ranks is not that of its classes")

    def _bind(self, state: OnlineState) -> Any:
        return kernels.WidrowHoffState(
            state.by_feature["weights"],
            state.others["intercept"],
            state.by_feature.get("weights_sums"),
            state.others.get("intercept_sums"),
            self.eta0,
            state.others["n_ranks"][0],
            self.step == "normalized",
            state.others["scale"][0],
        )

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        weights, intercept = self._parameters()
        return Scoring("rounded", {"weights": weights, "intercept": intercept})

    def _projected(self, rows: Rows) -> np.ndarray:
        weights, intercept = self._parameters()
        scores = np.empty(rows.n_rows)
        project(rows, weights, scores)
        return check_scores(scores + intercept[0])

    def _ranks(self, rows: Rows) -> np.ndarray:
        return self._rounded(self._projected(rows))

    def _rounded(self, scores: np.ndarray) -> np.ndarray:
        ranks = np.empty(scores.size, dtype=np.int32)
        kernels.rounded_ranks(scores, self.ranks_.size, ranks)
        return ranks

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        # Rounding is cutting halfway between the ranks.
        scores = self._projected(rows)
        return cumulated(scores[:, None] - np.arange(1.5, self.ranks_.size)), self._rounded(scores)


@parameters
class MulticlassParameters(Intercepts, Averages, Passes):
    """Parameters of `MulticlassPerceptron`."""

    update: Literal["worst", "uniform"] = "uniform"


@documented()
class MulticlassPerceptron(MulticlassParameters, OnlineOrdinalClassifier):
    """The multiclass perceptron: one weight vector per rank, which ignores their order.

    A baseline that ignores the order of the labels.

    Parameters
    ----------
    update : {"worst", "uniform"}, default="uniform"
        Ranks that lose the row on a mistake: the predicted rank or, in equal shares, each that
        scores at least as high as the true one.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_classes, n_features)
        Weights of ``classes_`` (a copy); they sum to 0.
    intercept_ : ndarray of float64, shape (n_classes,)
        Of ``classes_`` (a copy).

    Notes
    -----
    Ultraconservative updates after [1]_; of equal best ranks the lowest is predicted. An update and
    a prediction cost O(non-zeros * n_classes). A weight multiplies the step of an example.

    Plain form: ``tests/reference/rivals.py``, ``multiclass``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Ultraconservative Online Algorithms for Multiclass Problems".
       JMLR 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.MulticlassPerceptron(random_state=0).fit([[1, 0], [0, 1], [1, 1]], [3, 1, 2])
    >>> model.predict([[1, 0], [0, 1], [1, 1]])
    array([3, 1, 2])
    """

    _arrays: ClassVar = {"weights": Field(("features", "ranks")), "intercepts": Field(("ranks",))}
    _published: ClassVar[dict[str, Any]] = {"update": "worst", "fit_intercept": False}

    @property
    @reads
    def coef_(self) -> np.ndarray:
        """Weights of ``classes_``, shape (n_classes, n_features)."""
        return self._parameters()[0][:, self._ranks_of_columns()].T.copy()

    @property
    @reads
    def intercept_(self) -> np.ndarray:
        """Intercepts of ``classes_``, shape (n_classes,)."""
        return self._parameters()[1][self._ranks_of_columns()]

    def _bind(self, state: OnlineState) -> Any:
        intercepts = state.others["intercepts"]
        return kernels.MulticlassState(
            flat(state.by_feature["weights"]),
            intercepts,
            flat(state.by_feature.get("weights_sums")),
            state.others.get("intercepts_sums"),
            np.empty(intercepts.size),
            self.update == "uniform",
            state.others["scale"][0],
        )

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        weights, intercepts = self._parameters()
        return Scoring("classes", {"weights": weights, "intercepts": intercepts})

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        weights, intercepts = self._parameters()
        scores = np.empty((rows.n_rows, weights.shape[1]))
        project_many(rows, flat(weights), scores)
        scores = check_scores(scores + intercepts)
        return scores, scores.argmax(axis=1)
