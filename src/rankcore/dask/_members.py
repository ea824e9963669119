"""Ensembles with members divided among workers: every member has all rows, as in memory.

Blocks of members are independent, as the draws are a function of the seed, the member and the time.
The mean of the members is computed from integers, the total moves of thresholds by each example,
which are summed over blocks. The model therefore depends neither on the blocks nor on the shards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.labels import encode
from rankcore._core.monitor import Monitor
from rankcore._core.params import as_generator
from rankcore._core.sources import Window
from rankcore._core.state import LANES, OnlineState, zeros_by_line
from rankcore._core.training import Trainer
from rankcore._ext import ensemble as kernels
from rankcore.dask._engine import n_workers_of
from rankcore.dask._mixing import (
    begin_visits,
    classes_of,
    fix_scale_of,
    hold,
    next_visits,
    weighing_of,
)
from rankcore.dask._run import Run
from rankcore.dask._shards import Shard, Weighing, all_equal, check_supported, join
from rankcore.ordinal._members import least_draws
from rankcore.ordinal._training import OnlineLearner
from rankcore.ordinal._weights import Examples
from rankcore.progress import Progress, report

# Arrays of members: by tile, or by member.
BY_TILE = ("weights", "weights_sums", "steps", "steps_sums", "thresholds")
BY_MEMBER = ("seen", "survived")

Moved = NDArray[np.int32]


@dataclass
class Block:
    """Some members, with the other members of their tiles, which do not change."""

    # Range of the members, padding included.
    first: int
    last: int
    before: int  # members of the tiles before theirs
    state: OnlineState  # of these tiles only; its counts are offered examples


def fit_members(model: Any, run: Run, *, classes: Any, n_blocks: int) -> Any:
    """Fitted copy of an ensemble in at most ``n_blocks``; parameters as in `fit_ordinal`."""
    check_supported(model, early_stopping_rounds=(None,))
    known = classes_of(model, run, classes)
    base = model._new_state(run.n_features, known.size)
    fix_scale_of(base, model, run)
    fitted = model._shadow(run.form, run.n_features, base, ranks_=known)
    generator = as_generator(model.random_state)
    blocks = cut_members(base, n_blocks)
    mean = without_members(base)
    n_copies = min(len(blocks), n_workers_of(run.client))
    wholes = run.each(join_all, [run.shards] * n_copies, what="rows-copy")
    weights, _ = weighing_of(model, run, wholes[:1], known)
    # The first model is a part of the graph, so that it can be recomputed.
    fitted._state = mean
    held = run.submit(hold, fitted, what="model")
    orders = run.each(begin_visits, wholes, weights, held, generator, what="order-0-copy")
    learner = MemberBlocks(fitted, run, wholes, orders, list(blocks), held, weights)
    Trainer(learner, run.source(), Monitor(fitted, [], None)).run()
    put_together(base, fitted._state, run.gather(learner.states))
    fitted._state = base
    fitted._warn_of_fit()
    return fitted


class MemberBlocks(OnlineLearner):
    """Learner of an ensemble whose members learn in blocks, each from all rows.

    The state of ``fitted`` is that of the mean; ``held`` is a future of the initial model.
    ``wholes`` and ``orders`` are futures of all rows and of the order of visits, on each worker
    used; ``states`` are blocks of members, or futures of them.
    """

    def __init__(
        self,
        fitted: Any,
        run: Run,
        wholes: list[Any],
        orders: list[Any],
        states: list[Any],
        held: Any,
        weights: Weighing | None,
    ) -> None:
        self.fitted, self.n_iterations, self.states = fitted, int(fitted.max_iter), states
        self._run, self._wholes, self._orders, self._held = run, wholes, orders, held
        self._weights, self._all_equal = weights, all_equal(run.findings)

    def open(self, number: int) -> None:
        """As `Learner.open`: the record is opened with the mean."""

    def learn(self, window: Window, generator: Any, number: int) -> None:
        """As `Learner.learn`."""
        run, wholes, held, weights = self._run, self._wholes, self._held, self._weights
        orders = run.each(next_visits, self._orders, what=f"order-{number}-copy")
        copies, n = list(zip(wholes, orders, strict=True)), len(wholes)
        what = f"epoch-{number}-members"
        learned = [
            run.submit(learn_block, *copies[at % n], state, held, weights, what=f"{what}-{at}")
            for at, state in enumerate(self.states)
        ]
        states = run.each(itemgetter(0), learned, what=f"members-{number}")
        moves = run.each(itemgetter(1), learned, what=f"moves-{number}")
        arguments = wholes[0], orders[0], moves, self.fitted._state, held
        mean = run.submit(follow_members, *arguments, what=f"epoch-{number}-mean")
        (self.fitted._state,) = run.gather([mean])
        run.drop([*wholes, *orders, *states, held])
        self._orders, self.states = orders, states
        examples, total, _ = self._state.log[-1]
        share = total / max(examples, 1)
        report(Progress(number, self.n_iterations, run.n_rows, run.n_rows, share))


def cut_members(state: OnlineState, n: int) -> list[Block]:
    """Divide members into at most n blocks of whole cache lines, each with its tiles."""
    n_members, width = state.settings["n_estimators"], state.others["steps"].shape[2]
    n_lanes, lines = state.others["survived"].size, math.ceil(n_members / LANES)
    edges = np.unique(np.linspace(0, lines, min(n, lines) + 1).astype(int) * LANES)
    edges[-1] = n_lanes
    blocks = []
    for first, last in pairwise(edges.tolist()):
        tiles = slice(first // width, math.ceil(last / width))
        lanes = slice(tiles.start * width, tiles.stop * width)
        part = OnlineState(
            {name: array[tiles] for name, array in state.by_feature.items() if name in BY_TILE},
            {
                **{name: array[tiles] for name, array in state.others.items() if name in BY_TILE},
                **{name: state.others[name][lanes] for name in BY_MEMBER},
                **{name: state.others[name] for name in ("scale", "margin", "seed")},
            },
            settings=state.settings,
        )
        blocks.append(Block(first, last, lanes.start, part))
    return blocks


def without_members(state: OnlineState) -> OnlineState:
    """State of the mean without its members."""
    ours = {*BY_TILE, *BY_MEMBER}
    return OnlineState(
        {name: array for name, array in state.by_feature.items() if name not in ours},
        {name: array for name, array in state.others.items() if name not in ours},
        settings=state.settings,
    )


def put_together(state: OnlineState, mean: OnlineState, blocks: Sequence[Block]) -> None:
    """Write the states of blocks and their mean into one state."""
    state.by_feature |= mean.by_feature
    state.others |= mean.others
    state.counts, state.curve, state.log = mean.counts, mean.curve, mean.log
    width = state.others["steps"].shape[2]
    for block in blocks:
        for name in BY_MEMBER:
            here = slice(block.first - block.before, block.last - block.before)
            state.others[name][block.first : block.last] = block.state.others[name][here]
        for tile in range(block.first // width, math.ceil(block.last / width)):
            start = tile * width
            lanes = slice(max(block.first - start, 0), min(block.last - start, width))
            for arrays, parts in (
                (state.by_feature, block.state.by_feature),
                (state.others, block.state.others),
            ):
                for name in BY_TILE:
                    if name in arrays:
                        part = parts[name][tile - block.before // width]
                        arrays[name][tile, :, lanes] = part[:, lanes]


# ------------------------------------------------------------------------------ tasks


def join_all(shards: list[Shard]) -> Shard:
    """All rows, in the order of the shards."""
    whole = join(shards)
    assert whole is not None
    return whole


def learn_block(
    whole: Shard,
    visits: tuple[Any, NDArray[Any] | None],
    block: Block,
    model: Any,
    weights: Weighing | None,
) -> tuple[Block, Moved]:
    """Members after a pass, and the total threshold steps of each example."""
    rows, ranks = as_rows(whole.X), encode(whole.y, model.ranks_)
    order = visits[1]
    state = deepcopy(block.state)
    for name, array in state.by_feature.items():
        state.by_feature[name] = zeros_by_line(array.shape)
        state.by_feature[name][:] = array
    of_rows = None if weights is None else weights.of(whole)
    _, draws = model._split_weights(of_rows)
    cumulative = least_draws(state.settings) if draws is None else draws
    n = rows.n_rows if order is None else order.size
    n_lanes = state.others["survived"].size
    n_members = min(state.settings["n_estimators"] - block.before, n_lanes)
    bound = model._bind_members(state, n_members, block.before)
    moved = np.zeros((n, model.ranks_.size - 1), dtype=np.int32)
    lanes = block.first - block.before, block.last - block.before
    seed = int(state.others["seed"][0])
    block_rows = model._block_rows(rows, model._state)
    visited = bound, rows, ranks, order
    for start in range(0, n, block_rows):
        stop = min(start + block_rows, n)
        reached = kernels.learn_members(
            *visited, start, stop, state.t + start, seed, cumulative, *lanes, moved[start:stop]
        )
        if reached < stop:
            row = reached if order is None else order[reached]
            raise ValueError(f"the score of row {row} overflowed: {model._overflow_hint}")
    if not state.is_finite(rows.columns):
        raise ValueError(f"the weights overflowed: {model._overflow_hint}")
    state.counts[0] += n
    return Block(block.first, block.last, block.before, state), moved


def follow_members(
    whole: Shard,
    visits: tuple[Any, NDArray[Any] | None],
    moves: list[Moved],
    mean: OnlineState,
    model: Any,
) -> OnlineState:
    """Mean of the members after a pass."""
    rows, ranks = as_rows(whole.X), encode(whole.y, model.ranks_)
    learner, state = copy(model), deepcopy(mean)
    learner._state = state
    learner._moved = np.asarray(np.sum(moves, axis=0, dtype=np.int32))
    state.log.append([0, 0, 0])
    examples = Examples(rows, ranks, visits[1], None)
    learner._run_pass(state, examples, len(state.log), learner.max_iter)
    return state
