"""Online ensembles of PRanks that sample one stream: their mean (OAP-BPM) and their votes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.concurrency import reads, signals_held
from rankcore._core.model_spec import outline
from rankcore._core.numbers import check_scores
from rankcore._core.params import as_generator, option
from rankcore._core.state import MOST_COUNTED, OnlineState, are_counts
from rankcore._core.threads import n_threads, shared_out
from rankcore._ext import ensemble as kernels
from rankcore._ext.ensemble_mean import Mean
from rankcore._ext.online_loop import learn
from rankcore._ext.rows import Rows, project
from rankcore.ordinal._decisions import cumulated
from rankcore.ordinal._sampling import CONSTRAINTS, check_means, least_draws, sampling_settings
from rankcore.ordinal._scale import check_known_scale, new_scale
from rankcore.ordinal._tiles import (
    LANES,
    MAX_WIDTH,
    mean_parameters,
    member_parameters,
    tile_width,
    zeros_by_line,
)
from rankcore.ordinal._votes import VotesRanks
from rankcore.ordinal._weights import Examples, as_steps
from rankcore.ordinal.prank import PRank, ThresholdClassifier, check_lattice, scale_of

__all__ = ["OAPBPM", "OAPBagging", "OAPVoting"]

WEIGHTS = ("total", "survival")


class OAP(ThresholdClassifier):
    """PRanks that learn from samples of one stream. Not public: subclasses say how they predict."""

    _constraints = CONSTRAINTS
    n_estimators: int
    tau: float
    sampling: str
    average_members: bool
    tie: Literal["crammer", "strict"]
    threshold_scale: float | str
    n_jobs: int | None
    # How members have moved the thresholds in a pass, if they learn elsewhere.
    _moved: np.ndarray | None = None

    @property
    @reads
    def estimators_(self) -> list[PRank]:
        """The members, each a fitted `PRank` (a copy) that can go on by itself."""
        state = self._fitted_state()
        members = []
        for j in range(state.settings["n_estimators"]):
            member = PRank(
                average=state.settings["average_members"],
                tie=self.tie,
                threshold_scale=state.settings["threshold_scale"],
                max_iter=self.max_iter,
                shuffle=self.shuffle,
            )
            tile, lane = divmod(j, state.others["steps"].shape[2])
            member._state = OnlineState(
                {
                    name: array[tile, :, lane].copy()
                    for name, array in state.by_feature.items()
                    if name != "mean"
                },
                {
                    name: state.others[name][tile, :, lane].copy()
                    for name in ["steps", "thresholds", "steps_sums"]
                    if name in state.others
                }
                | {"scale": state.others["scale"].copy()},
                state.others["seen"][j].copy(),
                settings=member._settings(),
                log=[state.others["seen"][j].tolist()] if state.others["seen"][j, 0] else [],
            )
            member.ranks_, member.n_features_in_ = self.ranks_.copy(), self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                member.feature_names_in_ = self.feature_names_in_.copy()
            members.append(member)
        return members

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and thresholds of the mean."""
        state = self._fitted_state()
        if not state.settings["average_members"]:
            return state.by_feature["mean"], state.others["mean_thresholds"]
        return state.averaged(lambda: mean_parameters(state))

    def _settings(self) -> dict[str, Any]:
        return sampling_settings(self)

    def _split_weights(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        visits, _ = as_steps(weights)
        return visits, None if weights is None else least_draws(self._settings(), weights)

    def _block_rows(self, rows: Rows, state: OnlineState) -> int:
        # Long enough to pay for fetching the tiles, short enough for Ctrl-C and for the memory of
        # what moved: one number per threshold and row.
        rate = state.settings["tau"] if state.settings["sampling"] == "bernoulli" else 1.0
        often = rate * state.settings["n_estimators"]
        work = max(rows.n_values, rows.n_rows) * max(1.0, often / 32)
        block = int(rows.n_rows * self._block_values / work)
        return max(1, min(block, 2**22 // state.others["totals"].size))

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        zeros, by_line = (np.zeros, zeros_by_line) if like is None else (outline, outline)
        width = tile_width(n_features, self.n_estimators)
        if like is not None:
            width = int((0, *like["others.steps"].shape)[-1])
            if not 4 <= width <= max(MAX_WIDTH, self.n_estimators + 3) or width % 4:
                raise ValueError(f"its tiles of {width} members are impossible")
        n_tiles = math.ceil(self.n_estimators / width)
        sums = ["", "_sums"] if self.average_members else [""]
        by_feature: dict[str, np.ndarray] = {
            f"weights{name}": by_line((n_tiles, n_features, width)) for name in sums
        }
        by_feature["mean"] = zeros(n_features)
        shape = (n_tiles, n_ranks - 1, width)
        others = {
            **{f"steps{name}": zeros(shape, dtype=np.int64) for name in sums},
            "thresholds": zeros(shape),
            "totals": zeros(n_ranks - 1, dtype=np.int64),
            "mean_thresholds": zeros(n_ranks - 1),
            "scale": new_scale(self.threshold_scale),
            "seen": zeros((n_tiles * width, 3), dtype=np.int64),
            "survived": zeros(n_tiles * width, dtype=np.int64),
            "seed": as_generator(self.random_state).integers(2**63, size=1),
        }
        return OnlineState(by_feature, others, settings=self._settings())

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        seen, survived = state.others["seen"], state.others["survived"]
        if (
            not are_counts(seen, survived)
            or survived.sum(dtype=np.float64) > MOST_COUNTED
            or (seen[:, 2] > seen[:, 0]).any()
            or state.others["seed"][0] < 0
        ):
            raise ValueError("what its members have counted is impossible")
        check_known_scale(state, state.settings["threshold_scale"])
        steps = state.others["steps"]
        of_members = seen.reshape(steps.shape[0], 1, steps.shape[2], 3)
        examples, mistakes = of_members[..., 0], of_members[..., 2]
        check_lattice(state.others, scale_of(state), examples, mistakes, axis=1)
        check_means(state, steps.sum(axis=(0, 2)))

    def _learn(
        self,
        state: OnlineState,
        examples: Examples,
        start: int,
        stop: int,
        marks: np.ndarray,
        losses: np.ndarray,
    ) -> int:
        reached, moved = self._move_members(state, examples, start, stop)
        if reached < stop:
            return reached
        mean = Mean(
            state.by_feature["mean"],
            state.others["totals"],
            state.others["mean_thresholds"],
            moved,
            scale_of(state),
            state.settings["n_estimators"],
        )
        e, counts = examples, state.counts
        return learn(mean, e.rows, e.ranks, e.order, None, start, stop, counts, marks, losses)

    def _move_members(
        self, state: OnlineState, examples: Examples, start: int, stop: int
    ) -> tuple[int, np.ndarray]:
        """Let the members learn; the first position not learned, and what moves the mean."""
        if self._moved is not None:
            return stop, self._moved[start:stop]
        others, n_tasks = state.others, state.others["totals"].size
        lines = math.ceil(state.settings["n_estimators"] / LANES)
        n_jobs = min(n_threads(self.n_jobs), lines)
        edges = (np.linspace(0, lines, n_jobs + 1).astype(int) * LANES).tolist()
        edges[-1] = others["survived"].size
        bound = self._bind_members(state, state.settings["n_estimators"])
        cumulative = least_draws(state.settings) if examples.steps is None else examples.steps
        e, t, seed = examples, state.t, int(others["seed"][0])

        def learn_some(first: int, last: int) -> tuple[int, np.ndarray]:
            moved = np.zeros((stop - start, n_tasks), dtype=np.int32)
            reached = kernels.learn_members(
                bound,
                e.rows,
                e.ranks,
                e.order,
                start,
                stop,
                t,
                seed,
                cumulative,
                first,
                last,
                moved,
            )
            return reached, moved

        if n_jobs == 1:
            results = [learn_some(0, edges[-1])]
        else:
            with signals_held(), ThreadPoolExecutor(n_jobs - 1) as pool:
                results = shared_out(pool, learn_some, edges[:-1], edges[1:])
        moved = results[0][1]
        for _, more in results[1:]:
            moved += more
        return min(reached for reached, _ in results), moved

    def _bind_members(self, state: OnlineState, n: int, before: int = 0) -> kernels.Members:
        """The arrays of n members as the kernel takes them; ``before`` them are others."""
        return kernels.Members(
            state.by_feature["weights"],
            state.by_feature.get("weights_sums"),
            state.others["steps"],
            state.others["thresholds"],
            state.others.get("steps_sums"),
            state.others["seen"],
            state.others["survived"],
            n,
            scale_of(state),
            self.tie == "strict",
            before,
        )


class OAPBPM(OAP):
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


class OAPBagging(VotesRanks, OAP):
    """Bagged PRanks online: members that sample one stream vote on the rank, one vote each.

    Parameters
    ----------
    n_estimators, tau, sampling, average_members, tie, threshold_scale, max_iter, shuffle, tol, \
early_stopping_rounds, eval_metric, class_weight, n_jobs, random_state, verbose, classes
        As in `OAPBPM`.
    output : {"round", "mean", "median", "plurality"}, default="round"
        What is predicted: the mean of the votes rounded (halves up), the real mean, the smallest
        rank with half of the votes at or below it, or the rank of most votes (of equals the
        lowest).

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels in ascending order, as of the columns of `decision_function`.
    ranks_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    estimators_ : list of PRank
        The members (copies).
    coef_, thresholds_, n_features_in_, feature_names_in_, n_iter_, best_iteration_, t_, history_, \
loss_curve_
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
    n_estimators, tau, sampling, average_members, output, tie, threshold_scale, max_iter, shuffle, \
tol, early_stopping_rounds, eval_metric, class_weight, n_jobs, random_state, verbose, classes
        As in `OAPBagging`.
    weight : {"total", "survival"}, default="total"
        Count all examples that a member took and ranked rightly, or those since its last mistake.

    Attributes
    ----------
    classes_, ranks_, estimators_, coef_, thresholds_, n_features_in_, feature_names_in_, n_iter_, \
best_iteration_, t_, history_, loss_curve_
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
        self._check_declared("weight")
        n, seen = state.settings["n_estimators"], state.others["seen"]
        votes = state.others["survived"] if self.weight == "survival" else seen[:, 0] - seen[:, 2]
        return votes[:n]
