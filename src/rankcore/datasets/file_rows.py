"""Rows of files of any format, read again in each pass, a window at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.kernels import csr_in_place
from rankcore._core.sources import DatasetStats, RowBlocks, StatsCollector, Window
from rankcore.datasets.streams import Source, title
from rankcore.progress import Progress, report

# Stored values of a block of rows: 3 MiB as CSR of float64, which fit into the CPU's caches.
BLOCK_VALUES = 1 << 18
# Maximum rows of a block with few values.
BLOCK_ROWS = 1 << 16
# Blocks whose rows are shuffled together.
WINDOW = 8


@dataclass(frozen=True)
class Part:
    """Rows of whole queries."""

    X: Any  # a CSR matrix
    labels: NDArray[np.float64]
    queries: NDArray[np.int64] | None  # index of each row's query within the part, if any
    bytes_read: int  # of all files, up to the last row


@dataclass(frozen=True)
class Piece:
    """Labels and stored values of rows, possibly with an incomplete query."""

    labels: NDArray[Any]
    columns: NDArray[Any]  # of the stored values
    values: NDArray[Any]
    in_queries: bool
    bytes_read: int  # of all files, up to the last row


def report_reading(bytes_read: int, size: int, n_rows: int) -> None:
    """Report the progress of a scan."""
    report(Progress(0, 0, min(bytes_read, size), size, n_rows, "rows", "bytes"))


def collect_stats(
    pieces: Iterable[Piece], n_features: int | None, size: int, name: str
) -> DatasetStats:
    """Collect the statistics of all rows, in one scan of ``size`` bytes."""
    collector = StatsCollector(n_features)
    in_queries = False
    n_rows = 0
    for piece in pieces:
        in_queries = piece.in_queries
        collector.add(piece.labels, piece.columns, piece.values)
        n_rows += piece.labels.size
        report_reading(piece.bytes_read, size, n_rows)
    return collector.finish(in_queries, name)


class FileRows(RowBlocks):
    """Rows of one or more files; subclasses read a format.

    Binary files among the sources can be read only once, by `parts`.
    """

    has_stats = False

    def __init__(
        self, sources: Sequence[Source], size: int, dtype: Any, n_features: int | None, window: int
    ) -> None:
        self.sources = list(sources)
        self.size = size
        self.window = window
        self.dtype = np.dtype(dtype)
        self.n_features = n_features
        self._stats: DatasetStats | None = None
        self._whole: tuple[Any, NDArray[Any], NDArray[np.int64] | None] | None = None

    def __repr__(self) -> str:
        n = len(self.sources)
        names = title(self.sources[0]) if n == 1 else f"{n} files"
        return f"<rows of {names}, {self.size} bytes>"

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Settings that determine the rows, as JSON values; a cache must have the same ones."""

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """Yield all rows, to collect their statistics."""

    @abstractmethod
    def parts(self, n_features: int | None, n_values: int, n_rows: int) -> Iterator[Part]:
        """Yield all rows in parts of whole queries, each valid until the next is requested.

        A part ends with the first query, or row, that brings it to ``n_values`` or ``n_rows``.
        """

    def stats(self) -> DatasetStats:
        """Implement `RowBlocks.stats`, in one scan."""
        if self._stats is None:
            name = title(self.sources[0])
            self._stats = collect_stats(self.pieces(), self.n_features, self.size, name)
        return self._stats

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """Implement `RowBlocks.windows`; an order makes the windows larger, rows stay in order."""
        size = BLOCK_VALUES * (1 if order is None else self.window)
        parts = self.parts(n_features, size, BLOCK_ROWS * size // BLOCK_VALUES)
        for number, part in enumerate(parts):
            rows = as_rows(part.X, nan=self.allows_nan)
            yield Window(rows, part.labels, part.queries, number, part.bytes_read)

    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """Implement `RowBlocks.unchecked`."""
        for source in self.sources:
            unscaled = copy(self)
            unscaled.sources = [source]
            for part in unscaled.parts(self.n_features, BLOCK_VALUES, BLOCK_ROWS):
                yield title(source), part.X

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.outline`, of rows that are then in memory."""
        _, labels, queries = self.whole()
        return labels, queries

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.whole`, read into memory by the first call."""
        if self._whole is None:
            values: list[NDArray[Any]] = []
            columns: list[NDArray[Any]] = []
            sizes: list[NDArray[Any]] = []  # stored values of each row
            labels: list[NDArray[np.float64]] = []
            queries: list[NDArray[np.int64]] = []
            n_features = n_queries = 0
            for part in self.parts(self.n_features, BLOCK_VALUES, BLOCK_ROWS):
                # A part is valid until the next one.
                values.append(part.X.data.copy())
                columns.append(part.X.indices.astype(np.int32))
                sizes.append(np.diff(part.X.indptr))
                labels.append(part.labels.copy())
                if part.queries is not None:
                    queries.append(n_queries + part.queries)
                    n_queries = int(queries[-1][-1]) + 1
                n_features = max(n_features, part.X.shape[1])
            if not labels:
                raise ValueError(f"{title(self.sources[0])} has no rows")
            starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes), dtype=np.int64)])
            X = csr_in_place(np.concatenate(values), np.concatenate(columns), starts, n_features)
            query_ids = np.concatenate(queries) if queries else None
            self._whole = X, np.concatenate(labels), query_ids
        return self._whole
