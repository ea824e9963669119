"""Rows turned into binned columns, in which the best stump is searched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import columns as kernels
from rankcore._ext.columns import Columns
from rankcore._ext.rows import Rows

# Values that are laid out at a time: what is held beside the columns while they are made.
BLOCK_VALUES = 1 << 18
# Bins whose codes fit a byte, with one more for missing values.
MAX_BINS = 255
# Rows have 32-bit numbers in columns.
MAX_ROWS = 2**31 - 1


class Binning:
    """Binned columns of some rows, and the way back to thresholds.

    Parameters
    ----------
    rows : Rows
    taken : ndarray of int64, shape (n_taken,)
        The rows to bin, in the order in which the columns shall have them.
    max_bins : int or None
        At most 255; None for a bin for each distinct value.
    zero_missing : bool
        Whether 0 is missing, as NaN is.

    Attributes
    ----------
    columns : Columns
    n_entries : ndarray of int64, shape (n_features,), or None
        Values stored in each column of sparse rows.
    n_bins, zero_bin : ndarray of int32, shape (n_features,)
        Bins of the present values, and the code of 0.
    has_missing : ndarray of uint8, shape (n_features,)

    Notes
    -----
    5 bytes for each value of sparse rows, 1 for each of dense ones (4 more without ``max_bins``).
    """

    def __init__(
        self, rows: Rows, taken: NDArray[np.int64], max_bins: int | None, zero_missing: bool
    ) -> None:
        self.rows, self.taken = rows, taken
        n, d = taken.size, rows.n_features
        if n > MAX_ROWS:
            raise ValueError(f"boosting takes {MAX_ROWS} rows at most; found {n} to compare")
        sparse = rows.columns is not None
        counts = np.zeros(d, dtype=np.int64) if sparse else np.full(d, n, dtype=np.int64)
        if sparse:
            kernels.count(rows, taken, counts)
        bounds = np.concatenate([[0], np.cumsum(counts)])
        codes = np.empty(bounds[-1], dtype=np.int32 if max_bins is None else np.uint8)
        places = np.empty(bounds[-1], dtype=np.int32) if sparse else None
        self.n_bins = np.empty(d, dtype=np.int32)
        self.zero_bin = np.empty(d, dtype=np.int32)
        self.has_missing = np.empty(d, dtype=np.uint8)
        self._places = np.empty(d, dtype=np.int64)
        kept: list[NDArray[np.float64]] = []
        n_kept = 0
        block = max(BLOCK_VALUES, int(bounds[-1]) // 32)
        first = 0
        while first < d:
            last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + block, "right")) - 1)
            here = slice(first, last)
            there = slice(bounds[first], bounds[last])
            offsets = bounds[first : last + 1] - bounds[first]
            values = np.empty(bounds[last] - bounds[first])
            cursors = offsets[:-1].copy()
            kernels.gather(
                rows, taken, first, last, cursors, values, None if places is None else places[there]
            )
            ascending = values.copy()
            kernels.sort(ascending, offsets)
            thresholds = np.empty(values.size // kernels.ENTRIES_KEPT)
            n_here = kernels.encode(
                values,
                ascending,
                offsets,
                n,
                2**30 if max_bins is None else max_bins,
                zero_missing,
                np.empty(2 * int(counts[here].max()) + 1),
                codes[there],
                self.n_bins[here],
                self.zero_bin[here],
                self.has_missing[here],
                thresholds,
                self._places[here],
            )
            self._places[here] += np.where(self._places[here] >= 0, n_kept, 0)
            kept.append(thresholds[:n_here].copy())
            n_kept += n_here
            first = last
        self._thresholds = np.concatenate(kept)
        self.n_entries = counts if sparse else None
        self.columns = Columns(
            n,
            codes,
            self.n_bins,
            self.zero_bin,
            self.has_missing,
            bounds if sparse else None,
            places,
        )

    def threshold(self, feature: int, bin: int) -> float:
        """The threshold below a bin; -inf below the lowest."""
        at = int(self._places[feature])
        if at >= 0 and bin > 0:
            return float(self._thresholds[at + bin - 1])
        return kernels.threshold(self.columns, self.rows, self.taken, feature, bin)
