"""Shared base of structured perceptrons: passes over examples, rivals, steps and statistics."""

from __future__ import annotations

import numbers
import reprlib
from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from math import isfinite
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankcore._core.concurrency import exclusive
from rankcore._core.declaration import hide_private_bases
from rankcore._core.doc_links import guide_link
from rankcore._core.monitor import Monitor
from rankcore._core.params import COUNT, VERBOSE, Constraints, Real, as_generator, check_params
from rankcore._core.sources import MemoryRows, Window
from rankcore._core.state import LearnerState, checkpoints
from rankcore._core.training import Trainer
from rankcore.ordinal.training import PassLearner
from rankcore.progress import Progress, report
from rankcore.structured.task import Array, Pair

REPORT_SECONDS = 0.005


@dataclass
class StructuredState(LearnerState):
    """Weights and, for averages, the sums of each change times the examples before it."""

    arrays: Array  # (1, n_parameters) or (2, n_parameters)
    t: int = 0  # examples seen
    loss: float = 0.0  # their total loss
    # Examples seen and total loss, at the marks of `checkpoints`.
    curve: list[tuple[int, float]] = field(default_factory=list)

    def is_zero(self) -> bool:
        """Return whether all weights are 0."""
        return not self.arrays.any()

    def copy(self) -> Self:
        """Copy the state to continue from it."""
        log = [list(statistics) for statistics in self.log]
        return replace(self, arrays=self.arrays.copy(), curve=[*self.curve], log=log)


@dataclass
class Examples:
    """Checked inputs and true outputs, and the number of parameters."""

    inputs: Any
    outputs: Any
    n_parameters: int


class StructuredLearner(BaseEstimator):
    """Base class of structured perceptrons.

    A subclass implements ``_losses`` and ``_predict``; it may extend ``_settings``, ``_examples``
    and ``_new_state``.
    """

    _constraints: ClassVar[Constraints] = {
        "C": Real(1e-100, 1e100),
        "margin": Real(0, 1e100),
        "max_iter": COUNT,
        "tol": Real(0) | None,
        "verbose": VERBOSE,
    }
    _doc_link_module, _doc_link_template = "rankcore", guide_link

    task: Any
    update: str
    C: float
    margin: float
    average: bool
    coef_: Array
    _state: Any
    _protocol: type  # the methods that a task must have
    _least_parameters: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hide_private_bases(cls)

    @abstractmethod
    def _losses(self, state: Any, examples: Any, order: Array) -> Iterator[float]:
        """Predict and learn examples in turn; yield the loss of each prediction.

        The caller counts an example in ``state`` before it requests the next one.
        """

    @abstractmethod
    def _predict(self, examples: Any) -> list[Any]:
        """Find the best output of each input."""

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from scratch, in ``max_iter`` passes.

        Parameters
        ----------
        X : sequence of inputs
            Or what the task's ``examples`` takes.
        Y : sequence of outputs
            The true output of each input.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, or the task returns what it may not. A failed or
            interrupted fit does not change the estimator.
        """
        check_params(self)
        examples = self._examples(X, Y)
        fitted = copy(self)
        fitted._state = self._new_state(examples)
        learner = ExampleLearner(fitted, len(examples.inputs))
        source = MemoryRows(X, examples, Y, n_features=examples.n_parameters)
        Trainer(learner, source, Monitor(fitted, [], None)).run()
        return self._adopt(fitted._state)

    @exclusive
    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Learn from further examples in the given order.

        The model does not depend on the division of examples into calls, and is that of ``fit``
        with ``max_iter=1`` and ``shuffle=False``. These must not change between calls: ``task``,
        ``average``, the numbers of parameters and labels, the kernel and its budget.

        Parameters
        ----------
        X : sequence of inputs
            Or what the task's ``examples`` takes.
        Y : sequence of outputs
            The true output of each input.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input is invalid, or a parameter that the model depends on has changed. A failed or
            interrupted call does not change the estimator.
        """
        check_params(self)
        begun = hasattr(self, "coef_")
        if begun:
            self._state.check_settings(self._settings(), {})
        examples = self._examples(X, Y, fitted=begun)
        state = self._state.copy() if begun else self._new_state(examples)
        state.stream([0, 0.0, 0])
        self._run_pass(state, examples, np.arange(len(examples.inputs), dtype=np.int32), 1, 1)
        return self._adopt(state)

    def predict(self, X: Any) -> list[Any]:
        """Find the best output of each input.

        Parameters
        ----------
        X : sequence of inputs
            Or what the task's ``examples`` takes.

        Returns
        -------
        list
            One output for each input, as the task's ``argmax`` returns it.
        """
        check_is_fitted(self)
        return self._predict(self._examples(X, None, fitted=True, labelled=False))

    def score(self, X: Any, Y: Any) -> float:
        """Return the negative mean loss of the predictions: higher is better, 0 is perfect.

        Parameters
        ----------
        X : sequence of inputs
            Or what the task's ``examples`` takes.
        Y : sequence of outputs
            The true output of each input.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        examples = self._examples(X, Y, fitted=True)
        return 0.0 - float(np.mean([*map(self._loss, examples.outputs, self._predict(examples))]))

    def _settings(self) -> dict[str, Any]:
        return {"task": self.task, "average": bool(self.average)}

    def _new_state(self, examples: Any) -> Any:
        shape = 1 + bool(self.average), examples.n_parameters
        return StructuredState(np.zeros(shape), settings=self._settings())

    def _examples(self, X: Any, Y: Any, fitted: bool = False, labelled: bool = True) -> Any:
        """Validate all examples."""
        task = type(self.task).__name__
        for name in (member for member in vars(self._protocol) if not member.startswith("_")):
            if isinstance(self.task, type) or not callable(getattr(self.task, name, None)):
                raise TypeError(
                    "task must be an object with the methods of rankcore.structured."
                    f"{self._protocol.__name__}; got {self.task!r}, which lacks {name}"
                )
        read: Any = getattr(self.task, "examples", _as_lists)
        inputs, outputs = read(X, Y)
        if labelled and outputs is None:
            raise ValueError("Y must hold a true output for each input; got None")
        if labelled and len(inputs) != len(outputs):
            raise ValueError(
                f"X and Y have inconsistent numbers of samples: {len(inputs)} inputs and "
                f"{len(outputs)} outputs"
            )
        if len(inputs) == 0:
            raise ValueError("Found 0 sample(s) in X while a minimum of 1 is required.")
        size = self.task.n_parameters(inputs)
        if not isinstance(size, numbers.Integral) or size < self._least_parameters:
            wanted = "a positive integer" if self._least_parameters else "an integer, at least 0"
            raise ValueError(f"{task}.n_parameters must return {wanted}; got {size!r}")
        if fitted and size != self.coef_.size:
            raise ValueError(
                f"{task}.n_parameters is {size} for this X, but the model has {self.coef_.size} "
                "parameters; X must have the features that the model was fitted on"
            )
        return Examples(inputs, outputs, int(size))

    def _run_pass(self, state: Any, examples: Any, order: Array, epoch: int, last: int) -> None:
        marks = set(checkpoints(state.t, len(order)).tolist())
        record, reported = state.log[-1], perf_counter()
        for done, loss in enumerate(self._losses(state, examples, order), 1):
            state.t += 1
            state.loss += loss
            record[:] = record[0] + 1, record[1] + loss, record[2] + (loss > 0)
            if state.t in marks:
                state.curve.append((state.t, state.loss))
            if done == len(order) or perf_counter() - reported > REPORT_SECONDS:
                report(Progress(epoch, last, done, len(order), record[1] / record[0]))
                reported = perf_counter()

    def _rival(self, y: Any, search: Callable[[Any, float], Any]) -> tuple[float, Any, float]:
        """Return the loss of the prediction, the rival output, and the rival's loss.

        ``search`` finds the best output, given the true one and a margin.
        """
        rival = search(None, 0.0)
        loss = rival_loss = self._loss(y, rival)
        if self.margin > 0:
            rival = search(y, self.margin)
            rival_loss = self._loss(y, rival)
        return loss, rival, rival_loss

    def _move(self, state: Any, x: Any, indices: Array, change: Array, step: float) -> None:
        """Add a multiple of a sparse vector to the parameters."""
        with np.errstate(over="ignore", invalid="ignore"):
            moved = [state.arrays[0, indices] + step * change]
            if len(state.arrays) == 2:
                moved.append(state.arrays[1, indices] + state.t * step * change)
        if not (isfinite(step) and np.isfinite(moved).all()):
            raise ValueError(
                f"the parameters overflowed at the input {reprlib.repr(x)}: its features are too "
                "large; scale the features"
            )
        state.arrays[:, indices] = moved

    def _step(self, loss: float, gap: float, norm: float) -> float:
        """Compute the step for a rival that the true output beats by this gap."""
        deficit = loss - gap
        if self.update == "perceptron":
            return 1.0
        if not (isfinite(deficit) and isfinite(norm)):  # an overflow must not count as no step
            return np.nan
        if deficit <= 0:  # a rival within the margin that is already beaten by its loss
            return 0.0
        if self.update == "pa2":
            return deficit / (norm + 1 / (2 * self.C))
        if norm == 0:  # the features of the two outputs are equal
            return 0.0
        if self.update == "pa1" and deficit > self.C * norm:
            return self.C
        return deficit / norm

    def _loss(self, y: Any, z: Any) -> float:
        loss = self.task.loss(y, z)
        if not isinstance(loss, numbers.Real | np.bool_) or not 0 <= float(loss) < np.inf:
            raise ValueError(
                f"{type(self.task).__name__}.loss must return a finite number, at least 0; got "
                f"{reprlib.repr(loss)}"
            )
        return float(loss)

    def _adopt(self, state: Any) -> Self:
        weights = state.arrays[0].copy()
        if len(state.arrays) == 2:
            weights -= state.arrays[1] / state.t
        examples, losses, mistakes = np.array(state.log).T
        curve = np.array(state.curve)
        # In one assignment, so that Ctrl-C leaves the old model or the new one.
        self.__dict__.update(
            _state=state,
            coef_=weights,
            n_iter_=len(state.log),
            t_=state.t,
            history_={
                "examples": examples.astype(int).tolist(),
                "mistakes": mistakes.astype(int).tolist(),
                "loss": (losses / examples).tolist(),
                "average_loss": (losses.cumsum() / examples.cumsum()).tolist(),
            },
            update_loss_curve_=np.column_stack([curve[:, 0], curve[:, 1] / curve[:, 0]]),
        )
        return self


def _as_lists(X: Any, Y: Any) -> tuple[list[Any], list[Any] | None]:
    """Convert the examples of a task without a method ``examples``."""
    for name, values in [("X", X), ("Y", [] if Y is None else Y)]:
        try:
            sequence = len(list(values)) == len(values)
        except TypeError:
            sequence = False
        if not sequence:
            raise TypeError(
                f"{name} must be a sequence with one element per example; got "
                f"{type(values).__name__}: make it a list, or give the task a method examples"
            )
    return list(X), None if Y is None else list(Y)


def difference(a: Pair, b: Pair) -> Pair:
    """Subtract sparse vectors; each is summed first, so that equal parts cancel exactly."""
    indices, places = np.unique(np.append(a[0], b[0]), return_inverse=True)
    first, second = np.split(places, [a[0].size])
    n = indices.size
    return indices, np.bincount(first, a[1], n) - np.bincount(second, b[1], n)


def read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


class ExampleLearner(PassLearner):
    """Learner of structured perceptrons, with the state of a fit."""

    _loss = "loss"

    def __init__(self, fitted: Any, n_examples: int) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self.generator, self.shuffle = as_generator(fitted.random_state), bool(fitted.shuffle)
        self._order = np.arange(n_examples, dtype=np.int32)

    def learn(self, window: Window, generator: np.random.Generator, number: int) -> None:
        if self.shuffle:
            generator.shuffle(self._order)
        state = self.fitted._state
        self.fitted._run_pass(state, window.rows, self._order, number, self.n_iterations)

    def idle(self) -> str | None:
        """Implement `Learner.idle`: predictions were wrong, and no update had an effect."""
        state = self.fitted._state
        if state.loss == 0 or not state.is_zero():
            return None
        return (
            "the true outputs and their rivals have equal features, so that no update had an "
            "effect; check X and the features of the task"
        )

    def outputs(self, held_out: list[Any]) -> list[Any]:
        """Implement `Learner.outputs`: there are no held-out examples."""
        return []
