"""Passes of an online ordinal learner over rows that come in blocks from files."""

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
    Survey,
    Window,
    between_passes,
    run_windows,
    with_parameters,
)
from rankcore._core.inputs import check_classes, encode, find_classes
from rankcore._core.params import as_generator
from rankcore._core.passes import passes
from rankcore._core.scales import warn_of_sizes
from rankcore._core.state import OnlineState
from rankcore._core.watch import Callback, Watch, as_eval_sets
from rankcore.ordinal._scale import fix_scale
from rankcore.ordinal._validation import held_out_labels
from rankcore.ordinal._weights import Visits, class_weights


def fit_blocks(
    model: Any,
    blocks: RowBlocks,
    classes: Any,
    held_out_rows: tuple[Any, Any, Any],
    callbacks: Iterable[Callback] | None,
    figures: tuple[str, ...],
    pauses: Pauses | None = None,
) -> Any:
    """What ``fit`` makes of a model, which stays as it is.

    Parameters
    ----------
    model : OnlineOrdinalClassifier
    blocks : RowBlocks
    classes : array-like or None
    held_out_rows : (eval_set, eval_X, eval_y)
    callbacks : iterable of callables, or None
    figures : tuple of str
        Names of what the log has of each pass.
    pauses : Pauses, optional

    Returns
    -------
    estimator
        Fitted.
    """
    model._check_params()
    # Not "if it is known": the same arguments are to give the same model.
    survey = None
    wanted = classes is None or blocks.n_features is None or model.class_weight is not None
    if wanted or blocks.surveyed:
        survey = blocks.survey()
    known = _classes(classes, survey)
    n_features = blocks.n_features if survey is None else survey.n_features
    assert n_features is not None
    if survey is not None:
        warn_of_sizes(survey.magnitudes, type(model).__name__, stacklevel=6)
    weights = _weights(model, known, survey)
    resume = None if pauses is None else pauses.resume
    if resume is None:
        seed = int(as_generator(model.random_state).integers(2**63))
        state, position = model._new_state(n_features, len(known)), Position(1, 0, seed)
    else:
        state, position = resume[0]._state, resume[1]
        _check_resumed(resume[0], known, n_features)
    if survey is not None:
        fix_scale(state, model._lengths, lambda: survey.mean_square)
    fitted = model._shadow(blocks, known, state, n_features)
    sets = as_eval_sets(*held_out_rows, {})
    held_out = held_out_labels(sets, fitted._more_rows, known, model.eval_metric, figures)
    watch = Watch(fitted, held_out, callbacks)
    best = None if resume is None or resume[2] is None else resume[2]._state.parameters()

    def save(position: Position, interrupted: bool) -> None:
        assert pauses is not None
        opened = state.log[-1]
        if opened[0] == 0:  # a pass that has only been opened is none yet
            state.log.pop()
        if state.t:
            of_best = with_parameters(fitted, best, watch.best)
            pauses.save(fitted, position, interrupted, of_best)
        if opened[0] == 0:
            state.log.append(opened)

    with between_passes(pauses):
        for epoch in passes(model, state, "rank loss", watch.text, first=position.epoch):
            if epoch > position.epoch:
                position = Position(epoch, 0, position.seed)
                if pauses is not None:
                    save(position, False)
            run_windows(
                blocks,
                n_features,
                model.shuffle,
                position,
                model.max_iter,
                partial(state.snapshot, None),
                partial(_visit, fitted, state, known, weights, position),
                None if pauses is None else save,
            )
            if state.log[-1][0] == 0:
                raise ValueError(
                    "a pass visited no row: the weights of the classes that occur are too small"
                )
            if held_out:
                improved = watch.measure([fitted._measured(one.rows) for one in held_out])
                if improved and watch.keeps_best:
                    best = state.parameters()
            if watch.ends(epoch):
                break
    if best is not None:
        state.put_back(best)
        fitted.best_iteration_ = watch.best
    fitted._warn_of_fit()
    return fitted


def _visit(
    fitted: Any,
    state: OnlineState,
    known: NDArray[Any],
    weights: NDArray[np.float64] | None,
    position: Position,
    window: Window,
) -> None:
    rows, ranks = window.rows, encode(window.labels, known)
    of_rows = None if weights is None else weights[ranks]
    visits = fitted._visits_of(of_rows)
    order = None
    if fitted.shuffle or visits is not None:
        # A function of the place alone, so that a fit can go on from anywhere.
        generator = np.random.default_rng([position.seed, position.epoch, window.number])
        order = Visits(rows.n_rows, visits, fitted.shuffle, generator, in_part=True).next()
    if order is None or order.size:
        with state.weighted(fitted._of_kernel(state, of_rows)):
            fitted._run_pass(state, rows, ranks, order, position.epoch, fitted.max_iter)


def _classes(classes: Any, survey: Survey | None) -> NDArray[Any]:
    if classes is not None:
        return check_classes(classes)
    assert survey is not None
    # As many labels as tell a few fractional classes from a continuous target.
    n = min(survey.n_rows, 3 * survey.labels.size)
    return find_classes(np.resize(survey.labels, n))


def _weights(model: Any, known: NDArray[Any], survey: Survey | None) -> NDArray[np.float64] | None:
    """The weight of a row of each class, or None if all weigh the same."""
    if model.class_weight is None:
        return None
    assert survey is not None
    model._check_weighable()
    counts = np.zeros(known.size, dtype=np.int64)
    counts[encode(survey.labels, known)] = survey.counts
    return class_weights(model.class_weight, counts, known)


def _check_resumed(model: Any, known: NDArray[Any], n_features: int) -> None:
    if not np.array_equal(model.classes_, known) or model.n_features_in_ != n_features:
        raise ValueError(
            f"the checkpoint is of {model.n_features_in_} features and the classes "
            f"{model.classes_.tolist()}; the data have {n_features} and {known.tolist()}"
        )
