"""Sources of the rows of a fit: memory, or files that may be larger than memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.scales import (
    deviations_of,
    largest_column,
    mean_square_length,
    moments_of,
    rows_differ,
    share_of_nonzero,
    sizes_differ,
)
from rankcore._ext.rows import Rows


@dataclass(frozen=True)
class Facts:
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
    magnitudes: NDArray[np.float64]  # (n_features,): maximum magnitude of each feature
    deviations: NDArray[np.float64]  # (n_features,): standard deviation of each feature
    in_queries: bool  # whether the rows have query ids


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


@dataclass(frozen=True)
class Position:
    """A position in a fit."""

    epoch: int  # the current pass, from 1
    window: int  # number of learned windows
    seed: int  # of the order of all passes


class Source(ABC):
    """The rows of a fit."""

    kept: bool  # whether all rows are one window, which stays in memory
    n_features: int | None  # None if unknown before `Facts`
    size: int  # bytes that a pass reads, for progress
    given: Any  # the ``X`` of ``fit``, which may name the features

    @abstractmethod
    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """Yield the rows of a pass from window ``first`` on, each window valid until the next.

        ``order`` is (seed, epoch) of an order of blocks, or None for that of the file.
        """

    @abstractmethod
    def mean_square(self) -> float:
        """Power of two nearest to the mean squared length of the rows."""

    @abstractmethod
    def share_of_nonzero(self) -> float:
        """Share of the values of the rows that are not 0."""

    @abstractmethod
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of each feature."""

    @abstractmethod
    def largest_of_unequal(self) -> int | None:
        """Feature of maximum magnitude if features differ by orders of magnitude; else None."""

    def seed(self, generator: np.random.Generator) -> int:
        """Seed of the order of all passes; 0 for rows in memory."""
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

    def mean_square(self) -> float:
        return mean_square_length(self.window.rows)

    def share_of_nonzero(self) -> float:
        return share_of_nonzero(self.window.rows)

    def deviations(self) -> NDArray[np.float64]:
        rows = self.window.rows
        return deviations_of(moments_of(rows), rows.n_rows)

    def largest_of_unequal(self) -> int | None:
        rows = self.window.rows
        return largest_column(rows) if rows_differ(rows) else None

    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """Yield the same window for each pass."""
        yield self.window


class RowBlocks(Source):
    """Rows on disk. Not public: created by `rankcore.datasets.open_rows`."""

    kept = False
    dtype: np.dtype[Any]  # float32 or float64
    feature_names: NDArray[Any] | None = None  # (n_features,)
    surveyed: bool  # whether `facts` costs nothing
    _facts: Facts | None

    @abstractmethod
    def facts(self) -> Facts:
        """Facts of all rows, from at most one scan."""

    def mean_square(self) -> float:
        return self.facts().mean_square

    def share_of_nonzero(self) -> float:
        known = self.facts()
        return known.n_nonzero / (known.n_rows * known.n_features)

    def deviations(self) -> NDArray[np.float64]:
        return self.facts().deviations

    def largest_of_unequal(self) -> int | None:
        sizes = self.facts().magnitudes
        return int(sizes.argmax()) if sizes_differ(sizes) else None

    @property
    def given(self) -> Any:
        """Itself: rows on disk have feature names."""
        return self

    def widen(self, n_features: int) -> None:
        """Add features that are 0 in all rows, up to ``n_features``."""
        known = self.facts()
        if n_features > known.n_features:
            more = (0, n_features - known.n_features)
            magnitudes = np.pad(known.magnitudes, more)
            deviations = np.pad(known.deviations, more)
            self._facts = replace(
                known, n_features=n_features, magnitudes=magnitudes, deviations=deviations
            )
            self.n_features = n_features

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError, because rows on disk are not arrays."""
        raise TypeError(
            "rows from open_rows are not an array: only fits of rankcore learners accept them. To "
            "scale them, give open_rows(..., scaler=StandardScaler())"
        )

    @abstractmethod
    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Labels and queries of all rows; raise ValueError if this requires a scan of all rows."""

    @abstractmethod
    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """X, y and qid of all rows in place; raise ValueError if the layout does not allow it."""


def as_source(X: Any, y: Any, *, in_windows: bool, sample_weight: Any = None) -> Source:
    """Rows of a fit without queries, validated if they are in memory.

    Rows on disk are mapped unless the learner reads them ``in_windows``; TypeError for arguments
    whose values are in their files.
    """
    given = X
    if isinstance(X, RowBlocks):
        check_alone(y=y, sample_weight=sample_weight)
        if in_windows:
            return X
        X, y, _ = X.whole()
    return MemoryRows(given, as_rows(X), y, sample_weight=sample_weight)


def check_alone(**given: Any) -> None:
    """Raise TypeError for arguments whose values are in the files of rows on disk."""
    for name, value in given.items():
        if value is not None:
            raise TypeError(f"rows from open_rows have their own labels and queries: omit {name}")
