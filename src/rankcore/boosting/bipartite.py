"""RankBoost for two labels, with further rules for steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented
from rankcore._core.labels import as_relevance
from rankcore._core.monitor import Callback
from rankcore._core.sources import RowBlocks
from rankcore.boosting._base import PairBoosting
from rankcore.boosting._params import BipartiteParams
from rankcore.boosting.rankboost import RankBoost
from rankcore.ranking.base import Ranker
from rankcore.ranking.data import RankingData, held_out_sets
from rankcore.ranking.pairs import make_pairing

__all__ = ["BipartiteRankBoost"]


@documented(RankBoost)
class BipartiteRankBoost(BipartiteParams, PairBoosting, Ranker):
    """RankBoost for two labels, relevant and not, with further rules for steps.

    With ``step="exact"`` it is equivalent to `RankBoost` with ``step="discrete"``.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Maximum number of rounds; "auto" is 300 for stumps and 100 for trees.
    step : {"third", "exact", "mohri"}, default="third"
        Length of a step. Let a and b be the weights of the relevant and of the other documents
        where the stump fires. "third" is ``log((1 + a - b) / (1 - a + b)) / 2``, the most cautious;
        "exact" is ``log(a (1 - b) / ((1 - a) b)) / 2``, which minimises the remaining weight of
        pairs and overfits earliest; "mohri" is ``log(a / b) / 2``, the shorter step of [2]_. The
        last two are smoothed. With queries, they use the weights of pairs, summed over queries.
    rel : float, optional
        Minimum label of relevant documents. By default, all labels but the lowest are relevant.

    Notes
    -----
    A round costs O(rows) for the weights, which are one factor per row. With sparse X and one query
    a round evaluates few features; see `RankBoost`.

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

    _declaration: ClassVar = Declaration(
        guide="boosting",
        learns_from="binary queries",
        weights="pairs",
        scale_invariant=True,
        instances=lambda: [BipartiteRankBoost(9), BipartiteRankBoost(5, weak="tree")],
    )

    @documented(Ranker.fit)
    def fit(  # type: ignore[override]
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
        """Fit a new model or, with ``warm_start``, continue the current one.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            NaN is missing. CSR and C-ordered float32 or float64 arrays are not copied: do not
            change them before the call returns, nor in callbacks.
        y : array-like of numbers, shape (n_samples,)
            Labels. Those of at least ``rel`` are relevant; by default, all but the lowest.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, or no query has both relevant and other documents.
        """
        self._check_params()
        held_out = held_out_sets(eval_set, eval_X, eval_y, eval_qid, eval_group)
        data = RankingData(X, y, qid, group, sample_weight, held_out=held_out)
        source, categories = self._source(data, one_query=True)
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
        self._boost(source, categories, pairing, held_out, callbacks)
        return self
