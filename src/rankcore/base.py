"""What the online ordinal learners share: one loop, one state, one scikit-learn face."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_scalar, validate_data

from rankcore._core.concurrency import Versioned, changing, learns, raise_signals, reads
from rankcore._ext.passes import learn
from rankcore._ext.rows import Rows
from rankcore.inputs import as_labels, as_rows, check_classes, encode, find_classes
from rankcore.metrics import rank_loss
from rankcore.progress import Progress, report

# Epochs in a row that may fail to improve by `tol` before a fit stops.
PATIENCE = 5


@dataclass
class OnlineState(Versioned):
    """All that a learner knows: what is saved, resumed and scored with.

    Attributes
    ----------
    by_feature : dict of ndarray
        Kernel arrays with an axis of features: the first, or the second of three (tiles).
    others : dict of ndarray
        The other kernel arrays.
    settings : dict
        Hyper-parameters built into the arrays, which may not change while learning goes on.
    counts : ndarray of int64, shape (3,)
        Examples seen, their total rank loss, mistakes.
    curve : list of (int, int)
        Examples seen and total rank loss, at the marks of `checkpoints`.
    epochs : list of [int, int, int]
        Per pass: examples, total rank loss, mistakes.
    streaming : bool
        Whether the last pass belongs to `partial_fit`, and so goes on.
    averaged_at : (int, object) or None
        Averaged parameters, and the version they are of: kept, so that predicting again does not
        average again.
    """

    by_feature: dict[str, np.ndarray]
    others: dict[str, np.ndarray]
    settings: dict[str, Any]
    counts: np.ndarray = field(default_factory=lambda: np.zeros(3, np.int64))
    curve: list[tuple[int, int]] = field(default_factory=list)
    epochs: list[list[int]] = field(default_factory=list)
    streaming: bool = False
    averaged_at: tuple[int, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def t(self) -> int:
        """Examples seen."""
        return int(self.counts[0])

    def _few(self, columns: np.ndarray | None) -> bool:
        """Whether columns are fewer than the features, so that looking at them alone pays."""
        return columns is not None and all(
            columns.size < array.shape[feature_axis(array.ndim)]
            for array in self.by_feature.values()
        )

    def is_finite(self, columns: np.ndarray | None, append_only: tuple[str, ...]) -> bool:
        """Whether the parameters are numbers, if only those of ``columns`` may have changed."""
        columns = columns if self._few(columns) else None
        arrays = [
            *((name, array[_place(array, columns)]) for name, array in self.by_feature.items()),
            *self.others.items(),
        ]
        return all(
            bool(np.isfinite(array).all()) for name, array in arrays if name not in append_only
        )

    def own(self) -> None:
        """Copy arrays that are read-only, as those of a model that joblib mapped from a file."""
        for arrays in [self.by_feature, self.others]:
            for name, array in arrays.items():
                arrays[name] = array if array.flags.writeable else array.copy(order="K")
        if not self.counts.flags.writeable:
            self.counts = self.counts.copy()

    def array(self, name: str) -> np.ndarray:
        """A kernel array by name."""
        return self.by_feature[name] if name in self.by_feature else self.others[name]

    def mean(self, name: str) -> np.ndarray:
        """The average of an array over all examples, from its lazy sums."""
        return self.array(name) - self.array(name + "_sums") / max(self.t, 1)

    def averaged(self, compute: Callable[[], Any]) -> Any:
        """What ``compute`` returns, kept until the next change."""
        kept, version = self.averaged_at, self.version
        if kept is None or kept[0] != version:
            kept = version, compute()
            if version % 2 == 0:
                self.averaged_at = kept
        return kept[1]

    def snapshot(
        self,
        columns: np.ndarray | None,
        append_only: tuple[str, ...],
        overwritten: tuple[str, ...],
    ) -> Callable[[], None]:
        """A function that puts the present state back.

        ``columns`` are those the coming examples touch (None: all), so that a small batch costs
        its own size and not the model's; but the arrays ``overwritten`` change elsewhere too.
        Arrays of which only a free end is written need no copy.
        """
        columns = columns if self._few(columns) else None
        by_feature, others = dict(self.by_feature), dict(self.others)
        touched = {name: None if name in overwritten else columns for name in by_feature}
        saved = {
            name: array.copy(order="K") if touched[name] is None else array[_place(array, columns)]
            for name, array in by_feature.items()
            if name not in append_only
        }
        saved_others = {
            name: array.copy() for name, array in others.items() if name not in append_only
        }
        counts, n_curve, streaming = self.counts.copy(), len(self.curve), self.streaming
        epochs = [list(epoch) for epoch in self.epochs]

        def restore() -> None:
            self.by_feature, self.others = by_feature, others  # in place of any that grew
            for name, array in saved.items():
                by_feature[name][_place(by_feature[name], touched[name])] = array
            for name, array in saved_others.items():
                others[name][...] = array
            self.counts[:] = counts
            del self.curve[n_curve:]
            self.epochs, self.streaming = epochs, streaming

        return restore

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "averaged_at": None}


def feature_axis(n_dimensions: int) -> int:
    """The axis of a by-feature array that the features are on."""
    return 1 if n_dimensions == 3 else 0


def _place(array: np.ndarray, columns: np.ndarray | None) -> Any:
    """What to index a by-feature array with to get at columns; None for all."""
    if columns is None:
        return slice(None)
    return (slice(None), columns) if feature_axis(array.ndim) else columns


def checkpoints(t: int, n: int) -> np.ndarray:
    """The example counts in t + 1 .. t + n that have at most two significant digits.

    They space a loss curve evenly on a logarithmic axis, 90 points a decade, and do not depend
    on how a stream is cut into calls.
    """
    marks: list[int] = []
    last = t + n
    while True:
        step = 10 ** max(0, len(str(t)) - 2)
        t = (t // step + 1) * step
        if t > last:
            return np.array(marks, dtype=np.int64)
        marks.append(t)


def flat(array: np.ndarray | None) -> Any:
    """A view of one axis, as the kernels take arrays of several weight vectors."""
    return None if array is None else array.reshape(-1)


def check_option(value: Any, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a string parameter is one of its options."""
    if not isinstance(value, str) or value not in options:
        accepted = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {accepted}; found {value!r}")


def check_real(value: Any, name: str, min_val: float, max_val: float = np.inf) -> None:
    """Raise unless a parameter is a number from a closed range."""
    if isinstance(value, np.floating):  # float32 has no room for the bounds
        value = float(value)
    check_scalar(value, name, Real, min_val=min_val, max_val=max_val)
    if value != value:  # NaN passes every comparison that check_scalar makes
        raise ValueError(f"{name} must be a number from {min_val} to {max_val}; found nan")


def check_flag(value: Any, name: str) -> None:
    """Raise unless a parameter is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; found {value!r}")


def check_reached(reached: int, stop: int) -> None:
    """Raise ValueError if a kernel stopped at a row before the last, for its score overflowed."""
    if reached < stop:
        raise ValueError(
            f"the score of row {reached} of X overflowed: X or the weights are too large; scale X "
            "as that the model was fitted on"
        )


def check_scores(scores: np.ndarray) -> np.ndarray:
    """Scores of rows, as they are; raise ValueError if they are not all finite."""
    finite = np.isfinite(scores)
    if not finite.all():
        rows = finite.reshape(len(scores), -1).all(axis=1)
        check_reached(int(rows.argmin()), len(scores))
    return scores


def as_generator(random_state: Any) -> np.random.Generator:
    """A NumPy Generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


class OnlineOrdinalClassifier(ClassifierMixin, BaseEstimator):
    """An online learner of ordered labels. Not public: subclasses are.

    A subclass provides ``_check_params``, ``_settings``, ``_new_arrays``, ``_check_state``,
    ``_bind`` (its state, as its kernel takes it) and ``_scores``, ``_ranks``; everything a user
    calls is here, once.
    """

    _block_values = 2**21
    _overflow_hint = (
        "X or the weights are too large; scale X, for example with "
        "sklearn.preprocessing.MaxAbsScaler"
    )
    # Arrays that `merge` averages, their lazy sums aside; none if it cannot.
    _mixed_arrays: tuple[str, ...] = ()
    _state: OnlineState
    classes_: np.ndarray
    n_features_in_: int

    # ---------------------------------------------------------------- what a subclass says

    def _check_params(self) -> None:
        """Raise on a parameter outside its range."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """The parameters that are built into the state's arrays."""
        raise NotImplementedError

    def _new_arrays(
        self, n_features: int, n_ranks: int
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Fresh kernel arrays: those whose first axis is the features, and the others."""
        raise NotImplementedError

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        """Raise ValueError unless arrays of the right shapes also make a possible state."""

    def _derive(self, state: OnlineState) -> None:
        """Recompute the arrays that follow from others."""

    def _bind(self, state: OnlineState) -> Any:
        """The state's arrays, checked, as the kernels take them."""
        raise NotImplementedError

    @property
    def _append_only(self) -> tuple[str, ...]:
        """Arrays that learning writes at their free end alone."""
        return ()

    @property
    def _overwritten(self) -> tuple[str, ...]:
        """Arrays by feature that learning also writes in columns that no example has."""
        return ()

    def _clear_free_ends(self, state: OnlineState) -> None:
        """Clear what a failed call wrote at the free ends of the arrays."""

    def _row_vectors(self, state: OnlineState) -> int:
        """Weight vectors that a row is scored with."""
        return 1

    def _block_rows(self, rows: Rows, state: OnlineState) -> int:
        """Rows to learn between two looks at pending signals: some milliseconds' worth."""
        work = max(rows.n_values, rows.n_rows) * self._row_vectors(state)
        return max(1, rows.n_rows * self._block_values // work)

    def _like_saved(
        self, n_features: int, n_ranks: int, saved: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Arrays of the types and shapes that those of a model file must have."""
        return self._new_arrays(n_features, n_ranks)

    def _make_room(self, state: OnlineState) -> bool:
        """Enlarge the state if that is what stopped the kernel."""
        return False

    def _learn(
        self,
        state: OnlineState,
        rows: Rows,
        ranks: np.ndarray,
        order: np.ndarray | None,
        start: int,
        stop: int,
        marks: np.ndarray,
        losses: np.ndarray,
    ) -> int:
        """Learn from positions start .. stop - 1; the first position not learned."""
        return learn(
            self._bind(state), rows, ranks, order, start, stop, state.counts, marks, losses
        )

    def _scores(self, rows: Rows) -> np.ndarray:
        """What `decision_function` returns."""
        raise NotImplementedError

    def _ranks(self, rows: Rows) -> np.ndarray:
        """Predicted ranks 0 .. k - 1."""
        raise NotImplementedError

    # ---------------------------------------------------------------- learning

    @learns
    def fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from scratch, in ``max_iter`` passes.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite. CSR and C-ordered float32 or float64 are used in place: nobody may write to
            them before the call returns.
        y : array-like, shape (n_samples,)
            Ordered labels of any type; numbers rank by their own order.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. Needed for strings; otherwise the distinct values of y,
            ascending.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters. A failed or interrupted fit leaves the estimator as it was.
        """
        self._check_params()
        rows, ranks, known = self._first_examples(X, y, classes)
        state = self._new_state(rows.n_features, len(known))
        order = np.arange(rows.n_rows, dtype=np.int32) if self.shuffle else None
        generator = as_generator(self.random_state)
        best, stale = np.inf, 0
        for epoch in range(1, self.max_iter + 1):
            if order is not None:
                generator.shuffle(order)
            state.epochs.append([0, 0, 0])
            self._run_pass(state, rows, ranks, order, epoch, self.max_iter)
            examples, rank_loss, mistakes = state.epochs[-1]
            if self.verbose:
                print(
                    f"[{type(self).__name__}] epoch {epoch} of {self.max_iter}: "
                    f"rank loss {rank_loss / examples:.4f}, {mistakes} mistakes"
                )
            if self.tol is not None:
                stale = 0 if rank_loss / examples < best - self.tol else stale + 1
                best = min(best, rank_loss / examples)
                if mistakes == 0 or stale == PATIENCE:
                    break
        else:
            if self.tol is not None:
                warnings.warn(
                    f"max_iter={self.max_iter} passes ended before the rank loss stopped improving "
                    f"by tol={self.tol}; raise max_iter, or set tol=None to run a fixed number",
                    ConvergenceWarning,
                    stacklevel=3,  # the caller of the decorated method
                )
        self._adopt(X, known, state, n_features=rows.n_features)
        return self

    @learns
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning from the next examples, in the order given.

        Chunks fed in order give the same model, to the bit, as one ``fit`` with ``max_iter=1`` and
        ``shuffle=False`` over all of them.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite.
        y : array-like, shape (n_samples,)
            Labels among ``classes``.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. The first call needs them unless its y shows them all;
            later calls may repeat them.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input, a label or a number of features not seen in the first call, or a parameter
            changed that is built into the model. A failed or interrupted call leaves the estimator
            as it was.
        """
        self._check_params()
        first = not self.__sklearn_is_fitted__()
        if first:
            rows, ranks, known = self._first_examples(X, y, classes)
            state = self._new_state(rows.n_features, len(known))
        else:
            known, state = self.classes_, self._state
            for name, value in self._settings().items():
                if value != state.settings[name]:
                    raise ValueError(
                        f"{name}={value!r} differs from the {state.settings[name]!r} this model "
                        "began with, which is built into it; set it back, or call fit"
                    )
            state.own()
            rows = self._more_rows(X)
            labels, declared = as_labels(y, rows.n_rows)
            declared = declared if classes is None else check_classes(classes)
            if declared is not None and not np.array_equal(declared, known):
                raise ValueError(
                    f"classes={list(declared)} differ from those of the first call: {list(known)}"
                )
            ranks = encode(labels, known)
        put_back = state.snapshot(rows.columns, self._append_only, self._overwritten)

        def restore() -> None:
            put_back()
            self._clear_free_ends(state)

        with changing(state, restore):
            if not state.streaming:
                state.epochs.append([0, 0, 0])
                state.streaming = True
            self._run_pass(state, rows, ranks, None, 1, 1)
        if first:
            self._adopt(X, known, state, n_features=rows.n_features)
        return self

    def _first_examples(self, X: Any, y: Any, classes: Any) -> tuple[Rows, np.ndarray, np.ndarray]:
        rows = as_rows(X)
        labels, declared = as_labels(y, rows.n_rows)
        if classes is not None:
            known = check_classes(classes)
        elif declared is not None:
            known = check_classes(declared)
        else:
            known = find_classes(labels)
        return rows, encode(labels, known), known

    def _new_state(self, n_features: int, n_ranks: int) -> OnlineState:
        by_feature, others = self._new_arrays(n_features, n_ranks)
        return OnlineState(by_feature, others, self._settings())

    def _adopt(self, X: Any, classes: np.ndarray, state: OnlineState, n_features: int) -> None:
        named = BaseEstimator()
        validate_data(named, X, skip_check_array=True, reset=True)
        fitted = {"n_features_in_": n_features, "classes_": classes, "_state": state}
        names = getattr(named, "feature_names_in_", None)
        if names is not None:
            fitted["feature_names_in_"] = names
        # In one go, so that Ctrl-C finds the old model or the new one.
        self.__dict__ = {n: v for n, v in vars(self).items() if n != "feature_names_in_"} | fitted

    def _run_pass(
        self,
        state: OnlineState,
        rows: Rows,
        ranks: np.ndarray,
        order: np.ndarray | None,
        epoch: int,
        n_epochs: int,
    ) -> None:
        n = rows.n_rows
        marks = checkpoints(state.t, n)
        losses = np.empty_like(marks)
        before = state.counts.copy()
        record = state.epochs[-1]
        base = list(record)
        block = self._block_rows(rows, state)
        start = 0
        while start < n:
            raise_signals()
            stop = min(start + block, n)
            reached = self._learn(state, rows, ranks, order, start, stop, marks, losses)
            if reached < stop and self._make_room(state):
                stop = reached
            elif reached < stop:
                row = reached if order is None else order[reached]
                raise ValueError(f"the score of row {row} overflowed: {self._overflow_hint}")
            if stop == start:  # no room for even one example
                continue
            start = stop
            record[:] = (base + state.counts - before).tolist()
            report(Progress(epoch, n_epochs, start, n, record[1] / record[0]))
        if not state.is_finite(rows.columns, self._append_only):
            raise ValueError(f"the weights overflowed: {self._overflow_hint}")
        state.curve.extend(zip(marks.tolist(), losses.tolist(), strict=True))

    # ---------------------------------------------------------------- predicting

    @reads
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores that the learned ranks cut into intervals.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            Bigger means a higher rank.
        """
        check_is_fitted(self)
        return self._scores(self._more_rows(X))

    @reads
    def predict(self, X: Any) -> np.ndarray:
        """The predicted label of each row.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Of the dtype of ``classes_``.
        """
        check_is_fitted(self)
        return self.classes_[self._ranks(self._more_rows(X))]

    @reads
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Negated mean rank loss: minus the mean distance between predicted and true rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels, all among ``classes_``.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            At most 0, which is perfect; greater is better.
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        ranks = encode(as_labels(y, rows.n_rows)[0], self.classes_)
        return 0.0 - rank_loss(ranks, self._ranks(rows), sample_weight=sample_weight)

    def _more_rows(self, X: Any) -> Rows:
        """Rows for a fitted model: as many features, under the same names."""
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            validate_data(self, X, skip_check_array=True, reset=False)
        rows = as_rows(X)
        if rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    # ---------------------------------------------------------------- what was learned

    @property
    def t_(self) -> int:
        """Examples learned from so far, over all passes."""
        return self._fitted_state().t

    @property
    def n_iter_(self) -> int:
        """Passes made; all calls of ``partial_fit`` in a row count as one."""
        return len(self._fitted_state().epochs)

    @property
    @reads
    def history_(self) -> dict[str, list[float]]:
        """Figures of each pass, each example ranked before it was learned.

        Keys: ``examples``; ``mistakes``; ``rank_loss``, the mean over the pass; and
        ``average_rank_loss``, the mean over all examples up to its end (the time-averaged loss of
        the papers' figures).
        """
        epochs = np.array(self._fitted_state().epochs, dtype=np.int64).reshape(-1, 3)
        totals = epochs.cumsum(axis=0)
        return {
            "examples": epochs[:, 0].tolist(),
            "mistakes": epochs[:, 2].tolist(),
            "rank_loss": (epochs[:, 1] / epochs[:, 0]).tolist(),
            "average_rank_loss": (totals[:, 1] / totals[:, 0]).tolist(),
        }

    @property
    @reads
    def loss_curve_(self) -> np.ndarray:
        """Time-averaged rank loss while learning, shape (n_points, 2): examples seen, mean loss.

        Points lie at the counts with at most two significant digits (1 .. 100, 110, 120 ..), about
        90 a decade.
        """
        curve = np.array(self._fitted_state().curve, dtype=np.float64).reshape(-1, 2)
        curve[:, 1] /= curve[:, 0]
        return curve

    def _fitted_state(self) -> OnlineState:
        # AttributeError, as for any attribute that a fit has yet to set.
        if "_state" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._state

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_common_params(self) -> None:
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_flag(self.shuffle, "shuffle")
        check_scalar(self.verbose, "verbose", Integral, min_val=0)
        if self.tol is not None:
            check_real(self.tol, "tol", 0)
