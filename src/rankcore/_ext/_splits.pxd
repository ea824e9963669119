# Best splits of one column, for the search of a leaf and for that which counts rows. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, code_t


cdef extern from "_tree_splits.h" nogil:
    ctypedef struct rc_leaf:
        uint64_t word
        double l2
        double least
        int32_t sign
        double low
        double high
        int32_t slopes

    ctypedef struct rc_split:
        double gain
        uint64_t word
        int32_t bin
        uint8_t side

    ctypedef struct rc_category:
        uint64_t word
        uint64_t code

    double rc_worth(uint64_t word, double l2) noexcept
    double rc_mass(uint64_t word, int slopes) noexcept
    double rc_worth_of(uint64_t word, double l2, double value, int slopes) noexcept
    double rc_value(
        uint64_t word, double l2, double low, double high, int slopes
    ) noexcept
    double rc_most_worth(uint64_t entries, uint64_t word, double l2) noexcept
    rc_split rc_best_cut(
        const uint64_t *sums, const int32_t *counts, int64_t n_bins, const rc_leaf *leaf,
        int64_t n_rows, int64_t least_rows, uint64_t *firing, double *worths
    ) noexcept
    rc_split rc_best_set(
        const uint64_t *sums, const int32_t *counts, int64_t n_bins, const rc_leaf *leaf,
        int64_t n_rows, int64_t least_rows, rc_category *order, uint64_t *firing, double *worths
    ) noexcept
    void rc_mark_set(
        const uint64_t *sums, int64_t n_bins, int slopes, int64_t n_firing, uint8_t side,
        rc_category *order, uint8_t *fires
    ) noexcept

cdef inline void _sum_entries(
    const Binned *binned, const code_t *codes, int64_t feature, const int32_t *leaf_of,
    int32_t leaf, const uint64_t *words, uint64_t *sums, int32_t *counts,
) noexcept nogil:
    """Sums and counts of the entries in a leaf."""
    cdef int64_t k, row
    for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
        row = binned.rows[k]
        if leaf_of[row] == leaf:
            sums[codes[k]] += words[row]
            counts[codes[k]] += 1


cdef inline void imply(
    const Binned *binned, int64_t feature, uint64_t word, uint64_t *sums
) noexcept nogil:
    """Give the block of rows without an entry what the entries leave."""
    cdef int64_t b
    cdef uint64_t held = 0
    for b in range(binned.n_bins[feature] + 1):
        held += sums[b]
    sums[binned.zero_bin[feature]] += word - held


cdef inline rc_split best_of(
    bint categorical, const uint64_t *sums, const int32_t *counts, int64_t n_bins,
    const rc_leaf *made, int64_t n_rows, int64_t least_rows, uint64_t *spare, double *worths,
) noexcept nogil:
    """The best cut or set of categories; spare has room for four words per bin."""
    if not categorical:
        return rc_best_cut(sums, counts, n_bins, made, n_rows, least_rows, spare, worths)
    return rc_best_set(sums, counts, n_bins, made, n_rows, least_rows, <rc_category *> spare,
                       spare + 2 * (n_bins + 1), worths)


cdef inline void sum_column(
    const Binned *binned, int64_t feature, const int32_t *leaf_of, int32_t leaf,
    const uint64_t *words, uint64_t word, int64_t n_rows, uint64_t *sums, int32_t *counts,
) noexcept nogil:
    """Sums and counts by bin of a sparse column, the block of zeros included."""
    cdef int64_t b, held = 0, n = binned.n_bins[feature] + 1
    memset(sums, 0, n * sizeof(uint64_t))
    memset(counts, 0, n * sizeof(int32_t))
    if binned.width == 1:
        _sum_entries(binned, <const uint8_t *> binned.codes, feature, leaf_of, leaf, words,
                     sums, counts)
    else:
        _sum_entries(binned, <const int32_t *> binned.codes, feature, leaf_of, leaf, words,
                     sums, counts)
    imply(binned, feature, word, sums)
    for b in range(n):
        held += counts[b]
    counts[binned.zero_bin[feature]] += <int32_t> (n_rows - held)


cdef inline rc_split walk(
    const Binned *binned, int64_t feature, bint categorical, const int32_t *leaf_of, int32_t leaf,
    const uint64_t *words, const rc_leaf *made, int64_t n_rows, int64_t least_rows,
    uint64_t *sums, double *worths, int32_t *counts,
) noexcept nogil:
    """The best cut of a sparse column that leaves each child some rows, from its entries."""
    cdef int64_t n = binned.n_bins[feature] + 1
    sum_column(binned, feature, leaf_of, leaf, words, made.word, n_rows, sums, counts)
    return best_of(categorical, sums, counts, n - 1, made, n_rows, least_rows, sums + n, worths)
