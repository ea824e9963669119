"""Members of ensembles: PRanks in tiles that learn from samples of one stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from rankcore._core.concurrency import reads
from rankcore._core.model_spec import Specified, outline
from rankcore._core.params import as_generator
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
from rankcore.ordinal._sampling import Sampling, check_means, least_draws
from rankcore.ordinal._scale import margin_of, moves_of, new_margin, new_scale
from rankcore.ordinal._weights import Block, as_steps
from rankcore.ordinal.prank import PRank, check_lattice, scale_of

# A tile visits all its members for each example, so its weights should fit into the nearest caches:
# at most this number of bytes, unless the tile has the minimum number of members, a cache line. One
# wide tile costs less than two: the cost of an example besides its members is paid for each tile.
TILE_BYTES = 2**16
MAX_WIDTH = 128


def tile_width(n_features: int, n_members: int) -> int:
    """Number of members in a tile: fits a cache, a multiple of four, tiles of similar size."""
    width = max(LANES, min(MAX_WIDTH, TILE_BYTES // (8 * n_features)))
    n_tiles = math.ceil(n_members / width)
    return 4 * math.ceil(n_members / n_tiles / 4)


def member_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Weights and thresholds of the members for predictions, in tiles."""
    weights, thresholds = state.by_feature["weights"], state.others["thresholds"]
    if not state.settings["average_members"]:
        return weights, thresholds
    n_tiles, _, width = weights.shape
    t = state.others["seen"][:, 0].reshape(n_tiles, 1, width)
    steps = averages(state.others["steps"], state.others["steps_sums"], t)
    scale = float(state.others["scale"][0])
    return averages(weights, state.by_feature["weights_sums"], t), scale * steps


def mean_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Means of the members' parameters, summed in the order of the members."""
    weights, thresholds = (
        array.transpose(1, 0, 2).reshape(array.shape[1], -1)[:, : state.settings["n_estimators"]]
        for array in member_parameters(state)
    )
    return weights.copy().mean(axis=1), thresholds.copy().mean(axis=1)


class OAP(Sampling, Specified):
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
    @reads
    def estimators_(self) -> list[PRank]:
        """The members, as independent fitted copies of `PRank`."""
        state = self._fitted_state()
        members = []
        for j in range(state.settings["n_estimators"]):
            member = PRank(
                average=state.settings["average_members"],
                tie=self.tie,
                threshold_scale=state.settings["threshold_scale"],
                margin=state.settings["margin"],
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
                | {name: state.others[name].copy() for name in ["scale", "margin"]},
                state.others["seen"][j].copy(),
                settings=member._settings(),
                log=[state.others["seen"][j].tolist()] if state.others["seen"][j, 0] else [],
            )
            member.ranks_, member.n_features_in_ = self.ranks_.copy(), self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                member.feature_names_in_ = self.feature_names_in_.copy()
            members.append(member)
        return members

    def _lengths(self, share: Callable[[], float]) -> int:
        # A member takes few of the rows. If few rows share a feature, projections of further rows
        # grow slowly, and thresholds of the usual scale run ahead of them.
        return 1 if share() <= SPARSE else 2

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and thresholds of the mean."""
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
            or (seen[:, 2] > seen[:, 0]).any()
            or state.others["seed"][0] < 0
        ):
            raise ValueError("the counts of its members are impossible")
        steps = state.others["steps"]
        of_members = seen.reshape(steps.shape[0], 1, steps.shape[2], 3)
        examples, mistakes = of_members[..., 0], of_members[..., 2]
        moves = moves_of(state, examples, mistakes)
        check_lattice(state.others, scale_of(state), *moves, axis=1)
        check_means(state, steps.sum(axis=(0, 2)))

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
        e, start, stop = block.examples, block.start, block.stop
        if self._moved is not None:
            return stop, self._moved[start:stop]
        others, n_tasks = state.others, state.others["totals"].size
        lines = math.ceil(state.settings["n_estimators"] / LANES)
        n_jobs = min(n_threads(self.n_jobs), lines)
        edges = (np.linspace(0, lines, n_jobs + 1).astype(int) * LANES).tolist()
        edges[-1] = others["survived"].size
        bound = self._bind_members(state, state.settings["n_estimators"])
        cumulative = least_draws(state.settings) if e.steps is None else e.steps
        t, seed = state.t, int(others["seed"][0])

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

        with Threads(n_jobs) as threads:
            results = threads.map(learn_some, edges[:-1], edges[1:])
        moved = results[0][1]
        for _, more in results[1:]:
            moved += more
        return min(reached for reached, _ in results), moved

    def _bind_members(self, state: OnlineState, n: int, before: int = 0) -> kernels.Members:
        """Arrays of n members, after ``before`` other ones, in the form of the kernel."""
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
            margin_of(state),
            self.tie == "strict",
            before,
        )
