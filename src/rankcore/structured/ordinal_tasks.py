"""Ordered labels as tasks: CuSum Rank and PRank as structured perceptrons."""

from __future__ import annotations

import reprlib
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import RowsLike
from rankcore._core.inputs import as_rows
from rankcore._core.params import check_flag, check_integer, check_option
from rankcore.structured.task import Array, Pair, Task, check_score

__all__ = ["CuSumTask", "PRankTask"]


class _Rows(list[Pair]):
    """Rows of a matrix as indices and values of their nonzeros."""

    def __init__(self, X: Any) -> None:
        rows = as_rows(X)
        if rows.columns is None:
            row_numbers, columns = np.nonzero(rows.arrays[0])
            values = rows.arrays[0][row_numbers, columns]
            ends = np.searchsorted(row_numbers, np.arange(1, rows.n_rows))
        else:
            values, columns, indptr = rows.arrays
            ends = indptr[1:-1]
            values, columns = values[: indptr[-1]], columns[: indptr[-1]]
        columns = columns.astype(np.int64)  # indices of parameters may exceed 32 bits
        values = values.astype(np.float64)
        super().__init__(zip(np.split(columns, ends), np.split(values, ends), strict=True))
        self.n_features = rows.n_features


@dataclass(frozen=True)
class _OrdinalTask(Task):
    """Ranks of rows, whose scores are cumulative sums of ``gains``, one per step between ranks."""

    n_ranks: int
    tie_break = "high"  # not a field: PRank has only this one

    def __post_init__(self) -> None:
        check_integer(self.n_ranks, "n_ranks", 2)

    @abstractmethod
    def gains(self, weights: Array, x: Pair) -> Array: ...

    def examples(self, X: RowsLike, Y: ArrayLike | None = None) -> tuple[_Rows, list[int] | None]:
        """Convert a matrix and ranks to sparse rows and a list of ranks."""
        if Y is None:
            return _Rows(X), None
        ranks = np.asarray(Y)
        if ranks.ndim != 1 or not np.isin(ranks, np.arange(1, self.n_ranks + 1)).all():
            raise ValueError(
                f"Y must hold a rank from 1 to {self.n_ranks} for each row; got {reprlib.repr(Y)}"
            )
        return _Rows(X), ranks.astype(int).tolist()

    def candidates(self, x: Pair) -> Iterable[int]:
        """Return all ranks."""
        return range(1, self.n_ranks + 1)

    def argmax(self, weights: Array, x: Pair, y: Any = None, margin: float = 0.0) -> int:
        """Find the rank of maximum score plus margin times loss; see `Task.argmax`."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.append(0.0, np.cumsum(self.gains(weights, x)))
        check_score(scores[-1], x)  # any overflow on the way is still there in the last sum
        if margin > 0:
            scores += margin * np.abs(np.arange(1, self.n_ranks + 1) - y)
        best = 1 + np.flatnonzero(scores == scores.max())
        if margin > 0 and y in best:
            return y
        return int(best[0 if self.tie_break == "low" else -1])

    def loss(self, y: int, z: int) -> float:
        """Return the distance between two ranks."""
        return abs(y - z)


@dataclass(frozen=True)
class CuSumTask(_OrdinalTask):
    """CuSum Rank as a task, with which `StructuredPerceptron` is equivalent to `CuSumRank`.

    X is a matrix as for `CuSumRank`, Y the rank of each row, from 1.

    Parameters
    ----------
    n_ranks : int
        At least 2.
    tie_break : {"high", "low"}, default="high"
        Rule for ties between best ranks.
    fit_intercept : bool, default=True
        Whether each step between ranks has a threshold: the weight of a feature that is always -1.

    Notes
    -----
    ``coef_.reshape(-1, n_ranks - 1)`` has one column per step between ranks; the first row holds
    the thresholds, if there are any, each other row the weights of a feature.

    With ``update="perceptron"`` the weights equal those of `CuSumRank` to the bit on any data,
    since both add the same numbers in the same order. Passive-aggressive steps are quotients of
    sums in different orders, and agree to rounding.

    Examples
    --------
    >>> import rankcore as rc
    >>> from rankcore.structured import CuSumTask, StructuredPerceptron
    >>> X, y = [[0, 0], [0, 1], [1, 1], [1, 0]], [1, 2, 2, 3]
    >>> model = StructuredPerceptron(CuSumTask(3), max_iter=4).fit(X, y)
    >>> compiled = rc.CuSumRank.published(max_iter=4).fit(X, y)
    >>> (model.coef_[2:].reshape(-1, 2).T == compiled.coef_).all()
    np.True_
    """

    tie_break: str = "high"
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self.tie_break, "tie_break", ("high", "low"))
        check_flag(self.fit_intercept, "fit_intercept")

    def n_parameters(self, X: _Rows) -> int:
        """Count a threshold, if there are any, and one weight per feature for each step."""
        return (self.n_ranks - 1) * (self.fit_intercept + X.n_features)

    def features(self, x: Pair, y: int) -> Pair:
        """Return the row and a -1, once for each step up to y."""
        columns, values = x
        if self.fit_intercept:
            columns, values = np.append(0, 1 + columns), np.append(-1.0, values)
        steps = np.arange(y - 1)
        return np.add.outer(columns * (self.n_ranks - 1), steps).ravel(), values.repeat(steps.size)

    def gains(self, weights: Array, x: Pair) -> Array:
        """Score each step."""
        columns, values = x
        rows = weights.reshape(-1, self.n_ranks - 1)
        if not self.fit_intercept:
            return _sum_in_order(values[:, np.newaxis] * rows[columns])
        return _sum_in_order(values[:, np.newaxis] * rows[1 + columns]) - rows[0]


@dataclass(frozen=True)
class PRankTask(_OrdinalTask):
    """PRank as a task, with which `StructuredPerceptron` is equivalent to ``PRank(tie="strict")``.

    X is a matrix as for `PRank`, Y the rank of each row, from 1.

    Parameters
    ----------
    n_ranks : int
        At least 2.

    Notes
    -----
    ``coef_`` has the n_ranks - 1 thresholds, then the direction. With other updates than
    "perceptron", or a margin, this differs from PRank, and thresholds need not ascend.

    On integers the weights are those of `PRank` to the bit, averaged thresholds to the rounding of
    their division. On other data both agree to rounding: the features of rank y are the row times
    y - 1, and `PRank` sums in another order.

    Examples
    --------
    >>> from rankcore.structured import PRankTask, StructuredPerceptron
    >>> X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    >>> StructuredPerceptron(PRankTask(3), max_iter=2).fit(X, [3, 1, 2, 3]).coef_
    array([ 0.,  1.,  1., -1.])
    """

    def n_parameters(self, X: _Rows) -> int:
        """Count the thresholds and one weight per feature."""
        return self.n_ranks - 1 + X.n_features

    def features(self, x: Pair, y: int) -> Pair:
        """Return the row times the number of steps up to y, and -1 for each of their thresholds."""
        columns, values = x
        indices = np.append(np.arange(y - 1), self.n_ranks - 1 + columns)
        return indices, np.append(np.full(y - 1, -1.0), (y - 1) * values)

    def gains(self, weights: Array, x: Pair) -> Array:
        """Subtract each threshold from the projection."""
        columns, values = x
        thresholds, direction = np.split(weights, [self.n_ranks - 1])
        return _sum_in_order(values * direction[columns]) - thresholds


def _sum_in_order(products: Array) -> Any:
    """Sum rows from first to last, in the order of the compiled learners."""
    return np.cumsum(products, axis=0)[-1] if len(products) else np.zeros(products.shape[1:])
