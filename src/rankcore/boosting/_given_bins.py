"""Columns binned by given thresholds, from rows that come in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.sources import RowBlocks
from rankcore._ext.columns import Columns
from rankcore._ext.given_bins import place
from rankcore._ext.held_signals import raise_signals
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Bins
from rankcore.boosting._value_groups import Cuts, ValueGroups, gathered
from rankcore.progress import Progress, report


class GivenBins(Bins):
    """Binned columns without the rows they were built from.

    Parameters
    ----------
    parts : iterable of (Rows, ndarray of int64, ndarray of int32)
        Rows, which of them to take, and which row of the columns each of these is. Every row of the
        columns comes once; those of sparse rows in any order.
    n_rows : int
        Rows of the columns.
    entries : ndarray of int64, shape (n_features,), or None
        Values stored in each column; None if rows are dense.
    cuts : Cuts

    Attributes
    ----------
    columns, n_entries, n_bins, zero_bin, has_missing, narrow
        See `Bins`.
    n_rows : int

    Notes
    -----
    5 bytes for each value of sparse rows, 1 for each of dense ones.
    """

    narrow = True

    def __init__(
        self,
        parts: Iterable[tuple[Rows, NDArray[np.int64], NDArray[np.int32]]],
        n_rows: int,
        entries: NDArray[np.int64] | None,
        cuts: Cuts,
    ) -> None:
        self._cuts, self.n_entries, self.n_rows = cuts, entries, n_rows
        self.n_bins, self.zero_bin, self.has_missing = cuts.n_bins, cuts.zero_bin, cuts.has_missing
        bounds = cursors = places = None
        if entries is None:
            codes = np.empty(n_rows * self.n_bins.size, dtype=np.uint8)
        else:
            bounds = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
            cursors = bounds[:-1].copy()
            codes = np.empty(bounds[-1], dtype=np.uint8)
            places = np.empty(bounds[-1], dtype=np.int32)
        last, ascending = -1, True
        for rows, taken, where in parts:
            if where.size:
                ascending &= bool((np.diff(where, prepend=last) > 0).all())
                last = int(where[-1])
            layout = (cuts.values, cuts.bounds, cuts.zero_missing, codes, cursors, places)
            place(rows, taken, where, n_rows, *layout)
        if places is not None and bounds is not None and not ascending:
            for f in range(self.n_bins.size):
                part = slice(bounds[f], bounds[f + 1])
                order = np.argsort(places[part])
                places[part], codes[part] = places[part][order], codes[part][order]
        self._arrays = codes, bounds, places
        self._bind()

    def _bind(self) -> None:
        codes, bounds, places = self._arrays
        kinds = self.n_bins, self.zero_bin, self.has_missing
        self.columns = Columns(self.n_rows, codes, *kinds, bounds, places)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "columns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    @property
    def n_bytes(self) -> int:
        """Memory that the columns take."""
        return sum(array.nbytes for array in self._arrays if array is not None)

    def threshold(self, feature: int, bin: int) -> float:
        """The threshold below a bin; -inf below the lowest."""
        return self._cuts.threshold(feature, bin)


class BlockRows:
    """Rows on disk, of which a fit keeps only bins."""

    def __init__(self, blocks: RowBlocks, n_rows: int) -> None:
        self.blocks, self.n_rows = blocks, n_rows
        self.n_features = blocks.facts().n_features

    def binned(self, taken: NDArray[np.int64], max_bins: int, zero_missing: bool) -> GivenBins:
        """Columns of some rows, in the order given; reads all twice.

        Thresholds are found in the first reading, codes are written in the second.
        """
        places = np.full(self.n_rows, -1, dtype=np.int32)
        places[taken] = np.arange(taken.size, dtype=np.int32)

        def parts() -> Iterator[tuple[Rows, NDArray[np.int64], NDArray[np.int32]]]:
            first = 0
            for window in self.blocks.windows(self.n_features, None, 0):
                raise_signals()
                last = first + window.rows.n_rows
                here = places[first:last]
                found = np.flatnonzero(here >= 0)
                found = found[np.argsort(here[found])]
                yield window.rows, found, here[found]
                done, total = min(window.done, self.blocks.size), max(self.blocks.size, 1)
                report(Progress(0, 0, done, total, float(last), "rows", "bytes"))
                first = last

        groups = gathered((ValueGroups.of(rows, at) for rows, at, _ in parts()), self.n_features)
        cuts = groups.cuts(max_bins, zero_missing)
        # With missing values, sums of dense columns would be rounded otherwise.
        full = (groups.entries == taken.size).all() and not cuts.has_missing.any()
        return GivenBins(parts(), taken.size, None if full else groups.entries, cuts)
