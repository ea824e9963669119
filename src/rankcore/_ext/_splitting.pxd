# The best split of a leaf by one binned column, from its histogram: _splitting.h for the types of
# codes, and records of leaves and splits that kernels share with NumPy. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, code_t


cdef extern from "_splitting.h" nogil:
    ctypedef struct rc_leaf:
        uint64_t packed
        double l2
        double min_hessian
        double low
        double high
        int32_t sign

    ctypedef struct rc_split:
        double gain
        uint64_t packed
        int32_t bin
        uint8_t missing_right

    ctypedef struct rc_category:
        uint64_t packed
        uint64_t code

    double rc_hessian(uint64_t packed) noexcept
    double rc_leaf_gain(uint64_t packed, double l2, double value) noexcept
    double rc_leaf_value(uint64_t packed, double l2, double low, double high) noexcept
    double rc_gain_bound(uint64_t some, const rc_leaf *leaf) noexcept
    rc_split rc_best_threshold(
        const uint64_t *histogram, const int32_t *counts, int64_t n_bins, const rc_leaf *leaf,
        int64_t n_rows, int64_t min_rows, uint64_t *right, double *gains
    ) noexcept
    rc_split rc_best_categories(
        const uint64_t *histogram, const int32_t *counts, int64_t n_bins, const rc_leaf *leaf,
        int64_t n_rows, int64_t min_rows, rc_category *order, uint64_t *right, double *gains
    ) noexcept
    void rc_mark_categories(
        const uint64_t *histogram, int64_t n_bins, int64_t n_right, uint8_t missing_right,
        rc_category *order, uint8_t *goes_right
    ) noexcept


# Records of leaves and splits in arrays of Python.
ctypedef struct LeafRecord:
    uint64_t packed  # sum over the rows of the leaf
    int64_t n_rows
    double low  # range of the values of its children
    double high
    int32_t node  # number of the leaf in ``node_of``

ctypedef struct SplitRecord:
    double gain
    uint64_t packed
    int32_t bin
    uint8_t missing_right


cdef inline SplitRecord recorded(rc_split split) noexcept nogil:
    cdef SplitRecord record
    record.gain = split.gain
    record.packed = split.packed
    record.bin = split.bin
    record.missing_right = split.missing_right
    return record


cdef inline rc_split best_split(
    bint categorical, const uint64_t *histogram, const int32_t *counts, int64_t n_bins,
    const rc_leaf *leaf, int64_t n_rows, int64_t min_rows, uint64_t *scratch, double *gains,
) noexcept nogil:
    """Find the best split; scratch has room for four packed sums per bin, gains for two."""
    if not categorical:
        return rc_best_threshold(histogram, counts, n_bins, leaf, n_rows, min_rows, scratch, gains)
    return rc_best_categories(histogram, counts, n_bins, leaf, n_rows, min_rows,
                              <rc_category *> scratch, scratch + 2 * (n_bins + 1), gains)


cdef inline void fill_zero_bin(
    const Binned *binned, int64_t feature, uint64_t total, uint64_t *histogram
) noexcept nogil:
    """Add the leaf's total minus its explicit entries to the bin of implicit zeros."""
    cdef int64_t b
    cdef uint64_t explicit = 0
    for b in range(binned.n_bins[feature] + 1):
        explicit += histogram[b]
    histogram[binned.zero_bin[feature]] += total - explicit


cdef inline void _sum_entries(
    const Binned *binned, const code_t *codes, int64_t feature, const int32_t *node_of,
    int32_t node, const uint64_t *packed, uint64_t *histogram, int32_t *counts,
) noexcept nogil:
    cdef int64_t k, row
    for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
        row = binned.rows[k]
        if node_of[row] == node:
            histogram[codes[k]] += packed[row]
            counts[codes[k]] += 1


cdef inline void sum_column(
    const Binned *binned, int64_t feature, const int32_t *node_of, int32_t node,
    const uint64_t *packed, uint64_t total, int64_t n_rows, uint64_t *histogram, int32_t *counts,
) noexcept nogil:
    """Build the histogram of a leaf, and its counts, for one sparse column."""
    cdef int64_t b, explicit = 0, n = binned.n_bins[feature] + 1
    memset(histogram, 0, n * sizeof(uint64_t))
    memset(counts, 0, n * sizeof(int32_t))
    if binned.width == 1:
        _sum_entries(binned, <const uint8_t *> binned.codes, feature, node_of, node, packed,
                     histogram, counts)
    else:
        _sum_entries(binned, <const int32_t *> binned.codes, feature, node_of, node, packed,
                     histogram, counts)
    fill_zero_bin(binned, feature, total, histogram)
    for b in range(n):
        explicit += counts[b]
    counts[binned.zero_bin[feature]] += <int32_t> (n_rows - explicit)


cdef inline rc_split split_column(
    const Binned *binned, int64_t feature, bint categorical, const int32_t *node_of, int32_t node,
    const uint64_t *packed, const rc_leaf *leaf, int64_t n_rows, int64_t min_rows,
    uint64_t *scratch, double *gains, int32_t *counts,
) noexcept nogil:
    """Find the best split of a leaf by a sparse column from its entries, counting rows."""
    cdef int64_t n = binned.n_bins[feature] + 1
    sum_column(binned, feature, node_of, node, packed, leaf.packed, n_rows, scratch, counts)
    return best_split(categorical, scratch, counts, n - 1, leaf, n_rows, min_rows, scratch + n,
                      gains)
