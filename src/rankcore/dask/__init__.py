"""Learners on a Dask cluster, with the names and parameters of those in memory.

Requires ``pip install 'rankcore[dask]'``. ``fit`` accepts dask arrays, dataframes, lists of delayed
blocks or paths; ``predict`` returns lazy collections; ``to_local()`` returns the ordinary
estimator.

`RankSVM` sums over shards, as over rows in memory: its model is that of the ordinary estimator, to
the rounding of sums.

The others use iterative parameter mixing [1]_: in each pass every shard continues from the same
model, and the models are averaged. Each example or success has the same weight in an average, in
any shard.

References
----------
.. [1] R. McDonald, K. Hall and G. Mann. "Distributed Training Strategies for the Structured
   Perceptron". NAACL 2010.
"""

from rankcore.boosting import bipartite, ordinal_boost, rankboost
from rankcore.dask._boosting import fit_pairs, fit_ranks
from rankcore.dask._estimators import (
    DistributedClassifier,
    DistributedOrdinalBoost,
    DistributedRanker,
    SummingRanker,
)
from rankcore.dask._evaluate import evaluate
from rankcore.dask._online import fit_ordinal, fit_pairwise
from rankcore.dask._svm import fit_ranksvm
from rankcore.ordinal import baselines, cusum, logistic, oap, prank
from rankcore.ranking import perceptron, svm

__all__ = [
    "OAPBPM",
    "BipartiteRankBoost",
    "CuSumRank",
    "MulticlassPerceptron",
    "OAPBagging",
    "OAPVoting",
    "OrdinalBoost",
    "OrdinalLogistic",
    "PRank",
    "PairwisePerceptron",
    "RankBoost",
    "RankSVM",
    "WidrowHoff",
    "evaluate",
]


class OnlineClassifier(DistributedClassifier):
    """An online learner of ordered labels. Not public."""

    _fit_shards = staticmethod(fit_ordinal)


class PRank(OnlineClassifier, prank.PRank):  # type: ignore[misc]
    """`rankcore.PRank` on a Dask cluster.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default="auto"
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy). ``predict`` is
        ``ranks_[np.searchsorted(thresholds_, X @ coef_, side="right")]``.
    margin_ : float
        The resolved ``margin``.
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

    Examples
    --------
    >>> import dask.array as da, rankcore as rc
    >>> from distributed import Client
    >>> X, y = rc.datasets.make_ordinal(1000, 20, mean_nnz=5, random_state=0)
    >>> X = da.from_array(X.toarray(), chunks=(250, 20))
    >>> y = da.from_array(y, chunks=250)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = rc.dask.PRank(random_state=0).fit(X, y, n_shards=4)
    ...     predicted = model.predict(X).compute()
    >>> predicted.shape, type(model.to_local()).__name__
    ((1000,), 'PRank')
    """


class CuSumRank(OnlineClassifier, cusum.CuSumRank):  # type: ignore[misc]
    """`rankcore.CuSumRank` on a Dask cluster.

    Parameters
    ----------
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Length of a step: 1, or passive-aggressive: the smallest with which the true rank beats its
        rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": smaller values give shorter steps.
    delta : float, default=1.0
        Score by which passive-aggressive updates require a rank to be beaten, per rank of loss. It
        has no effect on the predictions of "pa", whose weights are proportional to it.
    pa_loss : {"absolute", "zero_one"}, default="absolute"
        Loss of the passive-aggressive updates: ``delta`` times the distance in ranks, or ``delta``.
    margin : float, default=0.0
        In training the rival is the rank of maximum score plus margin times distance from the true
        rank, so that correct ranks must also win by a margin. Passive-aggressive updates do not
        change rivals that are beaten by the loss.
    tie_break : {"high", "low"}, default="high"
        Rule for ties between best ranks.
    decision : {"cusum", "count"}, default="cusum"
        Predict the rank of maximum score, or the number of tasks of non-negative score. Training
        always uses the former.
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Value of the equivalent constant feature of each intercept. "auto" is twice the root mean
        square length of the rows of the first call (once for `WidrowHoff`), with its square rounded
        to a power of two. The papers have 1.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_classes - 1, n_features)
        Weights of the tasks (a copy).
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Intercepts of the tasks (a copy): their scores are ``X @ coef_.T + intercept_``.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class WidrowHoff(OnlineClassifier, baselines.WidrowHoff):  # type: ignore[misc]
    """`rankcore.WidrowHoff` on a Dask cluster.

    Parameters
    ----------
    eta0 : float, default=0.3
        Step size. "normalized" steps reduce the error of the row by this factor, and are stable
        below 2 for rows of any length. "constant" steps are stable only below 2 divided by the
        squared length of the rows, including the constant.
    step : {"normalized", "constant"}, default="normalized"
        Whether ``eta0`` is divided by the squared length of the row ("constant": not, as in the
        paper).
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Value of the equivalent constant feature of each intercept. "auto" is twice the root mean
        square length of the rows of the first call (once for `WidrowHoff`), with its square rounded
        to a power of two. The papers have 1.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy).
    intercept_ : float
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class MulticlassPerceptron(OnlineClassifier, baselines.MulticlassPerceptron):  # type: ignore[misc]
    """`rankcore.MulticlassPerceptron` on a Dask cluster.

    Parameters
    ----------
    update : {"worst", "uniform"}, default="uniform"
        Ranks from which the row is subtracted on a mistake: the predicted rank or, in equal shares,
        all that score at least as high as the true one.
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Value of the equivalent constant feature of each intercept. "auto" is twice the root mean
        square length of the rows of the first call (once for `WidrowHoff`), with its square rounded
        to a power of two. The papers have 1.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_classes, n_features)
        Weights in the order of ``classes_`` (a copy); they sum to 0.
    intercept_ : ndarray of float64, shape (n_classes,)
        Intercepts in the order of ``classes_`` (a copy).
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class OrdinalLogistic(OnlineClassifier, logistic.OrdinalLogistic):  # type: ignore[misc]
    """`rankcore.OrdinalLogistic` on a Dask cluster.

    Parameters
    ----------
    eta0 : float, default=2.0
        Length of a step, which is divided by the mean squared length of the first 64 rows and by
        the square root of the number of thresholds. Larger values learn faster and average over
        larger fluctuations.
    step : {"decreasing", "constant"}, default="decreasing"
        Whether steps decrease with the fourth root of the number of rows, as suits rows of one
        distribution (they have the length of constant ones at row 256), or are constant, as suits
        streams that change.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    loss : {"absolute", "zero_one", "squared"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), or the squared distance.
    max_iter : int, default=20
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending (a copy): ``P(rank <= r | x) = 1 / (1 + exp(x @ coef_ - thresholds_[r]))``.
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`; removed by `partial_fit`.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row).
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """

    predict_proba = DistributedOrdinalBoost.predict_proba  # type: ignore[assignment]


class OAPBPM(OnlineClassifier, oap.OAPBPM):  # type: ignore[misc]
    """`rankcore.OAPBPM` on a Dask cluster; the members of the shards are averaged one by one.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or a Poisson(1) number of times (online
        bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default=0.0
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
        The mean of members gains nothing from "auto", and loses by it on raw features.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    estimators_ : list of PRank
        The members (copies).
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning, of the mean of the members' last
        parameters.
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class OAPBagging(OnlineClassifier, oap.OAPBagging):  # type: ignore[misc]
    """`rankcore.OAPBagging` on a Dask cluster, as `OAPBPM`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or a Poisson(1) number of times (online
        bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    output : {"round", "mean", "median", "plurality"}, default="round"
        Prediction from the votes: their mean rounded (halves up), the real mean, the smallest rank
        with half of the votes at or below it, or the rank with most votes (the lowest of ties).
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default=0.0
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    estimators_ : list of PRank
        The members (copies).
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning, of the mean of the members' last
        parameters.
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class OAPVoting(OnlineClassifier, oap.OAPVoting):  # type: ignore[misc]
    """`rankcore.OAPVoting` on a Dask cluster, as `OAPBPM`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or a Poisson(1) number of times (online
        bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    output : {"round", "mean", "median", "plurality"}, default="round"
        Prediction from the votes: their mean rounded (halves up), the real mean, the smallest rank
        with half of the votes at or below it, or the rank with most votes (the lowest of ties).
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default=0.0
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
    weight : {"total", "survival"}, default="total"
        Count all examples that a member took and ranked correctly, or those since its last mistake.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    estimators_ : list of PRank
        The members (copies).
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning, of the mean of the members' last
        parameters.
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """


class PairwisePerceptron(DistributedRanker, perceptron.PairwisePerceptron):  # type: ignore[misc]
    """`rankcore.PairwisePerceptron` on a Dask cluster.

    Parameters
    ----------
    variant : {"averaged", "committee", "voted", "pocket", "last"}, default="averaged"
        "averaged": the mean of all hypotheses, weighted by successes. "committee": the
        ``committee_size`` hypotheses with the most successes. "voted": votes of all hypotheses.
        "pocket": the hypothesis with the most successes. "last": the last one. The fit is the same
        for all but "voted": ``set_params(variant=...)`` changes the predictions of a fitted model.
        On a cluster it must be "averaged" or "last".
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
        On a cluster it must be None.
    max_hypotheses : int, "auto" or None, default="auto"
        Maximum number of voters of "voted", those with the most successes. "auto": 5000, or fewer
        that fit in 32 MB, with a warning if they have less than half of the successes. None:
        unlimited.
    feature_scale : {"auto"}, optional, default="auto"
        "auto": if the standard deviations of the features in the rows of the first call differ by a
        factor of 64 or more, learn from features multiplied by powers of two, which bring all
        deviations near 1, and multiply the weights by the same: ``coef_`` is for features as given.
        Rows of which at most an eighth of the values are not 0 are not scaled. None: never scale.
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

    References
    ----------
    .. [1] J. L. Elsas, V. R. Carvalho and J. G. Carbonell. "Fast Learning of Document Ranking
       Functions with the Committee Perceptron". WSDM 2008.
    """

    _fit_shards = staticmethod(fit_pairwise)


class RankSVM(SummingRanker, svm.RankSVM):  # type: ignore[misc]
    """`rankcore.RankSVM` on a Dask cluster, linear.

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
        On a cluster it must be None.
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
        On a cluster it must be False.
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each pass, round or step: names known to
        `rankcore.metrics.evaluate`, or functions of labels, scores and qid (higher is better).
        Named losses are minimised. The first of a list is used for early stopping.
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

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy); only without a kernel or with the linear one.
    dual_coef_ : ndarray of float64, shape (n_support,)
        Coefficients of documents; only with a kernel.
    support_ : ndarray of int64, shape (n_support,)
        Training rows of these documents.
    objective_, gap_ : float
        Objective of the model, and the duality gap as a share of it.
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
    """

    _fit_shards = staticmethod(fit_ranksvm)


class RankBoost(SummingRanker, rankboost.RankBoost):  # type: ignore[misc]
    """`rankcore.RankBoost` on a Dask cluster, with stumps or trees.

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
        On a cluster it must be "edge".
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
        On a cluster it must be a number.
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
        On a cluster it must be False.
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
    colsample : float, default=1.0
        Fraction of the features that each tree may use.
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
        On a cluster categories must be encoded.
    pair_weight : {"ndcg", "ndcg@k", "map"} or callable, optional
        Factor of a pair's exponential loss: the change of NDCG (gain 2**label - 1, logarithmic
        discount, cutoff k) or average precision (labels above 0 are relevant) if the two documents
        swapped positions in the current ranking; or a function of the labels and ranks (from 1) of
        the documents of a query that returns weights of shape (n, n), by winner and loser. Trees
        only. A round then costs O(pairs). ``bound`` still bounds the training error, but is not
        minimised, and may increase.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of randomness of ``subsample`` and ``colsample``.

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

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer. "An Efficient Boosting Algorithm for
       Combining Preferences". Journal of Machine Learning Research 4, 2003.
    """

    _fit_shards, _nan = staticmethod(fit_pairs), True


class BipartiteRankBoost(SummingRanker, bipartite.BipartiteRankBoost):  # type: ignore[misc]
    """`rankcore.BipartiteRankBoost` on a Dask cluster, as `RankBoost`.

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
    select : {"edge", "normalizer"}, default="edge"
        Criterion for the best stump: "edge" maximises |r|; "normalizer" minimises the weight that
        a step of exact length leaves, at O(stored values * labels) per round.
        On a cluster it must be "edge".
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
        On a cluster it must be a number.
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
        On a cluster it must be False.
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
    colsample : float, default=1.0
        Fraction of the features that each tree may use.
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
        On a cluster categories must be encoded.
    pair_weight : {"ndcg", "ndcg@k", "map"} or callable, optional
        Factor of a pair's exponential loss: the change of NDCG (gain 2**label - 1, logarithmic
        discount, cutoff k) or average precision (labels above 0 are relevant) if the two documents
        swapped positions in the current ranking; or a function of the labels and ranks (from 1) of
        the documents of a query that returns weights of shape (n, n), by winner and loser. Trees
        only. A round then costs O(pairs). ``bound`` still bounds the training error, but is not
        minimised, and may increase.
    random_state : int, RandomState instance, Generator or None, default=None
        Source of randomness of ``subsample`` and ``colsample``.

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
    Without qid, all rows belong to one query, which may be divided among all shards.

    References
    ----------
    .. [2] M. Mohri, A. Rostamizadeh and A. Talwalkar. "Foundations of Machine Learning", chapter
       on ranking. MIT Press, 2012.
    """

    _fit_shards, _nan = staticmethod(fit_pairs), True


class OrdinalBoost(DistributedOrdinalBoost, ordinal_boost.OrdinalBoost):  # type: ignore[misc]
    """`rankcore.OrdinalBoost` on a Dask cluster.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of rounds.
    learning_rate : float, default=0.1
        Factor of the values of leaves, in (0, 1].
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves of a tree; the leaf with the largest gain is split first. None:
        limited by ``max_depth`` only.
    tasks : {"vector", "shared"}, default="vector"
        Tree of a round. "vector": its leaves have a value for each g_j, and its splits follow
        derivatives along a random direction of the tasks. "shared": its leaves have a value for f,
        which treats ranks as positions on a line; exports of one score and contributions to it
        require this form. With two classes both have one score.
    link : {"adjacent", "cumulative"}, default="adjacent"
        Probabilities of ranks: adjacent categories, or cumulative logits, P(rank >= j) = 1 / (1 +
        exp(-s_j)). "cumulative" requires ``tasks="shared"``, since the scores of a vector may
        cross.
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), the squared distance, or one minus the quadratic
        weighted kappa of all predictions.
        Trees do not depend on it.
        On a cluster it must be "absolute", "zero_one" or "squared".
    max_depth : int, optional
        Maximum depth of a tree.
    min_samples_leaf : int or "auto", default="auto"
        Minimum number of rows in a leaf. ``"auto"`` is 20, or a fifth of the rows if they are fewer
        than 100.
    l2_leaf : float, default=1.0
        Added to the sum of second derivatives in a leaf; it shrinks the values of leaves with small
        weight most.
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
        On a cluster it must be a number.
    missing : {"learn", "zero"}, default="learn"
        Missing values are NaN, and with "zero" also 0, stored or not. Each split learns which child
        they take.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Categorical features: columns of a frame of pandas, polars or Arrow with a categorical
        dtype ("from_dtype"), or a mask, numbers or names of columns. Values are integers from 0 to
        65535, with at most ``max_bins`` distinct ones in the training rows; values below 0 are
        missing. Columns of a frame may hold strings. Categories that are not in the training rows
        are missing. Not with ``missing="zero"``.
        On a cluster categories must be encoded.
    monotonic_cst : array-like of int, shape (n_features,), or dict, optional
        Monotone constraints: 1, no P(rank >= j) may decrease with the feature; -1, none may
        increase; 0, no constraint. A dict maps names of features to these.
    subsample : float, default=1.0
        Fraction of the rows used in each round.
    colsample : float, default=1.0
        Fraction of the features available in each round.
    class_weight : {"balanced"} or dict, optional
        Weight of the rows of each label; "balanced" is n_samples / (n_classes * rows of the label).
    early_stopping_rounds : int, optional
        Stop after this many consecutive rounds that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the rounds up to the best one.
    eval_metric : str, callable or list of them, default="ranked_probability_score"
        Measures on the ``eval_set`` after each round: "ranked_probability_score", "log_loss", those
        of `PRank`, or functions of true and predicted labels (higher is better). The first of a
        list is used for early stopping.
    warm_start : bool, default=False
        Whether ``fit`` continues the current model, up to ``n_estimators`` rounds in total.
        On a cluster it must be False.
    n_jobs : int, optional
        Number of threads, which share the features. None: 1, -1: one per processor. The model does
        not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draws of rows, features and, with ``tasks="vector"``, directions. If None, and
        all rows and features are used, the draws are the same in each fit.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first. Required for strings, unless y is an ordered categorical.

    Attributes
    ----------
    biases_ : ndarray of float64, shape (n_classes - 1,)
        Bias b_j of each rank except the lowest.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Fraction of each feature in the sum of the gains of all splits.
    history_ : dict of lists
        Per round: ``log_loss``, the mean loss on the training rows; and, with an ``eval_set``, each
        ``eval_metric``, as ``valid_ranked_probability_score``.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row).
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    is_categorical_ : ndarray of bool, shape (n_features_in_,), or None
        Mask of categorical features; None if there are none.
    categories_ : dict of int to list
        Categories of each categorical DataFrame column, in the order of their codes from 0.
    n_iter_ : int
        Number of rounds, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the round with the best value of the first ``eval_metric``; only with an
        ``eval_set``. With ``early_stopping_rounds`` the model ends at this round; otherwise it
        keeps all rounds.
    """

    _fit_shards = staticmethod(fit_ranks)
