"""PRank in dual form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Gamma, KernelLike, Measures, Seed
from rankcore._core.state import OnlineState
from rankcore._ext.kernel_learners import KernelPRankState
from rankcore.ordinal._margin import WithMargin, margin_of, moves_of
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._scale import OF_PRANK
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._pool import DualState, Zeros
from rankcore.ordinal.prank import check_lattice, scale_of

__all__ = ["KernelPRank"]


class KernelPRank(WithMargin, Thresholds, KernelClassifier):
    """PRank with a kernel: a non-linear score and ordered thresholds, online.

    `PRank` in the feature space of a kernel. A row ranked wrongly becomes a support
    vector, whose coefficient is the sum of the threshold steps; the projection of a row is the sum
    of coefficients times kernel values.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        As in scikit-learn's ``SVC``. A callable takes two blocks of rows, arrays or CSR as X is,
        and returns their kernel values, shape (n_rows_1, n_rows_2). With "precomputed" X holds the
        kernel values of each row with all rows that are learned; a row of ``partial_fit`` is the
        column of its number in the stream.
    gamma : "scale", "auto" or float, default="scale"
        Of "rbf" and "poly". "scale" is ``1 / (n_features * X.var())``, where X is what the first
        call brings, rows of weight 0 included; "auto" is ``1 / n_features``.
    degree : int, default=2
        Of "poly": ``(gamma * x.z + coef0) ** degree``.
    coef0 : float, default=1.0
        Of "poly".
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        A budget's policy that removes support vectors takes their past out of the average, but not
        out of that of the thresholds: average under a budget with "projectron" alone.
    tie : {"crammer", "strict"}, default="crammer"
        As in `PRank`.
    threshold_scale : "auto" or float, default="auto"
        As in `PRank`.
    margin : float or "auto", default=0.0
        As in `PRank`; the squared length of a row is ``K(x, x)``.
    budget : int, optional
        The most support vectors to keep. By default all are kept: memory grows with the mistakes.
    budget_policy : {"oldest", "random", "smallest", "forgetron", "norma", "projectron"}, \
default="oldest"
        Support vector to remove beyond the budget: the oldest; a random one [3]_; the one
        of least ``|coefficient| * sqrt(K(x, x))``; the oldest, after all were shrunk as much as the
        Forgetron's bound requires [4]_; the oldest, while all shrink by ``decay`` at every example
        [5]_; or none: a row near the span of the others, or beyond the budget, adds to their
        coefficients its projection onto this span [6]_. No policy changes the thresholds.
    decay : float, default=0.01
        Part of each coefficient that "norma" takes away per example.
    projection_tol : float, default=1e-6
        "projectron" adds a row to the others if the square of its distance from their span is at
        most this part of ``K(x, x)``.
    max_iter, shuffle, tol, random_state, verbose, classes
        As in `PRank`; ``random_state`` also seeds "random".
    n_jobs : int, optional
        Threads that predict; -1 for all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels in ascending order, as of the columns of `decision_function`.
    ranks_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    support_ : ndarray of int64, shape (n_support,)
        Numbers of the support vectors among the rows, further rows of ``partial_fit`` included.
    support_vectors_ : ndarray or CSR, shape (n_support, n_features)
        A copy; float32 where X was. Empty with ``kernel="precomputed"``.
    dual_coef_ : ndarray of float64, shape (1, n_support)
        Coefficients to predict with (a copy): ``project`` is
        ``K(X, support_vectors_) @ dual_coef_[0]``.
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy).
    gamma_ : float
        The resolved ``gamma``.
    n_features_in_, feature_names_in_, n_iter_, best_iteration_, t_, history_, loss_curve_
        As in `PRank`.

    Notes
    -----
    Figure 2 of [1]_ in dual form [2]_. An example costs its kernel values with all support
    vectors, O(n_support * n_features), plus O(n_support**2) with "projectron". They are computed
    for a block of rows at once; the model is the same to the bit however a stream is cut into
    blocks and calls, dense or CSR, on every CPU. Memory: n_support * (n_features + 6) numbers, or
    for CSR rows n_support * 6 and 3 for each 2 values that are stored; up to three times that while
    arrays grow. With "forgetron" and "projectron" n_support**2 more.

    Weights are visits, as in `PRank`.

    In later passes a row that is a support vector already adds to its coefficient.

    Plain form: ``tests/reference/kernel.py``, ``kernel_prank``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003, section 3, without the factor that its dual form has too many.
    .. [3] G. Cavallanti, N. Cesa-Bianchi and C. Gentile. "Tracking the Best Hyperplane with a
       Simple Budget Perceptron". Machine Learning 2007.
    .. [4] O. Dekel, S. Shalev-Shwartz and Y. Singer. "The Forgetron". SIAM J. Computing 2008.
    .. [5] J. Kivinen, A. Smola and R. Williamson. "Online Learning with Kernels". IEEE
       Transactions on Signal Processing 2004.
    .. [6] F. Orabona, J. Keshet and B. Caputo. "Bounded Kernel-Based Online Learning". JMLR 2009.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, 2, 2]  # no direction orders these
    >>> model = rc.KernelPRank.published(kernel="poly", gamma=1.0, max_iter=10).fit(X, y)
    >>> model.predict(X)
    array([1, 1, 2, 2])
    """

    _built_in: ClassVar = OF_PRANK

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 2,
        coef0: float = 1.0,
        average: bool = True,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-6,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.average = average
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    def _rule_arrays(self, n_ranks: int, zeros: Zeros) -> tuple[dict[str, np.ndarray], int]:
        arrays = {
            "steps": zeros(n_ranks - 1, dtype=np.int64),
            "thresholds": zeros(n_ranks - 1),
            **self._other_arrays(n_ranks, zeros),
        }
        if self.average:
            arrays["steps_sums"] = zeros(n_ranks - 1, dtype=np.int64)
        return arrays, 1

    def _check_state(self, state: Any, n_ranks: int) -> None:
        super()._check_state(state, n_ranks)
        check_lattice(state.others, scale_of(state), *moves_of(state, *state.counts[::2]))

    def _bind(self, state: OnlineState, *pool: Any) -> Any:
        rule = scale_of(state), margin_of(state), self.tie == "strict"
        return KernelPRankState(state.others, *pool, *rule)

    def _cuts(self) -> np.ndarray:
        state = self._fitted_state()
        return scale_of(state) * state.mean("steps")

    def _output_lists(self, state: DualState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return mean_lists(state)


def mean_lists(state: DualState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All lists of a state, averaged if ``average``; cached until the next example."""
    others = state.others
    if "coefs_sums" not in others:
        return others["slots"], others["coefs"], others["sizes"]
    return state.averaged(lambda: (others["slots"], state.mean("coefs"), others["sizes"]))
