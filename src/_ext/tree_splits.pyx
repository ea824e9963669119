"""Search for the best split of a leaf, from the sums of its bins.

A split sends the rows of a leaf that fire to one child and all others to the other child. The worth
of a child is (W - L)**2 / (W + L + l2), where W and L are the weights that its rows win and lose:
twice the reduction of the weight of pairs by Newton's value, to second order. If words hold
negative slopes A of a loss and curvatures H ("slopes"), it is A**2 / (H + l2). Sums are integers,
from which worths are computed in a fixed way: equal sums give equal splits on every machine.

For categories, any set may fire; the best one is a prefix in the order of W / (W + L).
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._splits cimport (
    best_of,
    rc_category,
    rc_leaf,
    rc_mark_set,
    rc_mass,
    rc_split,
    rc_value,
    rc_worth_of,
    sum_column,
    walk,
)


cdef void _count_dense(
    const Binned *binned, const code_t *codes, int64_t feature, const int32_t[::1] rows,
    const uint64_t[::1] words, uint64_t *sums, int32_t *counts,
) noexcept nogil:
    cdef int64_t i
    codes += feature * binned.n_rows
    for i in range(rows.shape[0]):
        sums[codes[rows[i]]] += words[rows[i]]
        counts[codes[rows[i]]] += 1


cdef void _sum_dense(
    const Binned *binned, int64_t feature, const int32_t[::1] rows, const uint64_t[::1] words,
    uint64_t *sums, int32_t *counts,
) noexcept nogil:
    """Sums and counts by bin of a dense column."""
    cdef int64_t n = binned.n_bins[feature] + 1
    memset(sums, 0, n * sizeof(uint64_t))
    memset(counts, 0, n * sizeof(int32_t))
    if binned.width == 1:
        _count_dense(binned, <const uint8_t *> binned.codes, feature, rows, words, sums, counts)
    else:
        _count_dense(binned, <const int32_t *> binned.codes, feature, rows, words, sums, counts)


cdef int64_t _check_column(
    const Binned *binned, int64_t feature, const int32_t[::1] rows, const uint64_t[::1] words,
    const int32_t[::1] leaf_of, uint64_t[::1] scratch, int32_t[::1] counts,
) except -1:
    """Raise unless the arrays fit a column; returns its number of bins and one more."""
    cdef int64_t i, n = 0, n_rows = rows.shape[0]
    cdef bint sparse = binned.bounds != NULL
    cdef bint fits = (
        0 <= feature < binned.n_features
        and words.shape[0] == binned.n_rows
        and (not sparse or (leaf_of is not None and leaf_of.shape[0] == binned.n_rows))
    )
    for i in range(n_rows if fits and not sparse else 0):
        fits = fits and 0 <= rows[i] < binned.n_rows
    if fits:
        n = binned.n_bins[feature] + 1
        fits = scratch.shape[0] >= 5 * n and counts.shape[0] >= n
    if not fits:
        raise ValueError("the arrays do not fit the columns")
    return n


def search_counted(
    object columns not None,
    int64_t feature,  # the column
    int32_t sign,  # see ``signs`` of `tree_looks.Look`; 0 for categories
    bint categorical,  # whether any set of its bins may fire
    const int32_t[::1] rows not None,  # (n,): rows of the leaf
    const uint64_t[::1] words not None,  # (n_rows,): the word of each row
    uint64_t word,  # sum of the words of the leaf
    double l2,  # in units of the words: what is added to W + L, and the least W + L of a child
    double least,
    int64_t least_rows,  # rows of a child, at least
    double low,  # range of the values of the children
    double high,
    const int32_t[::1] leaf_of,  # (n_rows,), for sparse columns: the leaf of each row, and this one
    int32_t leaf,
    # B + 1 entries each for the B bins of the column: five times, twice and once
    uint64_t[::1] scratch not None,
    double[::1] room not None,
    int32_t[::1] counts not None,
    bint slopes=False,  # whether words hold slopes and curvatures
):
    """Find the best cut of a leaf by one column that leaves each child some rows.

    Returns its worth, negative if there is no such cut, the sum of the words of the rows that fire,
    bin and side. O(n), or O(entries of the column) if it is sparse.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t n = _check_column(
        binned, feature, rows, words, leaf_of, scratch, counts
    )
    if room.shape[0] < 2 * n:
        raise ValueError("the arrays do not fit the columns")
    cdef rc_leaf made
    cdef rc_split found
    made.word = word
    made.l2 = l2
    made.least = least
    made.sign = sign
    made.low = low
    made.high = high
    made.slopes = slopes
    with nogil:
        if binned.bounds != NULL:
            found = walk(binned, feature, categorical, &leaf_of[0], leaf, &words[0], &made,
                         rows.shape[0], least_rows, &scratch[0], &room[0], &counts[0])
        else:
            _sum_dense(binned, feature, rows, words, &scratch[0], &counts[0])
            found = best_of(categorical, &scratch[0], &counts[0], n - 1, &made, rows.shape[0],
                            least_rows, &scratch[n], &room[0])
    return found.gain, found.word, found.bin, found.side


def mark_set(
    # columns, feature, rows, words, word, leaf_of, leaf, scratch, counts: as for
    # `search_counted`
    object columns not None,
    int64_t feature,
    int64_t n_firing,  # results: the number of categories that fire, and whether missing ones do
    uint8_t side,
    const int32_t[::1] rows not None,
    const uint64_t[::1] words not None,
    uint64_t word,
    const int32_t[::1] leaf_of,
    int32_t leaf,
    uint64_t[::1] scratch not None,
    int32_t[::1] counts not None,
    # out, (n_bins + 1,): by bin, and for the missing: 1 if rows in it fire. Where rows weigh
    # nothing, ``side``.
    uint8_t[::1] fires not None,
    bint slopes=False,  # as for `search_counted`
):
    """Find again which categories fire in a split that was found.

    O(n), or O(entries of the column) if it is sparse, and O(n_bins log n_bins).
    """
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t n = _check_column(
        binned, feature, rows, words, leaf_of, scratch, counts
    )
    if fires.shape[0] != n or side > 1:
        raise ValueError("the arrays do not fit the columns")
    with nogil:
        if binned.bounds != NULL:
            sum_column(binned, feature, &leaf_of[0], leaf, &words[0], word, rows.shape[0],
                       &scratch[0], &counts[0])
        else:
            _sum_dense(binned, feature, rows, words, &scratch[0], &counts[0])
        rc_mark_set(&scratch[0], n - 1, slopes, n_firing, side, <rc_category *> &scratch[n],
                    &fires[0])


def mass(uint64_t word, bint slopes=False):
    """W + L of a sum of words, or H."""
    return rc_mass(word, slopes)


def worth(uint64_t word, double l2, double low, double high, bint slopes=False):
    """Gain of a leaf of a sum of words, whose value is limited to a range."""
    return rc_worth_of(word, l2, rc_value(word, l2, low, high, slopes), slopes)


def value(uint64_t word, double l2, double low, double high, bint slopes=False):
    """Newton's value of a leaf of a sum of words, within a range."""
    return rc_value(word, l2, low, high, slopes)
