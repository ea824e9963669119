"""Ranking support vector machine, linear or with a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from rankcore._core.arguments import Gamma, KernelLike, Measures, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.equal_rows import equal_in_groups
from rankcore._core.kernels import GAMMAS, KERNELS
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.monitor import Callback, Monitor
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.params import (
    COUNT,
    N_JOBS,
    VERBOSE,
    Constraints,
    Function,
    Integer,
    Options,
    Real,
)
from rankcore._core.queries import Queries
from rankcore._core.scales import warn_of_scales
from rankcore._core.scoring import Scoring
from rankcore._core.sources import MemoryRows
from rankcore._core.state import (
    log_array,
    restored_log,
    restored_validation,
    validation_arrays,
)
from rankcore._core.training import Trainer
from rankcore._core.warning import warn
from rankcore._ext.online_model import MOST_COUNTED
from rankcore.ranking.base import ModelState, Ranker
from rankcore.ranking.data import HeldOut, RankingData, ranking_source
from rankcore.ranking.pairs import Pairing, check_useful, make_pairing, weighted_rows
from rankcore.ranking.standardizing import factors_of_window
from rankcore.ranking.svm._problems import Problem
from rankcore.ranking.svm.models import KernelModel, LinearModel
from rankcore.ranking.svm.newton import NewtonLearner, Solution, Step
from rankcore.ranking.validation import Validation

# Figures of each step.
STATISTICS = ("objective", "gap", "gradient_norm", "products")
# What the parameters accept, `RankSVMCV`'s too.
CONSTRAINTS: Constraints = {
    "C": Real(0, 1e100, closed="right"),
    "kernel": Options(*KERNELS) | Function() | None,
    "gamma": Options(*GAMMAS) | Real(0, 1e100, closed="right"),
    "degree": COUNT,
    "coef0": Real(0, 1e100),
    "tol": Real(0, 1e100, closed="right"),
    "max_iter": COUNT,
    "memory_limit": Integer(0),
    "n_jobs": N_JOBS,
    "verbose": VERBOSE,
}


class RankSVM(Ranker):
    """Ranking SVM: L2-regularised pairwise hinge loss, linear or with a kernel.

    It minimises ::

        |w|^2 / 2 + C * sum over queries q of c_q * sum over pairs (i, j) of q of
                                             max(0, 1 - (s_i - s_j))^p

    where w are weights and s scores of standardised features, document i has a higher label than j,
    and p is 2 for ``loss="squared_hinge"``, 1 for "hinge". Pairs of labels are never enumerated:
    the loss, its gradient and Hessian-vector products cost a sort of each query's scores.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss relative to the regularisation.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss of a pair. "squared_hinge" is faster to minimise.
    balance : {"query"}, optional, default="query"
        "query": c_q is 1 / (weight of the pairs of q), so that queries have equal weight. None: c_q
        is 1, as in the papers; then divide C by about the number of pairs in a query.
    kernel : {"linear", "poly", "rbf", "precomputed"}, callable or None, default=None
        None: a linear model with one weight per feature. Otherwise a model with one coefficient per
        training document: "linear", K(x, z) = x'z; "poly", (gamma x'z + coef0)^degree; "rbf",
        exp(-gamma |x - z|^2); "precomputed", X has kernel values, with training documents as
        columns; or a function of two matrices that returns the kernel matrix of their rows. The
        kernel must be positive semidefinite.
    gamma : {"scale", "half", "auto"} or float, default="scale"
        gamma of "poly" and "rbf": "scale", 1 / (n_features * variance of X); "half", half of it;
        "auto", 1 / n_features; or a positive number.
    degree : int, default=3
        Degree of "poly", at least 1.
    coef0 : float, default=1.0
        Constant of "poly", at least 0.
    tol : float, default=1e-4
        Tolerance: iteration stops when the duality gap is at most this share of the objective, and
        of its decrease from w = 0.
    max_iter : int, default=200
        Maximum number of Newton steps; 4 to 10 usually suffice, some more with the hinge.
    warm_start : bool, default=False
        Whether ``fit`` starts at the current model. With a kernel the rows must be the same.
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each pass, round or step: names known to
        `rankcore.metrics.evaluate`, or functions of labels, scores and qid (higher is better).
        Named losses are minimised. The first of a list is used for early stopping.
    standardize : {"auto", False}, default="auto"
        "auto": learn from features divided by their standard deviations, without a copy of X;
        ``coef_`` is for features as given. Columns of 0 and 1 are not divided, nor are rows of
        which at most an eighth of the values are not 0, nor those of a model with a ``kernel``:
        scale these by a ``StandardScaler``, as ``gamma`` refers to features as given. False: learn
        from features as given.
    memory_limit : int, default=2**31
        Maximum bytes of the kernel matrix, 8 per pair of rows; ``fit`` raises an error beyond it.
    n_jobs : int, optional
        Number of threads, which share the queries. None: 1, -1: one per processor. The model does
        not depend on it.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sample of queries for the preconditioner of Newton steps. The minimum is unique:
        within ``tol`` the model does not depend on it.
    verbose : int, default=0
        Print one line every ``verbose`` steps; 0 prints none.
    classes : array-like of str, shape (n_grades,), optional
        Labels that are words, lowest grade first: they are the grades 0, 1 ... By default those of
        an ordered categorical y. Labels that are numbers are grades themselves.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy); only without a kernel or with the linear one.
    dual_coef_ : ndarray of float64, shape (n_support,)
        Coefficients of documents; only with a kernel.
    support_ : ndarray of int64, shape (n_support,)
        Training rows of these documents.
    objective_, gap_ : float
        Objective of the model, for standardised features, and the duality gap as a share of it.
    position_effect_ : ndarray of float64
        Effect of each position on the score, after ``fit`` with ``position`` but no ``propensity``.
        It is not part of the model: it is neither used in predictions nor saved.
    n_iter_ : int
        Number of steps.
    history_ : dict of lists
        Figures of each step: ``objective``; ``gap``, as a share of it; ``gradient_norm``;
        ``products``, the number of Hessian-vector products; and, with an ``eval_set``, each
        ``eval_metric``, as ``valid_ndcg@10``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    grades_ : ndarray of str, shape (n_grades,)
        Words that y had as labels, lowest first; only if it had words.
    query_column_ : str
        Column of queries that ``fit`` named by a string; predictions remove it from data frames.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the gap is larger than ``tol`` after ``max_iter`` steps.

    Notes
    -----
    Scores are sorted starting from their previous order. A scan down the scores and one up give the
    sums of 1 - d and (1 - d)^2 over all pairs with d < 1 by a Fenwick tree over the labels, in
    O(n log n) for a query of n documents and O(values of X), which are read once per evaluation
    [1]_ [2]_. Newton steps are computed by conjugate gradients, preconditioned by the Hessian of a
    sample of queries if there are at most 1024 features and its cost is not large beside that of
    the products it saves, as with sparse X, and followed by a line search. With the squared hinge,
    dense X of more features than documents is solved on inner products in float32 first, in
    O(n_docs^2 * n_features). The hinge is smoothed by a parabola, whose width decreases until the
    duality gap of the hinge itself is small enough. Kernels are those of [3]_.

    Memory beyond X: about 100 bytes per row; 8 bytes per feature in each of up to 32 blocks of
    queries; with a kernel, 8 bytes per pair of rows, and 64 MiB during its computation; with inner
    products, 4 bytes per pair of rows, and 32 MiB. Queries without two labels are ignored.

    Plain form: ``tests/reference/pair_loss.py``, ``objective``.

    References
    ----------
    .. [1] T. Joachims. "Training Linear SVMs in Linear Time". KDD 2006.
    .. [2] C.-P. Lee and C.-J. Lin. "Large-Scale Linear RankSVM". Neural Computation 26, 2014.
    .. [3] T.-M. Kuo, C.-P. Lee and C.-J. Lin. "Large-Scale Kernel RankSVM". SDM 2014.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1]], [2, 0, 1]
    >>> model = rc.RankSVM(loss="hinge", balance=None, tol=1e-9).fit(X, y, qid=[0, 0, 0])
    >>> model.coef_.round(4)
    array([ 1., -1.])
    >>> round(model.objective_, 6), model.predict_rank(X)
    (1.0, array([1, 3, 2]))
    """

    _declaration: ClassVar = Declaration(
        guide="ranksvm",
        learns_from="queries",
        weights="pairs",
        instances=lambda: [RankSVM(random_state=0), RankSVM(kernel="poly", random_state=0)],
    )

    _statistics = STATISTICS
    early_stopping_rounds = None

    _constraints: ClassVar[Constraints] = CONSTRAINTS

    def __init__(
        self,
        C: float = 1.0,
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        balance: Literal["query"] | None = "query",
        kernel: KernelLike | None = None,
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        eval_metric: Measures = "ndcg@10",
        standardize: Literal["auto", False] = "auto",
        memory_limit: int = 2**31,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.balance = balance
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.eval_metric = eval_metric
        self.standardize = standardize
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    # ---------------------------------------------------------------- learning

    def _fit(self, data: RankingData, callbacks: Iterable[Callback] | None) -> None:
        source: Any = ranking_source(data, as_rows=self._as_rows)
        pairing, fitted, validation = self._begin(source, data.held_out)
        factors = column_factors(source, self)
        rows = source.window.rows
        # The pairs have copies of the labels and queries that they use.
        source.window = replace(source.window, labels=None, queries=None)
        with (
            Problem(self, rows, pairing, source.weighted, factors) as problem,
            problem.limits(),
        ):
            start = problem.start(self._warm(rows.n_rows, rows.n_features))
            steps = problem.steps(self, start)
            monitor = Monitor(fitted, validation, callbacks)
            tied = equal_in_groups(rows, pairing.docs, pairing.bounds)
            learner = NewtonLearner(fitted, problem, steps, monitor, tied)
            Trainer(learner, source, learner.monitor).run()
            fitted._take(problem, learner.solution())
        self._warn(learner.solution())
        self._replace_with(fitted)

    def _check_positions(self) -> None:
        if self.kernel is not None or self.warm_start:
            raise ValueError(
                "position without propensity requires kernel=None and warm_start=False"
            )

    def _keep_features(self, n_features: int) -> None:
        self._state.model = LinearModel(self._state.model.weights[:n_features].copy())

    def _begin(
        self, source: Any, held_out: Sequence[HeldOut]
    ) -> tuple[Pairing, Self, list[Validation]]:
        """Return the pairs of a fit, a copy of the estimator to fit, and held-out rows."""
        window, rows = source.window, source.window.rows
        pairing = make_pairing(window, balanced=self.balance == "query")
        check_useful(pairing, rows.n_rows)
        source.weighted = weighted_rows(window)
        has_queries = window.queries is not None
        validation = self._validation(source.given, rows.n_features, has_queries, held_out)
        largest = window.queries.largest if has_queries else 0
        state = ModelState(None, settings={})
        shadow = self._fitted_copy(source.given, rows.n_features, state, _largest_query=largest)
        return pairing, shadow, validation

    def _warm(self, n_rows: int, n_features: int) -> LinearModel | KernelModel | None:
        """Return the model to start from."""
        if not self.warm_start or "_state" not in self.__dict__:
            return None
        if self.n_features_in_ != n_features:
            raise ValueError(
                f"X has {n_features} features, but warm_start continues a model of "
                f"{self.n_features_in_}"
            )
        model = self._state.model
        if isinstance(model, KernelModel) and (model.support >= n_rows).any():
            raise ValueError(
                f"X has {n_rows} rows, fewer than the model that warm_start continues: "
                "with a kernel the rows must be the same"
            )
        return model

    def _note(self, step: Step) -> None:
        """Add a step to the log."""
        self._state.log.append([step.objective, step.share, step.gradient_norm, step.products])

    def _take(self, problem: Problem, solution: Solution) -> None:
        """Store a solution."""
        self._state.model = problem.model(solution.w)
        self.objective_, self.gap_ = solution.objective, solution.share
        self.n_iter_ = solution.n_iter

    def _warn(self, solution: Solution) -> None:
        if solution.outcome in ("max_iter", "precision"):
            advice = (
                "increase max_iter, decrease C or scale X"
                if solution.outcome == "max_iter"
                else "float64 allows no further progress: increase tol, decrease C or scale X"
            )
            warn(
                f"{type(self).__name__} did not converge: after {solution.n_iter} steps the "
                "relative "
                f"duality gap is {solution.share:.1e}, above tol={self.tol:g}; {advice}",
                ConvergenceWarning,
            )

    # ---------------------------------------------------------------- fitted model

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._state
        facts = {
            "largest_query": self._largest_query,
            "validation": [*state.validation],
            "objective": self.objective_,
            "gap": self.gap_,
            "n_iter": self.n_iter_,
            "kernel": state.model.facts(),
        }
        logged = {"log": log_array(state.log, STATISTICS), **validation_arrays(state.validation)}
        return facts, state.model.to_arrays() | logged

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        facts, n_features = spec.facts, check_n_features(spec.n_features)
        log = restored_log(spec, STATISTICS)
        objective, gap, steps = facts["objective"], facts["gap"], facts["n_iter"]
        if not isinstance(steps, int) or not 0 <= steps <= MOST_COUNTED:
            raise ValueError(f"n_iter of the model must be a number of steps; got {steps!r}")
        kernel, model = facts["kernel"], LinearModel if self.kernel is None else KernelModel
        if (None if kernel is None else kernel["kind"]) != self.kernel:
            raise ValueError("the kernel of the model must be that of the parameters")
        restored = model.restored(kernel, spec.arrays, n_features)
        validation = restored_validation(spec, len(log))
        self._state = ModelState(restored, settings={}, log=log, validation=validation)
        self.objective_, self.gap_, self.n_iter_ = float(objective), float(gap), steps
        self.n_features_in_, self._largest_query = n_features, int(facts["largest_query"])

    def _fit_summary(self) -> dict[str, Any]:
        return {
            "steps": self.n_iter_,
            "objective": self.objective_,
            "above_minimum_at_most": self.gap_ * self.objective_,
        }

    def _summary(self) -> dict[str, Any]:
        summary = {"steps": self.n_iter_, "objective": self.objective_}
        if isinstance(self._state.model, KernelModel):
            summary["documents_with_coefficients"] = self._state.model.support.size
        return summary

    def _scores(self, rows: Any, queries: Queries) -> Floats:
        return check_scores(self._fitted_state().model.score(rows))

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of features, shape (n_features,)."""
        model = self._fitted_state().model
        if isinstance(model, LinearModel):
            return model.weights.copy()
        if model.kernel.kind == "linear":
            return model.weights()
        raise AttributeError("coef_ requires kernel=None or 'linear'; use dual_coef_ and support_")

    @property
    def dual_coef_(self) -> NDArray[np.float64]:
        """Coefficients of documents, shape (n_support,)."""
        return self._kernel_model().coefficients.copy()

    @property
    def support_(self) -> NDArray[np.int64]:
        """Training rows with a coefficient, shape (n_support,)."""
        return self._kernel_model().support.copy()

    def _kernel_model(self) -> KernelModel:
        model = self._fitted_state().model
        if isinstance(model, LinearModel):
            raise AttributeError("dual_coef_ and support_ require a kernel; use coef_")
        return model


def column_factors(source: MemoryRows, learner: Any) -> Floats | None:
    """Return the factors of features; None for features as given.

    Then it warns if some of them dominate kernel values, or need far smaller weights than others.
    """
    if learner.standardize == "auto" and learner.kernel is None:
        factors = factors_of_window(source.window, source.names, type(learner).__name__)
        if factors is not None:
            return factors
    if learner.kernel != "precomputed":
        columns = source.columns_off_scale(centred=True)
        warn_of_scales(columns, source.names, type(learner).__name__)
    return None
