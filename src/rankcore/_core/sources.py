"""Sources of the rows of a fit: memory, or files that may be larger than memory."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import names_of
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import some_rows
from rankcore._core.numbers import Floats, power_of_two
from rankcore._core.scales import (
    LEAST_SHIFT,
    SAMPLED_ROWS,
    SAMPLED_VALUES,
    SPARSE,
    far_columns,
    largest_column,
    mean_square_length,
    rows_differ,
    share_of_nonzero,
    sizes_differ,
)
from rankcore._ext.column_stats import raise_sizes, sum_squares
from rankcore._ext.rows import Rows


@dataclass(frozen=True)
class DatasetStats:
    """Statistics of all rows on disk, from one scan."""

    # Shape, and numbers of stored values.
    n_rows: int
    n_features: int
    n_values: int
    n_nonzero: int  # stored values that are not 0
    # (n_labels,): the distinct labels, ascending; int64 if all are whole numbers.
    labels: NDArray[Any]
    counts: NDArray[np.int64]  # (n_labels,): rows of each label
    mean_square: float  # the power of two nearest to the mean squared length of the rows
    magnitudes: Floats  # (n_features,): maximum magnitude of each feature
    in_queries: bool  # whether the rows have query ids


class StatsCollector:
    """Collects statistics of rows on disk, block by block, in one scan."""

    def __init__(self, n_features: int | None) -> None:
        self._n_features = n_features  # None: one more than the maximum column index
        self._counts: Counter[float] = Counter()
        self._n_rows = self._n_columns = self._n_values = self._n_nonzero = 0
        self._sizes = np.zeros(n_features or 1)
        self._square, self._shift = 0.0, -2000  # the sum of squares is square * 2 ** (2 * shift)

    def add(self, labels: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]) -> None:
        """Add the labels and the stored values of some rows."""
        distinct, counts = np.unique(labels, return_counts=True)
        for label, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            self._counts[label] += count
        self._n_rows += labels.size
        self._n_values += values.size
        self._n_nonzero += int(np.count_nonzero(values))
        if values.size == 0:
            return
        largest = int(columns.max())
        self._n_columns = max(self._n_columns, largest + 1)
        if largest >= self._sizes.size:
            more = max(largest + 1, 2 * self._sizes.size) - self._sizes.size
            self._sizes = np.pad(self._sizes, (0, more))
        self._add_squares(values, raise_sizes(columns, values, self._sizes))

    def _add_squares(self, values: NDArray[Any], largest: float) -> None:
        """Add the squares of values of this maximum magnitude."""
        if 0 < largest < math.inf:  # learners reject others
            # Scaled, so that squares do not overflow or underflow.
            shift = max(self._shift, math.frexp(largest)[1], LEAST_SHIFT)
            before = math.ldexp(self._square, 2 * (self._shift - shift))
            self._square = before + sum_squares(values, math.ldexp(1.0, -shift))
            self._shift = shift

    def finish(self, in_queries: bool, name: str) -> DatasetStats:
        """Return the statistics; raise ValueError if there were no rows."""
        if self._n_rows == 0:
            raise ValueError(f"{name} holds no examples")
        labels = np.array(sorted(self._counts), dtype=np.float64)
        counts = np.array([self._counts[label] for label in labels.tolist()], dtype=np.int64)
        if (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0) < 2**53:
            labels = labels.astype(np.int64)
        n_features = self._n_features or max(1, self._n_columns)
        sizes = np.zeros(n_features)
        sizes[: self._sizes.size] = self._sizes[:n_features]
        mean_square = power_of_two(self._square / self._n_rows, 2 * self._shift)
        return DatasetStats(
            n_rows=self._n_rows,
            n_features=n_features,
            n_values=self._n_values,
            n_nonzero=self._n_nonzero,
            labels=labels,
            counts=counts,
            mean_square=mean_square,
            magnitudes=sizes,
            in_queries=in_queries,
        )


@dataclass(frozen=True)
class Window:
    """Rows that are in memory together, of whole queries."""

    rows: Rows  # canonical
    labels: Any  # (n_rows,)
    queries: Any  # (n_rows,): the rows by query, or a number for the query of each row
    number: int  # number of previous windows in this pass
    done: int  # bytes of this pass including these rows
    # Arguments of ``fit``; only of rows in memory.
    sample_weight: Any = None
    pairs: Any = None
    pairs_weight: Any = None


def rows_of_weight(rows: Rows, weights: Any) -> Rows:
    """Copy the rows of positive weight; the rows themselves if there are no others."""
    if weights is None or np.all(weights):
        return rows
    return as_rows(some_rows(rows, np.flatnonzero(weights)))


class Source(ABC):
    """The rows of a fit."""

    kept: bool  # whether all rows are one window, which stays in memory
    n_features: int | None  # None if unknown before `DatasetStats`
    size: int  # bytes that a pass reads, for progress
    given: Any  # the ``X`` of ``fit``, which may name the features

    @abstractmethod
    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """Yield the rows of a pass, each window valid until the next.

        ``order`` is (seed, epoch) of an order of blocks, or None for that of the file.
        """

    @abstractmethod
    def mean_square(self) -> float:
        """Return the power of two nearest to the mean squared norm of the rows."""

    @abstractmethod
    def share_of_nonzero(self) -> float:
        """Return the fraction of the values of the rows that are not 0."""

    @abstractmethod
    def known_sparse(self) -> bool:
        """Return whether moments need not be computed to know that rows are left as they are.

        For dense rows in memory they take less time than counting values.
        """

    @abstractmethod
    def columns_off_scale(self, centred: bool = False) -> list[int]:
        """Return the columns that dominate the others by their magnitude, largest first.

        With ``centred``, for a learner that compares rows, by their deviation.
        """

    @property
    def names(self) -> list[str] | None:
        """Names of the features, if there are any."""
        names = getattr(self.given, "feature_names", names_of(self.given))
        return None if names is None else [str(name) for name in names]

    def seed(self, generator: np.random.Generator) -> int:
        """Return the seed of the order of all passes; 0 for rows in memory."""
        return 0 if self.kept else int(generator.integers(2**63))


class MemoryRows(Source):
    """Rows in memory, converted for the learner, with the other fields of `Window`."""

    kept, size = True, 0

    def __init__(
        self,
        given: Any,
        rows: Any,
        labels: Any,
        queries: Any = None,
        n_features: int | None = None,
        **more: Any,
    ) -> None:
        self.given = given
        self.n_features = rows.n_features if n_features is None else n_features
        self.window = Window(rows, labels, queries, 0, 0, **more)
        self.weighted = rows  # rows of positive weight, whose statistics are those of the source

    def leave_out(self, weights: Any) -> None:
        """Leave rows of weight 0 out of the statistics."""
        self.weighted = rows_of_weight(self.window.rows, weights)

    def mean_square(self) -> float:
        return mean_square_length(self.weighted)

    def share_of_nonzero(self) -> float:
        return share_of_nonzero(self.weighted)

    def known_sparse(self) -> bool:
        return self.weighted.columns is not None and self.share_of_nonzero() <= SPARSE

    def columns_off_scale(self, centred: bool = False) -> list[int]:
        rows = self.weighted
        if rows_differ(rows):
            return [largest_column(rows)]
        if rows.n_values <= SPARSE * rows.n_rows * rows.n_features:
            return []
        n_sampled = max(1, min(SAMPLED_ROWS, SAMPLED_VALUES // rows.n_features))
        step = -(-rows.n_rows // n_sampled)
        sample = some_rows(rows, np.arange(0, rows.n_rows, step))
        dense = sample.toarray() if hasattr(sample, "toarray") else sample
        return far_columns(dense, centred)

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """Yield the same window for each pass."""
        yield self.window


class RowBlocks(Source):
    """Rows on disk. Not public: created by `rankcore.datasets.open_rows`."""

    kept = False
    dtype: np.dtype[Any]  # float32 or float64
    feature_names: NDArray[Any] | None = None  # (n_features,)
    has_stats: bool  # whether `stats` costs nothing
    allows_nan = False  # whether windows may contain NaN, for a missing value
    _stats: DatasetStats | None

    @abstractmethod
    def stats(self) -> DatasetStats:
        """Return the statistics of all rows, from at most one scan."""

    def mean_square(self) -> float:
        return self.stats().mean_square

    def share_of_nonzero(self) -> float:
        stats = self.stats()
        return stats.n_nonzero / (stats.n_rows * stats.n_features)

    def known_sparse(self) -> bool:
        return self.share_of_nonzero() <= SPARSE

    def columns_off_scale(self, centred: bool = False) -> list[int]:
        sizes = self.stats().magnitudes
        return [int(sizes.argmax())] if sizes_differ(sizes) else []

    @property
    def given(self) -> Any:
        """The rows themselves, which have feature names."""
        return self

    def widen(self, n_features: int) -> None:
        """Add features that are 0 in all rows, up to ``n_features``."""
        stats = self.stats()
        if n_features > stats.n_features:
            magnitudes = np.pad(stats.magnitudes, (0, n_features - stats.n_features))
            self._stats = replace(stats, n_features=n_features, magnitudes=magnitudes)
            self.n_features = n_features

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError, because rows on disk are not arrays."""
        raise TypeError(
            "rows from open_rows are not an array: only fits of rankcore learners accept them. To "
            "scale them, give open_rows(..., scaler=StandardScaler())"
        )

    @abstractmethod
    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """Yield the matrices of all rows, in order, each with the name of its file.

        Their values are those of the files, of which learners may reject some.
        """

    @abstractmethod
    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Return the labels and queries of all rows; raise ValueError if that requires a scan."""

    @abstractmethod
    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """Return X, y and qid of all rows in place; raise ValueError if the layout forbids it."""


def as_source(X: Any, y: Any, *, in_windows: bool, sample_weight: Any = None) -> Source:
    """Make a source of rows without queries; rows in memory are validated.

    Rows on disk are mapped unless the learner reads them ``in_windows``; TypeError for arguments
    whose values are in their files.
    """
    rows_of_fit = X
    if isinstance(X, RowBlocks):
        check_alone(y=y, sample_weight=sample_weight)
        if in_windows:
            return X
        X, y, _ = X.whole()
    return MemoryRows(rows_of_fit, as_rows(X), y, sample_weight=sample_weight)


def check_alone(**given: Any) -> None:
    """Raise TypeError for arguments whose values are in the files of rows on disk."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"rows from open_rows have their own labels and queries: omit {name}")
