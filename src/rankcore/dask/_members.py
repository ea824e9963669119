"""Ensembles whose members are divided among workers: every member sees all rows, as in memory.

A block of members needs nothing of the others, for who draws what is a function of the seed, the
member and the time. The mean of the members follows from integers, by how much each example moved
the thresholds of all of them, which blocks add up. So neither the blocks nor the shards that rows
are read in have a part in the model.
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

from rankcore._core.inputs import as_rows, encode
from rankcore._core.params import as_generator
from rankcore._core.passes import passes
from rankcore._core.state import LearnerState, OnlineState
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
from rankcore.dask._shards import Finding, Shard, join
from rankcore.dask._weighing import Weighing
from rankcore.ordinal._sampling import least_draws
from rankcore.ordinal._tiles import LANES, zeros_by_line
from rankcore.progress import Progress, report

# Arrays of members: by tile, or by member.
BY_TILE = ("weights", "weights_sums", "steps", "steps_sums", "thresholds")
BY_MEMBER = ("seen", "survived")

Moved = NDArray[np.int32]


@dataclass
class Block:
    """Some members, and the other members of their tiles, which stay as they were.

    Attributes
    ----------
    first, last : int
        Range of the members, padding included.
    before : int
        Members of the tiles before theirs.
    state : OnlineState
        Of these tiles alone; its counts are examples that were offered.
    """

    first: int
    last: int
    before: int
    state: OnlineState


def fit_members(
    model: Any,
    run: Run,
    findings: list[Finding],
    form: Any,
    *,
    classes: Any,
    n_blocks: int,
) -> Any:
    """A fitted copy of an ensemble.

    Parameters
    ----------
    model, run, findings, form, classes
        As for `fit_ordinal`.
    n_blocks : int
        Blocks of members, at most.
    """
    if model.early_stopping_rounds is not None:
        raise ValueError(
            "a fit on a cluster requires early_stopping_rounds=None, for ensembles take no "
            f"held-out rows there; found {model.early_stopping_rounds!r}"
        )
    known = classes_of(findings, classes)
    n_features = findings[0].n_features
    base = model._new_state(n_features, known.size)
    fix_scale_of(base, model, findings)
    fitted = model._shadow(form, known, base, n_features)
    generator = as_generator(model.random_state)
    blocks = cut_members(base, n_blocks)
    mean = without_members(base)
    n_copies = min(len(blocks), n_workers_of(run.client))
    wholes = [
        run.submit(join_all, run.shards, what=f"rows-copy-{copy}") for copy in range(n_copies)
    ]
    weights, _ = weighing_of(model, run, wholes[:1], findings, known)
    # What begins is a part of the graph, so that it can be had again.
    fitted._state = mean
    held = run.submit(hold, fitted, what="model")
    orders = [
        run.submit(begin_visits, whole, weights, held, generator, what=f"order-0-copy-{at}")
        for at, whole in enumerate(wholes)
    ]
    states: list[Any] = list(blocks)
    following = mean
    log = LearnerState(settings={})
    n_rows = sum(finding.n_rows for finding in findings)
    for epoch in passes(model, log, "rank loss"):
        orders = [
            run.submit(next_visits, order, what=f"order-{epoch}-copy-{at}")
            for at, order in enumerate(orders)
        ]
        learned = [
            run.submit(
                learn_block,
                wholes[number % n_copies],
                orders[number % n_copies],
                state,
                held,
                weights,
                what=f"epoch-{epoch}-members-{number}",
            )
            for number, state in enumerate(states)
        ]
        states = [
            run.submit(itemgetter(0), one, what=f"members-{epoch}-{number}")
            for number, one in enumerate(learned)
        ]
        moves = [
            run.submit(itemgetter(1), one, what=f"moves-{epoch}-{number}")
            for number, one in enumerate(learned)
        ]
        task = run.submit(
            follow_members,
            wholes[0],
            orders[0],
            moves,
            following,
            held,
            what=f"epoch-{epoch}-mean",
        )
        (following,) = run.gather([task])
        run.drop([*wholes, *orders, *states, held])
        log.log[-1] = list(following.log[-1])
        examples, total, _ = log.log[-1]
        report(Progress(epoch, model.max_iter, n_rows, n_rows, total / max(examples, 1)))
    put_together(base, following, run.gather(states))
    fitted._state = base
    fitted._warn_of_fit()
    return fitted


def cut_members(state: OnlineState, n: int) -> list[Block]:
    """The members of a state in at most n blocks of whole lines, each with its tiles."""
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
                "scale": state.others["scale"],
                "seed": state.others["seed"],
            },
            settings=state.settings,
        )
        blocks.append(Block(first, last, lanes.start, part))
    return blocks


def without_members(state: OnlineState) -> OnlineState:
    """What is known of the mean alone."""
    ours = {*BY_TILE, *BY_MEMBER}
    return OnlineState(
        {name: array for name, array in state.by_feature.items() if name not in ours},
        {name: array for name, array in state.others.items() if name not in ours},
        settings=state.settings,
    )


def put_together(state: OnlineState, mean: OnlineState, blocks: Sequence[Block]) -> None:
    """Write what blocks and their mean have become into a state of all."""
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
    """Members after a pass, and by how many steps each example moved the thresholds of all."""
    rows, ranks = as_rows(whole.X), encode(whole.y, model.classes_)
    order = visits[1]
    state = deepcopy(block.state)
    for name, array in state.by_feature.items():
        state.by_feature[name] = zeros_by_line(array.shape)
        state.by_feature[name][:] = array
    cumulative = least_draws(state.settings)
    if weights is not None:
        cumulative = model._of_kernel(state, weights.of(whole))
    n = rows.n_rows if order is None else order.size
    n_lanes = state.others["survived"].size
    n_members = min(state.settings["n_estimators"] - block.before, n_lanes)
    bound = model._bind_members(state, n_members, block.before)
    moved = np.zeros((n, model.classes_.size - 1), dtype=np.int32)
    lanes = block.first - block.before, block.last - block.before
    seed = int(state.others["seed"][0])
    block_rows = model._block_rows(rows, model._state)
    for start in range(0, n, block_rows):
        stop = min(start + block_rows, n)
        reached = kernels.learn_members(
            bound,
            rows,
            ranks,
            order,
            start,
            stop,
            state.t + start,
            seed,
            cumulative,
            *lanes,
            moved[start:stop],
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
    """The mean after a pass."""
    rows, ranks = as_rows(whole.X), encode(whole.y, model.classes_)
    learner, state = copy(model), deepcopy(mean)
    learner._state = state
    learner._moved = np.asarray(np.sum(moves, axis=0, dtype=np.int32))
    state.log.append([0, 0, 0])
    learner._run_pass(state, rows, ranks, visits[1], len(state.log), learner.max_iter)
    return state
