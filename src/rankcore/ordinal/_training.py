"""Online ordinal learners as the trainer sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankcore._core.inputs import as_labels, encode
from rankcore._core.params import as_generator
from rankcore._core.scales import warn_of_scales
from rankcore._core.sources import Facts, MemoryRows, RowBlocks, Source, Window
from rankcore._core.state import OnlineState
from rankcore._core.training import Learner
from rankcore._core.warning import warn
from rankcore.ordinal._labels import ranks_among
from rankcore.ordinal._scale import fix_scale
from rankcore.ordinal._weights import (
    Examples,
    Visits,
    class_weights,
    row_weights,
    rows_together,
)

# Passes in a row that may fail to improve by `tol` before a fit stops.
PATIENCE = 5


class OnlineLearner(Learner):
    """An online ordinal learner that is being fitted.

    Parameters
    ----------
    model : OnlineOrdinalClassifier
        Stays as it is.
    source : Source
    classes : ndarray or None
        Those that were declared, lowest rank first.
    resumed : estimator, optional
        The model to go on from.
    """

    fitted: Any

    def __init__(
        self, model: Any, source: Source, classes: NDArray[Any] | None, resumed: Any = None
    ) -> None:
        self.n_iterations, self.shuffle = int(model.max_iter), bool(model.shuffle)
        facts = self._facts(model, source, classes) if isinstance(source, RowBlocks) else None
        self._of_rows: NDArray[Any] | None = None
        self._of_classes: NDArray[Any] | None = None
        if isinstance(source, MemoryRows):
            self._ranks, self.classes = first_ranks(source.window, classes, type(model).__name__)
        else:
            self.classes = _classes(classes, facts, type(model).__name__)
        known = source.kept or facts is not None
        if known:
            warn_of_scales(source.largest_of_unequal(), type(model).__name__)
        self._weigh(model, source, facts)
        self.generator = as_generator(model.random_state)
        self.seed = source.seed(self.generator)
        n_features = source.n_features if facts is None else facts.n_features
        assert n_features is not None
        if resumed is None:
            state = model._new_state(n_features, len(self.classes))
        else:
            state = resumed._state
            _check_resumed(resumed, self.classes, n_features)
        if known and model._in_windows:
            fix_scale(state, model._lengths, source.mean_square)
        self.fitted = model._shadow(source.given, self.classes, state, n_features)
        self._visits: Visits | None = None

    @staticmethod
    def _facts(model: Any, source: RowBlocks, classes: Any) -> Facts | None:
        # Not "if it is known": the same arguments are to give the same model.
        wanted = classes is None or source.n_features is None or model.class_weight is not None
        return source.facts() if wanted or source.surveyed else None

    def _weigh(self, model: Any, source: Source, facts: Facts | None) -> None:
        """Find the weights of the rows, or of those of each class."""
        if isinstance(source, MemoryRows):
            weights = row_weights(
                source.window.sample_weight,
                model.class_weight,
                self._ranks,
                self.classes,
                all_rows=True,
            )
            self._of_rows = weights
            if weights is not None:
                model._check_weighable()
        elif model.class_weight is not None:
            assert facts is not None
            model._check_weighable()
            counts = np.zeros(self.classes.size, dtype=np.int64)
            counts[encode(facts.labels, self.classes)] = facts.counts
            self._of_classes = class_weights(model.class_weight, counts, self.classes)

    @property
    def _state(self) -> OnlineState:
        state: OnlineState = self.fitted._state
        return state

    def open(self, number: int) -> None:
        """As `Learner.open`."""
        if number > len(self._state.log):
            self._state.log.append([0, 0, 0])

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """As `Learner.learn`."""
        fitted, state, rows = self.fitted, self._state, window.rows
        kept = window.number == 0 and generator is self.generator
        if kept:
            ranks, weights = self._ranks, self._of_rows
        else:
            ranks = encode(window.labels, self.classes)
            weights = None if self._of_classes is None else self._of_classes[ranks]
        visits, steps = fitted._split_weights(weights)
        order = None
        if self.shuffle or visits is not None:
            if self._visits is None or not kept:
                n_together = rows_together(rows, ranks)
                self._visits = Visits(
                    rows.n_rows, visits, self.shuffle, generator, not kept, n_together
                )
            order = self._visits.next()
        examples = Examples(rows, ranks, order, steps)
        if examples.n_visits:
            fitted._run_pass(state, examples, number, self.n_iterations)

    def close(self) -> None:
        """As `Learner.close`."""
        if self._state.log[-1][0] == 0:
            raise ValueError(
                "a pass visited no row: the weights of the classes that occur are too small"
            )

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """As `Learner.outputs`: ranks, which may be real numbers."""
        return [self.fitted._measured(one.rows) for one in held_out]

    def line(self, number: int) -> str:
        """As `Learner.line`."""
        return pass_line(self._state.log[-1], number, self.n_iterations, "rank loss")

    def converged(self, measured: bool) -> bool:
        """As `Learner.converged`: the loss no longer improves by ``tol``."""
        return stalled(self._state.log, self.fitted.tol)

    def exhausted(self) -> None:
        """As `Learner.exhausted`."""
        warn_of_passes(self.fitted, "rank loss")


def first_ranks(
    window: Window, declared: NDArray[Any] | None, learner: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ranks of the rows of a first window, and the labels, lowest rank first."""
    labels, of_dtype = as_labels(window.labels, window.rows.n_rows)
    known = ranks_among(labels, of_dtype, declared, learner)
    return encode(labels, known), known


def pass_line(record: list[Any], number: int, n_passes: int, loss: str) -> str:
    """A line for ``verbose``."""
    seen, total, mistakes = record
    return f"epoch {number} of {n_passes}: {loss} {total / seen:.4f}, {mistakes} mistakes"


def stalled(log: list[list[Any]], tol: float | None) -> bool:
    """Whether the mean loss of the latest passes did not improve by ``tol``, or is 0."""
    if tol is None:
        return False
    best, stale = np.inf, 0
    for seen, total, _ in log:
        stale = 0 if total / seen < best - tol else stale + 1
        best = min(best, total / seen)
    return log[-1][2] == 0 or stale >= PATIENCE


def warn_of_passes(model: Any, loss: str) -> None:
    """Warn of a loss that still improved by ``tol`` in the last passes."""
    if model.tol is not None:
        warn(
            f"max_iter={model.max_iter} passes ended before the {loss} stopped improving by "
            f"tol={model.tol}; raise max_iter, or set tol=None to run a fixed number",
            ConvergenceWarning,
        )


def _classes(declared: NDArray[Any] | None, facts: Facts | None, learner: str) -> NDArray[Any]:
    if declared is not None:
        return declared
    assert facts is not None
    # Enough labels to distinguish a few fractional classes from a continuous target.
    n = min(facts.n_rows, 3 * facts.labels.size)
    return ranks_among(np.resize(facts.labels, n), None, None, learner)


def _check_resumed(model: Any, known: NDArray[Any], n_features: int) -> None:
    if not np.array_equal(model.ranks_, known) or model.n_features_in_ != n_features:
        raise ValueError(
            f"the checkpoint is of {model.n_features_in_} features and the classes "
            f"{model.ranks_.tolist()}; the data have {n_features} and {known.tolist()}"
        )
