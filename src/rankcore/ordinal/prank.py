"""PRank: one direction and ordered thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankcore._core.concurrency import reads
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_flag, check_option, check_real
from rankcore._core.state import OnlineState
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project
from rankcore.ordinal._base import OnlineOrdinalClassifier

__all__ = ["PRank"]


class ThresholdClassifier(OnlineOrdinalClassifier):
    """One direction cut by ordered thresholds, which a subclass provides. Not public."""

    @property
    @reads
    def coef_(self) -> np.ndarray:
        """The direction: weights of the features, shape (n_features,)."""
        return self._parameters()[0].copy()

    @property
    @reads
    def thresholds_(self) -> np.ndarray:
        """Ascending thresholds between the ranks, shape (n_classes - 1,)."""
        return self._parameters()[1].copy()

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and thresholds to predict with."""
        raise NotImplementedError

    def _scores(self, rows: Rows) -> np.ndarray:
        scores = np.empty(rows.n_rows)
        project(rows, self._parameters()[0], scores)
        return check_scores(scores)

    def _ranks(self, rows: Rows) -> np.ndarray:
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        kernels.threshold_ranks(self._scores(rows), self._parameters()[1], ranks)
        return ranks


class PRank(ThresholdClassifier):
    """Perceptron ranking: one direction, ordered thresholds, online.

    A row's rank is the number of thresholds that its projection on the learned direction reaches.
    A row ranked wrongly moves each threshold on the wrong side of its projection by one step, and
    the direction by the sum of those steps times the row; a row ranked rightly changes nothing.

    Parameters
    ----------
    max_iter : int, default=1
        Passes over the data in ``fit``.
    average : bool, default=False
        Predict with the average of the parameters after every example instead of the last ones.
        Usually better by far, at about 1.5 times the training cost.
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection that hits a threshold below its true rank exactly moves that threshold
        (the paper's rule, and what happens on the very first example) or not.
    threshold_scale : float, default=1.0
        Equivalent to a constant feature of this value shared by the thresholds: these live on
        the multiples of its square. Of the order of the rows' norms is a good choice.
    shuffle : bool, default=False
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes. By default all ``max_iter`` passes are made.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy). ``predict`` is
        ``classes_[np.searchsorted(thresholds_, X @ coef_, side="right")]``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only where X had string column names.
    n_iter_ : int
        Passes made.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning.

    Notes
    -----
    Figure 2 of [1]_; the average is that of [2]_. An update costs O(non-zeros + n_classes), a
    prediction O(non-zeros + log n_classes), the model n_features + n_classes - 1 numbers (twice
    that with ``average``). X is never copied when it is CSR or C-ordered float32 or float64.

    If some unit vector of weights and thresholds separates the data with margin g and no row is
    longer than R, the total rank loss over any number of passes is at most
    ``((n_classes - 1) * R**2 + 1) / g**2``.

    There is no ``sample_weight``: integer steps are what keeps the thresholds in order, and a
    mistake-driven step scaled by a weight is another algorithm. Repeat rows to weigh them.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] M. Collins. "Discriminative Training Methods for Hidden Markov Models". EMNLP 2002.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    >>> model = rc.PRank(max_iter=2).fit(X, [3, 1, 2, 3])
    >>> model.predict(X)
    array([3, 1, 2, 3])
    >>> model.coef_, model.thresholds_
    (array([ 1., -1.]), array([0., 1.]))
    >>> model.history_["rank_loss"]
    [0.75, 0.0]
    """

    _mixed_arrays = ("weights", "steps")

    def __init__(
        self,
        max_iter: int = 1,
        average: bool = False,
        tie: str = "crammer",
        threshold_scale: float = 1.0,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.average = average
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and thresholds to predict with."""
        state = self._fitted_state()
        weights, thresholds = state.by_feature["weights"], state.others["thresholds"]
        if not state.settings["average"]:
            return weights, thresholds
        return state.averaged(lambda: (state.mean("weights"), _scale(state) * mean_steps(state)))

    def _check_params(self) -> None:
        self._check_common_params()
        check_flag(self.average, "average")
        check_rule(self.tie, self.threshold_scale)

    def _settings(self) -> dict[str, Any]:
        return {"average": bool(self.average), "threshold_scale": float(self.threshold_scale)}

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        by_feature = {"weights": np.zeros(n_features)}
        others = {
            "steps": np.zeros(n_ranks - 1, dtype=np.int64),
            "thresholds": np.zeros(n_ranks - 1),
        }
        if self.average:
            by_feature["weights_sums"] = np.zeros(n_features)
            others["steps_sums"] = np.zeros(n_ranks - 1, dtype=np.int64)
        return OnlineState(by_feature, others, settings=self._settings())

    def _derive(self, state: OnlineState) -> None:
        state.others["thresholds"] = _scale(state) * state.others["steps"]

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        check_lattice(
            state.others["steps"], state.others["thresholds"], state.settings["threshold_scale"]
        )

    def _bind(self, state: OnlineState) -> Any:
        return kernels.PRankState(
            state.by_feature["weights"],
            state.others["steps"],
            state.others["thresholds"],
            state.by_feature.get("weights_sums"),
            state.others.get("steps_sums"),
            _scale(state),
            self.tie == "strict",
        )


def _scale(state: OnlineState) -> float:
    return state.settings["threshold_scale"] ** 2


def mean_steps(state: OnlineState) -> np.ndarray:
    """The mean over all examples of the thresholds' steps."""
    # One division of exact integers, so that equal averages come out equal and order survives.
    t = max(state.t, 1)
    return (state.others["steps"] * t - state.others["steps_sums"]) / t


def check_rule(tie: Any, threshold_scale: Any) -> None:
    """Raise on a parameter of PRank's rule outside its range."""
    check_option(tie, "tie", ("crammer", "strict"))
    # Wide enough for any data, narrow enough for its square times a step to stay a number.
    check_real(threshold_scale, "threshold_scale", 1e-100, 1e100)


def check_lattice(steps: np.ndarray, thresholds: np.ndarray, scale: float) -> None:
    """Raise unless thresholds ascend and are integer steps times the squared scale."""
    if (np.diff(steps) < 0).any():
        raise ValueError("its thresholds do not ascend")
    if not np.array_equal(thresholds, scale**2 * steps):
        raise ValueError("its thresholds are not its steps times the threshold scale")
