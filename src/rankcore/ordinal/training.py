"""Training of online ordinal learners."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankcore._core.concurrency import uninterrupted
from rankcore._core.equal_rows import EQUAL_ROWS, EqualRows
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore._core.labels import (
    as_labels,
    check_agreement,
    encode,
    first_ranks,
    ranks_among,
    ranks_around,
)
from rankcore._core.params import as_generator
from rankcore._core.scales import share_of_nonzero, warn_of_scales
from rankcore._core.sources import DatasetStats, MemoryRows, RowBlocks, Source, Window
from rankcore._core.standardization import Units
from rankcore._core.state import checkpoints
from rankcore._core.training import Learner
from rankcore._core.warning import warn
from rankcore._ext.rows import Rows
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.parameters import AUTO_PASSES, PUBLISHED
from rankcore.ordinal.scale import fix_scale
from rankcore.ordinal.standardizing import standardize_fit
from rankcore.ordinal.weights import (
    Block,
    Examples,
    Visits,
    class_weights,
    row_weights,
    rows_together,
)
from rankcore.progress import Progress, report

# Maximum number of successive passes without an improvement by `tol`.
PATIENCE = 5
# With max_iter="auto": the pass whose parameters noisy labels keep, and the loss of the last pass
# above which labels are noisy, as a share of that of the best constant. reproduce/defaults.md
# has the study.
EARLY_PASS, NOISY = 5, 0.65
# Maximum number of rows in memory to predict: enough to find a fit that is no better than a
# constant, and few beside the rows of a long fit.
MEASURED_ROWS = 1000
# Maximum size of a standardised copy of rows in memory, which saves this work in later passes.
STANDARDIZED_BYTES = 2**26
# Rows that are copied at a time.
COPIED_ROWS = 50
# Minimum number of rows of which a warning is worth reading.
FEW_ROWS = 30


class PassLearner(Learner):
    """A learner whose log has the examples, total loss and mistakes of each pass."""

    # Name of the loss.
    _loss: ClassVar[str]

    def open(self, number: int) -> None:
        """Open the record of a pass, unless a resumed pass has one."""
        if number > len(self.fitted._state.log):
            self.fitted._state.log.append([0, 0, 0])

    def line(self, number: int) -> str:
        """Return a line about the latest pass: its mean loss and mistakes."""
        seen, total, mistakes = self.fitted._state.log[-1]
        passes = f"epoch {number} of {self.n_iterations}"
        return f"{passes}: {self._loss} {total / seen:.4f}, {mistakes} mistakes"

    def converged(self, measured: bool) -> bool:
        """Implement `Learner.converged`: the mean loss no longer improves by ``tol``, or is 0."""
        log, tol = self.fitted._state.log, self.fitted.tol
        if tol is None:
            return False
        best, stale = np.inf, 0
        for seen, total, _ in log:
            stale = 0 if total / seen < best - tol else stale + 1
            best = min(best, total / seen)
        return log[-1][2] == 0 or stale >= PATIENCE

    def exhausted(self) -> None:
        """Warn if the mean loss still improved by ``tol`` in the last pass."""
        model = self.fitted
        if model.tol is not None:
            warn(
                f"max_iter={model.max_iter} passes ended before the {self._loss} stopped improving "
                f"by tol={model.tol}; raise max_iter, or set tol=None to run a fixed number",
                ConvergenceWarning,
            )


class OnlineLearner(PassLearner):
    """Fit of an online ordinal learner; the given ``model`` is not changed.

    ``classes`` are the declared labels, lowest rank first; ``resumed`` is the model to continue.
    """

    _loss = "rank loss"

    _chooses = False  # whether noisy labels keep the parameters of an early pass
    _early: Any = None  # these parameters
    _all_equal = False  # whether all rows of the first pass are equal

    def __init__(
        self, model: Any, source: Source, classes: NDArray[Any] | None, resumed: Any = None
    ) -> None:
        self._chooses = model.max_iter == "auto"
        self.n_iterations = AUTO_PASSES if self._chooses else int(model.max_iter)
        self.shuffle = bool(model.shuffle)
        stats = (
            self._needed_stats(model, source, classes) if isinstance(source, RowBlocks) else None
        )
        self._of_rows: NDArray[Any] | None = None
        self._of_classes: NDArray[Any] | None = None
        if isinstance(source, MemoryRows):
            y, n_rows = source.window.labels, source.window.rows.n_rows
            self.ranks, self.classes = first_ranks(y, n_rows, classes, type(model).__name__)
        else:
            self.classes = _classes(classes, stats, type(model).__name__)
        self._weigh(model, source, stats)
        if isinstance(source, MemoryRows):
            source.leave_out(self._of_rows)
        has_stats = source.kept or stats is not None
        self._equal_rows = EqualRows()
        self._standardized: Rows | None = None
        self.generator = as_generator(model.random_state)
        self.seed = source.seed(self.generator)
        n_features = source.n_features if stats is None else stats.n_features
        assert n_features is not None
        if resumed is None:
            state = model._new_state(n_features, len(self.classes))
            standardize_fit(
                state.model, model, source, self.classes, self._of_rows, self._of_classes, has_stats
            )
        else:
            state = resumed._state
            _check_resumed(resumed, self.classes, n_features)
        as_they_are = has_stats and not state.model.rows_change
        self.off_scale = source.columns_off_scale() if as_they_are else []
        warn_of_scales(self.off_scale, source.names, type(model).__name__)
        if has_stats and model._in_windows:
            fix_scale(state.model, model, source.mean_square, source.share_of_nonzero)
        self.fitted = model._fitted_copy(source.given, n_features, state, ranks_=self.classes)
        self._visits: Visits | None = None
        self._first: int | None = None  # the first pass of this fit
        self.counts = np.zeros(len(self.classes), dtype=np.int64)  # rows of each rank in that pass

    @staticmethod
    def _needed_stats(model: Any, source: RowBlocks, classes: Any) -> DatasetStats | None:
        # Not "if it is known": equal arguments must give the same model.
        wanted = classes is None or source.n_features is None or model.class_weight is not None
        return source.stats() if wanted or source.has_stats else None

    def _weigh(self, model: Any, source: Source, stats: DatasetStats | None) -> None:
        """Compute the weights of rows or classes."""
        if isinstance(source, MemoryRows):
            weights = row_weights(
                source.window.sample_weight,
                model.class_weight,
                self.ranks,
                self.classes,
                all_rows=True,
                meaning=model._weights_are,
            )
            self._of_rows = weights
            if weights is not None:
                model._check_weighable()
        elif model.class_weight is not None:
            assert stats is not None
            model._check_weighable()
            counts = np.zeros(self.classes.size, dtype=np.int64)
            counts[encode(stats.labels, self.classes)] = stats.counts
            self._of_classes = class_weights(
                model.class_weight, counts, self.classes, model._weights_are
            )

    @property
    def weighted(self) -> bool:
        """Whether rows or classes have weights."""
        return self._of_rows is not None or self._of_classes is not None

    @property
    def _state(self) -> OnlineRecord:
        return self.fitted._state

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        """Learn a window of rows in pass ``number``, each as often as its weight says."""
        fitted, state, rows = self.fitted, self._state, window.rows
        kept = window.number == 0 and generator is self.generator
        if kept:
            ranks, weights = self.ranks, self._of_rows
        else:
            ranks = encode(window.labels, self.classes)
            weights = None if self._of_classes is None else self._of_classes[ranks]
        self._first = self._first or number
        if number == self._first:
            self.counts += np.bincount(ranks, minlength=self.counts.size)
            self._all_equal = self._equal_rows.add(rows, weights)
        visits, steps = fitted._split_weights(weights)
        order = None
        if self.shuffle or visits is not None:
            if self._visits is None or not kept:
                n_together = rows_together(rows, ranks)
                self._visits = Visits(
                    rows.n_rows, visits, self.shuffle, generator, not kept, n_together
                )
            order = self._visits.next()
        rows, done = self._in_units(rows) if kept else (rows, False)
        examples = Examples(rows, ranks, order, steps, weights)
        if examples.n_visits:
            state.model.rows_done = done
            try:
                fitted._run_pass(state, examples, number, self.n_iterations)
            finally:
                state.model.rows_done = False

    def _in_units(self, rows: Rows) -> tuple[Rows, bool]:
        """Return rows for all passes, standardised if memory suffices, and whether they are."""
        model = self._state.model
        room = 8 * rows.n_rows * rows.n_features <= STANDARDIZED_BYTES
        if not (model.folds and model.rows_change and room and self.n_iterations > 1):
            return rows, False
        if self._standardized is None:
            self._standardized = as_rows(Units.of_rows(model["units"]).standardize(rows))
        return self._standardized, True

    def close(self) -> None:
        """Raise ValueError if the pass visited no row, for lack of weight."""
        if self._state.log[-1][0] == 0:
            raise ValueError(
                "no row was visited in this pass: the class weights are too small; scale them"
            )
        if self._chooses and not self.weighted and len(self._state.log) == EARLY_PASS:
            self._early = self.parameters()

    def exhausted(self) -> None:
        """Implement `Learner.exhausted`; noisy labels keep the parameters of an early pass."""
        super().exhausted()
        seen, total, _ = self._state.log[-1]
        if self._early is not None and total / seen > NOISY * constant_loss(self.counts):
            self.restore(self._early)
            self.fitted.best_iteration_ = EARLY_PASS

    def idle(self) -> str | None:
        """Implement `Learner.idle`: no rows have different scores."""
        return EQUAL_ROWS if self._all_equal else None

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Implement `Learner.outputs`: ranks, which may be real numbers."""
        return [self.fitted._measured(rows.rows) for rows in held_out]


def run_pass(
    model: Any, state: OnlineRecord, examples: Examples, epoch: int, n_epochs: int
) -> None:
    """Learn the visits of a pass in blocks; signals are handled between blocks."""
    rows = examples.rows
    n = examples.n_visits
    if not state.model.follows:
        fix_scale(
            state.model,
            model,
            lambda: model._mean_square(state, examples.weighted),
            lambda: share_of_nonzero(examples.weighted),
        )
    marks = checkpoints(state.t, n)
    losses = np.empty_like(marks)
    before = state.counts.copy()
    record = state.log[-1]
    base = list(record)
    block = model._block_rows(rows, state)
    start = 0
    while start < n:
        stop = min(start + block, n)
        with uninterrupted():
            reached = model._learn(state, Block(examples, start, stop, marks, losses))
            record[:] = (base + state.counts - before).tolist()
            first, last = np.searchsorted(marks, [before[0], state.t], side="right").tolist()
            passed = slice(first, last)
            state.curve.extend(zip(marks[passed].tolist(), losses[passed].tolist(), strict=True))
            before = state.counts.copy()
            base = list(record)
            if reached < stop and state.model.make_room():
                stop = reached
        if reached < stop:
            raise_overflow(model, reached if examples.order is None else examples.order[reached])
        if stop == start:  # no room for even one example
            continue
        start = stop
        report(Progress(epoch, n_epochs, start, n, record[1] / record[0]))
    if not state.model.is_finite(rows.columns):
        raise_overflow(model, -1)


def raise_overflow(model: Any, row: int) -> None:
    """Raise ValueError for a row whose score overflowed; for -1, because of the weights."""
    if row < 0:
        raise ValueError(f"the weights overflowed, fit again: {model._overflow_hint}")
    raise ValueError(f"the score of row {row} overflowed: {model._overflow_hint}")


def partial_fit_online(
    model: Any,
    X: Any,
    y: Any,
    given: NDArray[Any] | None,
    sample_weight: Any,
    follow: bool = True,
    grow: bool = False,
) -> None:
    """Learn further examples in place, as ``partial_fit``; ``given`` are declared classes.

    ``follow`` is whether the units of standardised rows follow these rows, ``grow`` whether they
    may have further features.
    """
    if isinstance(model.class_weight, str):
        raise ValueError(
            f"class_weight={model.class_weight!r} requires the labels of all rows, which "
            "partial_fit does not have; pass a dict of label to weight"
        )
    first = not model.__sklearn_is_fitted__()
    below = above = 0
    if first:
        rows = as_rows(X)
        ranks, classes = first_ranks(y, rows.n_rows, given, type(model).__name__)
        state = model._new_state(rows.n_features, len(classes))
    else:
        classes, state = model.ranks_, model._state
        settings = model._settings()
        state.check_settings(settings, {})
        if not state.model.writable:
            with uninterrupted():
                state.ensure_writable()
        rows = model._wider_rows(X) if grow else model._more_rows(X)
        labels, declared_order = as_labels(y, rows.n_rows)
        declared = declared_order if given is None else given
        if declared is not None and not np.array_equal(declared, classes):
            if not grow:
                raise ValueError(
                    f"classes={declared.tolist()} differ from those of the first call: "
                    f"{classes.tolist()}"
                )
            below, above = ranks_around(classes, declared)
            classes = declared
        if given is not None and declared_order is not None:
            check_agreement(declared_order, given)
        ranks = encode(labels, classes)
    weights = row_weights(
        sample_weight,
        model.class_weight,
        ranks,
        classes,
        all_rows=False,
        meaning=model._weights_are,
    )
    if weights is not None:
        model._check_weighable()
    model._check_more_rows(state, rows)
    if below or above or rows.n_features > state.model.n_features:
        state = state.grown(rows.n_features, below, above)  # copies of the estimator keep theirs
        with uninterrupted():
            model._state, model.ranks_ = state, classes
            model._keep_wider(X, rows.n_features)
    if not first:
        state.follow_half_life(settings.get("half_life"))
    state.model.follows = follow
    goes_on = not first and state.streaming and "best_iteration_" not in vars(model)
    order = None
    if goes_on and weights is None:
        n_learned = model._learn_few(state, rows, ranks)
        if n_learned == rows.n_rows:
            return
        if n_learned:
            order = np.arange(n_learned, rows.n_rows, dtype=np.int32)
    visits, steps = model._split_weights(weights)
    if visits is not None:
        # Fractional visits are drawn depending on the position in the stream.
        generator = np.random.default_rng(state.offered)
        order = Visits(rows.n_rows, visits, False, generator, in_part=True).next()
    examples = Examples(rows, ranks, order, steps, weights)
    with uninterrupted():
        if not first:
            state.forget_after(model.__dict__.pop("best_iteration_", None))
        if visits is not None:
            state.offered += rows.n_rows
        if examples.n_visits:
            state.stream([0, 0, 0])
    if examples.n_visits:
        model._run_pass(state, examples, 1, 1)
    if first:
        model._replace_with(model._fitted_copy(X, rows.n_features, state, ranks_=classes))


def _classes(
    declared: NDArray[Any] | None, stats: DatasetStats | None, learner: str
) -> NDArray[Any]:
    if declared is not None:
        return declared
    assert stats is not None
    # Enough labels to distinguish a few fractional classes from a continuous target.
    n = min(stats.n_rows, 3 * stats.labels.size)
    return ranks_among(np.resize(stats.labels, n), None, None, learner)


def _check_resumed(model: Any, classes: NDArray[Any], n_features: int) -> None:
    if not np.array_equal(model.ranks_, classes) or model.n_features_in_ != n_features:
        raise ValueError(
            f"the checkpoint is of {model.n_features_in_} features and the classes "
            f"{model.ranks_.tolist()}; the data have {n_features} and {classes.tolist()}"
        )


def constant_loss(counts: NDArray[np.int64]) -> float:
    """Return the mean rank loss of the best constant, by the number of rows of each rank."""
    best = int(np.searchsorted(2 * counts.cumsum(), counts.sum()))  # the median
    return float(counts @ np.abs(np.arange(counts.size) - best) / counts.sum())


def warn_of_constant(learner: Any, source: Source) -> None:
    """Warn if a fitted model ranks its training rows no better than the best constant rank.

    The loss while learning usually shows that it does. Otherwise it predicts, because averages
    lose less than the models that they average: some rows in memory, or all rows on disk.

    Not measured are few rows, on which any model may fail; settings of the papers, which are for
    one pass of a stream; and rows with weights, for which the loss of a constant has no weights.
    """
    fitted, counts = learner.fitted, learner.counts
    if counts.sum() >= FEW_ROWS and np.count_nonzero(counts) == 1:
        label = fitted.ranks_[counts.argmax()]
        warn(
            f"all training rows have the label {label}, and there is nothing to tell apart: pass "
            "rows of other labels as well"
        )
        return
    # The settings of the papers, for any number of passes.
    published = {name: value for name, value in PUBLISHED.items() if name != "max_iter"}
    if all(getattr(fitted, name, value) == value for name, value in published.items()):
        return
    if not fitted._checks_constant or learner.weighted or learner.idle() or learner.off_scale:
        return
    n, total, _ = fitted._state.log[getattr(fitted, "best_iteration_", 0) - 1]
    if counts.sum() < FEW_ROWS or total / n < constant_loss(counts):
        return
    try:
        loss, constant = _losses(fitted, learner, source)
    except ValueError:  # scores that overflow are an error of `predict`
        return
    if loss < constant:
        return
    name = type(fitted).__name__
    alternatives = [learner for learner in ("KernelPRank", "OrdinalBoost") if learner != name]
    scaler = (
        ""
        if fitted._state.model.rows_change
        else f"put it behind a scaler, as in make_pipeline(StandardScaler(), {name}()), if the "
        "features are not on one scale around 0; else "
    )
    warn(
        f"{name} ranks its training rows no better than the best constant label: {scaler}a model "
        f"of this form does not fit them: try {' or '.join(alternatives)}, or other features"
    )


def _losses(fitted: Any, learner: Any, source: Source) -> tuple[float, float]:
    """Return the mean losses of the model and of the best constant."""
    counts = np.zeros(fitted.ranks_.size, dtype=np.int64)
    total = 0.0
    for window in source.windows(fitted.n_features_in_, None):
        ranks_of_window = learner.ranks if source.kept else encode(window.labels, fitted.ranks_)
        parts = (
            _spread(window.rows, ranks_of_window)
            if source.kept
            else [(window.rows, ranks_of_window)]
        )
        for rows, ranks in parts:
            counts += np.bincount(ranks, minlength=counts.size)
            total += float(np.abs(fitted._measured(rows) - ranks).sum())
    return total / counts.sum(), constant_loss(counts)


def _spread(rows: Rows, ranks: NDArray[Any]) -> Iterable[tuple[Rows, NDArray[Any]]]:
    """Return at most `MEASURED_ROWS` of the rows and their ranks, in small parts."""
    if rows.n_rows <= MEASURED_ROWS:
        yield rows, ranks
        return
    chosen = np.linspace(0, rows.n_rows - 1, MEASURED_ROWS).astype(np.int64)
    for some in np.array_split(chosen, MEASURED_ROWS // COPIED_ROWS):
        yield as_rows(some_rows(rows, some)), ranks[some]
