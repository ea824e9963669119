"""Rows on disk that a scaler transforms in each pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import disk_array
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import as_matrix
from rankcore._core.sources import DatasetStats, RowBlocks, Window
from rankcore.datasets.file_rows import Piece, collect_stats, report_reading


def as_it_takes(scaler: Any, X: Any) -> Any:
    """Return a matrix that a scaler accepts: dense if it centres columns, otherwise sparse."""
    moves = getattr(scaler, "with_mean", False) or type(scaler).__name__ == "MinMaxScaler"
    return X.toarray() if moves and hasattr(X, "toarray") else X


def fit_scaler(scaler: Any, blocks: RowBlocks) -> None:
    """Fit a scaler to rows on disk: MaxAbsScaler from their statistics, others in one scan."""
    stats = blocks.stats()
    if type(scaler).__name__ == "MaxAbsScaler":
        scaler.fit(stats.magnitudes[None].astype(blocks.dtype))
        scaler.n_samples_seen_ = stats.n_rows
    else:
        n_rows = 0
        for window in blocks.windows(stats.n_features, None):
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
        self._blocks = blocks
        self._stats: DatasetStats | None = None
        self.n_features = int(scaler.n_features_in_)
        if blocks.n_features is not None and blocks.n_features != self.n_features:
            raise ValueError(
                f"the scaler was fitted to {self.n_features} features; {blocks!r} have "
                f"{blocks.n_features} features"
            )
        self.size = blocks.size
        self.dtype = blocks.dtype
        self._nameless = copy(scaler)
        self._nameless.__dict__.pop("feature_names_in_", None)
        if blocks.feature_names is not None:
            scaler.feature_names_in_ = blocks.feature_names

    def __repr__(self) -> str:
        return f"{self._blocks!r} scaled by {self._nameless}"

    @property
    def has_stats(self) -> bool:  # type: ignore[override]
        """Whether the statistics of the rows before scaling are known."""
        return self._blocks.has_stats

    def stats(self) -> DatasetStats:
        """Implement `RowBlocks.stats`, in one scan, because scaling changes the scale."""
        if self._stats is None:
            pieces = self._pieces(self._blocks.stats())
            self._stats = collect_stats(pieces, self.n_features, self.size, repr(self))
        return self._stats

    def _pieces(self, stats: DatasetStats) -> Iterator[Piece]:
        for window in self.windows(stats.n_features, None):
            values = window.rows.arrays[0]
            columns = window.rows.columns
            if columns is None:
                columns = np.tile(np.arange(stats.n_features, dtype=np.int32), len(values))
            yield Piece(window.labels, columns, values.ravel(), stats.in_queries, window.done)

    def windows(self, n_features: int, order: tuple[int, int] | None) -> Iterator[Window]:
        """Implement `RowBlocks.windows`."""
        blocks = copy(self._blocks)
        blocks.allows_nan = self.allows_nan
        for window in blocks.windows(n_features, order):
            scaled = self.scaled(as_matrix(window.rows))
            yield replace(window, rows=as_rows(scaled, nan=self.allows_nan))

    def unchecked(self) -> Iterator[tuple[str, Any]]:
        """Implement `RowBlocks.unchecked`: not scaled."""
        return self._blocks.unchecked()

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.outline`."""
        return self._blocks.outline()

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """Implement `RowBlocks.whole` by a memory-mapped temporary file of scaled values."""
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
        """Scale other rows; the result is dense if the scaler centres."""
        return self._nameless.transform(as_it_takes(self._nameless, X))
