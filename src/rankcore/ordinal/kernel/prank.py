"""PRank in dual form."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from rankcore._core.arguments import Gamma
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.params import COUNT, Constraints, Options
from rankcore._ext.kernel_learners import KernelPRankModel
from rankcore.ordinal._parameters import AveragingParams, EpochParams, MarginParams
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._scale import OF_PRANK
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._dual import BudgetParams

__all__ = ["KernelPRank"]


@parameters
class KernelPRankParameters(MarginParams, AveragingParams, BudgetParams, EpochParams):
    """Parameters of `KernelPRank`."""

    gamma: Gamma = "half"
    margin: float | str = "auto"
    _: KW_ONLY
    max_iter: int | str = "auto"  # type: ignore[assignment]


@documented()
class KernelPRank(KernelPRankParameters, Thresholds, KernelClassifier):
    """PRank with a kernel: a non-linear score and ordered thresholds, online.

    `PRank` in the feature space of a kernel. A misranked row becomes a support vector, whose
    coefficient is the sum of the threshold steps; the projection of a row is the sum of
    coefficients times kernel values.

    Parameters
    ----------
    average
        A budget policy that removes support vectors removes them from the average of the
        coefficients, but not from that of the thresholds: with a budget, average only with
        "projectron".
    margin
        The squared length of a row is ``K(x, x)``.
    max_iter : "auto" or int, default="auto"
        Passes over the data in ``fit``. "auto" makes 20. If the mean rank loss of the last one is
        above 0.65 times that of the best constant label, the labels are noisy, and later passes fit
        the noise: the model keeps the parameters after the fifth pass (``best_iteration_``). Early
        stopping decides instead where it is used; rows with weights keep the last parameters.
    random_state
        Also the seed of the policy "random".

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (1, n_support)
        Coefficients for predictions (a copy): ``project`` is ``K(X, support_vectors_) @
        dual_coef_[0]``.
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy).

    Notes
    -----
    Figure 2 of [1]_ in dual form [2]_. An example costs its kernel values with all support vectors,
    O(n_support * n_features), plus O(n_support**2) with "projectron". They are computed by blocks
    of rows; the model is the same to the bit for any division of a stream into blocks and calls,
    dense or CSR, on every CPU. Memory: n_support * (n_features + 6) numbers, or for CSR rows
    n_support * 6, plus 3 for each 2 stored values; up to three times that while arrays grow. With
    "forgetron" and "projectron" n_support**2 more.

    The policies "random", "forgetron", "norma" and "projectron" are those of [3]_, [4]_, [5]_ and
    [6]_. Weights are visits, as in `PRank`.

    In later passes an update with a support vector changes its coefficient.

    Plain form: ``tests/reference/kernel.py``, ``kernel_prank``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003, section 3, without a superfluous factor in its dual form.
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

    _declaration: ClassVar = Declaration(
        guide="kernels",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            KernelPRank(max_iter=2, random_state=0),
            KernelPRank(kernel="linear", max_iter=2, random_state=0),
            KernelPRank(budget=20, budget_policy="forgetron", average=False, random_state=0),
        ],
    )

    _constraints: ClassVar[Constraints] = {"max_iter": Options("auto") | COUNT}
    _built_in: ClassVar = OF_PRANK
    _published: ClassVar[dict[str, Any]] = {"gamma": "scale"}
    _model_class = KernelPRankModel
