"""The estimator `RankBoost`, with threshold stumps or trees.

Parameters, ``fit`` and documentation; rounds and models are those of `PairBoosting` in `_base`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from rankcore._core.arguments import Measures, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.monitor import Callback
from rankcore.boosting._base import PairBoosting
from rankcore.ranking.data import RankingData
from rankcore.ranking.pairs import make_pairing

__all__ = ["RankBoost"]


class RankBoost(PairBoosting):
    """RankBoost with threshold stumps or trees, which reweights the pairs of each query.

    Each round adds the stump (1 where a feature is above a threshold, else 0) with the maximum
    weighted agreement with the order of pairs, then increases the weights of pairs that the score
    ranks wrongly. Pairs of labels are never enumerated: a round costs O(rows + stored values).

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Maximum number of rounds; "auto" is 300 for stumps and 100 for trees. Fitting ends earlier
        if no stump is better than chance, if a stump orders every pair, or if weights underflow (if
        scores within a query differ by about 900).
    step : {"third", "discrete"}, default="third"
        Length of a step. Let e+ be the weight of the pairs that the stump orders correctly, e- of
        those it orders wrongly, and r = e+ - e-. "third" is ``log((1 + r) / (1 - r)) / 2``, the
        third method of [1]_; "discrete" is ``log((e+ + s) / (e- + s)) / 2`` with ``smoothing`` s,
        which minimises the remaining weight for s = 0. "third" is more cautious. Steps are at most
        ``log((2 - 1e-12) / 1e-12) / 2``, about 14.16, as the step of a stump that orders every pair
        would be infinite.
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
    After any number of rounds the weight of a pair is a product of one factor per document, so
    sums over pairs reduce to sums over documents at each level of the labels ([1]_ shows this for
    two labels; it holds for any number, and with queries). The edge of a stump is a sum of
    potentials: a row's potential is the weight of the pairs it wins minus that of those it loses.

    A feature is summed by bins over the rows with an entry; all other rows are one block. Features
    that cannot have the best stump are skipped: with two labels, one query and sparse X, by
    updating sums at the rows where stumps fire; otherwise by bounds on the change of each edge
    since it was computed. Thresholds lie halfway between values and, where possible, also between
    the values rounded to float32.

    A tree is a weak ranker with a real value for each leaf [2]_. Its splits minimise the remaining
    weight of pairs to second order: they maximise the sum of (W - L)^2 / (W + L + l2_leaf) over the
    children. Z is then computed exactly, so that the product of all Z bounds the training error as
    for stumps. With ``leaf_step="search"``, no Z exceeds 1. For the choice of splits only, W and L
    of each row are rounded to 32-bit integers, with an error of at most 2^-31 of the weight of all
    pairs: sums are exact, so that trees do not depend on the order of rows or on ``n_jobs``. With
    ``max_bins=None``, splits between all values are tried. A tree costs at most O(stored values *
    depth / 2), and O(stored values) for sparse columns; columns that cannot have the best split
    are skipped.

    A split of categories puts those of the smallest W / (W + L) on one side. No other subset gains
    more [3]_, unless ``min_samples_leaf`` or ``min_pair_weight`` excludes all of these. Categories
    without weight in a leaf take the child of missing values or, if these have no weight either,
    the child of larger weight.

    Memory beyond X: 1 byte per value of dense X and 5 to 6 per value of sparse X (4 more with
    ``max_bins=None``; with trees, 1 more for dense X, 4 more for sparse X, and 8 per bin of each
    leaf), and about 45 bytes per row (sparse X: 55). Further bytes per row: 24 with row weights, 8
    if the rows of queries are not contiguous, 20 with ``select="normalizer"``. 24 bytes per
    distinct label of a query. If rows are in a mapped file (a row cache, ``numpy.memmap``), the
    bytes per value are in temporary files, mapped too.

    Plain form: ``tests/reference/boosting.py``, ``boost``; ``tests/reference/trees.py``, ``grow``.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer. "An Efficient Boosting Algorithm for
       Combining Preferences". Journal of Machine Learning Research 4, 2003.
    .. [2] R. E. Schapire and Y. Singer. "Improved Boosting Algorithms Using Confidence-rated
       Predictions". Machine Learning 37, 1999.
    .. [3] W. D. Fisher. "On Grouping for Maximum Homogeneity". Journal of the American Statistical
       Association 53, 1958; L. Breiman et al. "Classification and Regression Trees", section 4.2,
       1984.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[3, 0], [1, 1], [2, 0], [2.5, 1], [0, 0]]
    >>> model = rc.RankBoost(3, step="discrete").fit(X, [1, 1, 1, 0, 0], qid=[0] * 5)
    >>> model.estimators_[["feature", "threshold"]].tolist()
    [(0, 0.5), (0, 2.25), (0, 2.75)]
    >>> model.predict_rank(X)
    array([1, 2, 3, 4, 5])
    >>> [round(bound, 4) for bound in model.history_["bound"]]
    [0.689, 0.5912, 0.4194]

    Interactions of features require trees:

    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]]
    >>> y = [0, 1, 1, 0, 0]
    >>> model = rc.RankBoost(5, max_leaf_nodes=4, min_samples_leaf=1).fit(X, y, qid=[0] * 5)
    >>> rc.metrics.auc_score(y, model.predict(X))
    1.0
    """

    _declaration: ClassVar = Declaration(
        guide="boosting",
        learns_from="queries",
        weights="pairs",
        scale_invariant=True,
        instances=lambda: [RankBoost(20), RankBoost(9, max_leaf_nodes=4)],
    )

    def __init__(
        self,
        n_estimators: Literal["auto"] | int = "auto",
        step: Literal["third", "discrete"] = "third",
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

    def _fit(self, data: RankingData, callbacks: Iterable[Callback] | None) -> None:
        source, categories = self._source(data)
        pairing = make_pairing(
            source.window,
            balanced=self.balance == "query",
            in_row_order=False,
            relative_weights=True,
        )
        self._boost(source, categories, pairing, data.held_out, callbacks)
