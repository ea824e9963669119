"""Base of the online ordinal learners: loop, state and scikit-learn interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from rankcore._core.arguments import ClassWeight, EvalSet, Measures, RowsLike, Seed
from rankcore._core.concurrency import consistent_read, exclusive
from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import (
    LABELS,
    as_labels,
    check_classes,
    declared_labels,
    ranks_beside,
)
from rankcore._core.model_spec import ModelSpec, SerializableMixin, check_n_features
from rankcore._core.monitor import Callback, Monitor, as_callbacks, resumed_model
from rankcore._core.params import COUNT, VERBOSE, Checked, Constraints, Real
from rankcore._core.scales import mean_square_length
from rankcore._core.scoring import FORMS, Scoring
from rankcore._core.sources import RowBlocks, as_source
from rankcore._core.state import checkpoints
from rankcore._core.training import Trainer
from rankcore._ext.online_loop import learn_few
from rankcore._ext.rows import Rows
from rankcore.metrics import rank_loss
from rankcore.ordinal._record import OnlineRecord, described, restored
from rankcore.ordinal.parameters import PUBLISHED
from rankcore.ordinal.projecting import margins
from rankcore.ordinal.scale import BuiltIn, check_scale
from rankcore.ordinal.standardizing import change_units, renew_units
from rankcore.ordinal.training import (
    OnlineLearner,
    partial_fit_online,
    raise_overflow,
    run_pass,
    warn_of_constant,
)
from rankcore.ordinal.validation import check_eval_metric, held_out_labels
from rankcore.ordinal.weights import CLASS_WEIGHT, Block, Examples, Meaning, as_steps
from rankcore.progress import watched


class OnlineOrdinalClassifier(SerializableMixin, ClassifierMixin, BaseEstimator):
    """Base class of online learners of ordered labels. Not public.

    A subclass provides ``_built_in``, ``_model_class`` (the model in ``_ext``), ``_form``
    and ``_scored``; all public methods are here. Those that learners have in common besides, such
    as `project`, are functions that a class assigns to its names, with the hooks that they call:
    `projecting`, `_votes`.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """

    # scikit-learn's metadata routing passes these on.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"eval_X": True, "eval_y": True}
    # Whether all ranks are cut from one direction; classes without an order, as in scikit-learn's
    # checks, do not lie along one.
    _one_direction = False

    # Whether a fit warns if a constant rank fits its rows as well, which costs a prediction.
    _checks_constant = True

    # Whether rows may be read a window at a time; otherwise all are kept in memory.
    _in_windows = True

    _block_values = 2**21
    _overflow_hint = (
        "X or the weights are too large; scale X, for example with "
        "sklearn.preprocessing.MaxAbsScaler"
    )
    # Parameters that are built into the state's arrays, and the types they are saved as.
    _built_in: ClassVar[BuiltIn] = {}
    # Class of the model in ``_ext``, which declares and owns its arrays.
    _model_class: ClassVar[Any]
    # Whether `merge` and clusters can average models.
    _merges = False
    # Form of the scores, whose arrays `_parameters` returns in the order of `FORMS`.
    _form: ClassVar[str]
    # The meaning of the weight of a row.
    _weights_are: ClassVar[Meaning] = "visits"
    _record_class: ClassVar[type[OnlineRecord]] = OnlineRecord
    _state: OnlineRecord
    n_features_in_: int
    average: bool

    # Settings of its paper besides those of all papers.
    _published: ClassVar[dict[str, Any]] = {}
    _constraints: ClassVar[Constraints] = {
        "max_iter": COUNT,
        "tol": Real(0) | None,
        "early_stopping_rounds": COUNT | None,
        "eval_metric": Checked(check_eval_metric, "names of measures or functions"),
        "class_weight": CLASS_WEIGHT,
        "verbose": VERBOSE,
        "classes": LABELS,
    }
    max_iter: int | str
    shuffle: bool
    tol: float | None
    early_stopping_rounds: int | None
    eval_metric: Measures
    class_weight: ClassWeight | None
    random_state: Seed | None
    verbose: int
    classes: ArrayLike | None
    ranks_: np.ndarray

    @classmethod
    def published(cls, *args: Any, **params: Any) -> Self:
        """Create a learner with the settings of its paper.

        One pass in the order given, the last parameters instead of their average, and the paper's
        step lengths. The defaults of the class are those that perform best on real data.

        Parameters
        ----------
        *args, **params
            Parameters of the class, which take precedence.

        Returns
        -------
        estimator
        """
        names = signature(cls).parameters
        shared = {name: value for name, value in PUBLISHED.items() if name in names}
        settings = dict(zip(names, args, strict=False)) | params
        return cls(**{**shared, **cls._published, **settings})

    def _check_together(self) -> None:
        """Raise if ``half_life`` is set without ``average``."""
        average = self._model_class.averaged_by
        half_life = getattr(self, "half_life", None)
        if half_life is not None and not getattr(self, average):
            raise ValueError(
                f"{type(self).__name__}: half_life is that of the average, and requires "
                f"{average}=True; got half_life={half_life!r} and {average}=False"
            )

    # ---------------------------------------------------------------- hooks of a subclass

    def _settings(self) -> dict[str, Any]:
        """Return the parameters that are built into the state's arrays."""
        return {name: kind(getattr(self, name)) for name, kind in self._built_in.items()}

    def _new_model(self, n_features: int, n_ranks: int) -> Any:
        """Create a model that has learned nothing."""
        return self._model_class(n_features, n_ranks, self._settings())

    def _new_state(self, n_features: int, n_ranks: int) -> OnlineRecord:
        """Create the record of a model that has learned nothing."""
        model = self._new_model(n_features, n_ranks)
        return self._record_class(model=model, settings=model.settings)

    def _parameters(self) -> Any:
        """Return the arrays to predict with."""
        return self._fitted_state().model.parameters()

    def _ranks(self, rows: Rows) -> np.ndarray:
        """Predict ranks 0 .. k - 1."""
        return self._scored(rows)[1]

    @abstractmethod
    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return a score for each rank, shape (n_rows, n_ranks), and the predicted ranks."""

    def _measured(self, rows: Rows) -> np.ndarray:
        """Predict ranks to measure against true ranks; may be real numbers."""
        return self._ranks(rows)

    def _block_rows(self, rows: Rows, state: OnlineRecord) -> int:
        """Return how many rows to learn between checks for signals, in a few milliseconds."""
        vectors = max(1, state.model["weights"].size // rows.n_features)
        work = max(rows.n_values, rows.n_rows) * vectors
        return max(1, rows.n_rows * self._block_values // work)

    def _describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = described(self._state)
        facts["best_iteration"] = getattr(self, "best_iteration_", None)
        return facts, {**arrays, "classes": self.ranks_}

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        parts = zip(FORMS[self._form].arrays, self._parameters(), strict=True)
        return Scoring(self._form, dict(parts), self._scoring_facts())

    def _scoring_facts(self) -> dict[str, str | int]:
        """Return the metadata of the scoring form."""
        return {}

    def _restore(self, spec: ModelSpec) -> None:
        arrays, n_features = spec.arrays, check_n_features(spec.n_features)
        classes, settings = check_classes(arrays["classes"]), spec.facts["settings"]
        # The parameters built into the model; those of the estimator may have been changed since.
        builder = clone(self).set_params(**settings)
        builder._check_params()
        if settings != builder._settings():
            raise ValueError(
                f"{type(self).__name__} cannot restore the settings {settings}; it has "
                f"{builder._settings()}"
            )
        model = self._model_class(n_features, classes.size, builder._settings(), arrays)
        check_scale(model)
        state = restored(spec, self._record_class(model=model, settings=model.settings))
        self.ranks_, self.n_features_in_, self._state = classes, n_features, state
        if spec.facts["best_iteration"] is not None:
            self.best_iteration_ = int(spec.facts["best_iteration"])

    def _summary(self) -> dict[str, Any]:
        return {"classes": self.ranks_.tolist(), "examples_seen": self.t_, "passes": self.n_iter_}

    def _fit_summary(self) -> dict[str, Any]:
        return {
            "classes": self.ranks_.tolist(),
            "passes": self.n_iter_,
            "rank_loss_of_last_pass": self.history_["rank_loss"][-1],
        }

    def _lengths(self, share: Callable[[], float]) -> int:
        """Return the ratio of an automatic constant to the norm of rows.

        If thresholds move faster than projections, they find the best constant first, which suits
        noisy data; `reproduce/defaults.md` has the study. ``share`` counts values that are not 0.
        """
        return 2

    def _mean_square(self, state: OnlineRecord, rows: Rows) -> float:
        """Return the square of the automatic scale, from the first rows."""
        return mean_square_length(rows)

    _change_units = change_units

    def _renew_units(self, model: Any) -> None:
        """Change a model on a stream to the units of all rows up to the next one."""
        renew_units(self, model)

    def _check_more_rows(self, state: OnlineRecord, rows: Rows) -> None:
        """Raise, before the state is changed, if it cannot learn these rows."""

    def _check_weighable(self) -> None:
        """Raise if these parameters do not support weights."""

    def _split_weights(
        self, weights: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the number of visits and step factor of each row; None if all are 1."""
        return (weights, None) if self._weights_are == "visits" else as_steps(weights)

    def _learn(self, state: OnlineRecord, block: Block) -> int:
        """Learn a block; return the first position not learned."""
        return block.learn(state.model, self, block.examples.steps)

    def _learn_few(self, state: OnlineRecord, rows: Rows, ranks: np.ndarray) -> int:
        """Learn a few rows of a stream in order, by one call of the kernel.

        Returns the number of rows learned. The others must be learned in blocks.
        """
        plain = type(self)._learn is OnlineOrdinalClassifier._learn
        if not plain or watched() or rows.n_rows > self._block_rows(rows, state):
            return 0
        marks = checkpoints(state.t, rows.n_rows)
        reached = learn_few(state.model, self, rows, ranks, marks, state.log[-1], state.curve)
        if reached < 0:
            raise_overflow(self, -1)
        return reached

    # ---------------------------------------------------------------- learning
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
            Ordered labels of any type; numbers are in their own order.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first; by default the parameter ``classes``. Strings require
            one of the two, or an ordered categorical, whose order scikit-learn's tools may drop.
        sample_weight : array-like, shape (n_samples,), optional
            Non-negative weights of the rows; the Notes of each learner define their effect.
            Learners that multiply steps by weights use them as they are, and warn if their mean is
            below 0.01; `OrdinalLogistic` divides them by their mean. For those that count visits,
            weights are relative if all are at most 1, with some strictly between 0 and 1: they are
            scaled to mean 1.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass.
        eval_X, eval_y : array-like, or lists of them, optional
            The same as two arguments; a pipeline can transform the first
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
            On bad input or parameters. A failed or interrupted fit leaves the estimator unchanged.
        """
        self._check_params()
        callback_list = as_callbacks(callbacks)
        source = as_source(X, y, in_windows=self._in_windows, sample_weight=sample_weight)
        learner = OnlineLearner(
            self, source, declared_labels(self, classes), resumed_model(callback_list)
        )
        fitted, classes_of_fit = learner.fitted, learner.classes
        sets = as_eval_sets(eval_set, eval_X, eval_y, {})
        labels = held_out_labels(sets, fitted._more_rows, classes_of_fit, self.eval_metric)
        Trainer(learner, source, Monitor(fitted, labels, callback_list)).run()
        fitted._warn_of_fit()
        warn_of_constant(learner, source)
        self._replace_with(fitted)
        return self

    def _warn_of_fit(self) -> None:
        """Warn about limitations of the fitted model."""

    @exclusive
    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        grow: bool = False,
    ) -> Self:
        """Learn from further examples, in the order given, each visited once.

        Chunks fed in order give the same model, to the bit, whatever their sizes. Unless rows are
        standardised, it is that of one ``fit`` with ``max_iter=1`` and ``shuffle=False`` over all
        of them, and parameters set to "auto" are chosen from the rows of the first call.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite.
        y : array-like, shape (n_samples,)
            Labels among ``classes``.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. Required in the first call unless its y has them all;
            later calls may repeat them.
        sample_weight : array-like, shape (n_samples,), optional
            As for `fit`, but never relative.
        grow : bool, default=False
            Accept rows with further columns, after those of the model. Linear learners go on as if
            all rows before had had 0 there, to the bit for sparse rows, and for others but for the
            rounding of sums; constants that were chosen from the first rows stay. Others raise an
            error, as for ranks beyond those of the first call, which only `OrdinalLogistic` takes.
            A row that overflows, or an interrupt, does not remove the columns again.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input, a label or a number of features that differs from the first call, or a
            change of a parameter that is built into the model: the estimator is then unchanged. If
            a row overflows the model, or the call is interrupted, the rows before are learned,
            except by a first call, which leaves the estimator unfitted.
        """
        self._check_params()
        declared = declared_labels(self, classes)
        partial_fit_online(self, X, y, declared, sample_weight, grow=grow)
        return self

    def _run_pass(self, state: OnlineRecord, examples: Examples, epoch: int, n_epochs: int) -> None:
        """Learn the visits of a pass."""
        run_pass(self, state, examples, epoch, n_epochs)

    # ---------------------------------------------------------------- predicting

    @consistent_read
    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Compute the margin of each rank's score over the best other rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes), or (n_samples,) for two classes
            Differences of the scores of ranks: above 0 for the predicted rank, at most 0 for all
            others, so that `predict` is their argmax. The columns are those of ``classes_``; for
            two classes there is only the value of ``classes_[1]``, above 0 if it is predicted. The
            scores are those of the learner's decision rule; with a direction and thresholds the
            score of a rank is the sum, over the thresholds below it, of the projection minus the
            threshold.
        """
        check_fitted(self)
        scores, ranks = self._scored(self._more_rows(X))
        return margins(scores, ranks, np.argsort(self.ranks_))

    @consistent_read
    def predict(self, X: RowsLike) -> np.ndarray:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels, with the dtype of ``classes_``.
        """
        check_fitted(self)
        return self.ranks_[self._ranks(self._more_rows(X))]

    @consistent_read
    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the negated mean rank loss: minus the mean distance of predicted and true ranks.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels. Numbers that are not among ``classes_``, for example because a fold of a
            cross-validation lacks them, are placed between the classes: ranks are then those among
            all labels.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            At most 0, which is perfect; higher is better.
        """
        check_fitted(self)
        rows = self._more_rows(X)
        ranks, class_ranks = ranks_beside(as_labels(y, rows.n_rows)[0], self.ranks_)
        predicted = np.interp(self._measured(rows), np.arange(class_ranks.size), class_ranks)
        return 0.0 - rank_loss(ranks, predicted, sample_weight=sample_weight)

    # ---------------------------------------------------------------- fitted attributes

    @property
    def classes_(self) -> np.ndarray:
        """Labels in ascending order (strings: alphabetical), as the columns of results."""
        return np.sort(self.ranks_)

    @property
    @consistent_read
    def t_(self) -> int:
        """Examples learned from so far, over all passes."""
        return self._fitted_state().t

    @property
    @consistent_read
    def n_iter_(self) -> int:
        """Number of passes; successive calls of ``partial_fit`` count as one."""
        return len(self._fitted_state().log)

    @property
    @consistent_read
    def history_(self) -> dict[str, list[float]]:
        """Statistics of each pass, with each example predicted before it was learned.

        Keys: ``examples``; ``mistakes``; ``rank_loss``, the mean over the pass;
        ``average_rank_loss``, the mean over all examples up to its end (the time-averaged loss of
        the papers' figures); and, with held-out rows, each measure on them, as ``valid_accuracy``,
        or with several sets as ``valid_0_accuracy``, ``valid_1_accuracy``, ...
        """
        state = self._fitted_state()
        log = np.array(state.log, dtype=np.int64).reshape(-1, 3)
        log = log[log[:, 0] > 0]  # a call of partial_fit may have failed at its first row
        totals = log.cumsum(axis=0)
        return {
            "examples": log[:, 0].tolist(),
            "mistakes": log[:, 2].tolist(),
            "rank_loss": (log[:, 1] / log[:, 0]).tolist(),
            "average_rank_loss": (totals[:, 1] / totals[:, 0]).tolist(),
            **{name: list(values) for name, values in state.validation.items()},
        }

    @property
    @consistent_read
    def update_loss_curve_(self) -> np.ndarray:
        """Time-averaged rank loss of the update rule, shape (n_points, 2): examples, mean loss.

        Before each update the rule predicts the example by the last parameters. `predict` has
        another loss with ``average``, votes or another ``decision``:
        `rankcore.online.evaluate` measures it on a stream.

        There is a point at each count with at most two significant digits (1 .. 100, 110, 120 ..),
        about 90 per decade.
        """
        curve = np.array(self._fitted_state().curve, dtype=np.float64).reshape(-1, 2)
        curve[:, 1] /= curve[:, 0]
        return curve

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = self._one_direction
        return tags
