"""Incremental updates of sparse columns' sums, from the rows where the last stump fired.

With two labels and one query all weights of a label change by one known factor, except for the rows
where the stump fires (or, if it also fires on zeros, where it does not). For the columns with the
most entries, the weights of each label in each bin are kept: each row has a list of its cells, and
the lists of changed rows are processed. The best stump of such a column costs a sweep over its
bins.

A few dozen columns are optimal: with more, updates cost as much as they save. Their cells have
two-byte numbers, and their sums stay in a core's cache.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport Binned, binned_of, sweep
from rankcore.core cimport rc_row, rc_rows, rc_rows_get

cdef extern from "_column_histograms.h" nogil:
    void RC_FETCH_(const void *address) noexcept

cdef enum:
    # Prefetch distance in rows: the lists of rows this far ahead are prefetched.
    AHEAD = 8
    SLOTS = 64
    CODES = 256

SLAB = SLOTS


cdef const Binned *_narrow(object columns, const int32_t[::1] features) except NULL:
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t i
    if binned.width != 1 or binned.bounds == NULL or features.shape[0] > SLOTS:
        raise ValueError("the columns are not sparse, of one byte, and SLAB at most")
    for i in range(features.shape[0]):
        if not 0 <= features[i] < binned.n_features:
            raise IndexError(f"there is no column {features[i]}")
    return binned


def count(
    object columns not None,
    const int32_t[::1] features not None,
    int32_t[::1] counts not None,  # (n_rows,): in and out: added to
):
    """Count the entries of each row in some sparse columns."""
    cdef const Binned *binned = _narrow(columns, features)
    cdef int64_t i, k
    if counts.shape[0] != binned.n_rows:
        raise ValueError("counts do not fit the columns")
    with nogil:
        for i in range(features.shape[0]):
            for k in range(binned.bounds[features[i]], binned.bounds[features[i] + 1]):
                counts[binned.rows[k]] += 1


def pack(
    object columns not None,
    const int32_t[::1] features not None,  # the columns; a column's number is its place here
    # in and out, (n_rows,): where the list of each row begins; then where it ended
    int32_t[::1] cursors not None,
    uint16_t[::1] cells not None,  # out
):
    """List, row by row, the cells in which a row is: column number * 256 + code."""
    cdef const Binned *binned = _narrow(columns, features)
    cdef const uint8_t *codes = <const uint8_t *> binned.codes
    cdef int64_t i, k, at
    cdef bint fits = cursors.shape[0] == binned.n_rows
    if not fits:
        raise ValueError("cursors do not fit the columns")
    with nogil:
        for i in range(features.shape[0]):
            for k in range(binned.bounds[features[i]], binned.bounds[features[i] + 1]):
                at = cursors[binned.rows[k]]
                if not 0 <= at < cells.shape[0]:
                    fits = False
                    break
                cells[at] = <uint16_t> (CODES * i + codes[k])
                cursors[binned.rows[k]] = <int32_t> (at + 1)
    if not fits:
        raise ValueError("there are more entries than cells")


def fill(
    const int32_t[::1] starts not None,  # (n_rows + 1,): where the list of each row begins
    const uint16_t[::1] cells not None,  # as `pack` made it
    const double[::1] factors not None,  # (n_rows,): weights, those of the winning label first
    int64_t n_winning,  # how many are of the winning label
    double[:, ::1] sums not None,  # out, (2, SLAB * 256): of the winning and of the losing label
):
    """Sum the weights of each label in each cell."""
    cdef int64_t i, k, n = factors.shape[0]
    _check_lists(starts, cells, n, n_winning, sums)
    with nogil:
        sums[:] = 0.0
        for i in range(n):
            for k in range(starts[i], starts[i + 1]):
                sums[i >= n_winning, cells[k]] += factors[i]


cdef int _check_lists(
    const int32_t[::1] starts, const uint16_t[::1] cells, int64_t n, int64_t n_winning,
    double[:, ::1] sums,
) except -1:
    if (
        starts.shape[0] != n + 1
        or starts[0] < 0
        or starts[n] > cells.shape[0]
        or not 0 <= n_winning <= n
        or sums.shape[0] != 2
        or sums.shape[1] != SLOTS * CODES
    ):
        raise ValueError("the lists, rows and sums do not fit together")
    return 0


def walk(
    object columns not None,  # sparse
    int64_t feature,  # all rows that changed have an entry in this column
    const uint8_t[::1] changed not None,  # (n_rows,): which rows changed
    const int32_t[::1] starts not None,  # as for `fill`; the weights are the new ones
    const uint16_t[::1] cells not None,
    const double[::1] factors not None,
    int64_t n_winning,
    # factors of the weights of the winning label, and of those of the losing one divided by
    double by,
    double[:, ::1] sums not None,  # in and out, (2, SLAB * 256): as for `fill`
):
    """Update the cells of some rows to their new weights. O(cells of the rows that changed)."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t k, i, row
    cdef double change
    cdef double *sum_
    _check_lists(starts, cells, factors.shape[0], n_winning, sums)
    if (
        binned.bounds == NULL
        or not 0 <= feature < binned.n_features
        or changed.shape[0] != binned.n_rows
        or factors.shape[0] != binned.n_rows
    ):
        raise ValueError("the rows are not those of the columns")
    with nogil:
        for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
            if k + AHEAD < binned.bounds[feature + 1]:
                RC_FETCH_(&cells[starts[binned.rows[k + AHEAD]]])
            row = binned.rows[k]
            if not changed[row]:
                continue
            if row < n_winning:
                change = factors[row] * (1.0 - 1.0 / by)
                sum_ = &sums[0, 0]
            else:
                change = factors[row] * (1.0 - by)
                sum_ = &sums[1, 0]
            for i in range(starts[row], starts[row + 1]):
                sum_[cells[i]] += change


def spread(
    object columns not None,  # sparse
    object rows not None,  # columns that they were built from
    const int64_t[::1] taken not None,  # (n_rows,): its rows
    int64_t feature,  # as for `walk`
    const uint8_t[::1] changed not None,
    const double[::1] factors not None,
    int64_t n_winning,
    double by,
    # in and out, each (n_features,): total change of the weights of each label among the rows with
    # an entry
    double[::1] winning not None,
    double[::1] losing not None,
):
    """Sum the changes of weights of the rows of each column.

    O(entries of the rows that changed).
    """
    cdef const Binned *binned = binned_of(columns)
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_row x
    cdef int64_t k, i, row
    cdef double change
    cdef double *sum_
    if (
        binned.bounds == NULL
        or not 0 <= feature < binned.n_features
        or X.indptr == NULL
        or X.n_features != binned.n_features
        or winning.shape[0] != X.n_features
        or losing.shape[0] != X.n_features
        or changed.shape[0] != binned.n_rows
        or factors.shape[0] != binned.n_rows
        or taken.shape[0] != binned.n_rows
    ):
        raise ValueError("the rows are not those of the columns")
    cdef bint fits = True
    with nogil:
        for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
            if k + AHEAD < binned.bounds[feature + 1]:
                row = taken[binned.rows[k + AHEAD]]
                if 0 <= row < X.n_rows:
                    RC_FETCH_(X.indices + X.indptr[row])
                    RC_FETCH_(X.indices + X.indptr[row] + 16)
            row = binned.rows[k]
            if not changed[row]:
                continue
            if not 0 <= taken[row] < X.n_rows:
                fits = False
                break
            if row < n_winning:
                change = fabs(factors[row] * (1.0 - 1.0 / by))
                sum_ = &winning[0]
            else:
                change = fabs(factors[row] * (1.0 - by))
                sum_ = &losing[0]
            x = rc_rows_get(X, taken[row])
            for i in range(x.n):
                sum_[x.indices[i]] += change
    if not fits:
        raise ValueError("the rows are not those of the columns")


def evaluate(
    object columns not None,
    const int32_t[::1] features not None,  # (n,): as for `pack`
    const double[:, ::1] sums not None,  # (2, SLAB * 256): as for `fill`
    double winning,  # factors that scale the weights of each label to a sum of 1
    double losing,
    double[::1] edges not None,  # out, (n,)
):
    """Maximum |edge| of each column of a slab, up to rounding. O(bins of the columns)."""
    cdef const Binned *binned = _narrow(columns, features)
    cdef int64_t i, b, f, n_bins
    cdef double held
    cdef double cell[CODES]
    cdef const double *win
    cdef const double *lose
    cdef int32_t bin
    cdef uint8_t side
    if (
        edges.shape[0] != features.shape[0]
        or sums.shape[0] != 2
        or sums.shape[1] != SLOTS * CODES
    ):
        raise ValueError("the arrays do not fit together")
    with nogil:
        for i in range(features.shape[0]):
            f = features[i]
            n_bins = binned.n_bins[f]
            win = &sums[0, CODES * i]
            lose = &sums[1, CODES * i]
            held = 0.0
            for b in range(n_bins + 1):
                cell[b] = winning * win[b] - losing * lose[b]
                held += cell[b]
            cell[binned.zero_bin[f]] -= held
            sweep(cell, n_bins, binned.has_missing[f], &edges[i], &bin, &side)


def bound(
    const int32_t[::1] features not None,  # (n,): the columns
    const double[::1] edges not None,  # (n_features,): their edges when they were last summed
    # (2, n_features): share of each label's weight in them then
    const double[:, ::1] masses not None,
    # (4, n_features): then: what all weights of each label were multiplied by to add up to 1; what
    # weights of the winning label had been multiplied by, at most and at least, by stumps that
    # fired
    const double[:, ::1] then not None,
    const double[::1] now not None,  # (4,): the same now
    # each (2, n_features): sums added to the labels' weights since, and subtracted from them,
    # beyond that
    const double[:, ::1] added not None,
    const double[:, ::1] taken not None,
    double[::1] out not None,  # out, (n,)
):
    """Upper bounds on the |edge| of columns."""
    cdef int64_t i, f, d = edges.shape[0]
    cdef double win, lose, rises, falls, win_most, win_least, lose_most, lose_least
    cdef double more_win, more_lose, less_win, less_lose, edge, up, down
    if (
        out.shape[0] != features.shape[0]
        or not masses.shape[0] == added.shape[0] == taken.shape[0] == 2
        or not masses.shape[1] == added.shape[1] == taken.shape[1] == then.shape[1] == d
        or not then.shape[0] == now.shape[0] == 4
    ):
        raise ValueError("the arrays do not fit together")
    for i in range(features.shape[0]):
        if not 0 <= features[i] < d:
            raise IndexError(f"there is no column {features[i]}")
    with nogil:
        for i in range(features.shape[0]):
            f = features[i]
            win = now[0] / then[0, f]
            lose = now[1] / then[1, f]
            rises = now[2] / then[2, f]
            falls = now[3] / then[3, f]
            # Where a weight of the winning label rises, one of the losing label falls.
            win_most = win * rises
            win_least = win * falls
            lose_most = lose / falls
            lose_least = lose / rises
            more_win = now[0] * rises * added[0, f]
            more_lose = now[1] / falls * added[1, f]
            less_win = now[0] * taken[0, f]
            less_lose = now[1] * taken[1, f]
            edge = fabs(edges[f])
            up = more_win + less_lose
            if win_most > lose_least:
                up += lose_least * edge + (win_most - lose_least) * masses[0, f]
            else:
                up += win_most * edge
            down = more_lose + less_win
            if lose_most > win_least:
                down += win_least * edge + (lose_most - win_least) * masses[1, f]
            else:
                down += lose_most * edge
            edge = max(win_most * masses[0, f] + more_win, lose_most * masses[1, f] + more_lose)
            out[i] = min(max(up, down), edge)
