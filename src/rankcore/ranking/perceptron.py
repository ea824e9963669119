"""Pairwise perceptrons: online learning from pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import Measures, RowsLike, Seed
from rankcore._core.concurrency import consistent_read, exclusive
from rankcore._core.declaration import Declaration
from rankcore._core.hypotheses import MAX_HYPOTHESES, limited, warn_of_dropped_votes
from rankcore._core.inputs import as_rows
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.monitor import Callback, Monitor, as_callbacks, resumed_model
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.params import (
    COUNT,
    HALF_LIFE,
    VERBOSE,
    Constraints,
    Integer,
    Real,
    as_generator,
    check_declared,
)
from rankcore._core.queries import Queries, queries_of
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._core.sources import Window
from rankcore._core.training import Trainer
from rankcore._ext.pair_model import PairModel
from rankcore._ext.rows import Rows, project
from rankcore.ranking.base import Ranker
from rankcore.ranking.data import RankingData, ranking_source
from rankcore.ranking.perceptron_state import Committee, PairwiseState, borda, votes
from rankcore.ranking.perceptron_training import (
    STATISTICS,
    PairwiseLearner,
    bind_pairs,
    pairing_of,
    run_pass,
)
from rankcore.ranking.standardizing import parts_of_stream
from rankcore.ranking.validation import METRIC, Validation, merit

__all__ = ["Committee", "PairwisePerceptron"]

# Parameters behind settings of other names, for error messages.
SETTINGS = {"capacity": "committee_size, or variant or max_hypotheses", "judged": "quality"}


class PairwisePerceptron(Ranker):
    """Perceptron on pairs of documents: averaged, committee, voted, pocket or last hypothesis.

    Each pass visits each pair of documents of a query that differ in label. If the better document
    does not score higher by more than ``margin`` (a mistake), a multiple of the difference of the
    two documents is added to the weights. The weight vector between two mistakes is a hypothesis;
    the pairs it ranks correctly are its successes. Variants differ in the hypotheses they predict
    with.

    Parameters
    ----------
    variant : {"averaged", "committee", "voted", "pocket", "last"}, default="averaged"
        "averaged": the mean of all hypotheses, weighted by successes. "committee": the
        ``committee_size`` hypotheses with the most successes. "voted": votes of all hypotheses.
        "pocket": the hypothesis with the most successes. "last": the last one. The fit is the same
        for all but "voted": ``set_params(variant=...)`` changes the predictions of a fitted model.
    committee_size : int, default=20
        Number of hypotheses of the committee.
    combine : {"auto", "score", "rank"}, default="auto"
        Predictions of a committee: by the mean of the members' weights ("score"), or of the ranks
        that each member gives a document within its query ("rank"), both weighted by successes.
        "auto" is "rank" for "voted", otherwise "score". "voted" requires "rank", as the mean of its
        weights is that of "averaged".
    max_iter : int, default=10
        Number of passes over all pairs. A pass without mistakes is the last, unless there is an
        ``eval_set``.
    margin : float, default=1.0
        A pair is a mistake unless the better document scores higher by more than this. [1]_ uses 0;
        see Notes.
    balance : {"query"}, optional, default="query"
        "query": a step is 1 / (number of pairs of the query), so that queries have equal weight;
        None: steps are 1.
    shuffle : bool, default=True
        Whether to visit queries, and the pairs of each, in a new random order in each pass. False:
        in the order of rows, by winner and then loser.
    count : {"pair", "query"}, default="pair"
        Value of a success: 1, or 1 / (number of pairs of the query).
    quality : str or callable, optional
        Criterion for the hypotheses of "committee" and "pocket", instead of successes: a measure
        such as "map" of the ``eval_set``, or a function of the weights, higher for better. It is
        evaluated at the mistake that ends a hypothesis, for those only that would join the
        committee by successes. Unused by "voted" with ``max_hypotheses=None``.
    max_hypotheses : int, "auto" or None, default="auto"
        Maximum number of voters of "voted", those with the most successes. "auto": 5000, or fewer
        that fit in 32 MB, with a warning if they have less than half of the successes. None:
        unlimited.
    standardize : {"auto", False}, default="auto"
        "auto": learn from features divided by their standard deviations, and by the square root of
        ``n_features``, so that rows have about the length 1 and a margin means the same for any
        data. X is not copied; ``coef_`` is for features as given. Deviations are those of the
        weighted rows. Columns of 0 and 1 are divided by the root alone, and rows of which at most
        an eighth of the values are not 0 by nothing. In ``partial_fit`` deviations are those of all
        rows so far, renewed each time their number reaches a power of two, a deviation has grown by
        more than a tenth, or a constant column begins to move. False: learn from features as given.
    half_life : float, optional
        Number of mistakes after which a hypothesis has half its weight in the average, at least 1,
        so that this follows a stream that changes. By default successes alone weigh hypotheses.
        Only for variant="averaged".
    early_stopping_rounds : int, optional
        Stop after this many consecutive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each pass, round or step: names known to
        `rankcore.metrics.evaluate`, or functions of labels, scores and qid (higher is better).
        Named losses are minimised. The first of a list is used for early stopping.
    memory_limit : int, default=2**31
        Maximum bytes of the cache of Gram matrices, on which the model does not depend, and of the
        hypotheses of "voted", beyond which ``fit`` raises an error.
    random_state : int, numpy Generator or RandomState, optional
        Seed of ``shuffle``. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like of str, shape (n_grades,), optional
        Labels that are words, lowest grade first: they are the grades 0, 1 ... By default those of
        an ordered categorical y. Labels that are numbers are grades themselves.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights of the score (a copy); absent if ranks are combined.
    committee_ : Committee
        Weights and successes of the hypotheses of the committee, best first, which may include the
        current one.
    n_iter_ : int
        Number of passes; consecutive calls of ``partial_fit`` count as one.
    position_effect_ : ndarray of float64
        Effect of each position on the score, after ``fit`` with ``position`` but no ``propensity``.
        It is not part of the model: it is neither used in predictions nor saved.
    best_iteration_ : int
        Number, from 1, of the pass chosen by early stopping.
    history_ : dict of lists
        Figures of each pass: ``pairs``; ``mistakes``; ``hypotheses`` so far; ``queries`` visited;
        ``skipped`` queries, without two documents of different labels; and, with an ``eval_set``,
        each ``eval_metric``, as ``valid_ndcg@10``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    grades_ : ndarray of str, shape (n_grades,)
        Words that y had as labels, lowest first; only if it had words.
    query_column_ : str
        Column of queries that ``fit`` named by a string; predictions remove it from data frames.

    Notes
    -----
    The Committee Perceptron of [1]_, with details that its figure omits: successes are counted from
    0 for each hypothesis, the last hypothesis is also a candidate for the committee, and ties go to
    the earlier hypothesis. The average counts only pairs ranked correctly.

    With steps of 1 and margin 0 there are at most ``max |x_i - x_j|^2 / g^2`` mistakes if a unit
    vector separates all pairs by g. If data are not separable, hypotheses without a margin are
    short-lived, and their successes are not informative; with a margin, the weights grow until only
    close pairs change them. Steps are proportional to the features, and the margin is in units of
    the score, so features should be on one scale, as ``standardize`` puts them.

    Scores of a query are computed in the cheapest of three ways. With the query's Gram matrix, a
    mistake updates all of them by n_docs multiplications, and a pair costs a comparison; with
    copies of dense documents, a pair costs n_features multiplications in vector lanes; or outdated
    scores are computed on demand, in O(non-zeros). The first two sum in another order, so that
    scores may differ by rounding, and so may decisions if the scores of a pair differ by ``margin``
    to 15 digits. If sums are exact, the models are equal to the bit.

    A pass visits every pair, so its time grows with the square of the number of rows of a query: a
    query of 10^6 rows has up to 5 * 10^11 pairs. `fit` warns of more than 10^9 pairs in a query.

    Memory beyond X: about 100 bytes per row during the setup of pairs, then 24 per row; 16 per
    listed pair; ``committee_size + 2`` weight vectors; at most 128 MiB for a Gram matrix and 32 MiB
    for documents of one query; and, within ``memory_limit``, 8 n_docs^2 bytes per cached query.

    Plain form: ``tests/reference/pairwise.py``, ``learn``;
    ``tests/reference/pairwise.py``, ``committee``.

    References
    ----------
    .. [1] J. L. Elsas, V. R. Carvalho and J. G. Carbonell. "Fast Learning of Document Ranking
       Functions with the Committee Perceptron". WSDM 2008.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[2, 1], [0, 2], [1, 0], [1, 2], [2, 2], [0, 1], [1, 0]]
    >>> y, qid = [1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 2, 2, 2, 2]
    >>> model = rc.PairwisePerceptron("committee", committee_size=2, margin=0, shuffle=False,
    ...                               max_iter=2, standardize=False).fit(X, y, qid=qid)
    >>> model.committee_.weights, model.committee_.successes
    (array([[ 1. ,  0. ], [ 1. , -0.5]]), array([5., 2.]))
    >>> model.set_params(variant="pocket").coef_
    array([1., 0.])
    >>> model.predict_rank(X, qid=qid)
    array([1, 3, 2, 2, 1, 4, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="pairwise",
        learns_from="queries",
        weights="pairs",
        instances=lambda: [
            PairwisePerceptron(max_iter=2, random_state=0),
            PairwisePerceptron(half_life=25.0, max_iter=2, random_state=0),
            PairwisePerceptron("committee", committee_size=4, max_iter=2, random_state=0),
            PairwisePerceptron(
                "voted", combine="rank", max_hypotheses=None, max_iter=1, random_state=0
            ),
        ],
    )

    _statistics = STATISTICS
    # Computation of scores: a name of `kernels.WAYS`, or the cheapest for each query.
    _solver = "auto"
    # Whether a fit can read rows in windows.
    _in_windows = True

    _constraints: ClassVar[Constraints] = {
        "committee_size": COUNT,
        "max_iter": COUNT,
        "margin": Real(0, 1e100),
        "half_life": HALF_LIFE,
        "quality": METRIC | None,
        "max_hypotheses": MAX_HYPOTHESES,
        "early_stopping_rounds": COUNT | None,
        "memory_limit": Integer(0),
        "verbose": VERBOSE,
    }

    def __init__(
        self,
        variant: Literal["averaged", "committee", "voted", "pocket", "last"] = "averaged",
        committee_size: int = 20,
        combine: Literal["auto", "score", "rank"] = "auto",
        max_iter: int = 10,
        margin: float = 1.0,
        balance: Literal["query"] | None = "query",
        shuffle: bool = True,
        count: Literal["pair", "query"] = "pair",
        quality: str | Callable[..., float] | None = None,
        max_hypotheses: int | str | None = "auto",
        standardize: Literal["auto", False] = "auto",
        half_life: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "ndcg@10",
        memory_limit: int = 2**31,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.variant = variant
        self.committee_size = committee_size
        self.combine = combine
        self.max_iter = max_iter
        self.margin = margin
        self.balance = balance
        self.shuffle = shuffle
        self.count = count
        self.quality = quality
        self.max_hypotheses = max_hypotheses
        self.standardize = standardize
        self.half_life = half_life
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    # ---------------------------------------------------------------- learning

    def _fit(self, data: RankingData, callbacks: Iterable[Callback] | None) -> None:
        watching = as_callbacks(callbacks)
        source = ranking_source(data, whole=None)
        learner = PairwiseLearner(self, source, data.held_out, resumed_model(watching))
        fitted = learner.fitted
        Trainer(learner, source, Monitor(fitted, learner.validation, watching)).run()
        if self.variant == "voted" and self.max_hypotheses == "auto":
            kept, learned = fitted.committee_.successes, fitted._state.model
            share = kept.sum() / max(learned.times(), 1.0)
            warn_of_dropped_votes(kept.size, learned.n_mistakes + 1, share)
        self._replace_with(fitted)

    def _check_positions(self) -> None:
        pass

    def _keep_features(self, n_features: int) -> None:
        self._state.model = self._state.model.keep_features(n_features)

    @exclusive
    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pairs_weight: ArrayLike | None = None,
        grow: bool = False,
    ) -> Self:
        """Continue learning with one pass over more queries, in the given order.

        The model does not depend on the division of queries into calls, and with ``shuffle=False``
        and ``standardize=False`` is that of ``fit`` with ``max_iter=1``. All rows of a query must
        be in one call.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite. CSR and C-ordered float32 or float64 arrays are not copied: do not change them
            before the call returns.
        y : array-like, shape (n_samples,), optional
            Labels, higher for more relevant: numbers, or words as in `fit`, in the order of the
            first call. Optional with ``pairs``.
        qid : array-like, shape (n_samples,), or str, optional
            Query of each row, of any type and in any order, or the name of a column of a DataFrame
            X; by default, a column named "qid" if X has one. None: all rows belong to one query.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.
        sample_weight : array-like, optional
            Weights of rows, shape (n_samples,); or of queries, in order of first appearance, shape
            (n_queries,), which are those of all of their rows. Rows of weight 0 are left out. With
            ``balance="query"`` the weight of a query is the mean of its rows' positive weights, as
            given, and its pairs share it in proportion to the products of their rows' weights. With
            ``balance=None`` the weight of a pair is this product.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Rows of the winner and the loser of each pair to learn from, instead of labels.
        pairs_weight : array-like, shape (n_pairs,), optional
            Weights of ``pairs``.
        grow : bool, default=False
            Accept rows with further columns, after those of the model. It goes on as if all rows
            before had had 0 there; with standardised features their earlier steps stay those of
            rows with fewer columns. ``max_hypotheses="auto"`` stays the number of the first call.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input is invalid, the number of features differs, or a parameter that the model
            depends on has changed. A failed or interrupted call does not change the estimator.
        """
        unchecked: Any = X
        self._check_params()
        y, words = self._graded(y, X, unused=pairs is not None, continues=True)
        window = Window(unchecked, y, None, 0, 0, sample_weight, pairs, pairs_weight)
        return self._learn_more(window, qid, group, words=words, grow=grow)

    def _learn_more(
        self,
        passed: Window,
        qid: Any,
        group: Any = None,
        *,
        words: NDArray[Any] | None = None,
        follow: bool = True,
        grow: bool = False,
    ) -> Self:
        """Learn the queries of a window; update the feature factors if ``follow``.

        Labels are numbers, which replace ``words``. With ``grow`` there may be further features.
        """
        if isinstance(self.quality, str):
            raise ValueError(
                f"{type(self).__name__}: quality must be None or a function of weights in "
                f"partial_fit; got {self.quality!r}, which requires the eval_set of fit"
            )
        first = not self.__sklearn_is_fitted__()
        column = qid if isinstance(qid, str) else vars(self).get("query_column_")
        X, qid = self._take_queries(passed.rows, qid, group)
        more_rows = self._wider_rows if grow else self._more_rows
        rows = as_rows(X) if first else more_rows(X)
        queries = None if qid is None and group is None else queries_of(qid, group, rows.n_rows)
        window = replace(passed, rows=rows, queries=queries)
        pairing, skipped, largest = pairing_of(self, window, in_part=True)
        if first:
            state = self._new_state(rows.n_features, as_generator(self.random_state))
            fitted = self._fitted_copy(X, rows.n_features, state, _largest_query=largest)
        else:
            self._state.check_settings(self._settings_of_more(rows.n_features), SETTINGS)
            # Within a query, weights lag behind the counts: an interrupted copy is discarded.
            fitted, state = copy(self), self._state.working_copy()
            fitted._state = state
            if rows.n_features > self.n_features_in_:
                state.model = state.model.wider(rows.n_features)
                fitted._keep_wider(X, rows.n_features)
        state.forget_after(fitted.__dict__.pop("best_iteration_", None))
        state.stream([0] * len(STATISTICS))
        state.log[-1][4] += skipped
        fitted._largest_query = max(fitted._largest_query, largest)
        parts: Iterable[tuple[int, int]] = [(0, pairing.n_pairs.size)]
        if follow:
            parts = parts_of_stream(state.model, window, pairing, type(self).__name__)
        for start, stop in parts:
            data = bind_pairs(fitted, pairing, rows)
            run_pass(fitted, data, pairing, np.arange(start, stop), self._quality(None))
        self._replace_with(fitted._with_names(column, words))
        return self

    def _new_state(self, n_features: int, generator: np.random.Generator) -> PairwiseState:
        settings = self._settings(n_features)
        model = PairModel.new(n_features, settings)
        return PairwiseState(model=model, seed=int(generator.integers(2**63)), settings=settings)

    def _settings(self, n_features: int) -> dict[str, Any]:
        capacity: int | None = int(self.committee_size)
        if self.variant == "voted":
            capacity = limited(self.max_hypotheses, n_features)
        return {
            "capacity": capacity,
            "count": self.count,
            "shuffle": bool(self.shuffle),
            "judged": self.quality is not None,
            "standardize": self.standardize,
            "half_life": None if self.half_life is None else float(self.half_life),
        }

    def _settings_of_more(self, n_features: int) -> dict[str, Any]:
        """Return settings to compare with those of a model that may have had fewer columns."""
        settings, initial = self._settings(n_features), self._state.settings["capacity"]
        if self.variant == "voted" and self.max_hypotheses == "auto" and initial is not None:
            # "auto" allows from as many as fit with these columns to as many as fit with one.
            settings["capacity"] = max(settings["capacity"], min(initial, limited("auto", 1)))
        return settings

    def _quality(self, validation: Validation | None) -> Callable[[Any], float] | None:
        if not isinstance(self.quality, str):
            return self.quality
        if validation is None:
            raise ValueError(f"quality={self.quality!r} requires eval_set; got eval_set=None")
        judge = replace(validation, metrics=[self.quality], names=[self.quality])

        def value(weights: Floats) -> float:
            scores = np.empty(judge.rows.n_rows)
            project(judge.rows, weights, scores)
            return merit(self.quality, judge.measure(scores)[0])

        return value

    # ---------------------------------------------------------------- fitted model

    def _check_together(self) -> None:
        """Check the parameters of predictions, which may have been set since the fit."""
        check_declared(self, "variant", "combine", "committee_size", "half_life")
        if self.half_life is not None and self.variant != "averaged":
            raise ValueError(
                f"{type(self).__name__}: half_life is that of the average, and requires "
                f"variant='averaged'; got half_life={self.half_life!r} and "
                f"variant={self.variant!r}"
            )
        if self.variant == "voted" and self.combine == "score":
            raise ValueError(
                f"{type(self).__name__}: variant='voted' requires combine='rank'; got "
                "combine='score', which is equal to variant='averaged': use that instead"
            )

    def _scores(self, rows: Rows, queries: Queries) -> Floats:
        if self._by_rank():
            members = self.committee_
            return borda(rows, members.weights, members.successes, queries)
        scores = np.empty(rows.n_rows)
        project(rows, self._weights(), scores)
        return check_scores(scores)

    def _by_rank(self) -> bool:
        self._check_together()
        return self.variant == "voted" or (self.variant == "committee" and self.combine == "rank")

    def _weights(self) -> Floats:
        model: PairModel = self._fitted_state().model
        self._check_together()
        if self.variant == "last":
            return np.asarray(model["weights"])
        if self.variant == "averaged":
            return np.asarray(model.mean("weights"))
        members = self.committee_
        if self.variant == "pocket":
            return members.weights[0]
        return np.asarray(np.average(members.weights, axis=0, weights=votes(members.successes)))

    @property
    @consistent_read
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the score, shape (n_features,)."""
        self._fitted_state()
        if self._by_rank():
            raise AttributeError("combine='rank' has no coef_, as members vote: see committee_")
        return self._weights().copy()

    @property
    @consistent_read
    def committee_(self) -> Committee:
        """Members of the committee, best first."""
        state = self._fitted_state()
        self._check_together()
        size = self.committee_size if self.variant != "voted" else None
        weights, successes = state.model.best(size)
        return Committee(weights, successes)

    @property
    @consistent_read
    def n_iter_(self) -> int:
        """Number of passes."""
        return len(self._fitted_state().log)

    # ---------------------------------------------------------------- model files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts, arrays = self._state.described()
        more = {
            "largest_query": self._largest_query,
            "best_iteration": getattr(self, "best_iteration_", None),
        }
        return facts | more, arrays

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        if self._by_rank():
            return no_scoring("combine='rank' scores depend on all documents of a query")
        return Scoring("linear", {"weights": self._weights()})

    def _restore(self, spec: ModelSpec) -> None:
        n_features = check_n_features(spec.n_features)
        settings = spec.facts["settings"]
        if settings.keys() != self._settings(n_features).keys():
            raise ValueError(
                f"{type(self).__name__} cannot restore the settings {sorted(settings)}"
            )
        state, best = PairwiseState.restored(spec, n_features), spec.facts["best_iteration"]
        if not (best is None or 1 <= int(best) <= len(state.log)):
            raise ValueError(f"the best pass must be in 1 .. {len(state.log)}; got {best!r}")
        self._state, self.n_features_in_ = state, n_features
        self._largest_query = int(spec.facts["largest_query"])
        if best is not None:
            self.best_iteration_ = int(best)

    def _fit_summary(self) -> dict[str, Any]:
        history = self.history_
        return {
            "pairs": history["pairs"][-1],
            "passes": self.n_iter_,
            "mistakes_of_last_pass": history["mistakes"][-1],
        }

    def _summary(self) -> dict[str, Any]:
        return {"pairs_seen": sum(self.history_["pairs"]), "passes": self.n_iter_}
