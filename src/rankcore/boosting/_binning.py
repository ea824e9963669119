"""Binned columns of rows in memory, in which splits are searched.

`Bins` are the columns as codes of one byte (four without ``max_bins``), with the number of bins of
each; `Binning` computes them with the kernel `rankcore._ext.binning`. Those of rows on disk or on
workers are in `_streamed_bins`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import Allocate, allocator_beside, release
from rankcore._core.numbers import Floats
from rankcore._core.threads import for_each
from rankcore._ext import binning as kernels
from rankcore._ext.binning import Columns
from rankcore._ext.rows import Rows

# Values that are sorted at a time, and the least that are gathered.
BLOCK_VALUES = 1 << 18
# Number of bins whose codes fit a byte, with one more code for missing values.
MAX_BINS = 255
# Columns number rows by 32-bit integers.
MAX_ROWS = 2**31 - 1


class Bins:
    """Binned columns, as searches for weak rankers read them."""

    columns: Columns
    n_entries: NDArray[np.int64] | None  # values stored in each column of sparse rows
    n_bins: NDArray[np.int32]  # bins of each column, without that of missing values
    zero_bin: NDArray[np.int32]  # the code of 0
    has_missing: NDArray[np.uint8]
    narrow: bool  # whether codes have one byte
    empty: Allocate  # of arrays of the size of the columns: in memory, or on disk
    categories: dict[int, NDArray[np.int64]]  # of categorical columns: the category of each bin

    @property
    def is_categorical(self) -> NDArray[np.uint8] | None:
        """Return the mask of categorical columns; None if there are none."""
        if not self.categories:
            return None
        mask = np.zeros(self.n_bins.size, dtype=np.uint8)
        mask[list(self.categories)] = 1
        return mask

    @abstractmethod
    def threshold(self, feature: int, bin: int) -> float:
        """Return the threshold at the lower edge of a bin; -inf for the lowest bin."""


class Binning(Bins):
    """Binned columns of the rows ``taken``, in this order, with their thresholds.

    ``max_bins`` is at most 255; None: one bin per distinct value. ``categorical`` maps the columns
    that hold categories (integers, below 0 if missing) to their names in error messages. The bins
    do not depend on ``n_jobs``, the number of threads that share the columns. Memory: 5 bytes per
    value of sparse rows, 1 per value of dense rows (4 more without ``max_bins``); on disk if the
    rows are in a mapped file. ``empty`` allocates arrays of this kind.
    """

    def __init__(
        self,
        rows: Rows,
        taken: NDArray[np.int64],
        max_bins: int | None,
        zero_missing: bool,
        categorical: Mapping[int, str] | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.rows, self.taken = rows, taken
        self.categories = {}
        self._categorical = categorical or {}
        n, d = taken.size, rows.n_features
        if n > MAX_ROWS:
            raise ValueError(f"boosting supports at most {MAX_ROWS} rows; got {n}")
        sparse = rows.columns is not None
        counts = np.zeros(d, dtype=np.int64) if sparse else np.full(d, n, dtype=np.int64)
        if sparse:
            kernels.count_entries(rows, taken, counts)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        self.empty = allocator_beside(rows.arrays[0])
        codes = self.empty(bounds[-1], np.int32 if max_bins is None else np.uint8)
        places = self.empty(bounds[-1], np.int32) if sparse else None
        self.n_entries = counts if sparse else None
        self.narrow = max_bins is not None
        self.n_bins = np.empty(d, dtype=np.int32)
        self.zero_bin = np.empty(d, dtype=np.int32)
        self.has_missing = np.empty(d, dtype=np.uint8)
        # Index of the first threshold of each column in `_thresholds`; -1 if they are not stored.
        self._places = np.empty(d, dtype=np.int64)
        self._max_bins, self._zero_missing = max_bins or 2**30, zero_missing
        # A few columns at a time, so that rows are read at most about 32 times.
        blocks = list(blocks_of(bounds, max(BLOCK_VALUES, int(bounds[-1]) // 32)))
        kept: list[Floats] = [np.empty(0)] * len(blocks)

        def encode(number: int) -> None:
            first, last = blocks[number]
            part = slice(bounds[first], bounds[last])
            offsets = bounds[first : last + 1] - bounds[first]
            part_places = None if places is None else places[part]
            kept[number] = self._encode(slice(first, last), offsets, codes[part], part_places)
            release(codes[part], part_places)

        for_each(encode, range(len(blocks)), n_jobs)
        self._thresholds = self._joined(blocks, kept)
        self.columns = Columns(
            n,
            codes,
            self.n_bins,
            self.zero_bin,
            self.has_missing,
            bounds if sparse else None,
            places,
        )

    def _joined(self, blocks: list[tuple[int, int]], kept: list[Floats], first: int = 0) -> Floats:
        """Join the thresholds of successive blocks of columns, numbered from ``first``."""
        n_kept = 0
        for (start, stop), thresholds in zip(blocks, kept, strict=True):
            places = self._places[first + start : first + stop]
            places += np.where(places >= 0, n_kept, 0)
            n_kept += thresholds.size
        return np.concatenate(kept)

    def _encode(
        self,
        some: slice,
        offsets: NDArray[np.int64],
        codes: NDArray[np.uint8] | NDArray[np.int32],
        places: NDArray[np.int32] | None,
    ) -> Floats:
        """Gather, bin and encode some columns; return the thresholds to store."""
        values = np.empty(codes.size)
        kernels.gather_columns(
            self.rows, self.taken, some.start, some.stop, offsets[:-1].copy(), values, places
        )
        blocks, kept = list(blocks_of(offsets, BLOCK_VALUES)), []
        for first, last in blocks:
            columns = slice(some.start + first, some.start + last)
            part = slice(offsets[first], offsets[last])
            bounds = offsets[first : last + 1] - offsets[first]
            kept.append(self._cut(columns, bounds, values[part], codes[part]))
        return self._joined(blocks, kept, some.start)

    def _cut(
        self,
        columns: slice,
        offsets: NDArray[np.int64],
        values: Floats,
        codes: NDArray[np.uint8] | NDArray[np.int32],
    ) -> Floats:
        """Bin and encode the values of some columns; return the thresholds to store."""
        self._number_categories(columns, offsets, values)
        ascending = values.astype(self.rows.arrays[0].dtype)  # float32 sorts in half the time
        for first, last in pairwise(offsets.tolist()):
            ascending[first:last].sort()
        ascending = ascending.astype(np.float64, copy=False)
        thresholds = np.empty(values.size // kernels.ENTRIES_KEPT)
        room = np.empty(2 * int(np.diff(offsets).max()) + 1)
        n_kept = kernels.encode_columns(
            values,
            ascending,
            offsets,
            self.taken.size,
            self._max_bins,
            self._zero_missing,
            room,
            codes,
            self.n_bins[columns],
            self.zero_bin[columns],
            self.has_missing[columns],
            thresholds,
            self._places[columns],
        )
        return thresholds[:n_kept].copy()

    def _number_categories(
        self, columns: slice, offsets: NDArray[np.int64], values: Floats
    ) -> None:
        """Collect the categories of some columns; values below 0 become NaN."""
        for column, name in self._categorical.items():
            if not columns.start <= column < columns.stop:
                continue
            at = column - columns.start
            part = values[offsets[at] : offsets[at + 1]]
            part[part < 0] = np.nan
            categories = np.unique(part[part == part]).astype(np.int64)
            if part.size < self.taken.size:  # of sparse rows
                categories = np.union1d(categories, [0])
            if categories.size > self._max_bins:
                raise ValueError(
                    f"categorical column {name} has {categories.size} categories in the training "
                    "rows, "
                    f"more than max_bins={self._max_bins}: set max_bins=None"
                )
            self.categories[column] = categories

    def threshold(self, feature: int, bin: int) -> float:
        at = int(self._places[feature])
        if at >= 0 and bin > 0:
            return float(self._thresholds[at + bin - 1])
        return kernels.threshold(self.columns, self.rows, self.taken, feature, bin)


def blocks_of(bounds: NDArray[np.int64], n_values: int) -> Iterator[tuple[int, int]]:
    """Divide columns into blocks of at most ``n_values`` values, or of one column."""
    first, d = 0, bounds.size - 1
    while first < d:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + n_values, "right")) - 1)
        yield first, last
        first = last
