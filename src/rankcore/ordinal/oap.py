"""Online ensembles of PRanks that sample one stream: their mean (OAP-BPM) and their votes."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.params import COUNT, HALF_LIFE, N_JOBS, Constraints, Real, check_declared
from rankcore._ext.rows import Rows
from rankcore.ordinal._members import OAP
from rankcore.ordinal._votes import (
    mean_ranks,
    measured_by_votes,
    predict,
    ranks_by_votes,
    scores_by_votes,
    votes_scoring,
)
from rankcore.ordinal.projecting import cumulated, projections, thresholds_of
from rankcore.ordinal.scale import MARGIN, SCALE

__all__ = ["OAPBPM", "OAPBagging", "OAPVoting"]


class OAPBPM(OAP):
    """Online approximation of the Bayes point: the mean of PRanks that sample one stream.

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
    half_life : float, optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
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
    update_loss_curve_ : ndarray, shape (n_points, 2)
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

    Notes
    -----
    Algorithm 2 of [1]_. An example costs the updates of the ``tau * n_estimators`` members that
    take it, and one for the mean; a prediction costs the same as with PRank. Memory: n_estimators
    times PRank's.

    The weight of a row multiplies the expected number of times that a member takes it: ``tau``
    times the weight, with a certain integer part and a random fraction, or the mean of the Poisson
    variable.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    References
    ----------
    .. [1] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPBPM(standardize=False, max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPBPM(5, random_state=0)],
    )

    _constraints: ClassVar[Constraints] = {
        "n_estimators": COUNT,
        "tau": Real(2.0**-32, 1),
        "n_jobs": N_JOBS,
        "half_life": HALF_LIFE,
        "threshold_scale": SCALE,
        "margin": MARGIN,
    }

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        *,
        half_life: float | None = None,
        random_state: Seed | None = None,
        n_jobs: int | None = None,
        max_iter: int = 10,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.tau = tau
        self.sampling = sampling
        self.average_members = average_members
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.half_life = half_life
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_iter = max_iter
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.verbose = verbose
        self.classes = classes


def scores_by_members(learner: OAP, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return a score for each rank and the predicted ranks, by the votes of the members."""
    scores, winners = scores_by_votes(learner, rows)
    # The members' mean breaks ties of votes: it adds less than half a vote, so that no other
    # order changes.
    mean = cumulated(projections(learner, rows)[:, None] - thresholds_of(learner))
    short = mean - mean.max(axis=1, keepdims=True)
    n_votes = max(1, int(learner._votes().sum()))
    scale = float(learner._fitted_state().model["scale"][0])
    return scores + short / (scale - short) / (4 * n_votes), winners


class OAPBagging(OAP):
    """Online bagging of PRanks: members that sample one stream have one vote each on the rank.

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
    half_life : float, optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
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
    update_loss_curve_ : ndarray, shape (n_points, 2)
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

    Notes
    -----
    Trained as `OAPBPM`; a prediction costs n_estimators times PRank's. ``project`` returns the mean
    of the members' ranks, on the scale 1 .. n_classes, as evaluated in the tables of Harrington
    (ICML 2003). A mean or median may be a declared rank that no training row has, between two
    others.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPBagging(standardize=False, max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPBagging(5, sampling="poisson", random_state=0)],
    )

    _constraints: ClassVar[Constraints] = {
        "n_estimators": COUNT,
        "tau": Real(2.0**-32, 1),
        "n_jobs": N_JOBS,
        "half_life": HALF_LIFE,
        "threshold_scale": SCALE,
        "margin": MARGIN,
    }

    predict = predict
    _projected = mean_ranks
    _ranks = ranks_by_votes
    _measured = measured_by_votes
    _scored = scores_by_members
    _scoring = votes_scoring

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        output: Literal["round", "mean", "median", "plurality"] = "round",
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        *,
        half_life: float | None = None,
        random_state: Seed | None = None,
        n_jobs: int | None = None,
        max_iter: int = 10,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.tau = tau
        self.sampling = sampling
        self.average_members = average_members
        self.output = output
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.half_life = half_life
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_iter = max_iter
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.verbose = verbose
        self.classes = classes


class OAPVoting(OAP):
    """`OAPBagging` in which a member has one vote per example it ranked correctly.

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
    half_life : float, optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
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
    update_loss_curve_ : ndarray, shape (n_points, 2)
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

    Notes
    -----
    OAP-VP of Harrington (ICML 2003). If no member has votes, all have one. A mean or median of
    ranks may be a declared rank that no training row has, between two others.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPVoting(standardize=False, max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPVoting(5, average_members=False, random_state=0)],
    )

    _constraints: ClassVar[Constraints] = {
        "n_estimators": COUNT,
        "tau": Real(2.0**-32, 1),
        "n_jobs": N_JOBS,
        "half_life": HALF_LIFE,
        "threshold_scale": SCALE,
        "margin": MARGIN,
    }

    predict = predict
    _projected = mean_ranks
    _ranks = ranks_by_votes
    _measured = measured_by_votes
    _scored = scores_by_members
    _scoring = votes_scoring

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        output: Literal["round", "mean", "median", "plurality"] = "round",
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        *,
        weight: Literal["total", "survival"] = "total",
        half_life: float | None = None,
        random_state: Seed | None = None,
        n_jobs: int | None = None,
        max_iter: int = 10,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.tau = tau
        self.sampling = sampling
        self.average_members = average_members
        self.output = output
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.weight = weight
        self.half_life = half_life
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_iter = max_iter
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.verbose = verbose
        self.classes = classes

    def _votes(self) -> np.ndarray:
        check_declared(self, "weight")
        state = self._fitted_state()
        seen = state.model["seen"]
        votes: np.ndarray
        votes = state.model["survived"] if self.weight == "survival" else seen[:, 0] - seen[:, 2]
        return votes[: state.settings["n_estimators"]]
