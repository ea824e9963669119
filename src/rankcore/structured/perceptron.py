"""The structured perceptron: it learns to predict anything that a task can score and search."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Integral, Real
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_scalar

from rankcore._core.concurrency import learns
from rankcore._core.params import STEP_RULES, as_generator, check_flag, check_option, check_real
from rankcore._core.passes import passes
from rankcore._core.state import LearnerState, checkpoints
from rankcore.progress import Progress, report
from rankcore.structured.task import Array, Pair, Task, dot, features_of

__all__ = ["StructuredPerceptron"]

REPORT_SECONDS = 0.005


@dataclass
class StructuredState(LearnerState):
    """Weights and, to average, the sums of (examples before) * change.

    Attributes
    ----------
    arrays : ndarray of float64, shape (1, n_parameters) or (2, n_parameters)
    t : int
        Examples seen.
    loss : float
        Their total loss.
    curve : list of (int, float)
        Examples seen and total loss, at the marks of `checkpoints`.
    """

    arrays: Array
    t: int = 0
    loss: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)

    def copy(self) -> StructuredState:
        """The same again, to go on from."""
        log = [list(figures) for figures in self.log]
        return replace(self, arrays=self.arrays.copy(), curve=[*self.curve], log=log)


class StructuredPerceptron(BaseEstimator):
    """Learn to predict what a `Task` describes: sequences, trees, matchings, ranks.

    The model scores an output by the inner product of its parameters with the task's features, and
    predicts the best. A mistake moves the parameters towards the features of the true output and
    away from those of the predicted one.

    Parameters
    ----------
    task : Task
        Parameters, candidates, features, search and loss.
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Length of a step: 1, or passive-aggressive: as long as it takes for the true output to beat
        its rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": the smaller, the shorter the steps.
    margin : float, default=0.0
        In training the rival is the output of the highest score plus margin times loss, so that
        right outputs must also win clearly. The passive-aggressive updates leave a rival alone that
        is beaten by its loss.
    average : bool, default=False
        Predict with the average of the parameters after every example instead of the last ones.
    max_iter, shuffle, tol, random_state, verbose
        As in `PRank`, with the task's loss for the rank loss.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_parameters,)
        Parameters to predict with, in the order of the task.
    n_iter_, t_ : int
        Passes made, and examples learned from over all of them.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes`` (examples with loss), ``loss`` (the mean) and
        ``average_loss`` (the mean since the first example). Each example was predicted, without
        margin, before it was learned.
    loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and mean loss while learning.

    Notes
    -----
    An output of loss 0 counts as right, even if it is not the true one. An update costs the
    features of two outputs, not the number of parameters; ``partial_fit`` copies these once per
    call.

    If unit parameters score each true output better than any other by d times its loss, and the
    squared difference of their features is at most R**2 times its loss, the total loss of
    "perceptron" and "pa" is at most ``R**2 / d**2``.

    `save` does not take this learner, whose task is code of yours: use pickle.

    References
    ----------
    .. [1] M. Collins. "Discriminative Training Methods for Hidden Markov Models". EMNLP 2002.
    .. [2] K. Crammer et al. "Online Passive-Aggressive Algorithms". JMLR 2006.

    Examples
    --------
    >>> from rankcore.structured import CuSumTask, StructuredPerceptron
    >>> X, y = [[0, 0], [0, 1], [1, 1], [1, 0]], [1, 2, 2, 3]
    >>> model = StructuredPerceptron(CuSumTask(n_ranks=3), max_iter=4).fit(X, y)
    >>> model.predict(X), model.score(X, y)
    ([1, 2, 2, 3], 0.0)
    """

    def __init__(
        self,
        task: Task,
        update: str = "perceptron",
        C: float = 1.0,
        margin: float = 0.0,
        average: bool = False,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.task = task
        self.update = update
        self.C = C
        self.margin = margin
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @learns
    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from scratch, in ``max_iter`` passes.

        X and Y are a sequence of inputs and one of their true outputs, or what the task's
        ``examples`` takes. A failed or interrupted fit leaves the estimator as it was.
        """
        self._check_params()
        inputs, outputs, size = self._examples(X, Y)
        state = self._new_state(size)
        order = np.arange(len(inputs), dtype=np.int32)
        generator = as_generator(self.random_state)
        for epoch in passes(self, state, "loss"):
            if self.shuffle:
                generator.shuffle(order)
            self._run_pass(state, inputs, outputs, order.tolist(), epoch, self.max_iter)
        return self._adopt(state)

    @learns
    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Go on learning from the next examples, in the order given.

        Chunks fed in order give the same model, to the bit, as one ``fit`` with ``max_iter=1`` and
        ``shuffle=False`` over all of them. ``task``, ``average`` and the number of parameters may
        not change on the way. A failed or interrupted call leaves the estimator as it was.
        """
        self._check_params()
        begun = hasattr(self, "coef_")
        if begun:
            self._state.check_settings(self._settings(), {})
        inputs, outputs, size = self._examples(X, Y, fitted=begun)
        state = self._state.copy() if begun else self._new_state(size)
        state.stream([0, 0.0, 0])
        self._run_pass(state, inputs, outputs, range(len(inputs)), 1, 1)
        return self._adopt(state)

    def predict(self, X: Any) -> list[Any]:
        """Find the best output of each input."""
        check_is_fitted(self)
        return self._predict(self._examples(X, None, fitted=True, labelled=False)[0])

    def score(self, X: Any, Y: Any) -> float:
        """Negate the mean loss of the predictions: greater is better, 0 is perfect."""
        check_is_fitted(self)
        inputs, outputs, _ = self._examples(X, Y, fitted=True)
        return 0.0 - float(np.mean([*map(self._loss, outputs, self._predict(inputs))]))

    def _predict(self, inputs: Any) -> list[Any]:
        weights = _read_only(self.coef_)
        return [self.task.argmax(weights, x, None, 0.0) for x in inputs]

    def _check_params(self) -> None:
        check_option(self.update, "update", STEP_RULES)
        check_real(self.C, "C", 1e-100, 1e100)
        check_real(self.margin, "margin", 0, 1e100)
        check_flag(self.average, "average")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_flag(self.shuffle, "shuffle")
        check_scalar(self.verbose, "verbose", Integral, min_val=0)
        if self.tol is not None:
            check_real(self.tol, "tol", 0)

    def _settings(self) -> dict[str, Any]:
        return {"task": self.task, "average": bool(self.average)}

    def _new_state(self, size: int) -> StructuredState:
        return StructuredState(np.zeros((1 + bool(self.average), size)), settings=self._settings())

    def _examples(
        self, X: Any, Y: Any, fitted: bool = False, labelled: bool = True
    ) -> tuple[Any, Any, int]:
        """Inputs, outputs and the number of parameters, all checked."""
        task = type(self.task).__name__
        for name in ["n_parameters", "candidates", "features", "argmax", "loss"]:
            if isinstance(self.task, type) or not callable(getattr(self.task, name, None)):
                raise TypeError(
                    f"task must be an object with the methods of rankcore.structured.Task; found "
                    f"{self.task!r}, which lacks {name}"
                )
        read: Any = getattr(self.task, "examples", _as_lists)
        inputs, outputs = read(X, Y)
        if labelled and outputs is None:
            raise ValueError("Y must hold a true output for each input; found None")
        if labelled and len(inputs) != len(outputs):
            raise ValueError(
                f"X and Y have inconsistent numbers of samples: {len(inputs)} inputs and "
                f"{len(outputs)} outputs"
            )
        if len(inputs) == 0:
            raise ValueError("Found 0 sample(s) in X while a minimum of 1 is required.")
        size = self.task.n_parameters(inputs)
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{task}.n_parameters must return a positive integer; found {size!r}")
        if fitted and size != self.coef_.size:
            raise ValueError(
                f"{task}.n_parameters is {size} for this X, but the model has {self.coef_.size} "
                "parameters; X must have the features that the model was fitted on"
            )
        return inputs, outputs, int(size)

    def _run_pass(
        self,
        state: StructuredState,
        inputs: Any,
        outputs: Any,
        order: Sequence[int],
        epoch: int,
        last: int,
    ) -> None:
        marks = set(checkpoints(state.t, len(order)).tolist())
        record, reported = state.log[-1], perf_counter()
        for done, i in enumerate(order, 1):
            loss = self._learn(state, inputs[i], outputs[i])
            state.t += 1
            state.loss += loss
            record[:] = record[0] + 1, record[1] + loss, record[2] + (loss > 0)
            if state.t in marks:
                state.curve.append((state.t, state.loss))
            if done == len(order) or perf_counter() - reported > REPORT_SECONDS:
                report(Progress(epoch, last, done, len(order), record[1] / record[0]))
                reported = perf_counter()

    def _learn(self, state: StructuredState, x: Any, y: Any) -> float:
        """Predict, then learn; the loss of the prediction."""
        weights = _read_only(state.arrays[0])
        rival = self.task.argmax(weights, x, None, 0.0)
        loss = rival_loss = self._loss(y, rival)
        if self.margin > 0:
            rival = self.task.argmax(weights, x, y, self.margin)
            rival_loss = self._loss(y, rival)
        if rival_loss == 0:
            return loss
        wanted, unwanted = (features_of(self.task, x, z, weights.size) for z in (y, rival))
        indices, change = _difference(wanted, unwanted)
        with np.errstate(over="ignore", invalid="ignore"):
            step = self._step(rival_loss, dot(weights[indices], change), dot(change, change))
            moved = [weights[indices] + step * change]
            if len(state.arrays) == 2:
                moved.append(state.arrays[1, indices] + state.t * step * change)
        if not np.isfinite(moved).all():
            raise ValueError(
                f"the parameters overflowed at the input {reprlib.repr(x)}: its features are too "
                "large; scale the features"
            )
        state.arrays[:, indices] = moved
        return loss

    def _step(self, loss: float, gap: float, norm: float) -> float:
        """Length of the step for a rival of this loss that the true output beats by the gap."""
        deficit = loss - gap
        if self.update == "perceptron":
            return 1.0
        if not (isfinite(deficit) and isfinite(norm)):  # what overflowed must not pass for no step
            return np.nan
        if deficit <= 0:  # a rival within the margin, but beaten by its loss already
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
        if not isinstance(loss, Real | np.bool_) or not 0 <= float(loss) < np.inf:
            raise ValueError(
                f"{type(self.task).__name__}.loss must return a finite number, at least 0; found "
                f"{reprlib.repr(loss)}"
            )
        return float(loss)

    def _adopt(self, state: StructuredState) -> Self:
        weights = state.arrays[0].copy()
        if len(state.arrays) == 2:
            weights -= state.arrays[1] / state.t
        examples, losses, mistakes = np.array(state.log).T
        curve = np.array(state.curve)
        # In one go, so that Ctrl-C finds the old model or the new one.
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
            loss_curve_=np.column_stack([curve[:, 0], curve[:, 1] / curve[:, 0]]),
        )
        return self


def _as_lists(X: Any, Y: Any) -> tuple[list[Any], list[Any] | None]:
    """Examples of a task that does not say how to read them."""
    for name, values in [("X", X), ("Y", [] if Y is None else Y)]:
        try:
            sequence = len(list(values)) == len(values)
        except TypeError:
            sequence = False
        if not sequence:
            raise TypeError(
                f"{name} must be a sequence with one element per example; found "
                f"{type(values).__name__}: make it a list, or give the task a method examples"
            )
    return list(X), None if Y is None else list(Y)


def _difference(a: Pair, b: Pair) -> Pair:
    """A sparse vector minus another; each is added up first, so that equal parts cancel exactly."""
    indices, places = np.unique(np.append(a[0], b[0]), return_inverse=True)
    first, second = np.split(places, [a[0].size])
    n = indices.size
    return indices, np.bincount(first, a[1], n) - np.bincount(second, b[1], n)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
