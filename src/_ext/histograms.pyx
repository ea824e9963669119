"""Build histograms of gradients and hessians for the leaves of a tree, and find their splits.

Each row has a packed gradient and hessian: two rounded integers in one 64-bit word, see
``_splitting.h``. The histogram of a leaf has, for each bin of each feature, the sum of the packed
words of the leaf's rows. Sums are exact: they depend neither on the order of the rows nor on the
division of features among threads, and the histogram of a leaf minus that of one child is exactly
that of the other (the subtraction trick), so that only the smaller child is summed.

A `FeatureBlock` holds some of the features, for one thread:

* dense columns of byte codes: panels of codes (see `histogram_layout`), and ``histogram`` (padded
  number of features * 256,). O(n * features) for n rows, near one addition per cycle
  (``_row_histograms.h``).
* sparse columns: for each row the list of the sums that its entries add to, and ``histogram``
  (n_sums,). O(entries of the rows); zeros are never visited, and follow from the total of the leaf.
* sparse columns with few entries have one sum for all their entries, which bounds the gain of all
  splits by the column; the entries are visited only if the bound exceeds the best other gain.
* columns of 32-bit codes, column by column.

Splits are found from histograms, best while these are still in the cache. O(n_sums) per leaf.
"""

from libc.math cimport floor
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._panels cimport (
    RC_CHUNK,
    RC_CODES,
    RC_EIGHT,
    RC_PANEL,
    panel_width,
    rc_sum_panel,
)
from rankcore._ext._splitting cimport (
    LeafRecord,
    SplitRecord,
    best_split,
    fill_zero_bin,
    rc_gain_bound,
    rc_leaf,
    recorded,
    split_column,
    sum_column,
)

# Bounds and gains round differently: bounds are raised by more than the rounding errors.
cdef double RAISED = 1.0 + 1e-12
cdef enum:
    # Value of ``bin`` for a column whose gain is a bound.
    BOUND_ONLY = -2

BOUNDED = BOUND_ONLY


def quantise(
    const double[::1] gradients not None,  # each (n_all,): minus the derivatives of the loss,
    const double[::1] hessians not None,  # and its second derivatives; not negative
    const int32_t[::1] rows not None,  # (n,): the rows to learn from
    bint bounded,  # whether no gradient exceeds its hessian; then that holds for the integers
    # out, (n_all,): ``gradients * power * scale`` in the upper 32 bits, in two's complement, and
    # ``hessians * scale`` in the lower, both rounded; 0 for other rows. If bounded, half the sum
    # and half the difference of both are rounded; otherwise, hessians are at least 1.
    uint64_t[::1] packed not None,
    double scale,  # of `rankcore.boosting._grower.Units`: no sum overflows its half of a word
    double power,
):
    """Round the gradients and hessians of some rows to integers, two in a word.

    The sum of m rows has an error of at most m units. O(n).
    """
    cdef int64_t i, n = rows.shape[0]
    cdef double gradient, hessian, up, down
    cdef bint fits = gradients.shape[0] == hessians.shape[0] == packed.shape[0] and n < 2**30
    for i in range(n if fits else 0):
        fits = fits and 0 <= rows[i] < gradients.shape[0]
    if not fits:
        raise ValueError("the rows and their gradients are inconsistent")
    with nogil:
        packed[:] = 0
        for i in range(n):
            gradient, hessian = gradients[rows[i]], hessians[rows[i]]
            if bounded:
                up = floor(0.5 * (hessian + gradient) * scale + 0.5)
                down = floor(0.5 * (hessian - gradient) * scale + 0.5)
                gradient, hessian = up - down, up + down
            else:
                gradient = floor(gradient * power * scale + 0.5)
                hessian = max(hessian * scale + 0.5, 1.0)
            packed[rows[i]] = <uint64_t> (<int64_t> gradient) << 32 | <uint64_t> hessian


cdef void _count_dense(
    const code_t *codes, const int32_t[::1] rows, const uint64_t[::1] packed, uint64_t *histogram,
    int32_t *counts,
) noexcept nogil:
    cdef int64_t i
    for i in range(rows.shape[0]):
        histogram[codes[rows[i]]] += packed[rows[i]]
        counts[codes[rows[i]]] += 1


def column_histogram(
    object columns not None,
    int64_t feature,
    const int32_t[::1] rows not None,  # (n,): rows of the leaf
    const uint64_t[::1] packed not None,  # (n_rows,): of each row
    uint64_t total,  # packed sum of the leaf
    const int32_t[::1] node_of,  # (n_rows,), for sparse columns: the leaf of each row, and this one
    int32_t node,
    uint64_t[::1] histogram not None,  # out, each (n_bins + 1,): the last is of missing values
    int32_t[::1] counts not None,  # numbers of rows
):
    """Build the histogram of a leaf for one column, and count rows.

    O(n), or O(entries of the column) if it is sparse.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t i, at, n_rows = rows.shape[0]
    cdef bint sparse = binned.bounds != NULL
    cdef bint fits = (
        0 <= feature < binned.n_features
        and packed.shape[0] == binned.n_rows
        and (not sparse or (node_of is not None and node_of.shape[0] == binned.n_rows))
    )
    for i in range(n_rows if fits and not sparse else 0):
        fits = fits and 0 <= rows[i] < binned.n_rows
    if not fits or not histogram.shape[0] == counts.shape[0] == binned.n_bins[feature] + 1:
        raise ValueError("the arrays do not match the columns")
    at = feature * binned.n_rows
    with nogil:
        if sparse:
            sum_column(binned, feature, &node_of[0], node, &packed[0], total, n_rows, &histogram[0],
                       &counts[0])
        else:
            histogram[:] = 0
            counts[:] = 0
            if binned.width == 1:
                _count_dense(<const uint8_t *> binned.codes + at, rows, packed, &histogram[0],
                             &counts[0])
            else:
                _count_dense(<const int32_t *> binned.codes + at, rows, packed, &histogram[0],
                             &counts[0])


# The features of a block, and the leaves to search next.
ctypedef struct Block:
    const Binned *binned
    int64_t n_features
    const int32_t *features
    const int64_t *offsets
    const uint8_t *one_sum
    const int8_t *signs
    const uint8_t *categorical
    int64_t min_rows
    int64_t n_sums
    # Layout of the codes: panels, or lists of sparse rows, or neither.
    const uint8_t *panels
    int64_t padded
    const int64_t *row_starts
    const int32_t *row_sums
    # Scratch.
    uint8_t *panel_rows
    uint64_t *scratch
    double *gains
    int32_t *counts
    # The current tree.
    const int32_t *node_of
    const uint64_t *packed
    double l2
    double min_hessian


cdef void _sum_column(
    const code_t *codes, const int32_t[::1] rows, const uint64_t *packed, uint64_t *histogram
) noexcept nogil:
    cdef int64_t i
    for i in range(rows.shape[0]):
        histogram[codes[rows[i]]] += packed[rows[i]]


cdef void _sum_columns(
    const Block *block, const int32_t[::1] rows, uint64_t *histogram
) noexcept nogil:
    """Sum dense columns, one by one."""
    cdef int64_t j, at
    for j in range(block.n_features):
        at = block.features[j] * block.binned.n_rows
        if block.binned.width == 1:
            _sum_column(<const uint8_t *> block.binned.codes + at, rows, block.packed,
                        histogram + block.offsets[j])
        else:
            _sum_column(<const int32_t *> block.binned.codes + at, rows, block.packed,
                        histogram + block.offsets[j])


cdef void _sum_panels(
    const Block *block, const int32_t[::1] rows, uint64_t *histogram
) noexcept nogil:
    cdef int64_t first = 0, width
    while rows.shape[0] and first < block.padded:
        width = panel_width(first, block.padded)
        rc_sum_panel(block.panels + first * block.binned.n_rows, width, &rows[0], block.packed,
                     rows.shape[0], block.panel_rows, histogram + first * RC_CODES)
        first += width


cdef void _sum_row_lists(
    const Block *block, const int32_t[::1] rows, uint64_t *histogram
) noexcept nogil:
    """Sum the entries of sparse rows."""
    cdef int64_t i, k
    cdef int32_t row
    cdef uint64_t packed
    for i in range(rows.shape[0]):
        row = rows[i]
        packed = block.packed[row]
        for k in range(block.row_starts[row], block.row_starts[row + 1]):
            histogram[block.row_sums[k]] += packed


cdef inline bint _is_categorical(const Block *block, int64_t feature) noexcept nogil:
    return block.categorical != NULL and block.categorical[feature]


cdef void _search(
    const Block *block, const LeafRecord *record, const uint64_t *histogram,
    const uint8_t *allowed, SplitRecord *splits,
) noexcept nogil:
    """Find the best split of a leaf by each feature that is allowed; NULL: all are."""
    cdef int64_t i, b, f, n
    cdef rc_leaf leaf
    cdef const uint64_t *sums
    cdef double best = 0.0
    leaf.packed = record.packed
    leaf.l2 = block.l2
    leaf.min_hessian = block.min_hessian
    leaf.low = record.low
    leaf.high = record.high
    for i in range(block.n_features):
        splits[i].gain = -1.0
        splits[i].packed = 0
        splits[i].bin = -1
        splits[i].missing_right = 0
        if allowed != NULL and not allowed[i]:
            continue
        f = block.features[i]
        sums = histogram + block.offsets[i]
        if block.one_sum != NULL and block.one_sum[i]:
            # All rows on one side of a split have an entry.
            n = block.binned.bounds[f + 1] - block.binned.bounds[f]
            if sums[0] and n >= block.min_rows:
                splits[i].gain = RAISED * rc_gain_bound(sums[0], &leaf)
                splits[i].bin = BOUND_ONLY
            continue
        n = block.binned.n_bins[f] + 1
        if block.binned.bounds != NULL:
            for b in range(n):
                block.scratch[b] = sums[b]
            sums = block.scratch
            fill_zero_bin(block.binned, f, record.packed, block.scratch)
        leaf.sign = 0 if block.signs == NULL else block.signs[f]
        splits[i] = recorded(best_split(
            _is_categorical(block, f), sums, NULL, n - 1, &leaf, 0, 0, block.scratch + n,
            block.gains,
        ))
        best = max(best, splits[i].gain)
    for i in range(block.n_features if block.one_sum != NULL else 0):
        if splits[i].bin != BOUND_ONLY or splits[i].gain < best:
            continue
        f = block.features[i]
        leaf.sign = 0 if block.signs == NULL else block.signs[f]
        splits[i] = recorded(split_column(
            block.binned, f, _is_categorical(block, f), block.node_of, record.node, block.packed,
            &leaf, record.n_rows, block.min_rows, block.scratch, block.gains, block.counts,
        ))
        best = max(best, splits[i].gain)


cdef class FeatureBlock:
    """Some features, whose histograms one thread builds and searches. Arrays are not copied."""

    cdef Block block
    cdef tuple kept
    cdef object kept_of_tree

    def __init__(
        self,
        object columns not None,
        const int32_t[::1] features not None,  # (m,): the columns
        const int64_t[::1] offsets not None,  # (m + 1,): where the sums of each column begin
        int64_t n_sums,  # size of a histogram
        # (m,), or None: whether all entries of a sparse column have one sum. Then no gradient may
        # exceed its hessian.
        const uint8_t[::1] one_sum,
        const int8_t[::1] signs,  # (n_features,), or None: monotone constraints, as in `splitting`
        const uint8_t[::1] categorical,  # (n_features,), or None: which are categorical
        const uint8_t[::1] panels,  # dense columns of byte codes, from `histogram_layout`
        const int64_t[::1] row_starts,  # sparse columns, from `histogram_layout`
        const int32_t[::1] row_sums,
        int64_t min_rows,  # of a child; only for columns with one sum
    ):
        cdef Block *block = &self.block
        cdef const Binned *binned = binned_of(columns)
        cdef int64_t i, n, most = 0, m = features.shape[0], n_rows = binned.n_rows
        cdef int64_t padded = (m + RC_EIGHT - 1) // RC_EIGHT * RC_EIGHT
        cdef bint sparse = binned.bounds != NULL
        cdef bint fits = (
            n_rows > 0
            and m > 0
            and offsets.shape[0] == m + 1
            and (one_sum is None or (sparse and one_sum.shape[0] == m))
            and (signs is None or signs.shape[0] == binned.n_features)
            and (categorical is None or categorical.shape[0] == binned.n_features)
            and sparse == (row_sums is not None) == (row_starts is not None)
            and (not sparse or (
                row_starts.shape[0] == n_rows + 1 and row_sums.shape[0] == row_starts[n_rows]
            ))
            and (panels is None or (
                not sparse
                and binned.width == 1
                and panels.shape[0] == padded * n_rows
                and n_sums == padded * RC_CODES
            ))
        )
        for i in range(m if fits else 0):
            fits = fits and 0 <= features[i] < binned.n_features
            if fits:
                n = binned.n_bins[features[i]] + 1
                most = max(most, n)
                if one_sum is not None and one_sum[i]:
                    n = 1
                fits = fits and 0 <= offsets[i] and offsets[i] + n <= n_sums
                if panels is not None:
                    fits = fits and offsets[i] == i * RC_CODES
        if not fits:
            raise ValueError("the arrays do not match the columns")
        self._free()
        block.scratch = <uint64_t *> malloc(5 * most * sizeof(uint64_t))
        block.gains = <double *> malloc(2 * most * sizeof(double))
        block.counts = <int32_t *> malloc(most * sizeof(int32_t))
        block.panel_rows = <uint8_t *> malloc(RC_CHUNK * RC_PANEL if panels is not None else 1)
        if (block.scratch == NULL or block.gains == NULL or block.counts == NULL
                or block.panel_rows == NULL):
            raise MemoryError
        self.kept = (columns, features, offsets, one_sum, signs, categorical, panels, row_starts,
                     row_sums)
        block.binned, block.n_features = binned, m
        block.features, block.offsets = &features[0], &offsets[0]
        block.one_sum = &one_sum[0] if one_sum is not None else NULL
        block.signs = &signs[0] if signs is not None else NULL
        block.categorical = &categorical[0] if categorical is not None else NULL
        block.panels = &panels[0] if panels is not None else NULL
        block.row_starts = &row_starts[0] if row_starts is not None else NULL
        block.row_sums = &row_sums[0] if sparse and row_sums.shape[0] else NULL
        block.padded, block.n_sums, block.min_rows = padded, n_sums, min_rows

    cdef void _free(self) noexcept:
        free(self.block.scratch)
        free(self.block.gains)
        free(self.block.counts)
        free(self.block.panel_rows)
        self.block.scratch = NULL
        self.block.gains = NULL
        self.block.counts = NULL
        self.block.panel_rows = NULL

    def __dealloc__(self):
        self._free()

    def begin_tree(
        self,
        const uint64_t[::1] packed not None,  # (n_rows,): of `quantise`
        const int32_t[::1] node_of not None,  # (n_rows,): for sparse columns: the leaf of each row
        double l2,  # in units of packed sums: added to hessians of leaves, and their minimum
        double min_hessian,
    ):
        """Begin a tree."""
        cdef Block *block = &self.block
        if packed.shape[0] != block.binned.n_rows or node_of.shape[0] != block.binned.n_rows:
            raise ValueError("the arrays do not match the columns")
        self.kept_of_tree = packed, node_of
        block.packed, block.node_of = &packed[0], &node_of[0]
        block.l2, block.min_hessian = l2, min_hessian

    def sum_rows(
        self,
        const int32_t[::1] rows not None,  # (n,): rows of the root, or of the smaller child
        uint64_t[::1] histogram not None,  # out, (n_sums,): of these rows; sparse: of entries
        # in and out, (n_sums,), or None: histogram of the parent; then of the larger child
        uint64_t[::1] parent,
    ):
        """Build the histogram of the root, or those of both children of a leaf."""
        cdef Block *block = &self.block
        cdef int64_t i, n = rows.shape[0]
        cdef bint fits = (
            block.packed != NULL
            and (n == 0 or 0 <= rows[0] <= rows[n - 1] < block.binned.n_rows)
            and histogram.shape[0] == block.n_sums
            and (parent is None or parent.shape[0] == block.n_sums)
        )
        if not fits:
            raise ValueError("the rows and histograms do not match the columns")
        with nogil:
            histogram[:] = 0
            if block.binned.bounds != NULL:
                _sum_row_lists(block, rows, &histogram[0])
            elif block.panels != NULL:
                _sum_panels(block, rows, &histogram[0])
            else:
                _sum_columns(block, rows, &histogram[0])
            if parent is not None:
                for i in range(block.n_sums):
                    parent[i] -= histogram[i]

    def find_splits(
        self,
        const uint64_t[::1] histogram not None,  # (n_sums,): of `sum_rows`
        const LeafRecord[::1] leaf not None,  # (1,): its leaf
        const uint8_t[::1] allowed,  # (m,), or None: which columns may be used
        # out, (m,): best split by each column. If ``bin`` is BOUNDED, ``gain`` is a bound, less
        # than the gain of another column.
        SplitRecord[::1] splits not None,
    ):
        """Find the best split of a leaf by each column."""
        cdef Block *block = &self.block
        if (
            block.packed == NULL
            or histogram.shape[0] != block.n_sums
            or leaf.shape[0] != 1
            or (allowed is not None and allowed.shape[0] != block.n_features)
            or splits.shape[0] != block.n_features
        ):
            raise ValueError("the histogram, leaf and splits do not match the columns")
        cdef const uint8_t *mask = NULL
        if allowed is not None:
            mask = &allowed[0]
        with nogil:
            _search(block, &leaf[0], &histogram[0], mask, &splits[0])
