"""Search for the best split of a leaf, from the sums of its bins.

A split sends the rows of a leaf that fire to one child and all others to the other child. The worth
of a child is (W - L)**2 / (W + L + l2), where W and L are the weights that its rows win and lose:
twice the reduction of the weight of pairs by Newton's value, to second order. If words hold
negative slopes A of a loss and curvatures H ("slopes"), it is A**2 / (H + l2). Sums are integers,
from which worths are computed in a fixed way: equal sums give equal splits on every machine.

For categories, any set may fire; the best one is a prefix in the order of W / (W + L).

For sparse columns with few entries only one sum is kept. It bounds the worth of all cuts of the
column; the entries are visited only if the bound exceeds the best other worth.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._columns cimport Binned, binned_of, code_t


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

# Bounds are computed in another order than worths: they are raised by more than the rounding.
cdef double RAISED = 1.0 + 1e-12
# Value of `bins` for a column that is bounded rather than summed by bin.
cdef enum:
    UNSEEN = -2

BOUNDED = UNSEEN


cdef void _sum_entries(
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


cdef inline void _imply(
    const Binned *binned, int64_t feature, uint64_t word, uint64_t *sums
) noexcept nogil:
    """Give the block of rows without an entry what the entries leave."""
    cdef int64_t b
    cdef uint64_t held = 0
    for b in range(binned.n_bins[feature] + 1):
        held += sums[b]
    sums[binned.zero_bin[feature]] += word - held


cdef inline rc_split _best(
    bint categorical, const uint64_t *sums, const int32_t *counts, int64_t n_bins,
    const rc_leaf *made, int64_t n_rows, int64_t least_rows, uint64_t *spare, double *worths,
) noexcept nogil:
    """The best cut or set of categories; spare has room for four words per bin."""
    if not categorical:
        return rc_best_cut(sums, counts, n_bins, made, n_rows, least_rows, spare, worths)
    return rc_best_set(sums, counts, n_bins, made, n_rows, least_rows, <rc_category *> spare,
                       spare + 2 * (n_bins + 1), worths)


cdef void _sum_column(
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
    _imply(binned, feature, word, sums)
    for b in range(n):
        held += counts[b]
    counts[binned.zero_bin[feature]] += <int32_t> (n_rows - held)


cdef rc_split _walk(
    const Binned *binned, int64_t feature, bint categorical, const int32_t *leaf_of, int32_t leaf,
    const uint64_t *words, const rc_leaf *made, int64_t n_rows, int64_t least_rows,
    uint64_t *sums, double *worths, int32_t *counts,
) noexcept nogil:
    """The best cut of a sparse column that leaves each child some rows, from its entries."""
    cdef int64_t n = binned.n_bins[feature] + 1
    _sum_column(binned, feature, leaf_of, leaf, words, made.word, n_rows, sums, counts)
    return _best(categorical, sums, counts, n - 1, made, n_rows, least_rows, sums + n, worths)


cdef packed struct Leaf:
    uint64_t word
    int64_t n_rows
    double low
    double high
    int32_t number
    uint8_t is_less

ctypedef struct Search:
    const Binned *binned
    int64_t m
    const int32_t *features
    const int64_t *offsets
    const uint8_t *whole
    const uint8_t *allowed
    const int8_t *signs
    const uint8_t *categorical
    double l2
    double least
    int64_t least_rows
    int32_t slopes
    const int32_t *leaf_of
    const uint64_t *words
    uint64_t *scratch
    double *room
    int32_t *counts


cdef inline bint _is_set(const Search *s, int64_t feature) noexcept nogil:
    return s.categorical != NULL and s.categorical[feature]


cdef void _search(
    const Search *s, const Leaf *leaf, const uint64_t *sums, double *worths, uint64_t *firing,
    int32_t *bins, uint8_t *sides,
) noexcept nogil:
    """The best cut of a leaf by each column."""
    cdef int64_t i, b, f, n
    cdef rc_leaf made
    cdef rc_split found
    cdef const uint64_t *here
    cdef double best = 0.0
    made.word = leaf.word
    made.l2 = s.l2
    made.least = s.least
    made.low = leaf.low
    made.high = leaf.high
    made.slopes = s.slopes
    for i in range(s.m):
        worths[i] = -1.0
        firing[i] = 0
        bins[i] = -1
        sides[i] = 0
        if s.allowed != NULL and not s.allowed[i]:
            continue
        f = s.features[i]
        here = sums + s.offsets[i]
        if s.whole != NULL and s.whole[i]:
            # One side of a cut has no rows but those with an entry.
            if here[0] and s.binned.bounds[f + 1] - s.binned.bounds[f] >= s.least_rows:
                worths[i] = RAISED * rc_most_worth(here[0], leaf.word, s.l2)
                bins[i] = UNSEEN
            continue
        n = s.binned.n_bins[f] + 1
        if s.binned.bounds != NULL:
            for b in range(n):
                s.scratch[b] = here[b]
            here = s.scratch
            _imply(s.binned, f, leaf.word, s.scratch)
        made.sign = 0 if _is_set(s, f) or s.signs == NULL else s.signs[f]
        found = _best(_is_set(s, f), here, NULL, n - 1, &made, 0, 0, s.scratch + n, s.room)
        worths[i] = found.gain
        firing[i] = found.word
        bins[i] = found.bin
        sides[i] = found.side
        best = max(best, found.gain)
    for i in range(s.m if s.whole != NULL else 0):
        if bins[i] != UNSEEN or worths[i] < best:
            continue
        f = s.features[i]
        made.sign = 0 if _is_set(s, f) or s.signs == NULL else s.signs[f]
        found = _walk(s.binned, f, _is_set(s, f), s.leaf_of, leaf.number, s.words, &made,
                      leaf.n_rows, s.least_rows, s.scratch, s.room, s.counts)
        worths[i] = found.gain
        firing[i] = found.word
        bins[i] = found.bin
        sides[i] = found.side
        best = max(best, found.gain)


def search(
    object columns not None,
    const int32_t[::1] features not None,  # (m,): the columns
    const int64_t[::1] offsets not None,  # (m + 1,): where the sums of each column begin
    const uint8_t[::1] whole,  # (m,), or None: whether there is but one sum of the column's entries
    const uint8_t[::1] allowed,  # (m,), or None: which columns may be used
    # (n_features,), or None: by column, 1: the value must not fall as the column rises, -1: not
    # rise, 0: either
    const int8_t[::1] signs,
    # (n_features,), or None: by column, whether any set of its bins may fire. Their signs do not
    # matter.
    const uint8_t[::1] categorical,
    # in and out: words of the rows of the leaf by bin; of sparse columns, of the entries only. Less
    # those of one child if there are any: what is left is the other child's.
    uint64_t[::1] sums not None,
    const uint64_t[::1] less,  # as long, or None: the sums of one child
    # of records, (n,): those to look at: ``word``, the sum of the words of its rows, ``n_rows``,
    # how many, ``low`` and ``high``, the range of the values of its children, ``number`` in
    # leaf_of, and ``is_less``, whether its sums are in ``less``
    const Leaf[::1] leaves not None,
    double l2,  # in units of the words: what is added to W + L, and the least W + L of a child
    double least,
    const int32_t[::1] leaf_of,  # (n_rows,): for ``whole``: the leaf of each row,
    const uint64_t[::1] words,  # (n_rows,): the word of each row,
    int64_t least_rows,  # rows of a child at least: other columns do not look at these
    # B + 1 entries each for the most bins B of a column: five times, twice and once
    uint64_t[::1] scratch not None,
    double[::1] room not None,
    int32_t[::1] counts not None,
    # out, (n, m): of both children together, or a bound on it; negative if the column has no cut
    double[:, ::1] worths not None,
    uint64_t[:, ::1] firing not None,  # out, (n, m): sum of the words of the rows that fire
    # out, (n, m): BOUNDED if it is a bound, and less than the worth of another column. Of
    # categories, how many fire.
    int32_t[:, ::1] bins not None,
    # out, (n, m): whether the split fires where the value is missing
    uint8_t[:, ::1] sides not None,
    bint slopes=False,  # whether words hold slopes and curvatures; then not with ``whole``
):
    """Find the best cut of a leaf, or of the children of one, by each of some columns.

    O(n * sums), and O(entries) of some columns. All in one call: threads that meet between calls
    wait for each other.
    """
    cdef Search s
    s.binned = binned_of(columns)
    s.m = features.shape[0]
    cdef int64_t i, n
    cdef bint fits = (
        offsets.shape[0] == s.m + 1
        and (whole is None or not slopes)
        and (less is None or less.shape[0] == sums.shape[0])
        and (whole is None or (
            whole.shape[0] == s.m
            and leaf_of is not None
            and leaf_of.shape[0] == s.binned.n_rows
            and words is not None
            and words.shape[0] == s.binned.n_rows
            and s.binned.bounds != NULL
        ))
        and (allowed is None or allowed.shape[0] == s.m)
        and (signs is None or signs.shape[0] == s.binned.n_features)
        and (categorical is None or categorical.shape[0] == s.binned.n_features)
        and worths.shape[0] == firing.shape[0] == leaves.shape[0]
        and bins.shape[0] == sides.shape[0] == leaves.shape[0]
        and worths.shape[1] == firing.shape[1] == bins.shape[1] == sides.shape[1] == s.m
    )
    for i in range(leaves.shape[0]):
        fits = fits and (less is not None or not leaves[i].is_less)
    for i in range(s.m if fits else 0):
        fits = fits and 0 <= features[i] < s.binned.n_features
        if fits:
            n = s.binned.n_bins[features[i]] + 1
            fits = scratch.shape[0] >= 5 * n and room.shape[0] >= 2 * n and counts.shape[0] >= n
            if whole is not None and whole[i]:
                n = 1
            fits = fits and 0 <= offsets[i] and offsets[i] + n <= sums.shape[0]
    if not fits:
        raise ValueError("the arrays do not fit the columns")
    if s.m == 0 or leaves.shape[0] == 0 or s.binned.n_rows == 0:
        return
    s.features = &features[0]
    s.offsets = &offsets[0]
    s.whole = &whole[0] if whole is not None else NULL
    s.allowed = &allowed[0] if allowed is not None else NULL
    s.signs = &signs[0] if signs is not None else NULL
    s.categorical = &categorical[0] if categorical is not None else NULL
    s.l2 = l2
    s.least = least
    s.least_rows = least_rows
    s.slopes = slopes
    s.leaf_of = &leaf_of[0] if whole is not None else NULL
    s.words = &words[0] if whole is not None else NULL
    s.scratch = &scratch[0]
    s.room = &room[0]
    s.counts = &counts[0]
    with nogil:
        if less is not None:
            for i in range(sums.shape[0]):
                sums[i] -= less[i]
        for i in range(leaves.shape[0]):
            _search(&s, &leaves[i], &less[0] if leaves[i].is_less else &sums[0],
                    &worths[i, 0], &firing[i, 0], &bins[i, 0], &sides[i, 0])


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
    # columns, words, word, l2, least, low, high, leaf_of, leaf, scratch, room, counts: as for
    # `search`; leaf_of is for sparse columns
    object columns not None,
    int64_t feature,  # the column
    int32_t sign,  # see ``signs`` of `search`; 0 for categories
    bint categorical,  # whether any set of its bins may fire
    const int32_t[::1] rows not None,  # (n,): rows of the leaf
    const uint64_t[::1] words not None,
    uint64_t word,
    double l2,
    double least,
    int64_t least_rows,  # rows of a child, at least
    double low,
    double high,
    const int32_t[::1] leaf_of,
    int32_t leaf,
    uint64_t[::1] scratch not None,
    double[::1] room not None,
    int32_t[::1] counts not None,
    bint slopes=False,  # as for `search`
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
            found = _walk(binned, feature, categorical, &leaf_of[0], leaf, &words[0], &made,
                          rows.shape[0], least_rows, &scratch[0], &room[0], &counts[0])
        else:
            _sum_dense(binned, feature, rows, words, &scratch[0], &counts[0])
            found = _best(categorical, &scratch[0], &counts[0], n - 1, &made, rows.shape[0],
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
    bint slopes=False,  # as for `search`
):
    """Find again which categories fire in a split that `search` has found.

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
            _sum_column(binned, feature, &leaf_of[0], leaf, &words[0], word, rows.shape[0],
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
