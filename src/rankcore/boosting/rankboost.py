"""RankBoost: threshold stumps that vote on which of two documents is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from rankcore._core.concurrency import learns
from rankcore._core.params import check_real
from rankcore.boosting._base import StumpBoosting
from rankcore.ranking._base import as_relevance, queries_of
from rankcore.ranking._pairs import make_pairing

__all__ = ["BipartiteRankBoost", "RankBoost"]


class RankBoost(StumpBoosting):
    """RankBoost with threshold stumps: pairs that are ranked wrongly gain weight.

    Each round takes the stump (1 where a feature is above a threshold, else 0) that best separates
    the better documents from the worse ones, over all pairs of a query by the weight they have
    gained, and adds it to the score. Pairs are never listed, unless you list them: a round costs
    O(rows + stored values).

    Parameters
    ----------
    n_estimators : int, default=300
        Rounds, at most: learning ends when no stump is better than a guess, when one orders every
        pair, or when nothing is left of the weight (scores of a query 900 apart, say).
    step : {"third", "discrete"}, default="third"
        Length of a step. With e+ the weight of the pairs that the stump orders rightly, e- of
        those it orders wrongly and r = e+ - e-: ``log((1 + r) / (1 - r)) / 2``, the third method of
        the paper; or ``log((e+ + s) / (e- + s)) / 2`` with ``smoothing`` s, which for s = 0 leaves
        the least weight. The third is more cautious. No step is longer than 14.16, which
        ``log((2 - 1e-12) / 1e-12) / 2`` is: a stump that orders every pair would take an infinite
        one.
    select : {"edge", "normalizer"}, default="edge"
        What the best stump is: of greatest |r|; or of least weight left after a step of exact
        length. The latter costs O(stored values * labels) a round.
    max_bins : int or None, default=255
        Bins of a feature, 2 to 255: neighbouring values share one where there are more. None tries
        every threshold.
    missing : {"learn", "zero"}, default="learn"
        NaN is missing; each stump learns on which side. "zero": so is 0, stored or not.
    smoothing : "auto" or float, default="auto"
        s above; "auto" is 1 / (2 * pairs), however much they weigh.
    balance : {"query"}, optional, default="query"
        Whether queries weigh alike at first, or pairs.
    early_stopping_rounds : int, optional
        Stop after this many rounds in a row that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the stumps up to the best round.
    eval_metric : str or callable, default="ndcg@10"
        What is measured on the ``eval_set`` after each round: a name that
        `rankcore.metrics.evaluate` knows, or a function of labels, scores and qid. Greater is
        better.
    search : {"auto", "plain"}, default="auto"
        How the best stump is found: sparing features that cannot have it, or not. The stumps are
        the same (see Notes).
    warm_start : bool, default=False
        Whether ``fit`` goes on from the stumps there are, up to ``n_estimators`` in all. On other
        rows than before, ``bound`` and ``cap`` of the history promise nothing.
    n_jobs : int, optional
        Threads that share the features. The model does not depend on it. None: 1, -1: all.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.

    Attributes
    ----------
    estimators_ : structured ndarray, shape (n_stumps,)
        feature, threshold, missing (1: fires where the value is missing) and alpha of each stump.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Share of each feature in the sum of |alpha|.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only where X had string column names.
    n_iter_ : int
        Rounds made.
    best_iteration_ : int
        Round of the greatest ``eval_metric``, from 1; only with an ``eval_set``.
    history_ : dict of lists
        Per round: ``edge`` r and ``alpha``; ``normalizer`` Z, the weight left; ``bound``, the
        product of all Z: no greater share of the weight of all pairs is ranked wrongly or tied in
        training; ``cap``, the product of sqrt(1 - r^2) (or, with smoothing,
        sqrt((1 + 2 s)^2 - r^2) - 2 s), which ``bound`` never exceeds; and, with an ``eval_set``,
        ``eval_metric`` under its name.

    Notes
    -----
    After any number of rounds the weight of a pair is a product of one factor per document, so that
    sums over pairs are sums over documents, level by level of the labels (the paper has this for
    two labels; it holds for any number, and for queries). A row's potential, the weight it wins
    with less the weight it loses with, is all that a stump's edge needs.

    A feature is summed by bins of the rows that have an entry; those that have none are one block.
    "auto" spares features: with two labels, one query and sparse X it follows the rows where stumps
    fire, otherwise it bounds how far an edge can have risen since it was last summed. Thresholds
    lie halfway between values, and where there is such a number, also between the values rounded
    to float32.

    Memory beyond X: 1 byte per value of dense X and 5 to 6 of sparse X (4 more with
    ``max_bins=None``), and about 45 bytes per row, of sparse X 55; 24 more with weights of rows, 8
    more where the rows of queries are mixed, 20 more to select by normalizer. 24 bytes for each
    different label of a query.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer. "An Efficient Boosting Algorithm for
       Combining Preferences". Journal of Machine Learning Research 4, 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[3, 0], [1, 1], [2, 0], [2.5, 1], [0, 0]]
    >>> model = rc.RankBoost(3, step="discrete").fit(X, [1, 1, 1, 0, 0])
    >>> model.estimators_[["feature", "threshold"]].tolist()
    [(0, 0.5), (0, 2.25), (0, 2.75)]
    >>> model.predict_rank(X)
    array([1, 2, 3, 4, 5])
    >>> [round(bound, 4) for bound in model.history_["bound"]]
    [0.689, 0.5912, 0.4194]
    """

    _steps = ("third", "discrete")

    def __init__(
        self,
        n_estimators: int = 300,
        step: str = "third",
        select: str = "edge",
        max_bins: int | None = 255,
        missing: str = "learn",
        smoothing: Any = "auto",
        balance: str | None = "query",
        early_stopping_rounds: int | None = None,
        eval_metric: Any = "ndcg@10",
        search: str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.step = step
        self.select = select
        self.max_bins = max_bins
        self.missing = missing
        self.smoothing = smoothing
        self.balance = balance
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.search = search
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @learns
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        pairs: Any = None,
        pairs_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        callbacks: Iterable[Callable[[Any], Any]] | None = None,
    ) -> Self:
        """Learn from scratch or, with ``warm_start``, go on.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            NaN is missing. CSR and C-ordered float32 or float64 are used in place: do not
            write to them before the call returns, callbacks included.
        y : array-like of numbers, shape (n_samples,)
            Labels, greater for more relevant; any real numbers. Not needed with ``pairs``.
        qid : array-like, shape (n_samples,), optional
            The query of each row, of any type and in any order. None: all rows are of one query.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.
        sample_weight : array-like, optional
            Of rows, shape (n_samples,): a pair weighs the product of its two. Or of queries, in
            order of first appearance, shape (n_queries,).
        pairs : array-like of int, shape (n_pairs, 2), optional
            Row of the winner and row of the loser: learn from these instead of from labels.
        pairs_weight : array-like, shape (n_pairs,), optional
        eval_set : (X, y), or a list of one such pair, optional
            Held-out rows, measured after each round.
        eval_qid, eval_group : array-like, optional
            Their queries.
        callbacks : iterable of callables, optional
            Called after each round with the model as it is then, to look at but not to keep; a
            true answer of one ends the fit.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, or if no query has two documents with different labels. A
            failed or interrupted fit leaves the estimator as it was.
        """
        self._check_params()
        rows = self._as_rows(X)
        queries = queries_of(qid, group, rows.n_rows)
        pairing = make_pairing(
            rows.n_rows,
            y,
            queries,
            sample_weight,
            pairs,
            pairs_weight,
            in_row_order=False,
            relative_weights=True,
        )
        with_qid = qid is not None or group is not None
        return self._fit(X, rows, pairing, with_qid, eval_set, eval_qid, eval_group, callbacks)


class BipartiteRankBoost(StumpBoosting):
    """RankBoost for two labels, relevant and not, with the steps that are particular to them.

    With the default step it learns what `RankBoost` with ``step="discrete"`` does.

    Parameters
    ----------
    n_estimators : int, default=300
        Rounds, at most.
    step : {"exact", "mohri", "third"}, default="exact"
        Length of a step. With a and b the weight of the relevant and of the other documents where
        the stump fires: ``log(a (1 - b) / ((1 - a) b)) / 2``, which leaves the least weight on
        pairs; ``log(a / b) / 2``, the shorter one of Mohri's lectures; or
        ``log((1 + a - b) / (1 - a + b)) / 2``. Both logarithms are smoothed. With queries, the
        first is taken of the pairs ranked rightly and wrongly, summed over queries.
    rel : float, optional
        Labels from here on are relevant. By default all but the least.
    select, max_bins, missing, smoothing, balance, early_stopping_rounds, eval_metric, search, \
    warm_start, n_jobs, verbose
        As for `RankBoost`.

    Attributes
    ----------
    estimators_, feature_importances_, n_features_in_, feature_names_in_, n_iter_, \
    best_iteration_, history_
        As for `RankBoost`.

    Notes
    -----
    A round costs O(rows) for the weights, which are one factor per row. On sparse X with one query
    a round looks at few features: see `RankBoost`.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer. "An Efficient Boosting Algorithm for
       Combining Preferences". Journal of Machine Learning Research 4, 2003.
    .. [2] M. Mohri, A. Rostamizadeh and A. Talwalkar. "Foundations of Machine Learning", chapter
       on ranking. MIT Press, 2012.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[3, 0], [1, 1], [2, 0], [2.5, 1], [0, 0]]
    >>> model = rc.BipartiteRankBoost(3).fit(X, [1, 1, 1, 0, 0])
    >>> model.estimators_["alpha"].round(4)
    array([ 0.973 , -0.5886,  0.9501])
    >>> rc.metrics.auc_score([1, 1, 1, 0, 0], model.predict(X))
    1.0
    """

    _steps = ("exact", "mohri", "third")

    def __init__(
        self,
        n_estimators: int = 300,
        step: str = "exact",
        rel: float | None = None,
        select: str = "edge",
        max_bins: int | None = 255,
        missing: str = "learn",
        smoothing: Any = "auto",
        balance: str | None = "query",
        early_stopping_rounds: int | None = None,
        eval_metric: Any = "ndcg@10",
        search: str = "auto",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.step = step
        self.rel = rel
        self.select = select
        self.max_bins = max_bins
        self.missing = missing
        self.smoothing = smoothing
        self.balance = balance
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.search = search
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @learns
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        callbacks: Iterable[Callable[[Any], Any]] | None = None,
    ) -> Self:
        """Learn from scratch or, with ``warm_start``, go on.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            NaN is missing. CSR and C-ordered float32 or float64 are used in place: do not
            write to them before the call returns, callbacks included.
        y : array-like of numbers, shape (n_samples,)
            0 and 1; or any numbers, of which those of at least ``rel``, or all but the least, are
            relevant.
        qid, group, sample_weight, eval_set, eval_qid, eval_group, callbacks
            As for `RankBoost.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, or if no query has both kinds of documents.
        """
        self._check_params()
        rows = self._as_rows(X)
        queries = queries_of(qid, group, rows.n_rows)
        labels = as_relevance(y, rows.n_rows)
        relevant = labels > labels.min() if self.rel is None else labels >= self.rel
        labels[:] = relevant
        pairing = make_pairing(
            rows.n_rows, labels, queries, sample_weight, in_row_order=False, relative_weights=True
        )
        del labels, relevant
        with_qid = qid is not None or group is not None
        return self._fit(X, rows, pairing, with_qid, eval_set, eval_qid, eval_group, callbacks)

    def _check_params(self) -> None:
        super()._check_params()
        if self.rel is not None:
            check_real(self.rel, "rel", -1e300, 1e300)
