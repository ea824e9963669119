"""Ranking SVM with C chosen by cross-validation over queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, check_cv

from rankcore._core.arguments import Folds, Gamma, KernelLike, RowsLike, Seed
from rankcore._core.concurrency import replace_state
from rankcore._core.declaration import Declaration
from rankcore._core.labels import as_relevance
from rankcore._core.numbers import Floats
from rankcore._core.params import Checked, Constraints
from rankcore._core.queries import Queries, group_rows, query_numbers, whole_folds
from rankcore._core.warning import warns_once
from rankcore.ranking.base import ModelState, Ranker
from rankcore.ranking.data import RankingData, ranking_source
from rankcore.ranking.pairs import Pairing, check_useful, make_pairing, weighted_rows
from rankcore.ranking.standardizing import factors_of, moments_of_window
from rankcore.ranking.svm._estimator import CONSTRAINTS, RankSVM, column_factors
from rankcore.ranking.svm._path import along, as_cs, check_cs, warn_of_ties
from rankcore.ranking.svm._problems import Problem
from rankcore.ranking.validation import METRIC, check_defined, measure, merit


class RankSVMCV(Ranker):
    """Ranking SVM with C chosen by cross-validation over queries.

    Each fold holds out whole queries and fits one path over C. The C with the best mean score is
    refitted on all queries.

    Parameters
    ----------
    Cs : int or sequence of float, default=12
        Values of C, or the number of values from 1e-4 to 1e2 on a logarithmic scale.
    cv : int, splitter or iterable, optional
        Number of folds (None: 5), a splitter, which gets the queries as groups, or pairs of
        training and test rows. No query may be in both.
    scoring : str or callable, default="ndcg@10"
        Measure of held-out queries: a name known to `rankcore.metrics.evaluate`, or a function of
        labels, scores and qid (higher is better). Named losses are minimised.
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
    C_ : float
        The chosen C, the smallest among ties.
    Cs_ : ndarray of float64, shape (n_Cs,)
        Values of C, ascending.
    scores_ : ndarray of float64, shape (n_folds, n_Cs)
        Measure of the held-out queries.
    best_estimator_ : RankSVM
        Model fitted to all queries.
    coef_ : ndarray of float64, shape (n_features,)
        Weights of ``best_estimator_``, if it has any.
    n_iter_ : int
        Steps of the fit to all queries.
    history_ : dict of lists
        Figures of these steps, as for `RankSVM`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    grades_ : ndarray of str, shape (n_grades,)
        Words that y had as labels, lowest first; only if it had words.
    query_column_ : str
        Only if ``qid`` named a column; frames to predict may have it.

    Notes
    -----
    Rows of folds are not copied, only their pairs. There are O(n_folds * n_Cs) fits, each started
    from the previous one. `rankcore.save` writes ``best_estimator_``.

    Plain form: ``tests/reference/pair_loss.py``, ``objective``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(40, 20, random_state=0)
    >>> model = rc.RankSVMCV(Cs=[0.001, 0.01, 0.1], cv=4).fit(X, y, qid=qid)
    >>> model.scores_.shape, model.C_ in model.Cs_
    ((4, 3), True)
    """

    _declaration: ClassVar = Declaration(
        guide="ranksvm",
        learns_from="queries",
        weights="pairs",
        instances=lambda: [RankSVMCV([0.1, 1.0], cv=2, random_state=0)],
    )

    early_stopping_rounds = None
    _statistics = ()

    _constraints: ClassVar[Constraints] = {
        **CONSTRAINTS,
        "Cs": Checked(check_cs, "numbers > 0, or their number"),
        "scoring": METRIC,
    }

    def __init__(
        self,
        Cs: int | Sequence[float] = 12,
        cv: Folds | None = None,
        scoring: str | Callable[..., float] = "ndcg@10",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        balance: Literal["query"] | None = "query",
        kernel: KernelLike | None = None,
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 200,
        standardize: Literal["auto", False] = "auto",
        memory_limit: int = 2**31,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.balance = balance
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    @warns_once
    def fit(  # type: ignore[override]
        self,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose C by cross-validation, and refit on all queries.

        Parameters
        ----------
        X, y, qid, group, sample_weight
            As for `RankSVM.fit`. Queries of weight 0 are included in the measures.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, or a fold divides a query. A failed or interrupted
            fit does not change the estimator.
        """
        self._check_params()
        Cs = as_cs(self.Cs)
        y, words = self._graded(y, X)
        model = RankSVM(**self._params(float(Cs[0])))
        model = model._with_names(qid if isinstance(qid, str) else None, words)
        data = RankingData(X, y, qid, group, sample_weight)
        source: Any = ranking_source(data, as_rows=model._as_rows)
        X, rows = source.given, source.window.rows
        queries = group_rows(source.window.queries, rows.n_rows)
        numbers = query_numbers(queries)
        labels = as_relevance(source.window.labels, rows.n_rows)
        everything = make_pairing(source.window, balanced=self.balance == "query")
        check_useful(everything, rows.n_rows)
        source.weighted = weighted_rows(source.window)
        all_factors = column_factors(source, self)
        warn_of_ties(rows, everything, type(self).__name__)
        check_defined(self.scoring, labels, queries, "scoring")
        largest = 0 if source.window.queries is None else queries.largest
        state = ModelState(None, settings={})
        shadow = model._fitted_copy(X, rows.n_features, state, _largest_query=largest)
        scores = []
        folds = list(self._folds(X, labels, numbers, queries))
        planned = len(folds) * Cs.size + 1
        for k, (train, test) in enumerate(folds):
            part = _part(everything, numbers[train])
            factors = None
            if all_factors is not None:
                of_fold = moments_of_window(source.window, train)
                factors = None if of_fold is None else factors_of(of_fold)
            with Problem(model, rows, part, source.weighted, factors) as problem:
                path = along(shadow, problem, Cs, k * Cs.size, planned)
                scores.append(
                    [
                        measure(self.scoring, labels[test], s[test], numbers[test])
                        for s in (model_on_path._scores(rows, queries) for model_on_path in path)
                    ]
                )
        values = np.array(scores)
        best = int(merit(self.scoring, values.mean(axis=0)).argmax())
        with Problem(model, rows, everything, source.weighted, all_factors) as problem:
            chosen = next(along(shadow, problem, Cs[best : best + 1], planned - 1, planned))
        self._become_chosen(chosen, Cs, values, best)
        return self

    def _folds(self, X: Any, labels: Floats, numbers: NDArray[np.int64], queries: Queries) -> Any:
        n_queries = queries.ids.size
        if self.cv is None or isinstance(self.cv, Integral):
            n_folds = 5 if self.cv is None else int(self.cv)
            if not 2 <= n_folds <= n_queries:
                raise ValueError(
                    f"cv must be from 2 to the number of queries, {n_queries}; got {n_folds}"
                )
            splitter: Any = GroupKFold(n_folds)
        else:
            splitter = check_cv(self.cv)
        return whole_folds(splitter.split(X, labels, numbers), queries, numbers)

    def _become_chosen(self, chosen: RankSVM, Cs: Floats, values: Floats, best: int) -> None:
        optional = ("feature_names_in_", "query_column_", "grades_")  # which may lack them
        fresh = {k: v for k, v in vars(self).items() if k not in optional}
        fresh |= {
            "best_estimator_": chosen,
            "C_": float(Cs[best]),
            "Cs_": Cs,
            "scores_": values,
            "n_features_in_": chosen.n_features_in_,
            "_largest_query": chosen._largest_query,
        }
        fresh |= {k: v for k, v in vars(chosen).items() if k in optional}
        replace_state(self, fresh)

    def _params(self, C: float) -> dict[str, Any]:
        """Return the parameters of the ranking SVM."""
        kept = self.get_params(deep=False)
        return {"C": C} | {k: v for k, v in kept.items() if k not in ("Cs", "cv", "scoring")}

    def _scores(self, rows: Any, queries: Queries) -> Floats:
        return self._fitted()._scores(rows, queries)

    @property
    def coef_(self) -> Floats:
        """Weights of features, shape (n_features,)."""
        return self._fitted().coef_

    @property
    def n_iter_(self) -> int:
        """Steps of the fit to all queries."""
        return self._fitted().n_iter_

    @property
    def history_(self) -> dict[str, list[Any]]:
        """Statistics of the steps of the fit to all queries."""
        return self._fitted().history_

    def _fitted(self) -> RankSVM:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} is not fitted: call fit first")
        return vars(self)["best_estimator_"]

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in self.__dict__


def _part(pairing: Pairing, numbers: NDArray[np.int64]) -> Pairing:
    """Return the pairs of some queries."""
    kept = np.isin(pairing.queries, numbers)
    if not kept.any():
        raise ValueError(
            "a fold has no training query with two documents of different labels: choose fewer "
            "folds"
        )
    return pairing.part(kept)
