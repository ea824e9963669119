"""Words of pair weights, and columns arranged for sums of words by bin.

The weights that a row wins and loses are rounded to integers, two in a word, once per tree
(`_tree_sums.h`). Integer sums depend neither on the order of the rows nor on the division of
columns among threads, and the sums of a leaf minus those of one child are exactly those of the
other. The same holds for words of a slope, which may be negative, and a curvature.

Dense columns of byte codes are rearranged with the codes of a row contiguous: the rows of a leaf
are far apart, and one access serves many columns. Sparse columns are arranged by row, with a
histogram place per entry; zeros are never accessed.
"""

from libc.math cimport fabs, floor, frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._tree_panels cimport RC_CODES, RC_EIGHT, panel_width


# Panels have a multiple of this many columns.
LANES = RC_EIGHT
CODES = RC_CODES


def quantise(
    # each (n_all,): weights of the pairs that each row wins and loses; not negative
    const double[::1] won not None,
    const double[::1] lost not None,
    const int32_t[::1] rows not None,  # (n,): the rows to look at
    # out, (n_all,): ``round(won * scale)`` in the upper 32 bits, ``round(lost * scale)`` in the
    # lower; 0 of other rows
    uint64_t[::1] words not None,
):
    """Round the weights of some rows to integers, two in a word.

    Returns the scale: (2**32 - 1 - n) / the larger of both sums, or 0 if nothing weighs anything. A
    sum of m rows is wrong by m / 2 units at most, which is m / 2**33 of the whole and less. O(n).
    """
    cdef int64_t i, n = rows.shape[0]
    cdef double all_won = 0.0, all_lost = 0.0, scale
    cdef bint fits = won.shape[0] == lost.shape[0] == words.shape[0]
    for i in range(n if fits else 0):
        fits = fits and 0 <= rows[i] < won.shape[0]
    if not fits:
        raise ValueError("the rows and their weights do not fit together")
    with nogil:
        for i in range(n):
            all_won += won[rows[i]]
            all_lost += lost[rows[i]]
        scale = max(all_won, all_lost)
        scale = (4294967295.0 - n) / scale if scale > 0 else 0.0
        words[:] = 0
        for i in range(n):
            words[rows[i]] = (
                <uint64_t> (won[rows[i]] * scale + 0.5) << 32
                | <uint64_t> (lost[rows[i]] * scale + 0.5)
            )
    return scale


def quantise_slopes(
    const double[::1] slopes not None,  # each (n_all,): what a loss falls with,
    const double[::1] curvatures not None,  # and its second derivative; not negative
    const int32_t[::1] rows not None,  # (n,): the rows to look at
    # out, (n_all,): ``round(slopes * power * scale)`` in the upper 32 bits, as of two's
    # complement, and ``round(curvatures * scale)``, at least 1, in the lower; 0 of other rows
    uint64_t[::1] words not None,
):
    """Round the slopes and curvatures of some rows to integers, two in a word.

    Returns the scale, (2**32 - 1 - 2 * n) / the sum of the curvatures or 0 if that is 0, and the
    power of two of which it is the largest for which no sum leaves its half of a word. A sum of
    curvatures of m rows is wrong by m units at most, one of slopes by m / 2. O(n).
    """
    cdef int64_t i, n = rows.shape[0]
    cdef double steep = 0.0, curved = 0.0, scale, power = 1.0, curvature
    cdef int exponent = 0
    cdef bint fits = slopes.shape[0] == curvatures.shape[0] == words.shape[0] and n < 2**30
    for i in range(n if fits else 0):
        fits = fits and 0 <= rows[i] < slopes.shape[0]
    if not fits:
        raise ValueError("the rows and their slopes do not fit together")
    with nogil:
        for i in range(n):
            steep += fabs(slopes[rows[i]])
            curved += curvatures[rows[i]]
        scale = (4294967295.0 - 2 * n) / curved if curved > 0 else 0.0
        if steep * scale > 0:
            frexp((2147483647.0 - n) / (steep * scale), &exponent)
            power = ldexp(1.0, exponent - 1)
        words[:] = 0
        for i in range(n):
            curvature = max(curvatures[rows[i]] * scale + 0.5, 1.0)
            words[rows[i]] = (
                <uint64_t> (<int64_t> floor(slopes[rows[i]] * power * scale + 0.5)) << 32
                | <uint64_t> curvature
            )
    return scale, power


def lay_out(
    object columns not None,  # dense, of one-byte codes
    const int32_t[::1] features not None,  # (m,): which ones
    # out: the codes of each row, panel after panel; of m columns, rounded up to a multiple of
    # LANES. Codes beyond the last column are 0.
    uint8_t[::1] panels not None,
):
    """Put the codes of a row in dense columns side by side, in panels of at most 256 columns."""
    cdef const Binned *binned = binned_of(columns)
    cdef const uint8_t *codes = <const uint8_t *> binned.codes
    cdef const uint8_t *column
    cdef uint8_t *out
    cdef int64_t i, j, width, start, n = binned.n_rows, m = features.shape[0], first = 0
    cdef int64_t padded = (m + RC_EIGHT - 1) // RC_EIGHT * RC_EIGHT
    cdef int64_t step = 128
    if binned.width != 1 or binned.bounds != NULL or panels.shape[0] != padded * n:
        raise ValueError("the columns are not dense, of one byte, or do not fit the panels")
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
            while start < n:  # as much at a time as stays in the cache
                for j in range(first, min(first + width, m)):
                    column = codes + features[j] * n
                    for i in range(start, min(start + step, n)):
                        out[i * width + j - first] = column[i]
                start += step
            first += width


def count_cells(
    object columns not None,  # sparse
    const int32_t[::1] features not None,  # (m,): which ones
    int64_t[::1] bounds not None,  # out, (n_rows + 1,): where the list of each row begins
):
    """Count the entries of each row in some sparse columns."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t j, k, n = binned.n_rows, m = features.shape[0]
    if binned.bounds == NULL or bounds.shape[0] != n + 1:
        raise ValueError("the columns are not sparse, or the bounds do not fit them")
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


cdef void _fill_cells(
    const Binned *binned, const code_t *codes, const int32_t[::1] features,
    const int64_t[::1] offsets, const uint8_t[::1] whole, int64_t last,  # in
    int64_t[::1] starts, int64_t *cursors, int32_t *cells,  # in and out
) noexcept nogil:
    cdef int64_t j, k, stop, row
    for j in range(features.shape[0]):
        k = starts[j]
        stop = binned.bounds[features[j] + 1]
        while k < stop and binned.rows[k] < last:
            row = binned.rows[k]
            cells[cursors[row]] = <int32_t> (offsets[j] + (0 if whole[j] else codes[k]))
            cursors[row] += 1
            k += 1
        starts[j] = k


def lay_out_cells(
    object columns not None,  # sparse
    const int32_t[::1] features not None,  # (m,): which ones
    const int64_t[::1] offsets not None,  # (m + 1,): where the sums of each column begin
    const uint8_t[::1] whole not None,  # (m,): whether all entries of the column add to one place
    # in and out, (m,): the first entry of each column of the rows first .. last - 1, then of the
    # rows after them
    int64_t[::1] starts not None,
    int64_t[::1] bounds not None,  # (n_rows + 1,): of `count_cells`
    int64_t first,
    int64_t last,
    int32_t[::1] cells not None,  # out: the lists of these rows
):
    """List, row by row, the places in the sums that the entries of sparse columns add to."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t j, k, n = binned.n_rows, m = features.shape[0], f, start
    if (
        binned.bounds == NULL
        or bounds.shape[0] != n + 1
        or offsets.shape[0] != m + 1
        or whole.shape[0] != m
        or starts.shape[0] != m
        or cells.shape[0] != bounds[n]
        or not 0 <= first <= last <= n
    ):
        raise ValueError("the columns are not sparse, or the arrays do not fit them")
    for j in range(m):
        f = features[j]
        if not 0 <= f < binned.n_features:
            raise IndexError(f"there is no column {f}")
        if offsets[j + 1] - offsets[j] < (1 if whole[j] else binned.n_bins[f] + 1):
            raise ValueError("the offsets leave no room for the bins")
        if not binned.bounds[f] <= starts[j] <= binned.bounds[f + 1]:
            raise ValueError("the entries are not of their columns")
    if m and not 0 <= offsets[0] <= offsets[m] < 2**31:
        raise ValueError("the sums are too many")
    if cells.shape[0] == 0 or first == last:
        return
    with nogil:
        start = bounds[first]
        # Each bound moves to the end of its row, which is where the next one begins.
        if binned.width == 1:
            _fill_cells(binned, <const uint8_t *> binned.codes, features, offsets, whole, last,
                        starts, &bounds[0], &cells[0])
        else:
            _fill_cells(binned, <const int32_t *> binned.codes, features, offsets, whole, last,
                        starts, &bounds[0], &cells[0])
        for k in range(last - 1, first, -1):
            bounds[k] = bounds[k - 1]
        bounds[first] = start
