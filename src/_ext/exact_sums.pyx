"""Integer sums by bin or by feature, independent of the order of the rows.

Numbers are multiplied by a power of two and rounded to 64-bit integers, once for each row; sums of
integers are exact, so that shards of the rows can be summed anywhere and in any order.
"""

from libc.math cimport ldexp, rint
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport Binned, binned_of
from rankcore.core cimport rc_row, rc_rows, rc_rows_get


cdef extern from "_histograms.h" nogil:
    enum:
        RC_LANES
        RC_CODES

    void rc_sum_lanes_of_integers(
        const uint8_t **columns, const int64_t *values, int64_t n, int64_t *sums
    ) noexcept

cdef extern from "_exact_sums.h" nogil:
    void rc_add_nearest(rc_row x, double by, const double *scale, int64_t *sums) noexcept


# Larger numbers are rejected, so that sums fit into 64 bits.
cdef enum:
    LARGEST = 62


def to_fixed(
    const double[::1] values not None,  # (n,)
    int exponent,
    int64_t[::1] words not None,  # out, (n,)
):
    """Round ``values * 2**exponent`` to integers, halves to even.

    Returns the sum of the words. Raises ValueError if the sum of the magnitudes is beyond 2**62.
    """
    cdef int64_t i, total = 0
    cdef double scaled, magnitude = 0.0, most = ldexp(1.0, LARGEST), scale = ldexp(1.0, exponent)
    if words.shape[0] != values.shape[0] or not -1000 <= exponent <= 1000:
        raise ValueError("values and words differ in length, or the exponent is out of range")
    with nogil:
        for i in range(values.shape[0]):
            scaled = rint(values[i] * scale)
            magnitude += scaled if scaled >= 0 else -scaled
            if not magnitude < most:
                break
            words[i] = <int64_t> scaled
            total += words[i]
    if not magnitude < most:
        raise ValueError("the numbers are too large for their exponent")
    return total


cdef void _sum_sparse(
    const Binned *columns, int64_t feature, const int64_t *words, int64_t total, int64_t *sums
) noexcept nogil:
    cdef int64_t k, b, held = 0, n_bins = columns.n_bins[feature]
    cdef const uint8_t *codes = <const uint8_t *> columns.codes
    memset(sums, 0, (n_bins + 1) * sizeof(int64_t))
    for k in range(columns.bounds[feature], columns.bounds[feature + 1]):
        sums[codes[k]] += words[columns.rows[k]]
    for b in range(n_bins + 1):
        held += sums[b]
    # Rows without an entry: what the entries leave.
    sums[columns.zero_bin[feature]] += total - held


cdef void _sum_dense(
    const Binned *columns, int64_t first, int64_t n, const int64_t *words, int64_t *lanes
) noexcept nogil:
    """Sums of up to RC_LANES columns, RC_CODES apart."""
    cdef const uint8_t *codes = <const uint8_t *> columns.codes
    cdef const uint8_t *side_by_side[RC_LANES]
    cdef int64_t lane
    memset(lanes, 0, RC_LANES * RC_CODES * sizeof(int64_t))
    for lane in range(RC_LANES):  # the last column again where there are fewer
        side_by_side[lane] = codes + (first + min(lane, n - 1)) * columns.n_rows
    rc_sum_lanes_of_integers(side_by_side, words, columns.n_rows, lanes)


def bin_sums(
    object columns not None,  # of one-byte codes
    const int64_t[::1] words not None,  # (n_rows,)
    # (n_features + 1,): where the sums of each column begin: one for each bin, and the last of
    # missing values
    const int64_t[::1] bounds not None,
    int64_t[::1] sums not None,  # out
):
    """Sum words of rows by bin, of all columns. O(entries)."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t f, i, lane, width, total = 0
    cdef int64_t lanes[RC_LANES * RC_CODES]
    cdef bint fits = (
        binned.width == 1
        and words.shape[0] == binned.n_rows
        and bounds.shape[0] == binned.n_features + 1
        and bounds[0] == 0
        and bounds[binned.n_features] == sums.shape[0]
    )
    for f in range(binned.n_features if fits else 0):
        fits = fits and bounds[f + 1] - bounds[f] == binned.n_bins[f] + 1
    if not fits:
        raise ValueError("the words and the sums do not fit the columns")
    if binned.n_rows == 0:
        sums[:] = 0
        return
    with nogil:
        if binned.bounds != NULL:
            for i in range(binned.n_rows):
                total += words[i]
            for f in range(binned.n_features):
                _sum_sparse(binned, f, &words[0], total, &sums[bounds[f]])
        else:
            f = 0
            while f < binned.n_features:
                width = min(RC_LANES, binned.n_features - f)
                _sum_dense(binned, f, width, &words[0], lanes)
                for lane in range(width):
                    for i in range(binned.n_bins[f + lane] + 1):
                        sums[bounds[f + lane] + i] = lanes[lane * RC_CODES + i]
                f += width


def feature_sums(
    object rows not None,
    const int64_t[::1] docs not None,  # (n_docs,): rows
    const double[::1] by not None,  # (n_docs,): finite
    # (n_features,): powers of two, each of which brings the sum of all magnitudes of its feature to
    # 2**61 at most; nobody checks that
    const double[::1] scales not None,
    int64_t[::1] sums not None,  # out, (n_features,)
):
    """Sum multiples of rows, as integers: ``by[k] * row docs[k]`` over k.

    Each product is rounded to float64, multiplied and rounded to an integer, halves to even.
    O(values).
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t k, n_docs = docs.shape[0]
    if by.shape[0] != n_docs or scales.shape[0] != X.n_features or sums.shape[0] != X.n_features:
        raise ValueError("the arrays do not fit the rows")
    for k in range(n_docs):
        if not 0 <= docs[k] < X.n_rows:
            raise ValueError(f"there is no row {docs[k]}")
    sums[:] = 0
    with nogil:
        for k in range(n_docs):
            if by[k] != 0.0:
                rc_add_nearest(rc_rows_get(X, docs[k]), by[k], &scales[0], &sums[0])
