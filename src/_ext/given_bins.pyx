"""Columns that are binned by thresholds found beforehand, from rows that come in parts.

Thresholds are found from groups of neighbouring values and how many rows have them, by the rule of
`columns`; then rows are turned into columns of codes a part at a time.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport stored
from rankcore._ext._cuts cimport count_below, cut
from rankcore.core cimport rc_row, rc_rows, rc_rows_get


def cut_groups(
    const double[::1] low not None,
    const double[::1] high not None,
    const int64_t[::1] counts not None,
    const int64_t[::1] bounds not None,
    const uint8_t[::1] zero not None,
    int64_t max_bins,
    double[::1] cuts not None,
    int64_t[::1] cut_bounds not None,
):
    """Find the thresholds of columns.

    Parameters
    ----------
    low, high : float64 array, shape (n_groups,)
        In. Least and greatest value of each group, ascending within a column, without 0 and NaN.
    counts : int64 array, shape (n_groups,)
        In. Rows of each group, at least 1.
    bounds : int64 array, shape (n_columns + 1,)
        In. Where the groups of each column begin and end.
    zero : uint8 array, shape (n_columns,)
        In. Whether 0 is one more value.
    max_bins : int
        In. Greatest number of bins of a column.
    cuts : float64 array, shape (n_groups + n_columns,)
        Out. The thresholds, column by column.
    cut_bounds : int64 array, shape (n_columns + 1,)
        Out. Where those of each column begin and end.

    Notes
    -----
    O(n_groups).
    """
    cdef int64_t f, n, n_columns = bounds.shape[0] - 1, made = 0
    cdef bint fits = (
        n_columns >= 1
        and high.shape[0] == low.shape[0] == counts.shape[0]
        and zero.shape[0] == n_columns
        and cut_bounds.shape[0] == n_columns + 1
        and cuts.shape[0] == low.shape[0] + n_columns
        and max_bins >= 2
        and bounds[0] == 0
        and bounds[n_columns] == low.shape[0]
    )
    for f in range(n_columns if fits else 0):
        fits = fits and bounds[f] <= bounds[f + 1]
    if not fits:
        raise ValueError("the groups and the columns do not fit together")
    cdef const double *lows = &low[0] if low.shape[0] else NULL
    cdef const double *highs = &high[0] if low.shape[0] else NULL
    cdef const int64_t *rows = &counts[0] if low.shape[0] else NULL
    with nogil:
        for f in range(n_columns):
            cut_bounds[f] = made
            n = bounds[f + 1] - bounds[f]
            if n > 0:
                made += cut(
                    lows + bounds[f], highs + bounds[f], rows + bounds[f], n, zero[f], max_bins,
                    &cuts[made],
                )
        cut_bounds[n_columns] = made


def place(
    object rows not None,
    const int64_t[::1] taken not None,
    const int32_t[::1] places not None,
    int64_t n_rows,
    const double[::1] cuts not None,
    const int64_t[::1] cut_bounds not None,
    bint zero_missing,
    uint8_t[::1] codes not None,
    int64_t[::1] cursors,
    int32_t[::1] entries,
):
    """Write the codes of some rows where they belong in the columns.

    Parameters
    ----------
    rows : Rows
        In.
    taken : int64 array, shape (n,)
        In. Which of them to look at, in this order.
    places : int32 array, shape (n,)
        In. Which row of the columns each is.
    n_rows : int
        In. Rows of the columns.
    cuts, cut_bounds : array
        In. From `cut_groups`; at most 254 of a column.
    zero_missing : bool
        In. Whether 0 is missing, as NaN is.
    codes : uint8 array
        Out. Of dense columns, all rows of the first, then of the second, and so on.
    cursors : int64 array, shape (n_features,), or None
        In and out. Of sparse columns, where the next entry of each goes.
    entries : int32 array, shape of codes, or None
        Out. Of sparse columns, the row of each entry.

    Notes
    -----
    O(n_values * log(bins)).
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_row x
    cdef int64_t i, k, f, at, n_cuts, code, d = X.n_features
    cdef bint sparse = cursors is not None, fits = True
    cdef double value
    cdef const double *thresholds = &cuts[0] if cuts.shape[0] else NULL
    if (
        not rows.canonical
        or places.shape[0] != taken.shape[0]
        or cut_bounds.shape[0] != d + 1
        or sparse != (entries is not None)
        or (sparse and (cursors.shape[0] != d or entries.shape[0] != codes.shape[0]))
        or (not sparse and codes.shape[0] != n_rows * d)
        or (not sparse and X.indptr != NULL)
    ):
        raise ValueError("the rows, the thresholds and the columns do not fit together")
    for f in range(d):
        fits = fits and 0 <= cut_bounds[f] <= cut_bounds[f + 1] <= cut_bounds[f] + 254
    fits = fits and cut_bounds[d] <= cuts.shape[0]
    for i in range(taken.shape[0]):
        fits = fits and 0 <= taken[i] < X.n_rows and 0 <= places[i] < n_rows
    if not fits:
        raise ValueError("there are no such rows, or too many thresholds")
    with nogil:
        for i in range(taken.shape[0]):
            x = rc_rows_get(X, taken[i])
            for k in range(x.n):
                f = k if x.indices == NULL else x.indices[k]
                value = stored(&x, k)
                n_cuts = cut_bounds[f + 1] - cut_bounds[f]
                if value != value or (zero_missing and value == 0):
                    code = n_cuts + 1
                else:
                    code = count_below(thresholds + cut_bounds[f], n_cuts, value)
                if sparse:
                    at = cursors[f]
                    if not 0 <= at < codes.shape[0]:
                        fits = False
                        break
                    entries[at] = places[i]
                    cursors[f] = at + 1
                else:
                    at = f * n_rows + places[i]
                codes[at] = <uint8_t> code
    if not fits:
        raise ValueError("the columns have more entries than room")
