"""Online ensembles of PRanks that sample one stream: their mean (OAP-BPM) and their votes."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_declared, option
from rankcore._core.state import OnlineState
from rankcore._ext.rows import Rows, project
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._decisions import cumulated
from rankcore.ordinal._margin import WithMargin
from rankcore.ordinal._members import OAP
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._tiles import member_parameters
from rankcore.ordinal._votes import VotesRanks
from rankcore.ordinal.prank import Direction, scale_of

__all__ = ["OAPBPM", "OAPBagging", "OAPVoting"]

WEIGHTS = ("total", "survival")


class OAPBPM(WithMargin, OAP, Direction, Thresholds, OnlineOrdinalClassifier):
    """Online approximation of the Bayes point: the mean of PRanks that sample one stream.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of members.
    tau : float, default=0.3
        Probability with which a member takes an example, in (0, 1]. At 1 all members are one PRank.
    sampling : {"bernoulli", "poisson"}, default="bernoulli"
        Take an example once with probability ``tau``, or as often as a Poisson variable of mean 1
        says (online bagging; ``tau`` has no effect).
    average_members : bool, default=True
        Take the mean of the members' averaged parameters instead of their last ones.
    tie : {"crammer", "strict"}, default="crammer"
        As in `PRank`.
    threshold_scale : "auto" or float, default="auto"
        As in `PRank`.
    margin : float or "auto", default=0.0
        As in `PRank`, for each member. Of the mean of members a margin makes no better model.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes.
    early_stopping_rounds, eval_metric, class_weight
        As in `PRank`.
    n_jobs : int, optional
        Threads that share the members; -1 for all processors. The result does not depend on it.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        Every label, lowest rank first, as in `PRank`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels in ascending order, as of the columns of `decision_function`.
    ranks_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    estimators_ : list of PRank
        The members (copies).
    n_features_in_, feature_names_in_, n_iter_, best_iteration_, t_, history_, loss_curve_
        As in `PRank`; the losses are those of the mean of the members' last parameters.

    Notes
    -----
    Algorithm 2 of [1]_. An example costs the updates of the ``tau * n_estimators`` members that
    take it, and one more for the mean; a prediction costs what PRank's does. Memory: n_estimators
    times PRank's.

    The weight of a row multiplies the number of times that a member is expected to take it: ``tau``
    times the weight, the whole part for sure and the rest by chance, or the mean of the Poisson
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
    >>> model = rc.OAPBPM(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
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
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes


class OAPBagging(WithMargin, VotesRanks, OAP, Direction, Thresholds, OnlineOrdinalClassifier):
    """Bagged PRanks online: members that sample one stream vote on the rank, one vote each.

    Parameters
    ----------
    n_estimators, tau, sampling, average_members, tie, threshold_scale, margin, max_iter, shuffle, \
tol, early_stopping_rounds, eval_metric, class_weight, n_jobs, random_state, verbose, classes
        As in `OAPBPM`.
    output : {"round", "mean", "median", "plurality"}, default="round"
        What is predicted: the mean of the votes rounded (halves up), the real mean, the smallest
        rank with half of the votes at or below it, or the rank of most votes (of equals the
        lowest).

    Attributes
    ----------
    estimators_ : list of PRank
        The members (copies).
    classes_, ranks_, coef_, thresholds_, n_features_in_, feature_names_in_, n_iter_, \
best_iteration_, t_, history_, loss_curve_
        As in `OAPBPM`: parameters and losses are those of the members' mean, which cost no further
        pass.

    Notes
    -----
    Trained as `OAPBPM`; a prediction costs n_estimators times PRank's. ``project`` is the
    mean of the members' ranks, on the scale 1 .. n_classes, which is what Harrington's tables
    (ICML 2003) evaluate.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPBagging(max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

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
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
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
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    def _votes(self, state: OnlineState) -> np.ndarray:
        """Votes of the members."""
        return np.ones(state.settings["n_estimators"], dtype=np.int64)

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        scores, winners = super()._scored(rows)
        # Between ranks of equal votes the members' mean decides: less than half of what one vote
        # is worth, so that no other order changes.
        weights, thresholds = self._parameters()
        projected = np.empty(rows.n_rows)
        project(rows, weights, projected)
        mean = cumulated(check_scores(projected)[:, None] - thresholds)
        short = mean - mean.max(axis=1, keepdims=True)
        n_votes = max(1, int(self._votes(self._state).sum()))
        return scores + short / (scale_of(self._state) - short) / (4 * n_votes), winners

    def _voters(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *member_parameters(self._state), self._votes(self._state)


class OAPVoting(OAPBagging):
    """`OAPBagging` in which a member has as many votes as examples it ranked rightly.

    Parameters
    ----------
    n_estimators, tau, sampling, average_members, output, tie, threshold_scale, margin, max_iter, \
shuffle, tol, early_stopping_rounds, eval_metric, class_weight, n_jobs, random_state, verbose, \
classes
        As in `OAPBagging`.
    weight : {"total", "survival"}, default="total"
        Count all examples that a member took and ranked rightly, or those since its last mistake.

    Attributes
    ----------
    classes_, ranks_, estimators_, coef_, thresholds_, n_features_in_, feature_names_in_, \
n_iter_, best_iteration_, t_, history_, loss_curve_
        As in `OAPBagging`.

    Notes
    -----
    OAP-VP of Harrington (ICML 2003). If no member has a vote, all have one.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPVoting(max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _constraints: ClassVar = {"weight": option(*WEIGHTS)}

    def __init__(
        self,
        n_estimators: int = 100,
        tau: float = 0.3,
        sampling: Literal["bernoulli", "poisson"] = "bernoulli",
        average_members: bool = True,
        output: Literal["round", "mean", "median", "plurality"] = "round",
        weight: Literal["total", "survival"] = "total",
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = 0.0,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            tau=tau,
            sampling=sampling,
            average_members=average_members,
            output=output,
            tie=tie,
            threshold_scale=threshold_scale,
            margin=margin,
            max_iter=max_iter,
            shuffle=shuffle,
            tol=tol,
            early_stopping_rounds=early_stopping_rounds,
            eval_metric=eval_metric,
            class_weight=class_weight,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            classes=classes,
        )
        self.weight = weight

    def _votes(self, state: OnlineState) -> np.ndarray:
        check_declared(self, "weight")
        n, seen = state.settings["n_estimators"], state.others["seen"]
        votes = state.others["survived"] if self.weight == "survival" else seen[:, 0] - seen[:, 2]
        return votes[:n]
