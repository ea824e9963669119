"""Bin rows that come in parts: groups of values, thresholds between them, then codes.

Parts are read twice. The first time, the values of each column are grouped: `distinct` values,
which `merge_groups` merges with neighbours of equal leading bits. ``low``, ``high`` and ``counts``
(n_groups,) have the minimum, maximum and number of rows of each, column by column from ``bounds``.
`find_edges` computes thresholds from them, by the rule of `binning`. The second time,
`encode_rows` writes the codes of the rows of a part to their places in columns of bytes.

Cost: O(values) for groups, after a sort, and O(values * log(bins)) for codes, eight searches at a
time, whose steps do not wait for each other.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport stored
from rankcore._ext._bin_edges cimport count_below, cut
from rankcore.core cimport rc_row, rc_rows, rc_rows_get


cdef extern from "_places.h" nogil:
    void rc_places(
        const double *values, const double *cuts, int64_t n_cuts, int64_t *places
    ) noexcept


cdef enum:
    BITS = 64


cdef inline uint64_t _key(double value) noexcept nogil:
    """Map a number to an integer in the same order."""
    cdef uint64_t bits, sign = <uint64_t> 1 << 63
    memcpy(&bits, &value, sizeof(bits))
    return ~bits if bits & sign else bits | sign


cdef inline int64_t _bit_length(uint64_t x) noexcept nogil:
    """Return the number of bits up to the highest set one."""
    cdef int64_t n = 0, step = 32
    while step:
        if x >> step:
            n += step
            x >>= step
        step >>= 1
    return n + <int64_t> x


cdef bint _in_order(const int64_t[::1] bounds, int64_t n) noexcept nogil:
    cdef int64_t f, d = bounds.shape[0] - 1
    if d < 0 or bounds[0] != 0 or bounds[d] != n:
        return False
    for f in range(d):
        if bounds[f] > bounds[f + 1]:
            return False
    return True


def distinct(
    # in and out, (n,): column by column, ascending within it, NaN last
    double[::1] values not None,
    int64_t[::1] counts not None,  # out, (n,)
    # in and out, (n_columns + 1,): where each column begins and ends, before and after
    int64_t[::1] bounds not None,
    int64_t[::1] zeros not None,  # out, each (n_columns,): how many values are 0 and NaN
    int64_t[::1] missing not None,
):
    """Keep the distinct values of each column except 0 and NaN, with counts.

    O(n).
    """
    cdef int64_t f, i, start, stop = 0, made = 0, d = bounds.shape[0] - 1
    cdef double value
    if (
        not _in_order(bounds, values.shape[0])
        or counts.shape[0] != values.shape[0]
        or zeros.shape[0] != d
        or missing.shape[0] != d
    ):
        raise ValueError("the values and the columns are inconsistent")
    with nogil:
        for f in range(d):
            start, stop = stop, bounds[f + 1]
            bounds[f] = made
            zeros[f] = missing[f] = 0
            for i in range(start, stop):
                value = values[i]
                if value != value:
                    missing[f] += 1
                elif value == 0:
                    zeros[f] += 1
                elif made > bounds[f] and values[made - 1] == value:
                    counts[made - 1] += 1
                else:
                    values[made] = value
                    counts[made] = 1
                    made += 1
        bounds[d] = made


cdef int64_t _shift(const double *low, int64_t n, int64_t least, int64_t most) noexcept nogil:
    """Return how many trailing bits to ignore so that at most ``most`` values differ."""
    cdef int64_t apart[BITS + 1]
    cdef int64_t i, shift = BITS - 1, left
    cdef uint64_t key, before = _key(low[0])
    memset(apart, 0, sizeof(apart))
    for i in range(1, n):
        key = _key(low[i])
        apart[_bit_length(key ^ before)] += 1
        before = key
    # Count the first value, and those that differ from the previous one beyond the shift.
    left = 1 + apart[BITS]
    while shift > least and left + apart[shift] <= most:
        left += apart[shift]
        shift -= 1
    return shift


def merge_groups(
    # in and out, each (n,): minimum and maximum of each group, ascending within a column
    double[::1] low not None,
    double[::1] high not None,
    int64_t[::1] counts not None,  # in and out, (n,): rows of each
    # in and out, (n_columns + 1,): where each column begins and ends, before and after
    int64_t[::1] bounds not None,
    # in and out, (n_columns,): number of trailing bits in which the values of a group may differ;
    # it never decreases
    int64_t[::1] shifts not None,
    # maximum number of groups of a column, at least 2: values of two signs have no bit in common
    int64_t most,
):
    """Merge groups with equal leading bits until each column has at most ``most``. O(n)."""
    cdef int64_t f, i, start, stop = 0, made = 0, d = bounds.shape[0] - 1
    cdef uint64_t key, before = 0
    cdef bint fits = (
        _in_order(bounds, low.shape[0])
        and high.shape[0] == low.shape[0] == counts.shape[0]
        and shifts.shape[0] == d
        and most >= 2
    )
    for f in range(d if fits else 0):
        fits = fits and 0 <= shifts[f] < BITS
    if not fits:
        raise ValueError("the groups and the columns are inconsistent")
    with nogil:
        for f in range(d):
            start, stop = stop, bounds[f + 1]
            bounds[f] = made
            if stop - start > most:
                shifts[f] = _shift(&low[start], stop - start, shifts[f], most)
            for i in range(start, stop):
                key = _key(low[i])
                if made > bounds[f] and (key ^ before) >> shifts[f] == 0:
                    high[made - 1] = max(high[made - 1], high[i])
                    counts[made - 1] += counts[i]
                else:
                    low[made], high[made], counts[made] = low[i], high[i], counts[i]
                    made += 1
                before = key
        bounds[d] = made


def find_edges(
    # each (n_groups,): minimum and maximum of each group, ascending within a column, without 0 and
    # NaN
    const double[::1] low not None,
    const double[::1] high not None,
    const int64_t[::1] counts not None,  # (n_groups,): rows of each group, at least 1
    # (n_columns + 1,): where the groups of each column begin and end
    const int64_t[::1] bounds not None,
    const uint8_t[::1] zero not None,  # (n_columns,): whether 0 is one more value
    int64_t max_bins,  # maximum number of bins of a column
    double[::1] cuts not None,  # out, (n_groups + n_columns,): the thresholds, column by column
    # out, (n_columns + 1,): where those of each column begin and end
    int64_t[::1] cut_bounds not None,
):
    """Find the thresholds of columns. O(n_groups)."""
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
        raise ValueError("the groups and the columns are inconsistent")
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


cdef void _place_dense(
    const rc_rows *X, const int64_t *taken, const int32_t *places, int64_t n, int64_t n_rows,  # in
    const double *cuts, const int64_t *cut_bounds, bint zero_missing,  # in
    uint8_t *codes,  # out
) noexcept nogil:
    """Bin dense rows, eight at a time for independent searches."""
    cdef int64_t i, k, m, f, n_cuts
    cdef int64_t found[8]
    cdef double values[8]
    cdef rc_row x[8]
    for i in range(0, n, 8):
        m = min(8, n - i)
        for k in range(8):
            x[k] = rc_rows_get(X, taken[i + min(k, m - 1)])
        for f in range(X.n_features):
            n_cuts = cut_bounds[f + 1] - cut_bounds[f]
            for k in range(8):
                values[k] = stored(&x[k], f)
            rc_places(values, cuts + cut_bounds[f], n_cuts, found)
            for k in range(m):
                if values[k] != values[k] or (zero_missing and values[k] == 0):
                    found[k] = n_cuts + 1
                codes[f * n_rows + places[i + k]] = <uint8_t> found[k]


def encode_rows(
    object rows not None,
    const int64_t[::1] taken not None,  # (n,): the rows to encode, in this order
    const int32_t[::1] places not None,  # (n,): the row of the columns that each becomes
    int64_t n_rows,  # rows of the columns
    const double[::1] cuts not None,  # from `find_edges`; at most 254 of a column
    const int64_t[::1] cut_bounds not None,
    bint zero_missing,  # whether 0 is missing, as NaN is
    # out: of dense columns, all rows of the first, then of the second, and so on
    uint8_t[::1] codes not None,
    # in and out, (n_features,), or None: of sparse columns, where the next entry of each goes
    int64_t[::1] cursors,
    int32_t[::1] entries,  # out, shape of codes, or None: of sparse columns, the row of each entry
):
    """Write the codes of some rows to their places in the columns. O(n_values * log(bins))."""
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
        raise ValueError("the rows, the thresholds and the columns are inconsistent")
    for f in range(d):
        fits = fits and 0 <= cut_bounds[f] <= cut_bounds[f + 1] <= cut_bounds[f] + 254
    fits = fits and cut_bounds[d] <= cuts.shape[0]
    for i in range(taken.shape[0]):
        fits = fits and 0 <= taken[i] < X.n_rows and 0 <= places[i] < n_rows
    if not fits:
        raise ValueError("row numbers are out of range, or there are too many thresholds")
    if not sparse:
        if taken.shape[0] and d:
            with nogil:
                _place_dense(
                    X, &taken[0], &places[0], taken.shape[0], n_rows, thresholds, &cut_bounds[0],
                    zero_missing, &codes[0],
                )
        return
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
                at = cursors[f]
                if not 0 <= at < codes.shape[0]:
                    fits = False
                    break
                entries[at] = places[i]
                cursors[f] = at + 1
                codes[at] = <uint8_t> code
    if not fits:
        raise ValueError("the arrays are too small for the entries of the columns")
