"""Ensembles of PRanks that sample one stream: parameters, draws, and members in tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import poisson

from rankcore._core.arguments import Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.docs import parameters
from rankcore._core.model_spec import Specified, outline
from rankcore._core.params import Constraints, Real, as_generator
from rankcore._core.scales import SPARSE
from rankcore._core.state import (
    LANES,
    MOST_COUNTED,
    OnlineState,
    are_counts,
    averages,
    zeros_by_line,
)
from rankcore._core.threads import Threads, n_threads
from rankcore._ext import ensemble as kernels
from rankcore._ext.ensemble_mean import Mean
from rankcore._ext.rows import Rows
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._scale import (
    BuiltIn,
    margin_of,
    new_margin,
    new_scale,
    scale_setting,
)
from rankcore.ordinal._weights import Block, as_steps
from rankcore.ordinal.prank import PRank, check_thresholds, scale_of

# A tile visits all its members for each example, so its weights should fit into the nearest caches:
# at most this number of bytes, unless the tile has the minimum number of members, a cache line. One
# wide tile costs less than two: the cost of an example besides its members is paid for each tile.
TILE_BYTES = 2**16
MAX_WIDTH = 128
# Maximum number of times that a member takes a row: a table of draws has a column for each.
MOST_TIMES = 1000


def least_draws(settings: dict[str, Any], weights: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum 32-bit draws for taking an example once, twice and so on, uint64.

    Shape (1, times); with weights of rows, which multiply the expected number of times, (n_rows,
    times).
    """
    expected = np.ones(1) if weights is None else weights
    if expected.max() > MOST_TIMES:
        raise ValueError(
            "a weight is the number of times that members take a row; weights must be at most "
            f"{MOST_TIMES}; found {expected.max():.3g}; scale them"
        )
    if settings["sampling"] == "bernoulli":
        # The integer part is certain, the fraction is random.
        expected = settings["tau"] * expected
        times = np.arange(math.floor(expected.max()) + 1)
        least = 1 - np.clip(expected[:, None] - times, 0, 1)
    else:  # Poisson: at most n times with this probability
        most = 13 if weights is None else int(poisson.isf(1e-12, weights.max())) + 1
        least = poisson.cdf(np.arange(most), expected[:, None])
    return np.rint(least * 2.0**32).astype(np.uint64)


@parameters
class SamplingParams:
    """Ensemble of PRanks that sample a stream, with or without a kernel.

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
    n_jobs : int, optional
        Number of threads over which members are distributed; -1 for all processors. The result does
        not depend on it.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the sampling and of the shuffling.
    """

    _constraints: ClassVar[Constraints] = {"tau": Real(2.0**-32, 1)}
    _built_in: ClassVar[BuiltIn] = {
        "n_estimators": int,
        "tau": float,
        "sampling": str,
        "average_members": bool,
        "threshold_scale": scale_setting,
        "margin": scale_setting,
    }

    n_estimators: int = 100
    tau: float = 0.3
    sampling: Literal["bernoulli", "poisson"] = "bernoulli"
    average_members: bool = True
    _: KW_ONLY
    n_jobs: int | None = None
    random_state: Seed | None = None


def tile_width(n_features: int, n_members: int) -> int:
    """Return the number of members in a tile.

    A tile fits a cache, its width is a multiple of four, and all tiles have a similar size.
    """
    width = max(LANES, min(MAX_WIDTH, TILE_BYTES // (8 * n_features)))
    n_tiles = math.ceil(n_members / width)
    return 4 * math.ceil(n_members / n_tiles / 4)


def member_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Return the members' weights and thresholds for predictions, in tiles."""
    weights, thresholds = state.by_feature["weights"], state.others["thresholds"]
    if not state.settings["average_members"]:
        return weights, thresholds
    n_tiles, _, width = weights.shape
    t = state.others["seen"][:, 0].reshape(n_tiles, 1, width)
    steps = averages(state.others["steps"], state.others["steps_sums"], t)
    scale = float(state.others["scale"][0])
    return averages(weights, state.by_feature["weights_sums"], t), scale * steps


def mean_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of the members' parameters, summed in the order of the members."""
    weights, thresholds = (
        array.transpose(1, 0, 2).reshape(array.shape[1], -1)[:, : state.settings["n_estimators"]]
        for array in member_parameters(state)
    )
    return weights.copy().mean(axis=1), thresholds.copy().mean(axis=1)


class OAP(SamplingParams, Specified):
    """Ensemble of PRanks that learn from samples of one stream. Not public.

    Attributes
    ----------
    estimators_ : list of PRank
        The members (copies).
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning, of the mean of the members' last
        parameters.
    """

    tie: Literal["crammer", "strict"]
    threshold_scale: float | str
    margin: float | str
    max_iter: int
    shuffle: bool
    ranks_: np.ndarray
    _settings: Callable[[], dict[str, Any]]
    _block_values = OnlineOrdinalClassifier._block_values
    # Moves of the thresholds by the members in a pass, if members learn elsewhere.
    _moved: np.ndarray | None = None

    @property
    @consistent_read
    def estimators_(self) -> list[PRank]:
        """The members, as independent fitted copies of `PRank`."""
        return [self._member(j) for j in range(self._fitted_state().settings["n_estimators"])]

    def _member(self, j: int) -> PRank:
        state = self._fitted_state()
        member = PRank(
            average=state.settings["average_members"],
            tie=self.tie,
            threshold_scale=state.settings["threshold_scale"],
            margin=state.settings["margin"],
            max_iter=self.max_iter,
            shuffle=self.shuffle,
        )
        tile, lane = divmod(j, state.others["steps"].shape[2])

        def of_member(arrays: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
            return {name: arrays[name][tile, :, lane].copy() for name in names if name in arrays}

        weights = of_member(state.by_feature, ["weights", "weights_sums"])
        others = of_member(state.others, ["steps", "thresholds", "steps_sums"])
        others |= {name: state.others[name].copy() for name in ("scale", "margin")}
        seen = state.others["seen"][j].copy()
        log = [seen.tolist()] if seen[0] else []
        member._state = OnlineState(weights, others, seen, settings=member._settings(), log=log)
        member.ranks_ = self.ranks_.copy()
        member.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            member.feature_names_in_ = self.feature_names_in_.copy()
        return member

    def _lengths(self, share: Callable[[], float]) -> int:
        # A member takes few of the rows. If few rows share a feature, projections of further rows
        # grow slowly, and thresholds of the usual scale run ahead of them.
        return 1 if share() <= SPARSE else 2

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights and thresholds of the mean."""
        state = self._fitted_state()
        if not state.settings["average_members"]:
            return state.by_feature["mean"], state.others["mean_thresholds"]
        return state.averaged(lambda: mean_parameters(state))

    def _split_weights(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        visits, _ = as_steps(weights)
        return visits, None if weights is None else least_draws(self._settings(), weights)

    def _block_rows(self, rows: Rows, state: OnlineState) -> int:
        # Long enough to amortise fetching the tiles, short enough for Ctrl-C and the memory of the
        # moves: one number per threshold and row.
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
                raise ValueError(
                    f"members must be stored in tiles of a multiple of 4; found tiles of {width}"
                )
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
            "scale": new_scale(self._settings()),
            "margin": new_margin(self._settings()),
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
            or state.others["seed"][0] < 0
        ):
            raise ValueError(f"the counts of the members must be from 0 to {MOST_COUNTED}")
        check_thresholds(state.others, axis=1)
        if (np.diff(state.others["mean_thresholds"]) < 0).any():
            raise ValueError("the mean_thresholds of the model must ascend from rank to rank")

    @property
    def _averaged(self) -> Sequence[str]:
        return ["weights", "steps"]

    def _times(self, state: OnlineState) -> np.ndarray:
        n_tiles, _, width = state.others["steps"].shape
        seen: np.ndarray = state.others["seen"][:, 0].reshape(n_tiles, 1, width)
        return seen

    def _merge_counts(
        self, merged: OnlineState, states: Sequence[OnlineState], base: OnlineState
    ) -> None:
        before, others = base.others, merged.others
        others["seen"] = before["seen"] + sum(s.others["seen"] - before["seen"] for s in states)
        survived = np.zeros_like(before["survived"])
        unbroken = np.ones(survived.size, dtype=bool)
        for one in (state.others for state in states):
            same = one["seen"][:, 2] == before["seen"][:, 2]  # no mistake since
            survived += one["survived"] - before["survived"] * same
            unbroken &= same
        others["survived"] = survived + before["survived"] * unbroken

    def _derive(self, state: OnlineState) -> None:
        others, n = state.others, state.settings["n_estimators"]
        others["thresholds"][...] = scale_of(state) * others["steps"]

        def members(array: np.ndarray) -> np.ndarray:
            return array.transpose(1, 0, 2).reshape(array.shape[1], -1)[:, :n]

        state.by_feature["mean"][:] = members(state.by_feature["weights"]).mean(axis=1)
        others["totals"][:] = members(others["steps"]).sum(axis=1)
        others["mean_thresholds"][:] = scale_of(state) * (others["totals"] / n)

    def _learn(self, state: OnlineState, block: Block) -> int:
        reached, moved = self._move_members(state, block)
        if reached < block.stop:
            return reached
        mean = Mean(
            state.by_feature["mean"],
            state.others["totals"],
            state.others["mean_thresholds"],
            moved,
            scale_of(state),
            state.settings["n_estimators"],
        )
        return block.learn(mean, None, state.counts)

    def _move_members(self, state: OnlineState, block: Block) -> tuple[int, np.ndarray]:
        """Let the members learn; return the first position not learned and the mean's moves."""
        examples = block.examples
        if self._moved is not None:
            return block.stop, self._moved[block.start : block.stop]
        others = state.others
        shape_of_moves = block.stop - block.start, others["totals"].size
        t = state.t
        lines = math.ceil(state.settings["n_estimators"] / LANES)
        n_jobs = min(n_threads(self.n_jobs), lines)
        edges = (np.linspace(0, lines, n_jobs + 1).astype(int) * LANES).tolist()
        edges[-1] = others["survived"].size
        bound = self._bind_members(state, state.settings["n_estimators"])
        cumulative = least_draws(state.settings) if examples.steps is None else examples.steps
        seed = int(others["seed"][0])

        def learn_some(first: int, last: int) -> tuple[int, np.ndarray]:
            moved = np.zeros(shape_of_moves, dtype=np.int32)
            reached = kernels.learn_members(
                bound,
                examples.rows,
                examples.ranks,
                examples.order,
                block.start,
                block.stop,
                t,
                seed,
                cumulative,
                first,
                last,
                moved,
            )
            return reached, moved

        with Threads(n_jobs) as threads:
            results = threads.map(learn_some, edges[:-1], edges[1:])
        moved = results[0][1]
        for _, more in results[1:]:
            moved += more
        return min(reached for reached, _ in results), moved

    def _bind_members(self, state: OnlineState, n: int, before: int = 0) -> kernels.Members:
        """Bind the arrays of n members, after ``before`` other ones, for the kernel."""
        others = state.others
        return kernels.Members(
            state.by_feature["weights"],
            state.by_feature.get("weights_sums"),
            others["steps"],
            others["thresholds"],
            others.get("steps_sums"),
            others["seen"],
            others["survived"],
            n,
            scale_of(state),
            margin_of(state),
            self.tie == "strict",
            before,
        )
