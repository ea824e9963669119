"""Pairwise perceptrons: five models of one online pass over pairs of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core import params
from rankcore._core.arguments import Measures, RowsLike, Seed
from rankcore._core.concurrency import changing, learns
from rankcore._core.docs import documented
from rankcore._core.hypotheses import check_max_hypotheses, limited, warn_of_dropped_votes
from rankcore._core.inputs import as_rows
from rankcore._core.monitor import Monitor, as_callbacks, resumed_model
from rankcore._core.params import as_generator
from rankcore._core.sources import Window
from rankcore._core.training import Trainer
from rankcore._ext.rows import project
from rankcore.ranking._base import Ranker
from rankcore.ranking._fit import Callbacks, HeldOut, LearnsPairs, Weights
from rankcore.ranking._perceptron_model import Committee, PerceptronModel
from rankcore.ranking._perceptron_pass import bind_pairs, run_pass
from rankcore.ranking._perceptron_state import PairwiseState
from rankcore.ranking._queries import Given, queries_of, ranking_source, take_queries
from rankcore.ranking._training import FIGURES, PairwiseLearner, pairing_of
from rankcore.ranking._validation import Validation, check_metric, merit

__all__ = ["Committee", "PairwisePerceptron"]

# The parameters behind settings of another name.
SETTINGS = {"capacity": "committee_size, or variant or max_hypotheses", "judged": "quality"}


@dataclass(eq=False, repr=False)
class PairwiseParameters:
    """Parameters of `PairwisePerceptron`, apart from bases whose types are not known."""

    variant: Literal["averaged", "committee", "voted", "pocket", "last"] = "averaged"
    committee_size: int = 20
    combine: Literal["auto", "score", "rank"] = "auto"
    max_iter: int = 10
    margin: float = 1.0
    balance: Literal["query"] | None = "query"
    shuffle: bool = True
    count: Literal["pair", "query"] = "pair"
    quality: str | Callable[..., float] | None = None
    max_hypotheses: int | str | None = "auto"
    early_stopping_rounds: int | None = None
    eval_metric: Measures = "ndcg@10"
    memory_limit: int = 2**31
    random_state: Seed | None = None
    verbose: int = 0


class PairwisePerceptron(PairwiseParameters, LearnsPairs, PerceptronModel, Ranker):
    """Perceptron on pairs of documents: committee, voted, averaged, pocket or last hypothesis.

    Each pair of documents of a query that differ in label is visited once per pass. If the better
    one does not score higher by more than ``margin``, the weights move towards the difference of
    the two. A weight vector that lives from one such mistake to the next is a hypothesis; the
    pairs it ranks rightly meanwhile are its successes. The variants differ in which hypotheses
    decide in the end.

    Parameters
    ----------
    variant : {"averaged", "committee", "voted", "pocket", "last"}, default="averaged"
        The mean of all hypotheses weighted by successes; the ``committee_size`` hypotheses of most
        successes; all of them, voting; the one of most successes; or the last. All but "voted" come
        from the same pass: a fitted model answers as another after ``set_params(variant=...)``.
    committee_size : int, default=20
        Hypotheses kept.
    combine : {"auto", "score", "rank"}, default="auto"
        How a committee decides: by the mean of its weights, or by the mean of the ranks that each
        member gives a document within its query. Both weigh members by successes. "auto" is "rank"
        for "voted", which refuses "score": by that the voters are the average, without the room
        they take; for others it is "score".
    max_iter : int, default=10
        Passes over all pairs in ``fit``. One without mistakes is the last, unless an ``eval_set``
        is watched: no other hypothesis would follow.
    margin : float, default=1.0
        A pair is a mistake unless the better document scores higher by more than this. The paper
        has 0; see Notes for what it does.
    balance : {"query"}, optional, default="query"
        Whether a step is 1 / (pairs of the query), so that queries count alike, or 1.
    shuffle : bool, default=True
        Visit queries, and the pairs in each, in a new random order in each pass. False: as the rows
        come, winner by winner and for each loser by loser.
    count : {"pair", "query"}, default="pair"
        What a success counts: 1, or 1 / (pairs of the query).
    quality : str or callable, optional
        Criterion by which the committee and the pocket choose hypotheses, in place of successes: a
        measure such as "map" on the ``eval_set``, or a function of the weights, larger for better.
        Only hypotheses that would join the committee by successes, which are few, are measured,
        when a mistake has ended them. "voted" without ``max_hypotheses`` keeps all and measures
        none.
    max_hypotheses : int, "auto" or None, default="auto"
        Voters kept by "voted", those of most successes. "auto" keeps 5000, or as many as take
        256 MB, and warns if they have less than half of the successes; None keeps all.
    early_stopping_rounds : int, optional
        Stop after this many passes in a row that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="ndcg@10"
        What is measured on the ``eval_set`` after each pass: a name that
        `rankcore.metrics.evaluate` knows, or a function of labels, scores and qid, larger for
        better. Of "misranking", a loss, the least is best. The first decides on early stopping.
    memory_limit : int, default=2**31
        Bytes to keep from pass to pass for speed (Gram matrices), on which the model does not
        depend; and the most that the hypotheses of "voted" may take, beyond which ``fit`` raises.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the order. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights that score (a copy); absent where ranks are combined.
    committee_ : Committee
        Weights and successes of the hypotheses kept, best first; the present one is among them if
        it belongs there.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only where X had string column names.
    n_iter_ : int
        Passes made; all calls of ``partial_fit`` in a row count as one.
    position_effect_ : ndarray of float64
        By position, after a ``fit`` with ``position`` alone: what the score of a row gained by it.
        Not part of the model, which neither predicts with it nor saves it.
    best_iteration_ : int
        The pass that early stopping chose, counted from 1.
    history_ : dict of lists
        Per pass: ``pairs`` and ``mistakes``; ``hypotheses`` that there have been up to its end;
        ``queries`` visited and ``skipped``, those without two documents of different label; and,
        with an ``eval_set``, each ``eval_metric``, as ``valid_ndcg@10``.

    Notes
    -----
    The Committee Perceptron of [1]_, completed where its figure is silent: the counter starts at 0
    with each hypothesis, the last hypothesis is offered to the committee too, and of equal ones the
    earlier stays. The average counts only pairs ranked rightly.

    With steps of 1 and margin 0 no run makes more than ``max |x_i - x_j|^2 / g^2`` mistakes if some
    unit vector separates all pairs by g. On data that are not separable, hypotheses are short-lived
    without a margin, so that their successes say little about them; a margin makes
    the weights grow until only close pairs move them. Features should be on one scale, as
    query-level normalisation or standardising leaves them: steps are as long as the features make
    them, and the margin is in the same units as the score.

    Scores of a query are kept while it is visited, in the way of least work for it. Either a
    mistake renews them all through the query's Gram matrix, at n_docs multiplications, and a pair
    costs a comparison; or the documents of the query are laid out for inner products in vector
    lanes, at n_features multiplications a pair (dense rows); or an outdated score is computed when
    it is needed, in O(non-zeros). The first two form sums in another order, so that scores may
    differ in their last digits, and a decision could fall otherwise if the scores of a pair
    differed by ``margin`` to 15 digits; on data whose sums are exact the models are equal to the
    bit.

    A pass visits every pair, so its time grows with the square of the rows of a query: one of 10^6
    rows has up to 5 * 10^11 pairs. `fit` warns of more than 10^9 pairs in a query.

    Memory beyond X: about 100 bytes per row while the pairs are laid out, 24 from then on, and 16
    per pair that is given; ``committee_size + 2`` weight vectors; working memory for one query,
    128 MiB at most for a Gram matrix and 32 MiB for documents; and, within ``memory_limit``,
    8 n_docs^2 bytes per query that are kept.

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
    ...                               max_iter=2).fit(X, y, qid=qid)
    >>> model.committee_.weights, model.committee_.successes
    (array([[ 1. ,  0. ], [ 1. , -0.5]]), array([5., 2.]))
    >>> model.set_params(variant="pocket").coef_
    array([1., 0.])
    >>> model.predict_rank(X, qid=qid)
    array([1, 3, 2, 2, 1, 4, 3])
    """

    _figures = FIGURES
    # How scores are kept: a name of the kernel's ways, for all queries, or what suits each.
    _solver = "auto"
    _RETIRED = ("solver",)
    # Whether rows may come a window at a time; otherwise all are kept in memory.
    _in_windows = True

    _constraints: ClassVar = {
        "count": params.option("pair", "query"),
        "quality": params.optional(check_metric),
        "max_hypotheses": check_max_hypotheses,
    }

    # ---------------------------------------------------------------- learning

    def _fit(
        self, given: Given, weights: Weights, held_out: HeldOut, callbacks: Callbacks | None
    ) -> None:
        watching = as_callbacks(callbacks)
        source = ranking_source(given, whole=None, **weights)
        learner = PairwiseLearner(self, source, held_out, resumed_model(watching))
        fitted = learner.fitted
        Trainer(learner, source, Monitor(fitted, learner.validation, watching)).run()
        self._warn_of_dropped(fitted._state, fitted)
        self._replace_with(fitted)

    def _check_positions(self) -> None:
        pass

    def _keep_features(self, n_features: int) -> None:
        self._state.keep_features(n_features)

    def _warn_of_dropped(self, state: PairwiseState, fitted: Self) -> None:
        if self.variant == "voted" and self.max_hypotheses == "auto":
            kept = fitted.committee_.successes
            warn_of_dropped_votes(
                kept.size, int(state.counts[4]) + 1, kept.sum() / max(state.total(), 1.0)
            )

    @learns
    @documented(LearnsPairs.fit)
    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pairs_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from more queries, in the order given, each visited once.

        Queries fed one at a time or many at once give the same model to the bit; with
        ``shuffle=False`` that of one ``fit`` with ``max_iter=1``. A query must come whole.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input, another number of features, or a parameter changed that is built into the
            model. A failed or interrupted call leaves the estimator as it was.
        """
        self._check_params()
        if isinstance(self.quality, str):
            raise ValueError(
                "quality by name requires the eval_set of fit; give partial_fit a function of "
                "weights"
            )
        first = not self.__sklearn_is_fitted__()
        X, qid = take_queries(X, qid, group)
        rows = as_rows(X) if first else self._more_rows(X)
        queries = None if qid is None and group is None else queries_of(qid, group, rows.n_rows)
        window = Window(rows, y, queries, 0, 0, sample_weight, pairs, pairs_weight)
        pairing, skipped, largest = pairing_of(self, window)
        if first:
            state = self._new_state(rows.n_features, as_generator(self.random_state))
            fitted = self._shadow(X, rows.n_features, largest, state)
        else:
            fitted, state = self, self._state
            state.check_settings(self._settings(rows.n_features), SETTINGS)
            state.own()
        with changing(state, state.snapshot()):
            state.forget_after(getattr(self, "best_iteration_", None))
            state.stream([0] * len(FIGURES))
            state.log[-1][4] += skipped
            data = bind_pairs(self, pairing, rows, state.seed)
            run_pass(fitted, data, pairing, pairing.visited(), self._quality(None))
        if first:
            self._replace_with(fitted)
        self.__dict__.pop("best_iteration_", None)
        self._largest_query = max(self._largest_query, largest)
        return self

    def _new_state(self, n_features: int, generator: np.random.Generator) -> PairwiseState:
        return PairwiseState.new(
            n_features, int(generator.integers(2**63)), self._settings(n_features)
        )

    def _settings(self, n_features: int) -> dict[str, Any]:
        """Parameters that are built into a state."""
        capacity: int | None = int(self.committee_size)
        if self.variant == "voted":
            capacity = limited(self.max_hypotheses, n_features)
        return {
            "capacity": capacity,
            "count": self.count,
            "shuffle": bool(self.shuffle),
            "judged": self.quality is not None,
        }

    def _quality(self, validation: Validation | None) -> Callable[[Any], float] | None:
        if not isinstance(self.quality, str):
            return self.quality
        if validation is None:
            raise ValueError(f"quality={self.quality!r} requires eval_set; found eval_set=None")
        judge = replace(validation, metrics=[self.quality], names=[self.quality])

        def value(weights: NDArray[np.float64]) -> float:
            scores = np.empty(judge.rows.n_rows)
            project(judge.rows, weights, scores)
            return merit(self.quality, judge.measure(scores)[0])

        return value
