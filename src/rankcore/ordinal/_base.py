"""Base of the online ordinal learners: one loop, one state, one scikit-learn interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.concurrency import changing, learns
from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.fitted import keep_names
from rankcore._core.inputs import as_labels, as_rows, check_classes, encode
from rankcore._core.model_spec import Field, ModelSpec, check_n_features, outline
from rankcore._core.monitor import Callback, Monitor, as_callbacks, resumed_model
from rankcore._core.params import option
from rankcore._core.scales import mean_square_length
from rankcore._core.sources import RowBlocks, Window, as_source
from rankcore._core.state import (
    OnlineState,
    check_columns,
    checkpoints,
    described,
    restored_state,
)
from rankcore._core.training import Trainer
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.online_loop import learn
from rankcore._ext.rows import Rows
from rankcore.ordinal._labels import check_agreement
from rankcore.ordinal._model import OrdinalModel
from rankcore.ordinal._scale import SCALE, fix_scale
from rankcore.ordinal._training import OnlineLearner, first_ranks
from rankcore.ordinal._validation import check_eval_metric, held_out_labels
from rankcore.ordinal._weights import Examples, Visits, as_steps, check_class_weight, row_weights
from rankcore.progress import Progress, report

# What all papers have: one pass in the order given, the last parameters, a constant feature of 1.
PUBLISHED = {
    "average": False,
    "average_members": False,
    "threshold_scale": 1.0,
    "intercept_scaling": 1.0,
    "max_iter": 1,
    "shuffle": False,
}
Zeros = Callable[..., np.ndarray]  # makes arrays, as NumPy's function of that name does


class OnlineOrdinalClassifier(OrdinalModel):
    """An online learner of ordered labels. Not public: subclasses are.

    A subclass provides ``_settings``, ``_arrays`` and ``_other_arrays`` (or ``_new_state``),
    ``_check_state``, ``_bind`` (its state, as its kernel takes it) and ``_ranks``, ``_scored``;
    everything a user calls is here, once.
    """

    # scikit-learn hands these on by itself, with metadata routing.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"eval_X": True, "eval_y": True}
    _constraints: ClassVar = {
        "class_weight": check_class_weight,
        "eval_metric": check_eval_metric,
        "intercept_scaling": SCALE,
        "threshold_scale": SCALE,
        "tie": option("crammer", "strict"),
    }
    # The settings of its paper that are not those of all papers.
    _published: ClassVar[dict[str, Any]] = {}
    # How many times as long as the rows an automatic constant is. Thresholds that move faster than
    # projections find the best constant first, which is what noisy data need; `reproduce.defaults`
    # has the study.
    _lengths = 2
    # Whether all ranks are cut from one direction, along which classes without an order, as in
    # scikit-learn's checks, do not lie.
    _one_direction = False

    # Whether rows may come a window at a time; otherwise all are kept in memory.
    _in_windows = True

    _block_values = 2**21
    _overflow_hint = (
        "X or the weights are too large; scale X, for example with "
        "sklearn.preprocessing.MaxAbsScaler"
    )
    # Arrays that are averaged over examples, and by `merge`; none if it cannot.
    _arrays: ClassVar[dict[str, Field]] = {}
    # Whether a weight multiplies the step of a row; otherwise it is a number of visits.
    _weighs_steps = False
    _state: OnlineState
    n_features_in_: int
    average: bool
    max_iter: int
    shuffle: bool
    tol: float | None
    early_stopping_rounds: int | None
    eval_metric: Any
    class_weight: Any
    random_state: Any
    verbose: int

    @classmethod
    def published(cls, *args: Any, **params: Any) -> Self:
        """A learner with the settings of the paper that it comes from.

        One pass in the order given, the last parameters instead of their average, and steps of
        the lengths that the paper has; the defaults are what does best on real data.

        Parameters
        ----------
        *args, **params
            Parameters of the class, which win.

        Returns
        -------
        estimator
        """
        names = signature(cls).parameters
        of_all = {name: value for name, value in PUBLISHED.items() if name in names}
        given = dict(zip(names, args, strict=False)) | params
        return cls(**{**of_all, **cls._published, **given})

    # ---------------------------------------------------------------- what a subclass says

    def _settings(self) -> dict[str, Any]:
        """The parameters that are built into the state's arrays."""
        return {}

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> OnlineState:
        """A state that has seen nothing, of the declared ``_arrays``.

        With the arrays of a spec, only the outline of one, of their sizes where these are free.
        """
        zeros = np.zeros if like is None else outline
        sizes = {"features": n_features, "tasks": n_ranks - 1, "ranks": n_ranks}
        state = OnlineState({}, self._other_arrays(n_ranks, zeros), settings=self._settings())
        for name, (axes, dtype, _) in self._arrays.items():
            arrays = state.by_feature if axes[0] == "features" else state.others
            shape = tuple(sizes[axis] if isinstance(axis, str) else axis for axis in axes)
            for sums in ["", "_sums"] if self.average else [""]:
                arrays[name + sums] = zeros(shape, dtype=dtype)
        return state

    def _other_arrays(self, n_ranks: int, zeros: Zeros) -> dict[str, np.ndarray]:
        """Arrays of a new state that are not averaged."""
        raise NotImplementedError

    def _parameters(self) -> tuple[np.ndarray, ...]:
        """The declared arrays to predict with."""
        state = self._fitted_state()
        found: tuple[np.ndarray, ...] = state.averaged(lambda: (*map(state.mean, self._arrays),))
        return found

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
        facts["best_iteration"] = getattr(self, "best_iteration_", None)
        return facts, {**arrays, "classes": self.ranks_}

    def _restore(self, spec: ModelSpec) -> None:
        arrays, n_features = spec.arrays, check_n_features(spec.n_features)
        classes, settings = check_classes(arrays["classes"]), spec.facts["settings"]
        for name in arrays:
            if name.startswith("by_feature."):
                check_columns(arrays, name, n_features)
        # A fresh state says which arrays there must be, of which types and shapes; it takes memory
        # for none of them. Its parameters are those that were built in, which may since have been
        # set to others.
        builder = clone(self).set_params(**settings)
        builder._check_params()
        expected = builder._new_state(n_features, classes.size, arrays)
        if settings != expected.settings:
            raise ValueError(f"its settings {settings} are not those of {type(self).__name__}")
        state = restored_state(spec, expected)
        self._check_state(state, classes.size)
        self.ranks_, self.n_features_in_, self._state = classes, n_features, state
        if spec.facts["best_iteration"] is not None:
            self.best_iteration_ = int(spec.facts["best_iteration"])

    def _fit_summary(self) -> dict[str, Any]:
        return {
            "classes": self.ranks_.tolist(),
            "passes": self.n_iter_,
            "rank_loss_of_last_pass": self.history_["rank_loss"][-1],
        }

    def _mean_square(self, state: OnlineState, rows: Rows) -> float:
        """Square of the automatic scale, by the first rows."""
        return mean_square_length(rows)

    def _check_weighable(self) -> None:
        """Raise if weights would have no meaning with these parameters."""

    def _split_weights(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """How often each row is visited, and what multiplies its step; None for once, and for 1."""
        return as_steps(weights) if self._weighs_steps else (weights, None)

    def _learn(
        self,
        state: OnlineState,
        examples: Examples,
        start: int,
        stop: int,
        marks: np.ndarray,
        losses: np.ndarray,
    ) -> int:
        """Learn from positions start .. stop - 1; the first position not learned."""
        e, counts = examples, state.counts
        bound = self._bind(state)
        return learn(bound, e.rows, e.ranks, e.order, e.steps, start, stop, counts, marks, losses)

    # ---------------------------------------------------------------- learning

    @learns
    def fit(
        self,
        X: RowsLike | RowBlocks,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_X: RowsLike | Sequence[RowsLike] | None = None,
        eval_y: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
    ) -> Self:
        """Learn from scratch, in ``max_iter`` passes.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite. CSR and C-ordered float32 or float64 are used in place: do not write to
            them before the call returns. Or rows on disk, from `rankcore.datasets.open_rows`,
            which have their own labels.
        y : array-like, shape (n_samples,)
            Ordered labels of any type; numbers rank by their own order.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first; by default the parameter ``classes``. Words require one
            of the two, or an ordered categorical, whose order scikit-learn's tools may drop.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows, not negative; what they do is in the notes of each learner. If all
            are at most 1, fractions among them, they are taken for shares, and multiplied so that
            their mean is 1.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass.
        eval_X, eval_y : array-like, or lists of them, optional
            The same as two arguments, of which a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        callbacks : iterable of callables, optional
            Called after each pass with a `rankcore.callbacks.Iteration`; the fit ends
            after one returns True.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters. A failed or interrupted fit leaves the estimator as it was.
        """
        self._check_params()
        given = as_callbacks(callbacks)
        source = as_source(X, y, in_windows=self._in_windows, sample_weight=sample_weight)
        learner = OnlineLearner(self, source, self._declared(classes), resumed_model(given))
        fitted, known = learner.fitted, learner.classes
        sets = as_eval_sets(eval_set, eval_X, eval_y, {})
        labels = held_out_labels(sets, fitted._more_rows, known, self.eval_metric)
        Trainer(learner, source, Monitor(fitted, labels, given)).run()
        fitted._warn_of_fit()
        self._replace_with(fitted)
        return self

    def _warn_of_fit(self) -> None:
        """Warn of what a user should know of a model that was just fitted."""

    @learns
    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go on learning from the next examples, in the order given, each visited once.

        Chunks fed in order give the same model, to the bit, as one ``fit`` with ``max_iter=1`` and
        ``shuffle=False`` over all of them; what is chosen by the rows ("auto") is chosen by those
        of the first call.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite.
        y : array-like, shape (n_samples,)
            Labels among ``classes``.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. The first call needs them unless its y shows them all;
            later calls may repeat them.
        sample_weight : array-like, shape (n_samples,), optional
            As for `fit`, but never taken for shares.

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
        given = self._declared(classes)
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} counts the labels of all rows, which "
                "partial_fit does not see at once: give a dict of label to weight"
            )
        first = not self.__sklearn_is_fitted__()
        if first:
            rows = as_rows(X)
            window = Window(rows, y, None, 0, 0)
            ranks, known = first_ranks(window, given, type(self).__name__)
            state = self._new_state(rows.n_features, len(known))
        else:
            known, state = self.ranks_, self._state
            state.check_settings(self._settings(), {})
            state.own()
            rows = self._more_rows(X)
            labels, of_dtype = as_labels(y, rows.n_rows)
            declared = of_dtype if given is None else given
            if declared is not None and not np.array_equal(declared, known):
                raise ValueError(
                    f"classes={declared.tolist()} differ from those of the first call: "
                    f"{known.tolist()}"
                )
            if given is not None and of_dtype is not None:
                check_agreement(of_dtype, given)
            ranks = encode(labels, known)
        weights = row_weights(sample_weight, self.class_weight, ranks, known, all_rows=False)
        if weights is not None:
            self._check_weighable()
        with changing(state, state.snapshot(rows.columns)):
            if not first:
                state.forget_after(getattr(self, "best_iteration_", None))
            order = None
            visits, steps = self._split_weights(weights)
            if visits is not None:
                # Fractions of visits are drawn by how far the stream has come.
                generator = np.random.default_rng(state.offered)
                state.offered += rows.n_rows
                order = Visits(rows.n_rows, visits, False, generator, in_part=True).next()
            examples = Examples(rows, ranks, order, steps)
            if examples.n_visits:
                state.stream([0, 0, 0])
                self._run_pass(state, examples, 1, 1)
        if first:
            self._replace_with(self._shadow(X, known, state, rows.n_features))
        else:
            self.__dict__.pop("best_iteration_", None)
        return self

    def _shadow(self, X: Any, ranks: np.ndarray, state: OnlineState, n_features: int) -> Self:
        """A copy of this estimator, fitted with a state: what it will be if all goes well."""
        shadow = copy(self)
        shadow.__dict__.pop("best_iteration_", None)  # of an earlier fit
        shadow.__dict__.pop("feature_names_in_", None)
        # Names are found by a plain estimator, so that no attribute of a user's class is set alone.
        named = BaseEstimator()
        keep_names(named, X)
        fitted = {"n_features_in_": n_features, "ranks_": ranks, "_state": state}
        shadow.__dict__ |= {**vars(named), **fitted}
        return shadow

    def _run_pass(self, state: OnlineState, examples: Examples, epoch: int, n_epochs: int) -> None:
        rows, n = examples.rows, examples.n_visits
        state.averaged_at = None  # what was kept is of an earlier moment
        fix_scale(state, self._lengths, partial(self._mean_square, state, rows))
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
            reached = self._learn(state, examples, start, stop, marks, losses)
            if reached < stop and state.make_room():
                stop = reached
            elif reached < stop:
                row = reached if examples.order is None else examples.order[reached]
                raise ValueError(f"the score of row {row} overflowed: {self._overflow_hint}")
            if stop == start:  # no room for even one example
                continue
            start = stop
            record[:] = (base + state.counts - before).tolist()
            report(Progress(epoch, n_epochs, start, n, record[1] / record[0]))
        if not state.is_finite(rows.columns):
            raise ValueError(f"the weights overflowed: {self._overflow_hint}")
        state.curve.extend(zip(marks.tolist(), losses.tolist(), strict=True))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = self._one_direction
        return tags
