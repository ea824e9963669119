"""PRank in dual form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Gamma, KernelLike, Measures, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.params import COUNT, Constraints, Options
from rankcore._ext.kernel_learners import KernelPRankModel
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.parameters import resolved_margin
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    ranks_by_thresholds,
    scores_by_thresholds,
)
from rankcore.ordinal.scale import MARGIN, OF_PRANK, OF_UNITS, SCALE

__all__ = ["KernelPRank"]


class KernelPRank(KernelClassifier):
    """PRank with a kernel: a non-linear score and ordered thresholds, online.

    `PRank` in the feature space of a kernel. A misranked row becomes a support vector, whose
    coefficient is the sum of the threshold steps; the projection of a row is the sum of
    coefficients times kernel values.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        As in scikit-learn's ``SVC``. A callable takes two blocks of rows, as arrays or CSR like X,
        and returns their kernel values, shape (n_rows_1, n_rows_2). With "precomputed" X holds the
        kernel values of each row with all learned rows; in ``partial_fit`` the column of a row is
        its number in the stream.
    gamma : {"scale", "half", "auto"} or float, default="half"
        Parameter of "rbf" and "poly". "scale" is ``1 / (n_features * X.var())``, of standardised
        rows or, where these are left alone, of the X of the first call; "half" is half of that, for
        a wider kernel; "auto" is ``1 / n_features``.
    degree : int, default=2
        Degree of "poly", ``(gamma * x.z + coef0) ** degree``.
    coef0 : float, default=1.0
        Constant of "poly".
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default="auto"
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
        The squared length of a row is ``K(x, x)``.
    max_iter : "auto" or int, default="auto"
        Passes over the data in ``fit``. "auto" makes 20. If the mean rank loss of the last one is
        above 0.65 times that of the best constant label, the labels are noisy, and later passes fit
        the noise: the model keeps the parameters after the fifth pass (``best_iteration_``). Early
        stopping decides instead where it is used; rows with weights keep the last parameters.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
        A budget policy that removes support vectors removes them from the average of the
        coefficients, but not from that of the thresholds: with a budget, average only with
        "projectron".
    budget : int, optional
        Maximum number of support vectors. By default all are kept: memory grows with the number of
        mistakes.
    budget_policy : {"oldest", "random", "smallest", "forgetron", "norma", "projectron"}, \
default="oldest"
        Support vector to remove beyond the budget: the oldest; a random one; the one of minimum
        ``|coefficient| * sqrt(K(x, x))``; the oldest, after shrinking all as the bound of the
        Forgetron requires; the oldest, with all shrunk by ``decay`` at every example; or none: a
        row near the span of the support vectors, or beyond the budget, is projected onto this span,
        and added to their coefficients. No policy changes the thresholds. `KernelPRank` has the
        sources.
    decay : float, default=0.01
        Share of each coefficient that "norma" removes per example.
    projection_tol : float, default=1e-6
        "projectron" projects a row onto the span of the support vectors if the square of its
        distance from the span is at most this share of ``K(x, x)``.
    n_jobs : int, optional
        Threads for kernel values; -1 for all processors. The result does not depend on it.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
        ``gamma`` and support vectors refer to standardised columns, whose means and deviations the
        model keeps. Values of a precomputed kernel are left alone; other kernels than "linear"
        centre columns also without an intercept.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
        Also the seed of the policy "random".
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (1, n_support)
        Coefficients for predictions (a copy): ``project`` is ``K(X, support_vectors_) @
        dual_coef_[0]``.
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy).
    margin_ : float
        The resolved ``margin``.
    support_ : ndarray of int64, shape (n_support,)
        Row numbers of the support vectors, counted over all calls of ``partial_fit``.
    support_vectors_ : ndarray or CSR, shape (n_support, n_features)
        Support vectors (a copy), standardised; as they are, and float32 if X was, where rows are
        left alone. Empty with ``kernel="precomputed"``.
    mean_, scale_ : ndarray of float64, shape (n_features_in_,)
        Mean that is subtracted from each column, 0 if none is, and deviation by which it is
        divided, or 1 (copies). The kernel takes ``(X - mean_) / scale_``.
    gamma_ : float
        The resolved ``gamma``.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``, or 5 for noisy labels, see
        ``max_iter``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

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
            KernelPRank(kernel="linear", max_iter=2, standardize=False, random_state=0),
            KernelPRank(
                budget=20,
                budget_policy="forgetron",
                average=False,
                standardize=False,
                random_state=0,
            ),
        ],
    )
    _built_in: ClassVar = {**OF_PRANK, **OF_UNITS}
    _published: ClassVar[dict[str, Any]] = {"gamma": "scale"}
    _model_class = KernelPRankModel

    _constraints: ClassVar[Constraints] = {
        "threshold_scale": SCALE,
        "margin": MARGIN,
        "max_iter": Options("auto") | COUNT,
    }

    thresholds_ = ascending_thresholds
    margin_ = resolved_margin
    _ranks = ranks_by_thresholds
    _scored = scores_by_thresholds

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "half",
        degree: int = 2,
        coef0: float = 1.0,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = "auto",
        *,
        max_iter: int | str = "auto",
        average: bool = True,
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-06,
        n_jobs: int | None = None,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.max_iter = max_iter
        self.average = average
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes
