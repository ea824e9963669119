"""Passes of a pairwise perceptron over queries that come in blocks from files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.blocks import (
    Pauses,
    Position,
    RowBlocks,
    Window,
    between_passes,
    run_windows,
    with_parameters,
)
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import warn_of_sizes
from rankcore._core.watch import Callback, Watch
from rankcore.ranking._perceptron_pass import run_pass
from rankcore.ranking._perceptron_state import PairwiseState


def fit_blocks(
    model: Any,
    blocks: RowBlocks,
    held_out_rows: tuple[Any, ...],
    callbacks: Iterable[Callback] | None,
    pauses: Pauses | None = None,
) -> Any:
    """What ``fit`` makes of a model, which stays as it is.

    Parameters
    ----------
    model : PairwisePerceptron
    blocks : RowBlocks
    held_out_rows : (eval_set, eval_X, eval_y, eval_qid, eval_group)
    callbacks : iterable of callables, or None
    pauses : Pauses, optional

    Returns
    -------
    estimator
        Fitted.
    """
    model._check_params()
    survey = blocks.survey() if blocks.n_features is None or blocks.surveyed else None
    n_features = blocks.n_features if survey is None else survey.n_features
    assert n_features is not None
    if survey is not None:
        warn_of_sizes(survey.magnitudes, type(model).__name__, stacklevel=6)
    validation = model._validation(blocks, n_features, True, *held_out_rows)
    generator = as_generator(model.random_state)
    resume = None if pauses is None else pauses.resume
    if resume is None:
        state = model._new_state(n_features, generator)
        position = Position(1, 0, int(generator.integers(2**63)))
        fitted = model._shadow(blocks, n_features, 0, state)
    else:
        state, position = resume[0]._state, resume[1]
        if resume[0].n_features_in_ != n_features:
            raise ValueError(
                f"the checkpoint is of {resume[0].n_features_in_} features; the data have "
                f"{n_features}"
            )
        fitted = model._shadow(blocks, n_features, resume[0]._largest_query, state)
    quality = model._quality(validation[0] if validation else None)
    watch = Watch(fitted, validation, callbacks)
    best = None
    if resume is not None and resume[2] is not None:
        best, fitted.best_iteration_ = resume[2]._state.parameters(), watch.best

    def save(position: Position, interrupted: bool) -> None:
        assert pauses is not None
        of_best = with_parameters(fitted, best, watch.best)
        pauses.save(fitted, position, interrupted, of_best)

    with between_passes(pauses):
        for epoch in range(position.epoch, model.max_iter + 1):
            if epoch > position.epoch:
                position = Position(epoch, 0, position.seed)
                if pauses is not None:
                    save(position, False)
            if position.window == 0 and len(state.log) < epoch:
                state.log.append([0, 0, 0, 0, 0])
            run_windows(
                blocks,
                n_features,
                model.shuffle,
                position,
                model.max_iter,
                state.snapshot,
                partial(_visit, fitted, state, quality, position),
                None if pauses is None else save,
            )
            if state.log[-1][0] == 0:
                raise ValueError(
                    "no query has two documents with different labels: nothing is left to learn "
                    "from"
                )
            if validation:
                improved = watch.measure(
                    [fitted._scores(one.rows, one.queries) for one in validation]
                )
                if improved and watch.keeps_best:
                    best, fitted.best_iteration_ = state.parameters(), epoch
            model._print_pass(state, epoch, watch.text())
            if watch.ends(epoch) or (state.log[-1][1] == 0 and not validation):
                break
    if best is not None:
        state.put_back(best)
    model._warn_of_dropped(state, fitted)
    return fitted


def _visit(
    fitted: Any, state: PairwiseState, quality: Any, position: Position, window: Window
) -> None:
    if window.queries is None:
        raise ValueError("a ranker compares the documents of a query: the rows have no qid:")
    rows = window.rows
    queries = group_rows(window.queries, rows.n_rows)
    pairing, skipped = fitted._pairing(rows, window.labels, queries, None, None, None)
    largest = int(np.diff(queries.bounds).max())
    fitted._largest_query = max(fitted._largest_query, largest)
    state.log[-1][4] += skipped
    sequence: NDArray[np.int64] = pairing.visited()
    if fitted.shuffle:
        # A function of the place alone, so that a fit can go on from anywhere.
        place = [position.seed, position.epoch, window.number]
        np.random.default_rng(place).shuffle(sequence)
    data = fitted._bind_data(pairing, rows, state, 1)
    arguments = (data, pairing, sequence, quality, position.epoch, fitted.max_iter)
    run_pass(fitted, state, *arguments)
