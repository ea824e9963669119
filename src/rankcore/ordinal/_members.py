"""Ensembles of PRanks that sample one stream: parameters, draws, and members in tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import poisson

from rankcore._core.concurrency import consistent_read
from rankcore._core.params import as_generator
from rankcore._core.scales import SPARSE
from rankcore._core.threads import Threads, n_threads
from rankcore._ext.ensemble import OAPModel
from rankcore._ext.online_loop import follow_rows
from rankcore._ext.online_model import LANES, PAST, SUMS, UNITS
from rankcore._ext.ordinal import PRankModel
from rankcore._ext.rows import Rows
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal._votes import Voters
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.parameters import resolved_margin
from rankcore.ordinal.prank import PRank
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    direction,
    project,
    projections,
    ranks_along,
    resolved_scale,
    scores_by_thresholds,
)
from rankcore.ordinal.scale import OF_FORGETTING, OF_UNITS, BuiltIn, scale_setting
from rankcore.ordinal.weights import Block, as_steps

# A tile visits all its members for each example, so its weights should fit into the nearest caches:
# at most this number of bytes, unless the tile has the minimum number of members, a cache line. One
# wide tile costs less than two: the cost of an example besides its members is paid for each tile.
TILE_BYTES = 2**16
MAX_WIDTH = 128
# Maximum number of times that a member takes a row: a table of draws has a column for each.
MOST_TIMES = 1000


def least_draws(settings: dict[str, Any], weights: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum 32-bit draws for taking an example once, twice and so on, as uint64.

    Shape (1, times); with weights of rows, which multiply the expected number of times, (n_rows,
    times).
    """
    expected = np.ones(1) if weights is None else weights
    if expected.max() > MOST_TIMES:
        raise ValueError(
            "a weight is the number of times that members take a row; weights must be at most "
            f"{MOST_TIMES}; got {expected.max():.3g}; scale them"
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


# Parameters that are built into an ensemble, and the types they are saved as.
OF_ENSEMBLE: BuiltIn = {
    "n_estimators": int,
    "tau": float,
    "sampling": str,
    "average_members": bool,
    "threshold_scale": scale_setting,
    "margin": scale_setting,
}


def tile_width(n_features: int, n_members: int) -> int:
    """Return the number of members in a tile.

    A tile fits a cache, its width is a multiple of four, and all tiles have a similar size.
    """
    width = max(LANES, min(MAX_WIDTH, TILE_BYTES // (8 * n_features)))
    n_tiles = math.ceil(n_members / width)
    return 4 * math.ceil(n_members / n_tiles / 4)


class OAP(OnlineOrdinalClassifier):
    """Ensemble of PRanks that learn from samples of one stream. Not public.

    Attributes
    ----------
    estimators_ : list of PRank
        The members (copies).
    coef_ : ndarray of float64, shape (n_features,)
        The mean of the members' directions (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        The mean of their thresholds, ascending (a copy).
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning, of the mean of the members' last
        parameters.
    """

    _built_in: ClassVar[BuiltIn] = {**OF_ENSEMBLE, **OF_UNITS, **OF_FORGETTING}
    n_estimators: int
    n_jobs: int | None
    half_life: float | None
    tie: Literal["crammer", "strict"]
    threshold_scale: float | str
    margin: float | str
    _model_class = OAPModel
    _merges = True
    _form = "thresholds"
    _one_direction = True

    coef_ = direction
    thresholds_ = ascending_thresholds
    threshold_scale_ = resolved_scale
    margin_ = resolved_margin
    project = project
    _projected = projections
    _ranks = ranks_along
    _scored = scores_by_thresholds

    @property
    @consistent_read
    def estimators_(self) -> list[PRank]:
        """The members, as independent fitted copies of `PRank`."""
        return [self._member(j) for j in range(self._fitted_state().settings["n_estimators"])]

    def _member(self, j: int) -> PRank:
        state = self._fitted_state()
        member = PRank(
            average=state.settings["average_members"],
            half_life=state.settings["half_life"],
            tie=self.tie,
            threshold_scale=state.settings["threshold_scale"],
            margin=state.settings["margin"],
            standardize=state.settings["standardize"],
            max_iter=int(self.max_iter),
            shuffle=self.shuffle,
        )
        tile, lane = divmod(j, state.model.width)
        names = {"weights": "weights", "steps": "steps", "offset": "member_offsets"}
        if state.settings["average_members"]:
            names |= {name + SUMS: theirs + SUMS for name, theirs in names.items()}
        arrays = {name: state.model[source][tile, :, lane].copy() for name, source in names.items()}
        shared = ["scale", "margin", *(UNITS if state.settings["standardize"] else ())]
        shared += [PAST] * state.model.forgets
        arrays |= {name: state.model[name].copy() for name in shared}
        arrays["counts"] = seen = state.model["seen"][j].copy()
        model = PRankModel(self.n_features_in_, self.ranks_.size, member._settings(), arrays)
        log = [seen.tolist()] if seen[0] else []
        member._state = OnlineRecord(model=model, settings=model.settings, log=log)
        member.ranks_ = self.ranks_.copy()
        member.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            member.feature_names_in_ = self.feature_names_in_.copy()
        return member

    def _votes(self) -> np.ndarray:
        """Return the number of votes of each member."""
        return np.ones(self._fitted_state().settings["n_estimators"], dtype=np.int64)

    def _voters(self) -> Voters:
        weights, thresholds = self._fitted_state().model.members()
        return Voters(weights, thresholds, self._votes())

    def _lengths(self, share: Callable[[], float]) -> int:
        # A member takes few of the rows. If few rows share a feature, projections of further rows
        # grow slowly, and thresholds of the usual scale run ahead of them.
        return 1 if share() <= SPARSE else 2

    def _split_weights(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        visits, _ = as_steps(weights)
        return visits, None if weights is None else least_draws(self._settings(), weights)

    def _block_rows(self, rows: Rows, state: OnlineRecord) -> int:
        # Long enough to amortise fetching the tiles, short enough for Ctrl-C and the memory of the
        # moves: one number per threshold and row.
        rate = state.settings["tau"] if state.settings["sampling"] == "bernoulli" else 1.0
        often = rate * state.settings["n_estimators"]
        work = max(rows.n_values, rows.n_rows) * max(1.0, often / 32)
        block = int(rows.n_rows * self._block_values / work)
        return max(1, min(block, 2**22 // state.model["totals"].size))

    def _new_model(self, n_features: int, n_ranks: int) -> OAPModel:
        width = tile_width(n_features, self.n_estimators)
        n_tiles = math.ceil(self.n_estimators / width)
        sizes = {"tiles": n_tiles, "width": width, "lanes": n_tiles * width}
        model = OAPModel(n_features, n_ranks, self._settings(), **sizes)
        model["seed"][:] = as_generator(self.random_state).integers(2**63, size=1)
        return model

    def _learn(self, state: OnlineRecord, block: Block) -> int:
        examples, start = block.examples, block.start
        while start < block.stop:  # rows that are learned in the same units
            stop = follow_rows(
                state.model,
                self,
                examples.rows,
                examples.order,
                examples.weights,
                start,
                block.stop,
            )
            if stop < 0:
                return start
            part = replace(block, start=start, stop=stop)
            reached, moved = self._move_members(state, part)
            if reached < stop:
                return reached
            state.model.follow_members(moved)
            start = part.learn(state.model, self, None, follow=False)
            if start < stop:
                break
        return start

    def _move_members(self, state: OnlineRecord, block: Block) -> tuple[int, np.ndarray]:
        """Let the members learn; return the first position not learned, and moves of the mean."""
        examples, model = block.examples, state.model
        shape_of_moves = block.stop - block.start, model["totals"].size
        lines = math.ceil(state.settings["n_estimators"] / LANES)
        n_jobs = min(n_threads(self.n_jobs), lines)
        edges = (np.linspace(0, lines, n_jobs + 1).astype(int) * LANES).tolist()
        edges[-1] = model["survived"].size
        cumulative = least_draws(state.settings) if examples.steps is None else examples.steps
        model.ensure_writable()

        def learn_some(first: int, last: int) -> tuple[int, np.ndarray]:
            moved = np.zeros(shape_of_moves, dtype=np.int32)
            reached = model.learn_members(
                self,
                examples.rows,
                examples.ranks,
                examples.order,
                block.start,
                block.stop,
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
