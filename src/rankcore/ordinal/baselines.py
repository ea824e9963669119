"""The rivals that PRank is compared with: least squares, and ranks as mere classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankcore._core.concurrency import reads
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_flag, check_option, check_real
from rankcore._core.state import OnlineState, flat
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project, project_many
from rankcore.ordinal._base import OnlineOrdinalClassifier

__all__ = ["MulticlassPerceptron", "WidrowHoff"]


class WidrowHoff(OnlineOrdinalClassifier):
    """Online least squares on the ranks, rounded: the Widrow-Hoff (LMS) rule.

    Each example, ranked rightly or not, moves the weights by ``eta0`` times the error of the score
    times the row. The rival that PRank's paper compares with.

    Parameters
    ----------
    eta0 : float, default=0.1
        Step size. Stable only while it is below 2 over the squared length of the rows (constant
        included): scale the rows, or lower it.
    fit_intercept : bool, default=True
        Whether there is an intercept. X is not augmented.
    max_iter : int, default=1
        Passes over the data in ``fit``.
    shuffle : bool, default=False
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy).
    intercept_ : float
    n_features_in_, feature_names_in_, n_iter_, t_, history_, loss_curve_
        As in `PRank`.

    Notes
    -----
    ``decision_function`` is the real score, on the scale 1 .. n_classes; ``predict`` rounds it,
    halves up, and clips it to the ranks. O(non-zeros) an update and a prediction.

    References
    ----------
    .. [1] B. Widrow and M. E. Hoff. "Adaptive switching circuits". 1960.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.WidrowHoff(max_iter=200).fit([[0.0], [0.5], [1.0]], [1, 2, 3])
    >>> model.predict([[0.1], [0.4], [2.0]])
    array([1, 2, 3])
    """

    _overflow_hint = "the step size is too large for rows of this length: lower eta0, or scale X"

    _mixed_arrays = ("weights", "intercept")

    def __init__(
        self,
        eta0: float = 0.1,
        fit_intercept: bool = True,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.eta0 = eta0
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def coef_(self) -> np.ndarray:
        """Weights of the features, shape (n_features,)."""
        return self._fitted_state().by_feature["weights"].copy()

    @property
    @reads
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._fitted_state().others["intercept"][0])

    def _check_params(self) -> None:
        self._check_common_params()
        check_real(self.eta0, "eta0", 1e-100, 1e100)
        check_flag(self.fit_intercept, "fit_intercept")

    def _settings(self) -> dict[str, Any]:
        return {"fit_intercept": bool(self.fit_intercept)}

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        # The number of ranks is not in any array's shape, but scoring needs it.
        others = {"intercept": np.zeros(1), "n_ranks": np.array([n_ranks], dtype=np.int64)}
        by_feature = {"weights": np.zeros(n_features)}
        return OnlineState(by_feature, others, settings=self._settings())

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        if state.others["n_ranks"][0] != n_ranks:
            raise ValueError("its number of ranks is not that of its classes")

    def _bind(self, state: OnlineState) -> Any:
        return kernels.WidrowHoffState(
            state.by_feature["weights"],
            state.others["intercept"],
            self.eta0,
            state.others["n_ranks"][0],
            state.settings["fit_intercept"],
        )

    def _scores(self, rows: Rows) -> np.ndarray:
        scores = np.empty(rows.n_rows)
        project(rows, self._state.by_feature["weights"], scores)
        return check_scores(scores + self.intercept_)

    def _ranks(self, rows: Rows) -> np.ndarray:
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        kernels.rounded_ranks(self._scores(rows), len(self.classes_), ranks)
        return ranks


class MulticlassPerceptron(OnlineOrdinalClassifier):
    """The multiclass perceptron: one weight vector per rank, which ignores their order.

    The rival that shows what the order is worth.

    Parameters
    ----------
    update : {"worst", "uniform"}, default="worst"
        What a mistake takes the row from: the predicted rank, or, in equal shares, every rank that
        scores at least as high as the true one.
    average : bool, default=False
        Predict with the average of the weights after every example instead of the last ones.
    max_iter : int, default=1
        Passes over the data in ``fit``.
    shuffle : bool, default=False
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    coef_ : ndarray of float64, shape (n_classes, n_features)
        Weights of the ranks (a copy); they sum to 0.
    n_features_in_, feature_names_in_, n_iter_, t_, history_, loss_curve_
        As in `PRank`.

    Notes
    -----
    Ultraconservative updates after [1]_; of equal best ranks the lowest is predicted. An update and
    a prediction cost O(non-zeros * n_classes). There is no intercept: add a constant feature.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Ultraconservative Online Algorithms for Multiclass Problems".
       JMLR 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.MulticlassPerceptron(max_iter=5).fit([[1, 0], [0, 1], [1, 1]], [3, 1, 2])
    >>> model.predict([[1, 0], [0, 1], [1, 1]])
    array([3, 1, 2])
    """

    _mixed_arrays = ("weights",)

    def __init__(
        self,
        update: str = "worst",
        average: bool = False,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.update = update
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def coef_(self) -> np.ndarray:
        """Weights of the ranks, shape (n_classes, n_features)."""
        return self._weights().T.copy()

    def _weights(self) -> np.ndarray:
        """Weights (n_features, n_ranks) to predict with."""
        state = self._fitted_state()
        if not state.settings["average"]:
            return state.by_feature["weights"]
        return state.averaged(lambda: state.mean("weights"))

    def _check_params(self) -> None:
        self._check_common_params()
        check_option(self.update, "update", ("worst", "uniform"))
        check_flag(self.average, "average")

    def _settings(self) -> dict[str, Any]:
        return {"average": bool(self.average)}

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        names = ["weights", "weights_sums"] if self.average else ["weights"]
        by_feature = {name: np.zeros((n_features, n_ranks)) for name in names}
        return OnlineState(by_feature, {}, settings=self._settings())

    def _bind(self, state: OnlineState) -> Any:
        weights = state.by_feature["weights"]
        return kernels.MulticlassState(
            flat(weights),
            flat(state.by_feature.get("weights_sums")),
            np.empty(weights.shape[1]),
            self.update == "uniform",
        )

    def _scores(self, rows: Rows) -> np.ndarray:
        weights = self._weights()
        scores = np.empty((rows.n_rows, weights.shape[1]))
        project_many(rows, flat(weights), scores)
        return check_scores(scores)

    def _ranks(self, rows: Rows) -> np.ndarray:
        return self._scores(rows).argmax(axis=1)
