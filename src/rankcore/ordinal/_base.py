"""What the online ordinal learners share: one loop, one state, one scikit-learn face."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, check_scalar, validate_data

from rankcore._core.concurrency import changing, learns, raise_signals, reads
from rankcore._core.inputs import as_labels, as_rows, check_classes, encode, find_classes
from rankcore._core.model_spec import ModelSpec, Specified, check_n_features
from rankcore._core.params import as_generator, check_flag, check_real
from rankcore._core.passes import passes
from rankcore._core.state import (
    OnlineState,
    check_columns,
    checkpoints,
    described,
    restored_state,
)
from rankcore._ext.online_loop import learn
from rankcore._ext.rows import Rows
from rankcore.metrics import rank_loss
from rankcore.progress import Progress, report


class OnlineOrdinalClassifier(Specified, ClassifierMixin, BaseEstimator):
    """An online learner of ordered labels. Not public: subclasses are.

    A subclass provides ``_check_params``, ``_settings``, ``_new_state``, ``_check_state``,
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

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        """A state that has seen nothing; of the sizes of a spec's arrays, where they are free."""
        raise NotImplementedError

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        """Raise ValueError unless arrays of the right shapes also make a possible state."""

    def _derive(self, state: OnlineState) -> None:
        """Recompute the arrays that follow from others."""

    def _bind(self, state: OnlineState) -> Any:
        """The state's arrays, checked, as the kernels take them."""
        raise NotImplementedError

    def _block_rows(self, rows: Rows, state: OnlineState) -> int:
        """Rows to learn between two looks at pending signals: some milliseconds' worth."""
        vectors = max(1, state.by_feature["weights"].size // rows.n_features)
        work = max(rows.n_values, rows.n_rows) * vectors
        return max(1, rows.n_rows * self._block_values // work)

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = described(self._state)
        return facts, {**arrays, "classes": self.classes_}

    def _restore(self, spec: ModelSpec) -> None:
        arrays, n_features = spec.arrays, check_n_features(spec.n_features)
        classes, settings = check_classes(arrays["classes"]), spec.facts["settings"]
        for name in arrays:
            if name.startswith("by_feature."):
                check_columns(arrays, name, n_features)
        # A fresh state says which arrays there must be, of which types and shapes. Its parameters
        # are those that were built in, which may since have been set to others.
        builder = clone(self).set_params(**settings)
        builder._check_params()
        expected = builder._new_state(n_features, classes.size, arrays)
        if settings != expected.settings:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        state = restored_state(spec, expected)
        self._check_state(state, classes.size)
        self.classes_, self.n_features_in_, self._state = classes, n_features, state

    def _fit_summary(self) -> dict[str, Any]:
        return {
            "classes": self.classes_.tolist(),
            "passes": self.n_iter_,
            "rank_loss_of_last_pass": self.history_["rank_loss"][-1],
        }

    def _summary(self) -> dict[str, Any]:
        return {
            "classes": self.classes_.tolist(),
            "examples_seen": self.t_,
            "passes": self.n_iter_,
        }

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
            Finite. CSR and C-ordered float32 or float64 are used in place: do not write to
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
        for epoch in passes(self, state, "rank loss"):
            if order is not None:
                generator.shuffle(order)
            self._run_pass(state, rows, ranks, order, epoch, self.max_iter)
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
            state.check_settings(self._settings(), {})
            state.own()
            rows = self._more_rows(X)
            labels, declared = as_labels(y, rows.n_rows)
            declared = declared if classes is None else check_classes(classes)
            if declared is not None and not np.array_equal(declared, known):
                raise ValueError(
                    f"classes={list(declared)} differ from those of the first call: {list(known)}"
                )
            ranks = encode(labels, known)
        with changing(state, state.snapshot(rows.columns)):
            state.stream([0, 0, 0])
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
        record = state.log[-1]
        base = list(record)
        block = self._block_rows(rows, state)
        start = 0
        while start < n:
            raise_signals()
            stop = min(start + block, n)
            reached = self._learn(state, rows, ranks, order, start, stop, marks, losses)
            if reached < stop and state.make_room():
                stop = reached
            elif reached < stop:
                row = reached if order is None else order[reached]
                raise ValueError(f"the score of row {row} overflowed: {self._overflow_hint}")
            if stop == start:  # no room for even one example
                continue
            start = stop
            record[:] = (base + state.counts - before).tolist()
            report(Progress(epoch, n_epochs, start, n, record[1] / record[0]))
        if not state.is_finite(rows.columns):
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
            Bigger means a higher rank. Of `CuSumRank` and `MulticlassPerceptron`: shape
            (n_samples, n_classes), the score of each rank.
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
    @reads
    def t_(self) -> int:
        """Examples learned from so far, over all passes."""
        return self._fitted_state().t

    @property
    @reads
    def n_iter_(self) -> int:
        """Passes made; all calls of ``partial_fit`` in a row count as one."""
        return len(self._fitted_state().log)

    @property
    @reads
    def history_(self) -> dict[str, list[float]]:
        """Figures of each pass, each example ranked before it was learned.

        Keys: ``examples``; ``mistakes``; ``rank_loss``, the mean over the pass; and
        ``average_rank_loss``, the mean over all examples up to its end (the time-averaged loss of
        the papers' figures).
        """
        log = np.array(self._fitted_state().log, dtype=np.int64).reshape(-1, 3)
        totals = log.cumsum(axis=0)
        return {
            "examples": log[:, 0].tolist(),
            "mistakes": log[:, 2].tolist(),
            "rank_loss": (log[:, 1] / log[:, 0]).tolist(),
            "average_rank_loss": (totals[:, 1] / totals[:, 0]).tolist(),
        }

    @property
    @reads
    def loss_curve_(self) -> np.ndarray:
        """Time-averaged rank loss while learning, shape (n_points, 2): examples seen, mean loss.

        Points lie at the counts with at most two significant digits (1 .. 100, 110, 120 ..), about
        90 per decade.
        """
        curve = np.array(self._fitted_state().curve, dtype=np.float64).reshape(-1, 2)
        curve[:, 1] /= curve[:, 0]
        return curve

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
