"""Online ensembles of PRanks in dual form, which share their support vectors."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Gamma, KernelLike, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.params import COUNT, N_JOBS, Constraints, Real, as_generator
from rankcore._ext.kernel_learners import KernelOAPModel
from rankcore.ordinal._members import OF_ENSEMBLE, least_draws
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.kernel import pools
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.parameters import resolved_margin
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    ranks_by_thresholds,
    scores_by_thresholds,
)
from rankcore.ordinal.scale import MARGIN, OF_UNITS, SCALE, BuiltIn
from rankcore.ordinal.weights import Block

__all__ = ["KernelOAPBPM"]


class KernelOAPBPM(KernelClassifier):
    """OAP-BPM with a kernel: the mean of kernel PRanks that sample one stream.

    `OAPBPM` in the feature space of a kernel. The members share one pool of support vectors, so
    that the kernel values of an example are computed once.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or a Poisson(1) number of times (online
        bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        As in scikit-learn's ``SVC``. A callable takes two blocks of rows, as arrays or CSR like X,
        and returns their kernel values, shape (n_rows_1, n_rows_2). With "precomputed" X holds the
        kernel values of each row with all learned rows; in ``partial_fit`` the column of a row is
        its number in the stream.
    gamma : {"scale", "half", "auto"} or float, default="scale"
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
    margin : float or "auto", default=0.0
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
    n_jobs : int, optional
        Threads for kernel values; -1 for all processors. The result does not depend on it.
    budget : int, optional
        Maximum number of support vectors. By default all are kept: memory grows with the number of
        mistakes.
        Limits the pool; a vector removed from the pool is removed from all members.
    budget_policy : {"oldest", "random", "smallest", "forgetron", "norma", "projectron"}, \
default="oldest"
        Support vector to remove beyond the budget: the oldest; a random one; the one of minimum
        ``|coefficient| * sqrt(K(x, x))``; the oldest, after shrinking all as the bound of the
        Forgetron requires; the oldest, with all shrunk by ``decay`` at every example; or none: a
        row near the span of the support vectors, or beyond the budget, is projected onto this span,
        and added to their coefficients. No policy changes the thresholds. `KernelPRank` has the
        sources.
        "smallest" compares the root of the sum of squared coefficients over members.
    decay : float, default=0.01
        Share of each coefficient that "norma" removes per example.
    projection_tol : float, default=1e-6
        "projectron" projects a row onto the span of the support vectors if the square of its
        distance from the span is at most this share of ``K(x, x)``.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
        Also seeds the sampling; the same seed draws the same examples as in `OAPBPM`.
    max_iter : int, default=10
        Passes over the data in ``fit``.
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
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (1, n_support)
        Mean of the members' coefficients (a copy).
    member_dual_coef_ : CSR of float64, shape (n_estimators, n_support)
        Coefficients of the members (a copy): integers, unless the budget shrinks or projects them.
    member_thresholds_ : ndarray of float64, shape (n_estimators, n_classes - 1)
        Thresholds of the members (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Mean of the members' thresholds, ascending (a copy).
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
        The losses are those of the mean of the members' last parameters.
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
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

    Notes
    -----
    Algorithm 2 of [1]_ in dual form, with the coefficients that its text derives. An example costs
    one row of kernel values and, for each member that takes it, that member's coefficients; a
    prediction costs the same as with `KernelPRank`. Memory: the pool, and 12 bytes per non-zero
    coefficient of a member (20 with ``average_members``).

    Weights are visits, as in `PRank`.

    Plain form: ``tests/reference/kernel.py``, ``kernel_oap``.

    References
    ----------
    .. [1] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, 2, 2]
    >>> model = rc.KernelOAPBPM(gamma=1.0, max_iter=40, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([1, 1, 2, 2])
    """

    _declaration: ClassVar = Declaration(
        guide="kernels",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            KernelOAPBPM(3, budget=20, budget_policy="random", random_state=0),
        ],
    )

    _model_class = KernelOAPModel
    _built_in: ClassVar[BuiltIn] = {**OF_ENSEMBLE, **OF_UNITS}
    _n_sums = 1  # the last output is the sum of the members

    _constraints: ClassVar[Constraints] = {
        "n_estimators": COUNT,
        "tau": Real(2.0**-32, 1),
        "n_jobs": N_JOBS,
        "threshold_scale": SCALE,
        "margin": MARGIN,
    }

    thresholds_ = ascending_thresholds
    margin_ = resolved_margin
    _ranks = ranks_by_thresholds
    _scored = scores_by_thresholds

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 2,
        coef0: float = 1.0,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        *,
        n_jobs: int | None = None,
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-06,
        random_state: Seed | None = None,
        max_iter: int = 10,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.tau = tau
        self.sampling = sampling
        self.average_members = average_members
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.n_jobs = n_jobs
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.random_state = random_state
        self.max_iter = max_iter
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.verbose = verbose
        self.classes = classes

    @property
    @consistent_read
    def member_dual_coef_(self) -> sp.csr_array:
        """Coefficients of the members, CSR of shape (n_estimators, n_support)."""
        model = self._fitted_state().model
        lists = {**model.arrays, "coefs": model.member_coefs()}
        return sp.csr_array(pools.coefficient_table(lists)[:-1])

    @property
    @consistent_read
    def member_thresholds_(self) -> np.ndarray:
        """Thresholds of the members, shape (n_estimators, n_classes - 1)."""
        return np.array(self._fitted_state().model.member_thresholds())

    def _new_model(self, n_features: int, n_ranks: int) -> KernelOAPModel:
        seed = as_generator(self.random_state).integers(2**63, size=1)
        model = super()._new_model(n_features, n_ranks)
        model["seed"][:] = seed
        return model

    def _learn(self, state: OnlineRecord, block: Block) -> int:
        state.model.draw_by(least_draws(state.settings)[0])
        return super()._learn(state, block)
