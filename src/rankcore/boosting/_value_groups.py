"""Which values columns have, and how often, from rows that come in any parts and in any order.

A column of at most `MOST` distinct values keeps each of them with its count. One of more keeps
groups of neighbours: values whose first bits are the same, as many bits as leave `MOST` groups at
most. The groups are a function of the set of values alone. A part has no more distinct values than
the whole, so that no part is ever coarser than the whole; and parts are made as coarse as the
whole is where they are joined. So thresholds do not depend on how rows are divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import columns as kernels
from rankcore._ext.given_bins import cut_groups
from rankcore._ext.rows import Rows

# Groups of a column, at most: 32 for each of 255 bins. Above 2**12, so that a group has values of
# one sign and of one power of two.
MOST = 1 << 13
# Values that are sorted at a time.
SORTED = 1 << 23


@dataclass(frozen=True)
class Cuts:
    """Thresholds of columns, and what follows from them.

    Attributes
    ----------
    values : ndarray of float64
        Column by column, ascending.
    bounds : ndarray of int64, shape (n_features + 1,)
    zero_bin : ndarray of int32, shape (n_features,)
        The code of 0.
    has_missing : ndarray of uint8, shape (n_features,)
    zero_missing : bool
    """

    values: NDArray[np.float64]
    bounds: NDArray[np.int64]
    zero_bin: NDArray[np.int32]
    has_missing: NDArray[np.uint8]
    zero_missing: bool

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Bins of the present values of each column."""
        return (np.diff(self.bounds) + 1).astype(np.int32)

    def threshold(self, feature: int, bin: int) -> float:
        """The threshold below a bin; -inf below the lowest."""
        return float(self.values[self.bounds[feature] + bin - 1]) if bin > 0 else -np.inf


@dataclass(frozen=True)
class ValueGroups:
    """Groups of the values of columns.

    Attributes
    ----------
    n_rows : int
    entries, zeros, missing : ndarray of int64, shape (n_features,)
        Values stored in each column, and how many of them are 0 and NaN.
    bounds : ndarray of int64, shape (n_features + 1,)
        Where the groups of each column begin and end.
    low, high : ndarray of float64
        Least and greatest value of each group, ascending within a column; no 0, no NaN.
    counts : ndarray of int64
    shifts : ndarray of int64, shape (n_features,)
        Last bits that the values of a group may differ in.
    """

    n_rows: int
    entries: NDArray[np.int64]
    zeros: NDArray[np.int64]
    missing: NDArray[np.int64]
    bounds: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: NDArray[np.int64]
    shifts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows, taken: NDArray[np.int64]) -> ValueGroups:
        """The groups of some rows. O(values * log(rows))."""
        per_row = max(1, rows.n_values // max(rows.n_rows, 1))
        step = max(1, SORTED // per_row)
        parts = [_sorted(rows, taken[at : at + step]) for at in range(0, taken.size, step)]
        return cls.joined(parts) if parts else cls.none(rows.n_features)

    @staticmethod
    def count(rows: Rows, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Values stored in each column of some rows."""
        if rows.columns is None:
            return np.full(rows.n_features, taken.size, dtype=np.int64)
        counts = np.zeros(rows.n_features, dtype=np.int64)
        kernels.count(rows, taken, counts)
        return counts

    @classmethod
    def none(cls, n_features: int) -> ValueGroups:
        """The groups of no rows."""
        return _sorted_values(
            0, np.zeros(0), np.zeros(n_features + 1, dtype=np.int64), np.zeros(0, dtype=bool)
        )

    @classmethod
    def joined(cls, parts: Sequence[ValueGroups]) -> ValueGroups:
        """The groups of the rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        columns = np.concatenate([_columns(part.bounds) for part in parts])
        low = np.concatenate([part.low for part in parts])
        high = np.concatenate([part.high for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.lexsort((low, columns))
        return _grouped(
            sum(part.n_rows for part in parts),
            np.sum([part.entries for part in parts], axis=0),
            np.sum([part.zeros for part in parts], axis=0),
            np.sum([part.missing for part in parts], axis=0),
            columns[order],
            low[order],
            high[order],
            counts[order],
            np.max([part.shifts for part in parts], axis=0),
        )

    def cuts(self, max_bins: int, zero_missing: bool) -> Cuts:
        """Thresholds by the rule that a fit in memory has, between groups."""
        implied = self.entries < self.n_rows
        zero = ((self.zeros > 0) | implied) & (not zero_missing)
        values = np.empty(self.low.size + self.entries.size)
        bounds = np.empty_like(self.bounds)
        cut_groups(
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
        return Cuts(
            values, bounds, zero_bin.astype(np.int32), missing.astype(np.uint8), zero_missing
        )


def gathered(parts: Iterable[ValueGroups], n_features: int) -> ValueGroups:
    """The groups of many parts, of which few are held at a time."""
    held = [ValueGroups.none(n_features)]
    for part in parts:
        held.append(part)
        # Joined when as much came as there is: each value takes part in few sorts.
        if sum(one.low.size for one in held[1:]) > max(held[0].low.size, SORTED // 4):
            held = [ValueGroups.joined(held)]
    return ValueGroups.joined(held)


def _sorted(rows: Rows, taken: NDArray[np.int64]) -> ValueGroups:
    """The groups of rows whose values fit into memory once more."""
    d = rows.n_features
    bounds = np.concatenate([[0], np.cumsum(ValueGroups.count(rows, taken))])
    values = np.empty(bounds[-1])
    kernels.gather(rows, taken, 0, d, bounds[:-1].copy(), values, None)
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        values[first:last].sort()  # NaN last
    return _sorted_values(taken.size, values, bounds, np.isnan(values))


def _sorted_values(
    n_rows: int, values: NDArray[np.float64], bounds: NDArray[np.int64], nan: NDArray[np.bool_]
) -> ValueGroups:
    columns, d = _columns(bounds), bounds.size - 1
    zero = values == 0
    kept = ~(nan | zero)
    present, of = values[kept], columns[kept]
    new = np.ones(present.size, dtype=bool)
    new[1:] = (present[1:] != present[:-1]) | (of[1:] != of[:-1])
    starts = np.flatnonzero(new)
    distinct = present[starts]
    return _grouped(
        n_rows,
        np.diff(bounds),
        np.bincount(columns[zero], minlength=d),
        np.bincount(columns[nan], minlength=d),
        of[starts],
        distinct,
        distinct,
        np.diff(starts, append=present.size),
        np.zeros(d, dtype=np.int64),
    )


def _grouped(
    n_rows: int,
    entries: NDArray[np.int64],
    zeros: NDArray[np.int64],
    missing: NDArray[np.int64],
    columns: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    counts: NDArray[np.int64],
    shifts: NDArray[np.int64],
) -> ValueGroups:
    """Join groups, sorted by column and value, whose first bits are the same."""
    d = shifts.size
    if low.size:
        keys = _keys(low)
        # After how many bits from the end a value is the same as the one before it.
        apart = np.full(low.size, 64, dtype=np.int64)
        apart[1:] = np.where(columns[1:] == columns[:-1], _bit_length(keys[1:] ^ keys[:-1]), 64)
        sizes = np.bincount(columns, minlength=d)
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        shifts = shifts.copy()
        for f in np.flatnonzero(sizes > MOST).tolist():
            # Groups that are left at each shift: those that differ in a bit beyond it.
            left = np.bincount(apart[bounds[f] : bounds[f + 1]], minlength=65)[::-1].cumsum()[::-1]
            coarse = np.flatnonzero(left[1:] <= MOST)
            shifts[f] = max(int(shifts[f]), int(coarse[0]))
        starts = np.flatnonzero(apart > shifts[columns])
        columns, low = columns[starts], low[starts]
        high = np.maximum.reduceat(high, starts)
        counts = np.add.reduceat(counts, starts)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=d))])
    return ValueGroups(
        n_rows, entries, zeros, missing, bounds.astype(np.int64), low, high, counts, shifts
    )


def _columns(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The column of each item."""
    return np.repeat(np.arange(bounds.size - 1), np.diff(bounds))


def _keys(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Integers in the order of the values."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    return np.where(negative, ~bits, bits | np.uint64(1 << 63))


def _bit_length(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Bits up to the highest that is 1."""
    upper, lower = (keys >> np.uint64(32)).astype(np.float64), keys & np.uint64(0xFFFFFFFF)
    of_upper, of_lower = np.frexp(upper)[1], np.frexp(lower.astype(np.float64))[1]
    return np.where(upper > 0, of_upper + 32, of_lower).astype(np.int64)
