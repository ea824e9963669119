"""Partition the rows of a leaf by its split, and sum gradients and hessians by leaf.

``rows`` (n,) has the rows of one leaf, in ascending order: a range of an array with all rows of the
tree. `partition_rows` moves those of the left child to the front, both in order, without a branch
to mispredict. O(n) for n rows of a leaf, and O(entries of the column) if it is sparse.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._leaves cimport check_leaves


# The split of a column.
ctypedef struct Split:
    int64_t bin  # rows of this bin and of those above go right
    int64_t missing  # code of missing values
    uint8_t missing_right
    const uint8_t *of_code  # instead: whether each code goes right; or NULL


cdef inline bint _goes_right(int64_t code, const Split *split) noexcept nogil:
    """Return whether a code goes right: by a table if there is one."""
    if split.of_code != NULL:
        return split.of_code[code]
    return split.missing_right if code == split.missing else code >= split.bin


cdef inline void _send(
    int32_t row, bint goes_right, int32_t *spare, int64_t n, int64_t *left, int64_t *right
) noexcept nogil:
    """Write a row to both parts and keep it in one, without a branch to mispredict."""
    spare[left[0]] = spare[n - 1 - right[0]] = row
    right[0] += goes_right
    left[0] += not goes_right


cdef int64_t _settle(
    int64_t min_rows, int64_t left, int64_t right, int32_t *rows, const int32_t *spare
) noexcept nogil:
    """Replace rows by both parts, the second one reversed; return -1 if one is too small."""
    cdef int64_t i
    if min(left, right) < min_rows:
        return -1
    memcpy(rows, spare, left * sizeof(int32_t))
    for i in range(right):
        rows[left + i] = spare[left + right - 1 - i]
    return left


cdef int64_t _divide_dense(
    const code_t *codes, const Split *split, int64_t min_rows, int64_t n, int32_t *rows,
    int32_t *spare,
) noexcept nogil:
    """Divide rows by their codes in one column; return -1 if a part would be too small."""
    cdef int64_t i, left = 0, right = 0, bin = split.bin
    # Codes from ``bin`` on go right; that of missing values, the last one, if it should.
    cdef uint32_t span = <uint32_t> (split.missing + split.missing_right - bin)
    cdef const uint8_t *of_code = split.of_code
    if of_code != NULL:
        for i in range(n):
            _send(rows[i], of_code[codes[rows[i]]] & 1, spare, n, &left, &right)
    else:
        for i in range(n):
            _send(rows[i], <uint32_t> (codes[rows[i]] - bin) < span, spare, n, &left, &right)
    return _settle(min_rows, left, right, rows, spare)


cdef int64_t _divide_sparse(
    const Binned *binned, const code_t *codes, int64_t feature, const Split *split,
    uint8_t *goes_right, int64_t min_rows, int64_t n, int32_t *rows, int32_t *spare,
) noexcept nogil:
    """Divide rows by the entries of one column; return -1 if a part would be too small."""
    cdef int64_t i, k, left = 0, right = 0
    # First as if no row had an entry; flags of rows outside the leaf are not used.
    cdef uint8_t implied = _goes_right(binned.zero_bin[feature], split)
    for i in range(n):
        goes_right[rows[i]] = implied
    for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
        goes_right[binned.rows[k]] = _goes_right(codes[k], split)
    for i in range(n):
        _send(rows[i], goes_right[rows[i]] & 1, spare, n, &left, &right)
    return _settle(min_rows, left, right, rows, spare)


cdef int64_t _divide(
    const Binned *binned, const code_t *codes, int64_t feature, const Split *split,
    uint8_t *goes_right, int64_t min_rows, int64_t n, int32_t *rows, int32_t *spare,
) noexcept nogil:
    if binned.bounds == NULL:
        return _divide_dense(codes + feature * binned.n_rows, split, min_rows, n, rows, spare)
    return _divide_sparse(binned, codes, feature, split, goes_right, min_rows, n, rows, spare)


def partition_rows(
    object columns not None,
    int64_t feature,
    int64_t bin,  # rows of this bin and of those above go right,
    uint8_t missing_right,  # and those with missing values if 1
    # (n_bins + 1,), or None: whether each bin goes right, and missing values, instead of ``bin``
    # and ``missing_right``
    const uint8_t[::1] of_code,
    int64_t min_rows,  # of each child
    uint8_t[::1] goes_right not None,  # (n_rows,): scratch for sparse columns
    int32_t[::1] rows not None,  # in and out, (n,): both children stay in order
    int32_t[::1] spare not None,  # (n,) at least: scratch
):
    """Partition the rows of a leaf in place: those of the left child come first.

    Returns the number of these; -1, with nothing moved, if a child would have too few.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef Split split
    cdef int64_t i, n = rows.shape[0], n_left
    cdef uint32_t largest = 0
    cdef bint fits = (
        0 <= feature < binned.n_features
        and missing_right <= 1
        and (of_code is None or of_code.shape[0] == binned.n_bins[feature] + 1)
        and (of_code is not None or 0 <= bin <= binned.n_bins[feature])
        and goes_right.shape[0] == binned.n_rows
        and n <= binned.n_rows
        and spare.shape[0] >= n
    )
    for i in range(n):  # a negative number wraps to a large one
        largest = max(largest, <uint32_t> rows[i])
    if not fits or (n and largest >= binned.n_rows):
        raise ValueError("the rows do not match the columns")
    if n == 0:
        return 0 if min_rows <= 0 else -1
    split.bin, split.missing, split.missing_right = bin, binned.n_bins[feature], missing_right
    split.of_code = &of_code[0] if of_code is not None else NULL
    with nogil:
        if binned.width == 1:
            n_left = _divide(binned, <const uint8_t *> binned.codes, feature, &split,
                             &goes_right[0], min_rows, n, &rows[0], &spare[0])
        else:
            n_left = _divide(binned, <const int32_t *> binned.codes, feature, &split,
                             &goes_right[0], min_rows, n, &rows[0], &spare[0])
    return n_left


def label_rows(
    const int32_t[::1] rows not None,  # (n,)
    int32_t leaf,
    int32_t[::1] leaf_of not None,  # in and out, (n_rows,): other rows stay as they are
):
    """Write the leaf of some rows."""
    cdef int64_t i
    cdef bint fits = True
    for i in range(rows.shape[0]):
        fits = fits and 0 <= rows[i] < leaf_of.shape[0]
    if not fits:
        raise ValueError("row numbers are out of range")
    with nogil:
        for i in range(rows.shape[0]):
            leaf_of[rows[i]] = leaf


def sum_by_leaf(
    const int32_t[::1] leaf_of not None,  # (n_rows,)
    const double[::1] gradients not None,  # each (n_rows,)
    const double[::1] hessians not None,
    const uint8_t[::1] drawn,  # (n_rows,), or None: whether the tree learns from a row; None: all
    double[:, ::1] sums not None,  # out, (2, n_leaves): gradients and hessians of these rows
    double[::1] all_gradients not None,  # out, (n_leaves,): gradients of all rows
):
    """Sum gradients and hessians by leaf, in the order of the rows. O(n_rows + n_leaves)."""
    cdef int64_t i, n = leaf_of.shape[0], n_leaves = all_gradients.shape[0]
    cdef int32_t leaf
    check_leaves(leaf_of, gradients.shape[0], n_leaves)
    if (
        hessians.shape[0] != n
        or (drawn is not None and drawn.shape[0] != n)
        or sums.shape[0] != 2
        or sums.shape[1] != n_leaves
    ):
        raise ValueError("the gradients do not match the rows, or the sums the leaves")
    with nogil:
        for i in range(n_leaves):
            sums[0, i] = sums[1, i] = all_gradients[i] = 0.0
        for i in range(n):
            leaf = leaf_of[i]
            all_gradients[leaf] += gradients[i]
            if drawn is None or drawn[i]:
                sums[0, leaf] += gradients[i]
                sums[1, leaf] += hessians[i]
