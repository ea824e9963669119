"""Scaled rows on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.kernels import as_matrix
from rankcore._core.sources import Facts, RowBlocks, Window
from rankcore._ext.held_signals import raise_signals
from rankcore.datasets.file_rows import Piece, report_reading, survey


def as_it_takes(scaler: Any, X: Any) -> Any:
    """A sparse matrix, or a dense one for a scaler that shifts zeros."""
    moves = getattr(scaler, "with_mean", False) or type(scaler).__name__ == "MinMaxScaler"
    return X.toarray() if moves else X


def fit_scaler(scaler: Any, blocks: RowBlocks) -> None:
    """Fit a scaler to rows on disk: MaxAbsScaler from their facts, others in one scan."""
    known = blocks.facts()
    if type(scaler).__name__ == "MaxAbsScaler":
        scaler.fit(known.magnitudes[None].astype(blocks.dtype))
        scaler.n_samples_seen_ = known.n_rows
    else:
        n_rows = 0
        for window in blocks.windows(known.n_features, None, 0):
            raise_signals()
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
        self._blocks, self._facts = blocks, None
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
    def surveyed(self) -> bool:  # type: ignore[override]
        """As `RowBlocks.surveyed`."""
        return self._blocks.surveyed

    def facts(self) -> Facts:
        """As `RowBlocks.facts`, in one scan, because scaling changes the scale."""
        if self._facts is None:
            pieces = self._pieces(self._blocks.facts())
            self._facts = survey(pieces, self.n_features, self.size, repr(self))
        return self._facts

    def _pieces(self, known: Facts) -> Iterator[Piece]:
        for window in self.windows(known.n_features, None, 0):
            values, columns = window.rows.arrays[0], window.rows.columns
            if columns is None:
                columns = np.tile(np.arange(known.n_features, dtype=np.int32), len(values))
            yield window.labels, columns, values.ravel(), known.in_queries, window.done

    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """As `RowBlocks.windows`."""
        for window in self._blocks.windows(n_features, order, first):
            yield replace(window, rows=as_rows(self.scaled(as_matrix(window.rows))))

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.outline`."""
        return self._blocks.outline()

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """As `RowBlocks.whole`: scaled values are written to a temporary file and memory-mapped."""
        X, labels, queries = self._blocks.whole()
        dense = getattr(self._nameless, "with_mean", False)
        shape = X.shape if dense else X.data.shape
        with tempfile.TemporaryFile(prefix="rankcore") as file:
            kept: Any = np.memmap(file, self.dtype, "w+", shape=shape)
        first = 0
        for window in self.windows(X.shape[1], None, 0):
            values = window.rows.arrays[0]
            kept[first : first + len(values)] = values
            first += len(values)
        if dense:
            return np.asarray(kept), labels, queries
        X.data = np.asarray(kept)
        return X, labels, queries

    def scaled(self, X: Any) -> Any:
        """Other rows, scaled; dense if the scaler centres."""
        return self._nameless.transform(as_it_takes(self._nameless, X))
