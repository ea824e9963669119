"""The structured perceptron, for any task with a score and a search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.arguments import Seed
from rankcore._core.declaration import Declaration
from rankcore.structured._base import (
    Examples,
    StructuredLearner,
    StructuredState,
    difference,
    read_only,
)
from rankcore.structured.task import Array, Task, dot, features_of

__all__ = ["StructuredPerceptron"]


class StructuredPerceptron(StructuredLearner):
    """Structured perceptron for the outputs of a `Task`: sequences, trees, matchings, ranks.

    The model scores an output by the inner product of its parameters with the task's features, and
    predicts the best. A mistake moves the parameters towards the features of the true output and
    away from those of the predicted one.

    Parameters
    ----------
    task : Task
        Parameters, candidates, features, search and loss.
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Step size: 1, or passive-aggressive: the smallest step after which the true output beats
        its rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": a smaller C gives smaller steps.
    margin : float, default=0.0
        In training the rival is the output that maximises score plus margin times loss, so
        correct outputs must win by a margin. The passive-aggressive updates make no step if the
        true output beats the rival by its loss.
    average : bool, default=False
        Predict with the average of the parameters after every example instead of the last ones.
    max_iter : int, default=1
        Passes over the data in ``fit``.
    shuffle : bool, default=False
        Visit the examples in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean loss is not below the best by more than this, or
        after a pass without mistakes. By default make all ``max_iter`` passes.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_parameters,)
        Parameters for prediction, in the order of the task.
    n_iter_, t_ : int
        Number of passes, and of examples learned in all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes`` (examples with loss), ``loss`` (the mean) and
        ``average_loss`` (the mean since the first example). Each example is predicted, without
        margin, before it is learned.
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and mean loss while learning, of the last weights; with ``average``,
        `predict` uses others, which usually lose less.

    Notes
    -----
    An output of loss 0 is correct, even if it is not the true one. The cost of an update depends on
    the features of two outputs, not on the number of parameters; ``partial_fit`` copies the
    parameters once per call.

    If parameters of norm 1 score each true output higher than any other by at least d times the
    loss of the other, and the squared norm of the difference of their features is at most R**2
    times this loss, the total loss of "perceptron" and "pa" is at most ``R**2 / d**2``.

    `save` does not support this learner, because its task is user code; use pickle.

    Plain form: ``tests/reference/structured.py``, ``structured``.

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

    _declaration: ClassVar = Declaration(guide="structured", learns_from="outputs")

    _protocol = Task
    _least_parameters = 1

    def __init__(
        self,
        task: Task,
        *,
        update: Literal["perceptron", "pa", "pa1", "pa2"] = "perceptron",
        C: float = 1.0,
        margin: float = 0.0,
        average: bool = False,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Seed | None = None,
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

    def _predict(self, examples: Examples) -> list[Any]:
        weights = read_only(self.coef_)
        return [self.task.argmax(weights, x, None, 0.0) for x in examples.inputs]

    def _losses(self, state: StructuredState, examples: Examples, order: Array) -> Iterator[float]:
        for i in order.tolist():
            yield self._learn(state, examples.inputs[i], examples.outputs[i])

    def _learn(self, state: StructuredState, x: Any, y: Any) -> float:
        """Predict, then learn; return the loss of the prediction."""
        weights = read_only(state.arrays[0])
        loss, rival, rival_loss = self._rival(y, partial(self.task.argmax, weights, x))
        if rival_loss == 0:
            return loss
        wanted, unwanted = (features_of(self.task, x, z, weights.size) for z in (y, rival))
        indices, change = difference(wanted, unwanted)
        with np.errstate(over="ignore", invalid="ignore"):
            step = self._step(rival_loss, dot(weights[indices], change), dot(change, change))
        self._move(state, x, indices, change, step)
        return loss
