"""Protocols of structured tasks, linear and kernel."""

from __future__ import annotations

import reprlib
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

__all__ = ["KernelTask", "Task"]

Array: TypeAlias = np.ndarray
Pair: TypeAlias = tuple[Array, Array]  # indices and values of a sparse vector


@runtime_checkable
class Task(Protocol):
    """Protocol of a task for `StructuredPerceptron`.

    Any object with these five methods is a task. A subclass requires only ``n_parameters``,
    ``candidates`` and ``features``; make it a frozen dataclass, which can be compared and cloned.
    If X and Y are not sequences of inputs and outputs, an optional method ``examples(X, Y)``
    converts them; Y is None in prediction.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from rankcore.structured import StructuredPerceptron, Task
    >>> @dataclass(frozen=True)
    ... class Multiclass(Task):
    ...     classes: tuple
    ...     def n_parameters(self, X): return len(self.classes) * len(X[0])
    ...     def candidates(self, x): return self.classes
    ...     def features(self, x, y): return self.classes.index(y) * len(x) + np.arange(len(x)), x
    >>> X, Y = [[1, 0], [0, 1], [1, 1]], ["cat", "dog", "both"]
    >>> StructuredPerceptron(Multiclass(("cat", "dog", "both")), max_iter=9).fit(X, Y).predict(X)
    ['cat', 'dog', 'both']
    """

    @abstractmethod
    def n_parameters(self, X: Any) -> int:
        """Return the number of parameters, the same for all inputs of a model."""

    @abstractmethod
    def candidates(self, x: Any) -> Iterable[Any]:
        """Return the possible outputs of x."""

    @abstractmethod
    def features(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return the indices and values of the features of input x with output y.

        A sparse pair, so that the cost of an update depends on the features of the output, not on
        the number of parameters. Values of a repeated index are summed.
        """

    def argmax(self, weights: Array, x: Any, y: Any = None, margin: float = 0.0) -> Any:
        """Find the output z that maximises ``weights . features(x, z) + margin * loss(y, z)``.

        With a margin, the true output y wins ties; without one, y must not be used. The default
        tries all candidates and returns the first of equal ones. The weights are read-only.
        """

        def score(z: Any) -> float:
            indices, values = features_of(self, x, z, weights.size)
            return dot(weights[indices], values)

        return _best(self, x, y, margin, score)

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of predicting z for y, 0 if z is correct; by default 1 unless equal."""
        return float(y != z)


@runtime_checkable
class KernelTask(Protocol):
    """Protocol of a task for `KernelStructuredPerceptron`, whose outputs are sets of atoms.

    An input has parts, each described by a vector. An atom is a part with a label, such as a word
    with its tag; the score of an output is the sum over its atoms. The kernel compares
    parts, and each label has its own function. Features without a kernel, such as pairs of
    successive tags, may be linear, as in `Task`.

    Any object with these eight methods is a task. A subclass requires only ``n_labels``, ``parts``,
    ``candidates`` and ``atoms``; make it a frozen dataclass. ``examples`` is optional, as in
    `Task`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rankcore.structured import KernelStructuredPerceptron, KernelTask
    >>> @dataclass(frozen=True)
    ... class Multiclass(KernelTask):
    ...     classes: tuple
    ...     def n_labels(self, X): return len(self.classes)
    ...     def parts(self, x): return [x]
    ...     def candidates(self, x): return self.classes
    ...     def atoms(self, x, y): return [0], [self.classes.index(y)]
    >>> X, Y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["equal", "other", "other", "equal"]
    >>> task = Multiclass(("equal", "other"))
    >>> KernelStructuredPerceptron(task, gamma=1.0, max_iter=9).fit(X, Y).predict(X)
    ['equal', 'other', 'other', 'equal']
    """

    @abstractmethod
    def n_labels(self, X: Any) -> int:
        """Return the number of labels, the same for all inputs of a model."""

    @abstractmethod
    def parts(self, x: Any) -> Any:
        """Return the parts of x, one row per part, as an array or a sparse matrix.

        All matrices have the same columns. An input may have no parts.
        """

    @abstractmethod
    def candidates(self, x: Any) -> Iterable[Any]:
        """Return the possible outputs of x."""

    @abstractmethod
    def atoms(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return the atoms of x with output y: the indices of their parts, and of their labels.

        An atom that is listed twice counts twice.
        """

    def n_parameters(self, X: Any) -> int:
        """Return the number of parameters of linear features; 0 by default."""
        return 0

    def features(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Return linear features of x with output y, as `Task.features`; none by default.

        Returns the indices and the values of the features present.
        """
        return (), ()

    def argmax(
        self, scores: Array, weights: Array, x: Any, y: Any = None, margin: float = 0.0
    ) -> Any:
        """Find the output z with the maximum score plus ``margin * loss(y, z)``.

        ``scores[part, label]`` is the score of an atom, ``weights`` are the parameters of linear
        features. With a margin, the true output y wins ties; without one, y must not be used.
        The default tries all candidates and returns the first of equal ones. Both arrays are
        read-only.
        """

        def score(z: Any) -> float:
            value = float(scores[atoms_of(self, x, z, scores.shape)].sum())
            if weights.size:
                indices, values = features_of(self, x, z, weights.size)
                value += dot(weights[indices], values)
            return value

        return _best(self, x, y, margin, score)

    def loss(self, y: Any, z: Any) -> float:
        """Return the loss of predicting z for y, 0 if z is correct; by default 1 unless equal."""
        return float(y != z)


def _best(
    task: Task | KernelTask, x: Any, y: Any, margin: float, score: Callable[[Any], float]
) -> Any:
    """Return the candidate with the maximum score plus margin times loss."""
    best: tuple[float, bool] | None = None
    winner = None
    for z in task.candidates(x):
        loss = task.loss(y, z) if margin > 0 else 0.0
        rating = score(z) + margin * loss, loss == 0
        check_score(rating[0], x)
        if best is None or rating > best:
            best, winner = rating, z
    if best is None:
        raise ValueError(
            f"{type(task).__name__}.candidates must return at least one output; got none for "
            f"{reprlib.repr(x)}"
        )
    return winner


def atoms_of(task: KernelTask, x: Any, y: Any, shape: tuple[int, ...]) -> Pair:
    """Validate a task's atoms against the numbers of parts and labels."""
    answer = task.atoms(x, y)
    try:
        parts, labels = (np.asarray(numbers) for numbers in answer)
    except (TypeError, ValueError):
        parts = labels = np.empty((0, 0))
    if parts.ndim != 1 or parts.shape != labels.shape:
        problem = reprlib.repr(answer)
    elif not parts.size:
        return parts.astype(np.intp), labels.astype(np.intp)
    elif parts.dtype.kind not in "iu" or labels.dtype.kind not in "iu":
        problem = f"dtypes {parts.dtype} and {labels.dtype}"
    elif not 0 <= parts.min() <= parts.max() < shape[0]:
        problem = f"parts from {parts.min()} to {parts.max()}"
    elif not 0 <= labels.min() <= labels.max() < shape[1]:
        problem = f"labels from {labels.min()} to {labels.max()}"
    else:
        return parts.astype(np.intp), labels.astype(np.intp)
    raise ValueError(
        f"{type(task).__name__}.atoms must return a pair of equally long one-dimensional arrays, "
        f"parts from 0 to {shape[0] - 1} of the input and labels from 0 to {shape[1] - 1}; got "
        f"{problem}"
    )


def features_of(task: Task | KernelTask, x: Any, y: Any, n_parameters: int) -> Pair:
    """Validate a task's features."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinity is found below
        answer = task.features(x, y)
    try:
        indices, values = (np.asarray(part) for part in answer)
    except (TypeError, ValueError):
        indices = values = np.empty((0, 0))
    if indices.ndim != 1 or indices.shape != values.shape:
        problem = reprlib.repr(answer)
    elif indices.size and (indices.dtype.kind not in "iu" or values.dtype.kind not in "iufb"):
        problem = f"dtypes {indices.dtype} and {values.dtype}"
    elif indices.size and not 0 <= indices.min() <= indices.max() < n_parameters:
        problem = f"indices from {indices.min()} to {indices.max()}"
    elif not np.isfinite(values).all():
        problem = "NaN or infinity"
    else:
        return indices.astype(np.intp), values.astype(np.float64)
    raise ValueError(
        f"{type(task).__name__}.features must return a pair of equally long one-dimensional "
        f"arrays, indices from 0 to {n_parameters - 1} and finite values; got {problem}"
    )


def dot(a: Array, b: Array) -> float:
    # Not BLAS, whose order of summation, and so rounding, differs between machines.
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the result
        return float((a * b).sum())


def check_score(last: float, x: Any) -> None:
    if not np.isfinite(last):
        raise ValueError(
            f"a score overflowed at the input {reprlib.repr(x)}: the features or the weights are "
            "too large; scale the features"
        )
