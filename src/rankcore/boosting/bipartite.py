"""RankBoost for two labels, with the steps that are particular to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

from numpy.typing import ArrayLike

from rankcore._core.arguments import EvalSet, Measures, RowsLike, Seed
from rankcore._core.concurrency import learns
from rankcore._core.docs import documented
from rankcore._core.monitor import Callback
from rankcore._core.params import option, optional, real
from rankcore._core.sources import RowBlocks
from rankcore.boosting._base import PairBoosting
from rankcore.boosting.rankboost import RankBoost
from rankcore.ranking._base import Ranker
from rankcore.ranking._fit import LearnsPairs
from rankcore.ranking._pairs import make_pairing
from rankcore.ranking._queries import as_relevance

__all__ = ["BipartiteRankBoost"]


@documented(RankBoost)
class BipartiteRankBoost(PairBoosting, Ranker):
    """RankBoost for two labels, relevant and not, with the steps that are particular to them.

    With ``step="exact"`` it learns what `RankBoost` with ``step="discrete"`` does.

    Parameters
    ----------
    n_estimators : int, default=300
        Rounds, at most.
    step : {"third", "exact", "mohri"}, default="third"
        Length of a step. With a and b the weight of the relevant and of the other documents where
        the stump fires: ``log((1 + a - b) / (1 - a + b)) / 2``, the most cautious;
        ``log(a (1 - b) / ((1 - a) b)) / 2``, which leaves the least weight on pairs and is the
        first to overfit; or ``log(a / b) / 2``, the shorter one of Mohri's lectures. The last two
        are smoothed. With queries, "exact" is taken of the pairs ranked rightly and wrongly, summed
        over queries.
    rel : float, optional
        Labels from here on are relevant. By default all but the least.

    Notes
    -----
    A round costs O(rows) for the weights, which are one factor per row. On sparse X with one query
    a round looks at few features: see `RankBoost`.

    Plain form: ``tests/reference/boosting.py``, ``boost``.

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
    >>> model = rc.BipartiteRankBoost(3, step="exact").fit(X, [1, 1, 1, 0, 0])
    >>> model.estimators_["alpha"].round(4)
    array([ 0.973 , -0.5886,  0.9501])
    >>> rc.metrics.auc_score([1, 1, 1, 0, 0], model.predict(X))
    1.0
    """

    _steps = ("third", "exact", "mohri")
    _constraints: ClassVar = {"step": option(*_steps), "rel": optional(real(-1e300, 1e300))}

    def __init__(
        self,
        n_estimators: int = 300,
        step: Literal["third", "exact", "mohri"] = "third",
        rel: float | None = None,
        select: Literal["edge", "normalizer"] = "edge",
        max_bins: int | None = 255,
        missing: Literal["learn", "zero"] = "learn",
        smoothing: Literal["auto"] | float = "auto",
        balance: Literal["query"] | None = "query",
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "ndcg@10",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        weak: Literal["auto", "stump", "tree"] = "auto",
        max_leaf_nodes: int | None = 2,
        max_depth: int | None = None,
        learning_rate: float = 1.0,
        leaf_step: Literal["search", "newton"] = "search",
        min_samples_leaf: int = 20,
        min_pair_weight: float = 0.0,
        l2_leaf: float = 0.0,
        subsample: float = 1.0,
        colsample: float = 1.0,
        monotonic_cst: ArrayLike | Mapping[str, int] | None = None,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        pair_weight: str | Callable[..., ArrayLike] | None = None,
        random_state: Seed | None = None,
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
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.weak = weak
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.leaf_step = leaf_step
        self.min_samples_leaf = min_samples_leaf
        self.min_pair_weight = min_pair_weight
        self.l2_leaf = l2_leaf
        self.subsample = subsample
        self.colsample = colsample
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.pair_weight = pair_weight
        self.random_state = random_state

    @learns
    @documented(LearnsPairs.fit)
    def fit(
        self,
        X: RowsLike | RowBlocks,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_X: RowsLike | Sequence[RowsLike] | None = None,
        eval_y: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_group: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
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

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, or if no query has both kinds of documents.
        """
        self._check_params()
        given = X, y, qid, group
        source, categories = self._source(given, sample_weight=sample_weight, one_query=True)
        labels = as_relevance(source.window.labels, source.window.rows.n_rows)
        relevant = labels > labels.min() if self.rel is None else labels >= self.rel
        labels[:] = relevant
        pairing = make_pairing(
            replace(source.window, labels=labels),
            balanced=self.balance == "query",
            in_row_order=False,
            relative_weights=True,
        )
        del labels, relevant
        held_out = (eval_set, eval_X, eval_y, eval_qid, eval_group)
        self._boost(source, categories, pairing, held_out, callbacks)
        return self
