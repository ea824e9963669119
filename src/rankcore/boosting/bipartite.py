"""The estimator `BipartiteRankBoost`: RankBoost for two labels, with further rules for steps.

Parameters, ``fit`` and documentation; rounds and models are those of `PairBoosting` in `_base`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

from numpy.typing import ArrayLike

from rankcore._core.arguments import EvalSet, Measures, RowsLike, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.labels import as_relevance
from rankcore._core.monitor import Callback
from rankcore._core.params import Constraints, Real
from rankcore._core.sources import RowBlocks
from rankcore.boosting._base import PairBoosting
from rankcore.ranking.data import RankingData, held_out_sets
from rankcore.ranking.pairs import make_pairing

__all__ = ["BipartiteRankBoost"]


class BipartiteRankBoost(PairBoosting):
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
        Minimum label of relevant documents, of words the minimum grade. By default, all labels but
        the lowest are relevant.
    select : {"edge", "normalizer"}, default="edge"
        Criterion for the best stump: "edge" maximises |r|; "normalizer" minimises the weight that
        a step of exact length leaves, at O(stored values * labels) per round.
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
    missing : {"learn", "zero"}, default="learn"
        Missing values are NaN, and with "zero" also 0, stored or not. Each stump learns whether it
        fires on them.
    smoothing : "auto" or float, default="auto"
        s of ``step``; "auto" is 1 / (2 * number of pairs).
    balance : {"query"}, optional, default="query"
        "query": all queries have the same initial weight; None: all pairs have the same.
    early_stopping_rounds : int, optional
        Stop after this many consecutive rounds that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the rounds up to the best one.
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each round: names known to `rankcore.metrics.evaluate`,
        or functions of labels, scores and qid (higher is better). Named losses are minimised. The
        first of a list is used for early stopping.
    warm_start : bool, default=False
        Whether ``fit`` continues the current model, up to ``n_estimators`` rounds in total.
        If the rows differ from the previous ones, ``bound`` and ``cap`` of the history do not hold.
    n_jobs : int, optional
        Number of threads, which share the features. None: 1, -1: one per processor. The model does
        not depend on it.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.
    weak : {"auto", "stump", "tree"}, default="auto"
        Weak rankers. "auto": trees unless ``max_leaf_nodes=2``.
    max_leaf_nodes : int or None, default=2
        Maximum number of leaves of a tree; the leaf with the largest gain is split first. None:
        limited by ``max_depth`` only.
    max_depth : int, optional
        Maximum depth of a tree.
    learning_rate : float or "auto", default="auto"
        Factor of the steps, or of the values of leaves, in (0, 1]; "auto" is 1 for stumps and 0.1
        for trees.
    leaf_step : {"search", "newton"}, default="search"
        Values of a tree's leaves. "newton": (W - L) / (W + L + l2_leaf), where W and L are the
        weights of the pairs that rows of the leaf win and lose. "search": these values times the
        factor that minimises the remaining weight of pairs.
    min_samples_leaf : int or "auto", default="auto"
        Minimum number of rows in a leaf of a tree. "auto" is 20, or a fifth of the compared rows if
        these are fewer than 100.
    min_pair_weight : float, default=0.0
        Minimum W + L of a leaf. The sum of W + L over all leaves is 2, as the weights of all pairs
        sum to 1.
    l2_leaf : float, default=0.0
        Regularisation of leaf values, see ``leaf_step``. It shrinks the values of leaves of small
        weight most.
    subsample : float, default=1.0
        Fraction of the queries used for each tree; of the rows if there is one query.
    max_features : float, default=1.0
        Fraction of the features, in (0, 1], that are drawn for the split of each node. A node that
        none of them splits stays a leaf; the root then tries the others.
    monotonic_cst : array-like of int, shape (n_features,), or dict, optional
        Monotone constraints: 1, the score must not decrease with the feature; -1, it must not
        increase; 0, none. A dict maps names of features to these. Trees only.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Categorical features: columns of a frame of pandas, polars or Arrow with a categorical
        dtype ("from_dtype"), or a mask, numbers or names of columns. Values are integers from 0 to
        65535, with at most ``max_bins`` distinct ones in the training rows; values below 0 are
        missing. Columns of a frame may hold strings. Categories that are not in the training rows
        are missing. Not with ``missing="zero"``.
        Trees only.
    pair_weight : {"ndcg", "ndcg@k", "map"} or callable, optional
        Factor of a pair's exponential loss: the change of NDCG (gain 2**label - 1, logarithmic
        discount, cutoff k) or average precision (labels above 0 are relevant) if the two documents
        swapped positions in the current ranking; or a function of the labels and ranks (from 1) of
        the documents of a query that returns weights of shape (n, n), by winner and loser. Trees
        only. A round then costs O(pairs). ``bound`` still bounds the training error, but is not
        minimised, and may increase.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of randomness of ``subsample`` and ``max_features``.
    classes : array-like of str, shape (n_grades,), optional
        Labels that are words, lowest grade first: they are the grades 0, 1 ... By default those of
        an ordered categorical y. Labels that are numbers are grades themselves.

    Attributes
    ----------
    estimators_ : structured ndarray, shape (n_stumps,) or (n_nodes,)
        One record per stump, with fields feature, threshold, missing (1: fires where the value is
        missing) and alpha; or one per node of all trees, with fields tree, node, feature,
        threshold, missing (1: missing values take the second child), gain, children (of values up
        to the threshold, and of values above; a node, or -1 - leaf), values (of children that are
        leaves) and categories (at splits of categories: the codes of those that take the other
        child than missing values; all others take the same child, and the threshold is infinite).
    n_estimators_ : int
        Maximum number of rounds that the fit used.
    learning_rate_ : float
        Learning rate that the fit used; with ``warm_start``, that of the last fit.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Fraction of each feature in the sum of |alpha|, or of the gains of the splits.
    categories_ : dict of int to list
        Categories of each categorical DataFrame column, in the order of their codes from 0.
        The codes represent them in ``estimators_``, in arrays and in C.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    grades_ : ndarray of str, shape (n_grades,)
        Words that y had as labels, lowest first; only if it had words.
    query_column_ : str
        Column of queries that ``fit`` named by a string; predictions remove it from data frames.
    history_ : dict of lists
        Statistics of each round. ``edge``: r. ``alpha``: the step. ``normalizer``: Z, the remaining
        weight. ``bound``: the product of all Z, an upper bound on the weighted fraction of training
        pairs that are ranked wrongly or tied. ``cap``: an upper bound on ``bound``, the product of
        1 - learning_rate * (1 - sqrt(1 - r^2)), or with smoothing, of 1 - learning_rate * (1 + 2 s
        - sqrt((1 + 2 s)^2 - r^2)). With an ``eval_set``, each ``eval_metric``, as
        ``valid_ndcg@10``. For trees, ``alpha`` is the maximum difference of two leaf values,
        ``edge`` is that of the tree scaled to [0, 1], and the factors of ``cap`` are ((1 + r)
        exp(-alpha) + (1 - r) exp(alpha)) / 2 or, with ``leaf_step="search"`` and no
        ``pair_weight``, those above if smaller.
    is_categorical_ : ndarray of bool, shape (n_features_in_,), or None
        Mask of categorical features; None if there are none.
    n_iter_ : int
        Number of rounds, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the round with the best value of the first ``eval_metric``; only with an
        ``eval_set``. With ``early_stopping_rounds`` the model ends at this round; otherwise it
        keeps all rounds.

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

    _constraints: ClassVar[Constraints] = {"rel": Real(-1e300, 1e300) | None}

    def __init__(
        self,
        n_estimators: Literal["auto"] | int = "auto",
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
        learning_rate: Literal["auto"] | float = "auto",
        leaf_step: Literal["search", "newton"] = "search",
        min_samples_leaf: Literal["auto"] | int = "auto",
        min_pair_weight: float = 0.0,
        l2_leaf: float = 0.0,
        subsample: float = 1.0,
        max_features: float = 1.0,
        monotonic_cst: ArrayLike | Mapping[str, int] | None = None,
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        pair_weight: str | Callable[..., ArrayLike] | None = None,
        random_state: Seed | None = None,
        classes: ArrayLike | None = None,
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
        self.max_features = max_features
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.pair_weight = pair_weight
        self.random_state = random_state
        self.classes = classes

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
        y : array-like, shape (n_samples,)
            Labels: numbers, or words in the order of ``classes`` or of an ordered categorical.
            Those of at least ``rel`` are relevant; by default, all but the lowest.
        qid : array-like, shape (n_samples,), or str, optional
            Query of each row, of any type and in any order, or the name of a column of a DataFrame
            X; by default, a column named "qid" if X has one. None: all rows belong to one query.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.
        sample_weight : array-like, optional
            Weights of rows, shape (n_samples,); or of queries, in order of first appearance, shape
            (n_queries,), which are those of all of their rows. Rows of weight 0 are left out. With
            ``balance="query"`` the weight of a query is the mean of its rows' positive weights, in
            ``fit`` relative to that of all rows, and its pairs share it in proportion to the
            products of their rows' weights. With ``balance=None`` the weight of a pair is this
            product.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass, round or step.
        eval_X, eval_y : array-like, or lists of them, optional
            ``eval_set`` as two arguments, of which a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        eval_qid, eval_group : array-like, or lists of them, optional
            Queries of the held-out rows, as ``qid`` or ``group``; required if the fit has queries.
        callbacks : iterable of callables, optional
            Called after each pass, round or step with a `rankcore.callbacks.Iteration`; the fit
            ends when one returns True.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, or no query has both relevant and other documents.
        """
        self._check_params()
        column = self._column_of_fit(qid)
        held_out = held_out_sets(eval_set, eval_X, eval_y, eval_qid, eval_group, column)
        y, words = self._graded(y, X)
        held_out = self._graded_sets(held_out, words)
        data = RankingData(X, y, qid, group, sample_weight, held_out=held_out, column=column)
        fitted = self._with_names(column, words)
        source, categories = fitted._source(data, one_query=True)
        labels = as_relevance(source.window.labels, source.window.rows.n_rows)
        labels[:] = labels > labels.min() if self.rel is None else labels >= self.rel
        pairing = make_pairing(
            replace(source.window, labels=labels),
            balanced=self.balance == "query",
            in_row_order=False,
            relative_weights=True,
        )
        del labels
        fitted._boost(source, categories, pairing, held_out, callbacks)
        self._replace_with(fitted)
        return self
