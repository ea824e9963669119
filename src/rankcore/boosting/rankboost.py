"""RankBoost: a weighted vote of threshold stumps, or of trees."""

from __future__ import annotations

from rankcore.boosting._base import PairBoosting
from rankcore.ranking._base import Ranker
from rankcore.ranking._fit import Callbacks, HeldOut, LearnsPairs, Weights
from rankcore.ranking._pairs import make_pairing
from rankcore.ranking._queries import Given

__all__ = ["RankBoost"]


class RankBoost(LearnsPairs, PairBoosting, Ranker):
    """RankBoost with threshold stumps: pairs that are ranked wrongly gain weight.

    Each round takes the stump (1 where a feature is above a threshold, else 0) that best separates
    the better documents from the worse ones, over all pairs of a query by the weight they have
    gained, and adds it to the score. Pairs are never listed, unless you list them: a round costs
    O(rows + stored values).

    Parameters
    ----------
    n_estimators : int, default=300
        Maximum number of rounds. Learning ends earlier if no stump is better than chance, if one
        orders every pair, or if the weights underflow (scores of a query 900 apart, say).
    step : {"third", "discrete"}, default="third"
        Length of a step. With e+ the weight of the pairs that the stump orders rightly, e- of
        those it orders wrongly and r = e+ - e-: ``log((1 + r) / (1 - r)) / 2``, the third method of
        the paper; or ``log((e+ + s) / (e- + s)) / 2`` with ``smoothing`` s, which for s = 0 leaves
        the least weight. The third is more cautious. No step is longer than 14.16, which
        ``log((2 - 1e-12) / 1e-12) / 2`` is: a stump that orders every pair would take an infinite
        one.
    select : {"edge", "normalizer"}, default="edge"
        Criterion for the best stump: "edge" maximises |r|; "normalizer" minimises the weight that
        a step of exact length leaves, at O(stored values * labels) per round.
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
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each round: names that `rankcore.metrics.evaluate` knows,
        or functions of labels, scores and qid whose higher values are better. Named losses are
        minimised. The first of a list decides on early stopping.
    warm_start : bool, default=False
        Whether ``fit`` continues with the current model, up to ``n_estimators`` rounds in total. If
        the rows differ from those before, ``bound`` and ``cap`` of the history do not hold.
    n_jobs : int, optional
        Threads that share the features. The model does not depend on it. None: 1, -1: all.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.
    weak : {"auto", "stump", "tree"}, default="auto"
        Weak rankers. "auto" is trees if ``max_leaf_nodes`` is not 2.
    max_leaf_nodes : int or None, default=2
        Maximum number of leaves of a tree; the leaf with the largest gain is split first. None: as
        many as ``max_depth`` allows.
    max_depth : int, optional
        Maximum depth of a tree.
    learning_rate : float, default=1.0
        Factor of the steps, or of the values of leaves, in (0, 1]. Use .05 to .3 for trees with
        many leaves.
    leaf_step : {"search", "newton"}, default="search"
        Values of a tree's leaves: Newton's values, (W - L) / (W + L + l2_leaf)
        of the weights W and L that the rows of the leaf win and lose with, as they are; or times
        the number that leaves the least weight of pairs ("search").
    min_samples_leaf : int, default=20
        Minimum number of rows in a leaf of a tree.
    min_pair_weight : float, default=0.0
        Minimum W + L of a leaf. W + L sums to 2 over all leaves, as the weights of all pairs sum
        to 1.
    l2_leaf : float, default=0.0
        See ``leaf_step``. Leaves of little weight get smaller values.
    subsample : float, default=1.0
        Share of the queries that each tree is grown on; of rows if there is one query.
    colsample : float, default=1.0
        Share of the features that each tree may use.
    monotonic_cst : array-like of int, shape (n_features,), or dict, optional
        1: the score must not fall as the feature rises, -1: not rise, 0: either; or a dict from
        names of features to these. Trees only.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Features whose values have no order: columns of a pandas or polars frame that have a
        categorical dtype; or a mask, numbers or names of columns. Their values are integers from 0
        to 65535, at most ``max_bins`` different ones to learn from; below 0 is missing. Columns of
        a frame may hold strings. A category that no row had is missing. Trees only, and not with
        ``missing="zero"``.
    pair_weight : {"ndcg", "ndcg@k", "map"} or callable, optional
        Factor of a pair's exponential loss: the change in NDCG (gain 2**label -
        1, logarithmic discount, of the first k) or average precision (labels above 0 are relevant)
        if both documents swapped places in the order of the scores so far; or a function of the
        labels and places (from 1) of the documents of a query, which returns weights of shape
        (n, n), of winner and loser. Trees only. A round then costs O(pairs). ``bound`` still bounds
        the training error, but is not what is made small, and may rise.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws queries and features.

    Attributes
    ----------
    estimators_ : structured ndarray, shape (n_stumps,) or (n_nodes,)
        feature, threshold, missing (1: fires where the value is missing) and alpha of each stump;
        or, of each node of all trees, tree, node, feature, threshold, missing (1: missing values go
        where those above the threshold go), gain, children (of values up to the threshold, and of
        those above; a node, or -1 - leaf) and their values where they are leaves; and categories:
        not empty where categories are split, the numbers of those that take the other child than
        missing values (all others take the same; the threshold is infinite).
    feature_importances_ : ndarray of float64, shape (n_features,)
        Share of each feature in the sum of |alpha|, or of the gains of the splits.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only where X had string column names.
    is_categorical_ : ndarray of bool, shape (n_features_in_,), or None
        None if no feature is categorical.
    categories_ : dict of int to list
        Of columns of a frame, their categories: the first one is number 0 in ``estimators_``, in
        arrays, and in C.
    n_iter_ : int
        Rounds made, those after the best one included.
    best_iteration_ : int
        Number, from 1, of the round with the best first ``eval_metric``; only with an ``eval_set``.
        With ``early_stopping_rounds`` the model ends at this round; otherwise it keeps all rounds.
    history_ : dict of lists
        Per round: ``edge`` r and ``alpha``; ``normalizer`` Z, the weight left; ``bound``, the
        product of all Z, which bounds the weighted fraction of pairs that are ranked wrongly or
        tied in training; ``cap``, the product of sqrt(1 - r^2) (or, with smoothing,
        sqrt((1 + 2 s)^2 - r^2) - 2 s), which ``bound`` never exceeds; and, with an ``eval_set``,
        each ``eval_metric``, as ``valid_ndcg@10``. Of trees, ``alpha`` is the largest difference
        of the values of two leaves, ``edge`` is that of the tree scaled to [0, 1], and ``cap`` the
        product of 1 - learning_rate * (1 - sqrt(1 - r^2)) where values come from a search, else
        of ((1 + r) exp(-alpha) + (1 - r) exp(alpha)) / 2.

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

    A tree is a weak ranker with a real value for each leaf [2]_. Its splits leave the least weight
    of pairs to second order, (W - L)^2 / (W + L + l2_leaf) summed over the children; then Z is
    computed exactly, so that the product of all Z bounds the training error as it does for stumps.
    With ``leaf_step="search"``, no Z is above 1. W and L of each row are rounded to 32-bit
    integers, by one part in 2^33 of the weight of all pairs at most: sums of them are exact, so
    that trees do not depend on the order of rows or on ``n_jobs``. What is rounded decides about
    splits only; values and weights are not. With ``max_bins=None`` splits are sought between all
    values. A tree costs O(stored values * depth / 2) at most, and O(stored values) of sparse
    columns whose values could matter: others are bounded.

    A split of categories puts those of the least W / (W + L) on one side. No other set of them
    gains more [3]_, unless ``min_samples_leaf`` or ``min_pair_weight`` rules all of these out.
    Categories without weight in a leaf go where missing values go; if those have none either, to
    the child of more weight.

    Memory beyond X: 1 byte per value of dense X and 5 to 6 of sparse X (4 more with
    ``max_bins=None``; of trees, 1 more of dense X, 4 more of sparse X, and 8 for each bin of every
    leaf), and about 45 bytes per row, of sparse X 55; 24 more with weights of rows, 8
    more where the rows of queries are mixed, 20 more to select by normalizer. 24 bytes for each
    different label of a query.

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
    >>> model = rc.RankBoost(3, step="discrete").fit(X, [1, 1, 1, 0, 0])
    >>> model.estimators_[["feature", "threshold"]].tolist()
    [(0, 0.5), (0, 2.25), (0, 2.75)]
    >>> model.predict_rank(X)
    array([1, 2, 3, 4, 5])
    >>> [round(bound, 4) for bound in model.history_["bound"]]
    [0.689, 0.5912, 0.4194]

    Where features interact, no sum of stumps will do:

    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]]
    >>> y = [0, 1, 1, 0, 0]
    >>> model = rc.RankBoost(5, max_leaf_nodes=4, min_samples_leaf=1).fit(X, y)
    >>> rc.metrics.auc_score(y, model.predict(X))
    1.0
    """

    def _fit(
        self, given: Given, weights: Weights, held_out: HeldOut, callbacks: Callbacks | None
    ) -> None:
        source, categories = self._source(given, **weights)
        pairing = make_pairing(
            source.window,
            balanced=self.balance == "query",
            in_row_order=False,
            relative_weights=True,
        )
        self._boost(source, categories, pairing, held_out, callbacks)
