"""Rows of files of any format, read again in each pass, a window at a time; and scaled rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import disk_array
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import as_matrix, csr_in_place
from rankcore._core.sources import DatasetStats, RowBlocks, StatsCollector, Window
from rankcore.datasets.streams import Source, title
from rankcore.progress import Progress, report

# Stored values of a block of rows: 3 MiB as CSR of float64, which fit into the CPU's caches.
BLOCK_VALUES = 1 << 18
# Maximum rows of a block with few values.
BLOCK_ROWS = 1 << 16
# Blocks whose rows are shuffled together.
WINDOW = 8

# Rows of whole queries: a CSR matrix, labels, the index of each row's query within the part (None
# without queries), and the number of bytes read up to their end.
Part: TypeAlias = tuple[Any, NDArray[np.float64], NDArray[np.int64] | None, int]
# Rows, possibly with incomplete queries: labels, stored columns and values, whether
# there are queries, and the number of bytes read up to their end.
Piece: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any], bool, int]


def report_reading(done: int, size: int, n_rows: int) -> None:
    """Report the progress of a scan."""
    report(Progress(0, 0, min(done, size), size, n_rows, "rows", "bytes"))


def collect_stats(
    pieces: Iterable[Piece], n_features: int | None, size: int, name: str
) -> DatasetStats:
    """Collect the statistics of all rows, in one scan of ``size`` bytes."""
    collector = StatsCollector(n_features)
    in_queries = False
    n_rows = 0
    for labels, columns, values, has_qid, done in pieces:
        in_queries = has_qid
        collector.add(labels, columns, values)
        n_rows += labels.size
        report_reading(done, size, n_rows)
    return collector.finish(in_queries, name)


class FileRows(RowBlocks):
    """Rows of one or more files; subclasses read a format.

    Binary files among the sources can be read only once, by `parts`.
    """

    has_stats = False

    def __init__(
        self, sources: Sequence[Source], size: int, dtype: Any, n_features: int | None, window: int
    ) -> None:
        self.sources, self.size, self.window = list(sources), size, window
        self.dtype, self.n_features = np.dtype(dtype), n_features
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
        """All rows, to collect their statistics."""

    @abstractmethod
    def parts(self, n_features: int | None, n_values: int, n_rows: int) -> Iterator[Part]:
        """All rows in parts of whole queries, each valid until the next is requested.

        A part ends with the first query, or row, that brings it to ``n_values`` or ``n_rows``.
        """

    def stats(self) -> DatasetStats:
        """As `RowBlocks.stats`, in one scan."""
        if self._stats is None:
            name = title(self.sources[0])
            self._stats = collect_stats(self.pieces(), self.n_features, self.size, name)
        return self._stats

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """As `RowBlocks.windows`; with an order, rows come in file order, in larger windows."""
        size = BLOCK_VALUES * (1 if order is None else self.window)
        parts = self.parts(n_features, size, BLOCK_ROWS * size // BLOCK_VALUES)
        for number, (X, labels, queries, done) in enumerate(parts):
            yield Window(as_rows(X), labels, queries, number, done)

    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """As `RowBlocks.unchecked`."""
        for source in self.sources:
            one = copy(self)
            one.sources = [source]
            for X, *_ in one.parts(self.n_features, BLOCK_VALUES, BLOCK_ROWS):
                yield title(source), X

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.outline`, of rows that are then in memory."""
        _, labels, queries = self.whole()
        return labels, queries

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.whole`, read into memory by the first call."""
        if self._whole is None:
            listed: list[list[NDArray[Any]]] = [[], [], [], [], []]
            n_features = n_queries = 0
            for X, labels, queries, _ in self.parts(self.n_features, BLOCK_VALUES, BLOCK_ROWS):
                found = [X.data, X.indices, np.diff(X.indptr), labels]
                if queries is not None:
                    found.append(n_queries + queries)
                    n_queries = int(found[-1][-1]) + 1
                n_features = max(n_features, X.shape[1])
                # A part is valid until the next one.
                for one, new in zip(listed, found, strict=False):
                    one.append(np.copy(new))
            if not listed[3]:
                raise ValueError(f"{title(self.sources[0])} has no rows")
            data, columns, sizes, labels = (np.concatenate(one) for one in listed[:4])
            starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            X = csr_in_place(data, columns.astype(np.int32, copy=False), starts, n_features)
            self._whole = X, labels, np.concatenate(listed[4]) if listed[4] else None
        return self._whole


# ------------------------------------------------------------------------ scaled rows


def as_it_takes(scaler: Any, X: Any) -> Any:
    """A sparse matrix, or a dense one for a scaler that shifts zeros."""
    moves = getattr(scaler, "with_mean", False) or type(scaler).__name__ == "MinMaxScaler"
    return X.toarray() if moves else X


def fit_scaler(scaler: Any, blocks: RowBlocks) -> None:
    """Fit a scaler to rows on disk: MaxAbsScaler from their statistics, others in one scan."""
    known = blocks.stats()
    if type(scaler).__name__ == "MaxAbsScaler":
        scaler.fit(known.magnitudes[None].astype(blocks.dtype))
        scaler.n_samples_seen_ = known.n_rows
    else:
        n_rows = 0
        for window in blocks.windows(known.n_features, None):
            # Sums of float32 values would be rounded to float32 after each block.
            X = as_matrix(window.rows).astype(np.float64, copy=False)
            scaler.partial_fit(as_it_takes(scaler, X))
            n_rows += window.rows.n_rows
            report_reading(window.done, blocks.size, n_rows)


class ScaledRows(RowBlocks):
    """Rows on disk, scaled by a fitted scaler in each pass.

    The scaler has the feature names, and the scaled rows have none, as in a pipeline.
    """

    def __init__(self, blocks: RowBlocks, scaler: Any) -> None:
        self._blocks, self._stats = blocks, None
        self.n_features = int(scaler.n_features_in_)
        if blocks.n_features is not None and blocks.n_features != self.n_features:
            raise ValueError(
                f"the scaler was fitted to {self.n_features} features; {blocks!r} have "
                f"{blocks.n_features} features"
            )
        self.size, self.dtype = blocks.size, blocks.dtype
        self._nameless = copy(scaler)
        self._nameless.__dict__.pop("feature_names_in_", None)
        if blocks.feature_names is not None:
            scaler.feature_names_in_ = blocks.feature_names

    def __repr__(self) -> str:
        return f"{self._blocks!r} scaled by {self._nameless}"

    @property
    def has_stats(self) -> bool:  # type: ignore[override]
        """As `RowBlocks.has_stats`."""
        return self._blocks.has_stats

    def stats(self) -> DatasetStats:
        """As `RowBlocks.stats`, in one scan, because scaling changes the scale."""
        if self._stats is None:
            pieces = self._pieces(self._blocks.stats())
            self._stats = collect_stats(pieces, self.n_features, self.size, repr(self))
        return self._stats

    def _pieces(self, known: DatasetStats) -> Iterator[Piece]:
        for window in self.windows(known.n_features, None):
            values, columns = window.rows.arrays[0], window.rows.columns
            if columns is None:
                columns = np.tile(np.arange(known.n_features, dtype=np.int32), len(values))
            yield window.labels, columns, values.ravel(), known.in_queries, window.done

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """As `RowBlocks.windows`."""
        for window in self._blocks.windows(n_features, order):
            yield replace(window, rows=as_rows(self.scaled(as_matrix(window.rows))))

    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """As `RowBlocks.unchecked`: not scaled."""
        return self._blocks.unchecked()

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.outline`."""
        return self._blocks.outline()

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.whole`: scaled values are written to a temporary file and memory-mapped."""
        X, labels, queries = self._blocks.whole()
        dense = getattr(self._nameless, "with_mean", False)
        shape = X.shape if dense else X.data.shape
        kept = disk_array(math.prod(shape), self.dtype).reshape(shape)
        first = 0
        for window in self.windows(X.shape[1], None):
            values = window.rows.arrays[0]
            kept[first : first + len(values)] = values
            first += len(values)
        if dense:
            return kept, labels, queries
        X.data = kept
        return X, labels, queries

    def scaled(self, X: Any) -> Any:
        """Other rows, scaled; dense if the scaler centres."""
        return self._nameless.transform(as_it_takes(self._nameless, X))
