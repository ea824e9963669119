"""Bound the edges of stumps in sparse columns, to skip those that cannot have the best stump.

With two labels and one query, all weights of a label change by the same factor, except where the
last stump fires (or, if it also fires on zeros, where it does not). Since a column was evaluated,
the weight of each label in any of its bins has changed by a factor within known bounds, and by the
changes of some rows with an entry in the column. `sum_changes` adds these up, ``added`` and
``removed`` (2, n_features); `bound_edges` bounds |edge| by them.

Cost: O(entries of the rows that changed), which are prefetched, and O(n_features). Of 20,000
columns, a round evaluates some dozen.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport Binned, binned_of
from rankcore.core cimport rc_row, rc_rows, rc_rows_get

cdef extern from "rankcore_vectors.h" nogil:
    void RC_FETCH_(const void *address) noexcept

cdef enum:
    AHEAD = 8  # prefetch distance in rows


def sum_changes(
    object columns not None,  # sparse
    object rows not None,  # columns that they were built from
    const int64_t[::1] taken not None,  # (n_rows,): its rows
    int64_t feature,  # all rows that changed have an entry in this column
    const uint8_t[::1] changed not None,  # (n_rows,): which rows changed
    const double[::1] factors not None,  # (n_rows,): their new weights, winning label first
    int64_t n_winning,  # how many are of the winning label
    # factor by which all weights of the winning label were multiplied, and those of the losing
    # label divided
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
        raise ValueError("the rows do not match the columns")
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
        raise ValueError("the rows do not match the columns")


def bound_edges(
    const int32_t[::1] features not None,  # (n,): the columns
    const double[::1] edges not None,  # (n_features,): their edges when they were last summed
    # (2, n_features): fraction of each label's weight in these columns at that time
    const double[:, ::1] masses not None,
    # (4, n_features), at that time: the factor of each label that made its weights add up to 1;
    # the maximum and minimum factor of the winning label's weights, by stumps that fired
    const double[:, ::1] then not None,
    const double[::1] now not None,  # (4,): the same factors now
    # each (2, n_features): what was added to the weights of each label since, and subtracted from
    # them, besides these common factors
    const double[:, ::1] added not None,
    const double[:, ::1] removed not None,
    double[::1] out not None,  # out, (n,)
):
    """Write upper bounds of the |edge| of columns.

    The edge of a stump is W - L, the weights of the winning and of the losing label where it
    fires. Since the column was evaluated, W - L <= edge and W <= mass; now W is at most win_max * W
    and L at least lose_min * L, so that the edge is at most

        win_max * W - lose_min * L = lose_min * (W - L) + (win_max - lose_min) * W

    if win_max > lose_min, and at most win_max * (W - L) otherwise; likewise for L - W. The changes
    of single rows come on top.
    """
    cdef int64_t i, f, d = edges.shape[0]
    cdef double win, lose, rises, falls, win_max, win_min, lose_max, lose_min
    cdef double more_win, more_lose, less_win, less_lose, edge, up, down
    if (
        out.shape[0] != features.shape[0]
        or not masses.shape[0] == added.shape[0] == removed.shape[0] == 2
        or not masses.shape[1] == added.shape[1] == removed.shape[1] == then.shape[1] == d
        or not then.shape[0] == now.shape[0] == 4
    ):
        raise ValueError("the arrays are inconsistent")
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
            win_max = win * rises
            win_min = win * falls
            lose_max = lose / falls
            lose_min = lose / rises
            more_win = now[0] * rises * added[0, f]
            more_lose = now[1] / falls * added[1, f]
            less_win = now[0] * removed[0, f]
            less_lose = now[1] * removed[1, f]
            edge = fabs(edges[f])
            up = more_win + less_lose
            if win_max > lose_min:
                up += lose_min * edge + (win_max - lose_min) * masses[0, f]
            else:
                up += win_max * edge
            down = more_lose + less_win
            if lose_max > win_min:
                down += win_min * edge + (lose_max - win_min) * masses[1, f]
            else:
                down += lose_max * edge
            edge = max(win_max * masses[0, f] + more_win, lose_max * masses[1, f] + more_lose)
            out[i] = min(max(up, down), edge)
