"""Binned columns of rows on disk or on workers: thresholds from groups of values, then codes.

`bin_rows` and `scores_of` are for rows in memory and on disk.

Each part of the rows is read twice (kernel `rankcore._ext.streamed_bins`). A column of at most
`MAX_GROUPS` distinct values keeps each value with its count. A column of more keeps groups of
values with the same leading bits, as many bits as leave at most `MAX_GROUPS` groups. The groups
depend only on the set of values. A part has no more distinct values than the whole, so its groups
are never coarser than those of the whole, and merging coarsens them to these. So thresholds do not
depend on how rows are divided into parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.disk_arrays import Allocate, disk_array, release
from rankcore._core.numbers import Floats
from rankcore._core.sources import RowBlocks
from rankcore._ext import binning as kernels
from rankcore._ext.binning import Columns
from rankcore._ext.rows import Rows
from rankcore._ext.streamed_bins import distinct, encode_rows, find_edges, merge_groups
from rankcore.boosting._binning import MAX_BINS, Binning, Bins, blocks_of
from rankcore.progress import Progress, report

# Maximum number of groups of a column: 32 for each of 255 bins. It exceeds 2**12, so that values of
# a group have the same sign and exponent.
MAX_GROUPS = 1 << 13
# Values that are sorted at a time.
SORTED = 1 << 23
# Groups that are merged at a time.
MERGED = 1 << 17
# Values of dense rows that are gathered at a time.
GATHERED = 1 << 19
# Values after which the pages of columns on disk are released.
RELEASED = 1 << 23


@dataclass(frozen=True)
class BinEdges:
    """Thresholds of columns."""

    values: Floats  # column by column, ascending
    bounds: NDArray[np.int64]  # (n_features + 1,)
    zero_bin: NDArray[np.int32]  # (n_features,): the code of 0
    has_missing: NDArray[np.uint8]  # (n_features,)
    zero_missing: bool

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Bins of each column, without that of missing values."""
        return (np.diff(self.bounds) + 1).astype(np.int32)

    def threshold(self, feature: int, bin: int) -> float:
        return float(self.values[self.bounds[feature] + bin - 1]) if bin > 0 else -np.inf


@dataclass(frozen=True)
class ValueGroups:
    """Groups of the values of columns."""

    n_rows: int
    # (n_features,): numbers of values stored in each column, of zeros and of NaN among them.
    entries: NDArray[np.int64]
    zeros: NDArray[np.int64]
    missing: NDArray[np.int64]
    bounds: NDArray[np.int64]  # (n_features + 1,): offsets of the groups of each column
    # Minimum and maximum of each group, ascending within a column; no 0, no NaN.
    low: Floats
    high: Floats
    counts: NDArray[np.int64]
    shifts: NDArray[np.int64]  # (n_features,): number of trailing bits that groups ignore

    OF_COLUMNS = ("entries", "zeros", "missing", "shifts")
    OF_GROUPS = ("low", "high", "counts")

    @classmethod
    def of(cls, rows: Rows, taken: NDArray[np.int64]) -> ValueGroups:
        """Group the values of some rows. O(values * log(rows))."""
        per_row = max(1, rows.n_values // max(rows.n_rows, 1))
        step = max(1, SORTED // per_row)
        parts = [_sorted(rows, taken[at : at + step]) for at in range(0, taken.size, step)]
        return cls.joined(parts) if parts else cls.none(rows.n_features)

    @staticmethod
    def count(rows: Rows, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the values stored in each column of some rows."""
        if rows.columns is None:
            return np.full(rows.n_features, taken.size, dtype=np.int64)
        counts = np.zeros(rows.n_features, dtype=np.int64)
        kernels.count_entries(rows, taken, counts)
        return counts

    @classmethod
    def none(cls, n_features: int) -> ValueGroups:
        """Return the groups of no rows."""
        zero = np.zeros(n_features, dtype=np.int64)
        bounds, values = np.zeros(n_features + 1, dtype=np.int64), np.zeros(0)
        counts = np.zeros(0, dtype=np.int64)
        return cls(0, zero, zero, zero, bounds, values, values, counts, zero)

    @classmethod
    def joined(cls, parts: Sequence[ValueGroups]) -> ValueGroups:
        """Merge the groups of all parts of the rows."""
        if len(parts) == 1:
            return parts[0]
        # A few columns at a time, which saves memory.
        sizes: NDArray[np.int64] = np.sum([part.bounds for part in parts], axis=0)
        pieces = [
            cls._merged([part._some(first, last) for part in parts])
            for first, last in blocks_of(sizes, MERGED)
        ]
        return pieces[0] if len(pieces) == 1 else cls.side_by_side(pieces)

    def _some(self, first: int, last: int) -> ValueGroups:
        """Return the groups of the columns first .. last - 1."""
        bounds = self.bounds[first : last + 1]
        arrays = {name: getattr(self, name)[first:last] for name in self.OF_COLUMNS}
        arrays |= {name: getattr(self, name)[bounds[0] : bounds[-1]] for name in self.OF_GROUPS}
        return replace(self, bounds=bounds - bounds[0], **arrays)

    @classmethod
    def _merged(cls, parts: Sequence[ValueGroups]) -> ValueGroups:
        """Merge the groups of all parts, as `joined`."""
        columns = np.concatenate([_columns(part.bounds) for part in parts])
        groups = _concatenated(parts, cls.OF_GROUPS)
        order = np.lexsort((groups["low"], columns))
        arrays = {name: array[order] for name, array in groups.items()}
        for name in ("n_rows", "entries", "zeros", "missing", "bounds"):
            arrays[name] = sum(getattr(part, name) for part in parts)
        arrays["shifts"] = np.max([part.shifts for part in parts], axis=0)
        return cls(**arrays)._coarsened()

    def _coarsened(self) -> ValueGroups:
        """Merge groups of the same leading bits; overwrites the arrays."""
        low, high, counts = self.low, self.high, self.counts
        merge_groups(low, high, counts, self.bounds, self.shifts, MAX_GROUPS)
        n = int(self.bounds[-1])
        # Copies, so that the longer arrays are freed.
        return replace(self, low=low[:n].copy(), high=high[:n].copy(), counts=counts[:n].copy())

    @classmethod
    def side_by_side(cls, parts: Sequence[ValueGroups]) -> ValueGroups:
        """Concatenate the columns of all parts, which have the same rows."""
        sizes = np.concatenate([np.diff(part.bounds) for part in parts])
        arrays = _concatenated(parts, cls.OF_COLUMNS + cls.OF_GROUPS)
        return cls(parts[0].n_rows, bounds=np.concatenate([[0], np.cumsum(sizes)]), **arrays)

    def edges(self, max_bins: int, zero_missing: bool) -> BinEdges:
        """Find thresholds between groups, by the rule of fits in memory."""
        implied = self.entries < self.n_rows
        zero = ((self.zeros > 0) | implied) & (not zero_missing)
        values = np.empty(self.low.size + self.entries.size)
        bounds = np.empty_like(self.bounds)
        find_edges(
            self.low,
            self.high,
            self.counts,
            self.bounds,
            zero.astype(np.uint8),
            max_bins,
            values,
            bounds,
        )
        values = values[: bounds[-1]].copy()
        missing = self.missing > 0
        if zero_missing:
            missing |= (self.zeros > 0) | implied
            zero_bin = np.diff(bounds) + 1
        else:
            zero_bin = np.bincount(_columns(bounds)[values < 0], minlength=implied.size)
        return BinEdges(
            values, bounds, zero_bin.astype(np.int32), missing.astype(np.uint8), zero_missing
        )


def _concatenated(parts: Sequence[ValueGroups], names: tuple[str, ...]) -> dict[str, Any]:
    """Concatenate the arrays of all parts, by name."""
    return {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}


def merge_parts(parts: Iterable[ValueGroups], n_features: int) -> ValueGroups:
    """Merge the groups of many parts of the rows, few of which are in memory at a time."""
    held = [ValueGroups.none(n_features)]
    for part in parts:
        held.append(part)
        # Parts are merged when they have as many groups as the total: each is sorted few times.
        if sum(group.low.size for group in held[1:]) > max(held[0].low.size, SORTED // 16):
            held = [ValueGroups.joined(held)]
    return ValueGroups.joined(held)


def _sorted(rows: Rows, taken: NDArray[np.int64]) -> ValueGroups:
    """Group the values of rows by sorting a copy of them."""
    entries = ValueGroups.count(rows, taken)
    d = rows.n_features
    # Some columns of dense rows at a time, which fit a cache; sparse rows are read once.
    step = d if rows.columns is not None else max(1, GATHERED // max(taken.size, 1))
    parts = [
        _sorted_columns(rows, taken, entries[first : first + step], first)
        for first in range(0, d, step)
    ]
    return parts[0] if len(parts) == 1 else ValueGroups.side_by_side(parts)


def _sorted_columns(
    rows: Rows, taken: NDArray[np.int64], entries: NDArray[np.int64], first: int
) -> ValueGroups:
    """Group the values of some columns."""
    d = entries.size
    bounds = np.concatenate([[0], np.cumsum(entries)])
    values = np.empty(bounds[-1])
    kernels.gather_columns(rows, taken, first, first + d, bounds[:-1].copy(), values, None)
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values[start:stop].sort()  # NaN last
    counts = np.empty(values.size, dtype=np.int64)
    zeros, missing = np.empty((2, d), dtype=np.int64)
    distinct(values, counts, bounds, zeros, missing)
    n = int(bounds[-1])
    low, counts = values[:n], counts[:n]
    shifts = np.zeros(d, dtype=np.int64)
    groups = ValueGroups(
        taken.size, entries, zeros, missing, bounds, low, low.copy(), counts, shifts
    )
    return groups._coarsened()


def _columns(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the column of each item."""
    return np.repeat(np.arange(bounds.size - 1, dtype=np.int32), np.diff(bounds))


class StreamedBins(Bins):
    """Binned columns without the rows they were built from.

    Each part is a triple: rows, indices of the rows to take, and their row numbers in the columns.
    Every row number must occur once, in any order. ``entries`` has the number of values stored in
    each column, None if rows are dense. ``empty`` allocates the columns: 5 bytes per value of
    sparse rows, 1 per value of dense rows.
    """

    narrow = True

    def __init__(
        self,
        parts: Iterable[tuple[Rows, NDArray[np.int64], NDArray[np.int32]]],
        n_rows: int,
        entries: NDArray[np.int64] | None,
        edges: BinEdges,
        empty: Allocate = np.empty,
    ) -> None:
        self._edges, self.n_entries, self.n_rows = edges, entries, n_rows
        self.empty, self.categories = empty, {}
        self.n_bins, self.zero_bin, self.has_missing = (
            edges.n_bins,
            edges.zero_bin,
            edges.has_missing,
        )
        bounds = cursors = places = None
        if entries is None:
            codes = empty(n_rows * self.n_bins.size, np.uint8)
        else:
            bounds = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
            cursors = bounds[:-1].copy()
            codes = empty(bounds[-1], np.uint8)
            places = empty(bounds[-1], np.int32)
        last, ascending, n_placed = -1, True, 0
        for rows, taken, where in parts:
            if where.size:
                ascending &= bool((np.diff(where, prepend=last) > 0).all())
                last = int(where[-1])
            encode_rows(
                rows,
                taken,
                where,
                n_rows,
                edges.values,
                edges.bounds,
                edges.zero_missing,
                codes,
                cursors,
                places,
            )
            n_placed += rows.n_values
            if n_placed > RELEASED:
                release(codes, places)
                n_placed = 0
        if places is not None and bounds is not None and not ascending:
            for f in range(self.n_bins.size):
                part = slice(bounds[f], bounds[f + 1])
                order = np.argsort(places[part])
                places[part], codes[part] = places[part][order], codes[part][order]
        release(codes, places)
        self._arrays = codes, bounds, places
        self._bind()

    def _bind(self) -> None:
        codes, bounds, places = self._arrays
        self.columns = Columns(
            self.n_rows, codes, self.n_bins, self.zero_bin, self.has_missing, bounds, places
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "columns"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    @property
    def n_bytes(self) -> int:
        """Memory used by the columns."""
        return sum(array.nbytes for array in self._arrays if array is not None)

    def threshold(self, feature: int, bin: int) -> float:
        return self._edges.threshold(feature, bin)


class DiskRows:
    """Rows on disk, of which a fit keeps only bins."""

    def __init__(self, blocks: RowBlocks, n_rows: int) -> None:
        self.blocks, self.n_rows = copy(blocks), n_rows
        self.blocks.allows_nan = True
        self.n_features = self.blocks.stats().n_features

    def score(self, model: Any) -> Floats:
        """Return the scores of all rows, in the last axis; reads them once."""
        windows = self.blocks.windows(self.n_features, None)
        return np.concatenate([model.score(window.rows) for window in windows], axis=-1)

    def binned(self, taken: NDArray[np.int64], max_bins: int, zero_missing: bool) -> StreamedBins:
        """Bin the rows ``taken``, in this order.

        Reads all rows twice, for thresholds and for codes. The columns are on disk.
        """
        places = np.full(self.n_rows, -1, dtype=np.int32)
        places[taken] = np.arange(taken.size, dtype=np.int32)

        def parts() -> Iterator[tuple[Rows, NDArray[np.int64], NDArray[np.int32]]]:
            first = 0
            for window in self.blocks.windows(self.n_features, None):
                last = first + window.rows.n_rows
                part_places = places[first:last]
                taken = np.flatnonzero(part_places >= 0)
                taken = taken[np.argsort(part_places[taken])]
                yield window.rows, taken, part_places[taken]
                done, total = min(window.done, self.blocks.size), max(self.blocks.size, 1)
                report(Progress(0, 0, done, total, float(last), "rows", "bytes"))
                first = last

        groups = merge_parts((ValueGroups.of(rows, at) for rows, at, _ in parts()), self.n_features)
        edges = groups.edges(max_bins, zero_missing)
        return StreamedBins(parts(), taken.size, groups.entries, edges, disk_array)


def bin_rows(
    rows: Rows | DiskRows,
    taken: NDArray[np.int64],
    max_bins: int | None,
    zero_missing: bool,
    categorical: Mapping[int, str] | None,
    n_jobs: int,
) -> Binning | StreamedBins:
    """Bin the rows ``taken``, in this order; see `Binning`."""
    if isinstance(rows, DiskRows):
        return rows.binned(taken, max_bins or MAX_BINS, zero_missing)
    return Binning(rows, taken, max_bins, zero_missing, categorical, n_jobs)


def scores_of(model: Any, rows: Rows | DiskRows, taken: NDArray[np.int64]) -> Floats:
    """Return the scores of the rows ``taken``, in the last axis."""
    if not len(model):
        return model.zeros(taken.size)
    scores = rows.score(model) if isinstance(rows, DiskRows) else model.score(rows)
    return np.ascontiguousarray(scores[..., taken])
