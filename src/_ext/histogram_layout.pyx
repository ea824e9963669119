"""Arrange binned columns by row, for histograms of leaves.

The rows of a leaf are far apart. With the codes of a row side by side, one access to memory serves
many columns:

* dense columns of byte codes, (n_rows,) each, become panels of at most 256 columns, each of shape
  (n_rows, width). O(n_rows * columns), 128 rows at a time, which stay in the cache.
* sparse columns become lists: for each row, the indices of the sums of a histogram that its entries
  add to. O(entries).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._panels cimport RC_CODES, RC_EIGHT, panel_width


# Panels have a multiple of this many columns.
LANES = RC_EIGHT
CODES = RC_CODES


def lay_out_panels(
    object columns not None,  # dense, of one-byte codes
    const int32_t[::1] features not None,  # (m,): the columns to copy
    # out: the codes of each row, panel after panel; of m columns, rounded up to a multiple of
    # LANES. Codes beyond the last column are 0.
    uint8_t[::1] panels not None,
):
    """Copy dense columns to panels, in which the codes of a row are side by side."""
    cdef const Binned *binned = binned_of(columns)
    cdef const uint8_t *codes = <const uint8_t *> binned.codes
    cdef const uint8_t *column
    cdef uint8_t *out
    cdef int64_t i, j, width, start, n = binned.n_rows, m = features.shape[0], first = 0
    cdef int64_t padded = (m + RC_EIGHT - 1) // RC_EIGHT * RC_EIGHT
    cdef int64_t step = 128
    if binned.width != 1 or binned.bounds != NULL or panels.shape[0] != padded * n:
        raise ValueError("the columns are not dense, of one byte, or do not match the panels")
    for j in range(m):
        if not 0 <= features[j] < binned.n_features:
            raise IndexError(f"there is no column {features[j]}")
    if panels.shape[0] == 0:
        return
    with nogil:
        while first < padded:
            width = panel_width(first, padded)
            out = &panels[first * n]
            if first + width > m:
                memset(out, 0, width * n)
            start = 0
            while start < n:  # in parts that stay in the cache
                for j in range(first, min(first + width, m)):
                    column = codes + features[j] * n
                    for i in range(start, min(start + step, n)):
                        out[i * width + j - first] = column[i]
                start += step
            first += width


def count_row_entries(
    object columns not None,  # sparse
    const int32_t[::1] features not None,  # (m,): the columns to count
    int64_t[::1] bounds not None,  # out, (n_rows + 1,): where the list of each row begins
):
    """Count the entries of each row in some sparse columns."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t j, k, n = binned.n_rows, m = features.shape[0]
    if binned.bounds == NULL or bounds.shape[0] != n + 1:
        raise ValueError("the columns are not sparse, or the bounds do not match them")
    for j in range(m):
        if not 0 <= features[j] < binned.n_features:
            raise IndexError(f"there is no column {features[j]}")
    with nogil:
        for k in range(n + 1):
            bounds[k] = 0
        for j in range(m):
            for k in range(binned.bounds[features[j]], binned.bounds[features[j] + 1]):
                bounds[binned.rows[k] + 1] += 1
        for k in range(n):
            bounds[k + 1] += bounds[k]


cdef void _fill_rows(
    const Binned *binned, const code_t *codes, const int32_t[::1] features,
    const int64_t[::1] offsets, const uint8_t[::1] one_sum, int64_t last,  # in
    int64_t[::1] starts, int64_t *cursors, int32_t *row_sums,  # in and out
) noexcept nogil:
    cdef int64_t j, k, stop, row
    for j in range(features.shape[0]):
        k = starts[j]
        stop = binned.bounds[features[j] + 1]
        while k < stop and binned.rows[k] < last:
            row = binned.rows[k]
            row_sums[cursors[row]] = <int32_t> (offsets[j] + (0 if one_sum[j] else codes[k]))
            cursors[row] += 1
            k += 1
        starts[j] = k


def lay_out_rows(
    object columns not None,  # sparse
    const int32_t[::1] features not None,  # (m,): the columns to list
    const int64_t[::1] offsets not None,  # (m + 1,): where the sums of each column begin
    const uint8_t[::1] one_sum not None,  # (m,): whether all entries of the column have one sum
    # in and out, (m,): the first entry of each column of the rows first .. last - 1, then of the
    # rows after them
    int64_t[::1] starts not None,
    int64_t[::1] bounds not None,  # (n_rows + 1,): of `count_row_entries`
    int64_t first,
    int64_t last,
    int32_t[::1] row_sums not None,  # out: the lists of these rows
):
    """List the sums to which the entries of some rows are added."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t j, k, n = binned.n_rows, m = features.shape[0], f, start
    if (
        binned.bounds == NULL
        or bounds.shape[0] != n + 1
        or offsets.shape[0] != m + 1
        or one_sum.shape[0] != m
        or starts.shape[0] != m
        or row_sums.shape[0] != bounds[n]
        or not 0 <= first <= last <= n
    ):
        raise ValueError("the columns are not sparse, or the arrays do not match them")
    for j in range(m):
        f = features[j]
        if not 0 <= f < binned.n_features:
            raise IndexError(f"there is no column {f}")
        if offsets[j + 1] - offsets[j] < (1 if one_sum[j] else binned.n_bins[f] + 1):
            raise ValueError("the offsets leave no room for the bins")
        if not binned.bounds[f] <= starts[j] <= binned.bounds[f + 1]:
            raise ValueError("the entries do not match their columns")
    if m and not 0 <= offsets[0] <= offsets[m] < 2**31:
        raise ValueError("the sums are too many")
    if row_sums.shape[0] == 0 or first == last:
        return
    with nogil:
        start = bounds[first]
        # Each bound moves to the end of its row, which is where the next one begins.
        if binned.width == 1:
            _fill_rows(binned, <const uint8_t *> binned.codes, features, offsets, one_sum, last,
                       starts, &bounds[0], &row_sums[0])
        else:
            _fill_rows(binned, <const int32_t *> binned.codes, features, offsets, one_sum, last,
                       starts, &bounds[0], &row_sums[0])
        for k in range(last - 1, first, -1):
            bounds[k] = bounds[k - 1]
        bounds[first] = start
