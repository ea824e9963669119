"""Rows and leaves of a growing tree: partition of rows, and sums of pair weights per leaf."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from rankcore._ext._columns cimport Binned, binned_of, code_t
from rankcore._ext._leaves cimport check_leaves


cdef inline bint _fires(
    int64_t code, int64_t bin, int64_t missing, uint8_t side, const uint8_t *of_code
) noexcept nogil:
    """Whether a code fires: by a table if there is one."""
    if of_code != NULL:
        return of_code[code]
    return side if code == missing else code >= bin


cdef inline void _send(
    int32_t row, bint fires, int32_t *spare, int64_t n, int64_t *left, int64_t *right
) noexcept nogil:
    """Write a row to both parts and keep it in one: there is no branch to mispredict."""
    spare[left[0]] = spare[n - 1 - right[0]] = row
    right[0] += fires
    left[0] += not fires


cdef int64_t _settle(
    int64_t least, int64_t left, int64_t right, int32_t *rows, const int32_t *spare
) noexcept nogil:
    """Replace rows by both parts, of which the second is backwards; -1 if one has too few."""
    cdef int64_t i
    if min(left, right) < least:
        return -1
    memcpy(rows, spare, left * sizeof(int32_t))
    for i in range(right):
        rows[left + i] = spare[left + right - 1 - i]
    return left


cdef int64_t _divide_dense(
    const code_t *codes, int64_t bin, int64_t missing, uint8_t side, const uint8_t *of_code,
    int64_t least, int64_t n, int32_t *rows, int32_t *spare,
) noexcept nogil:
    """Divide rows by their codes in one column; -1 if a part would have too few."""
    cdef int64_t i, left = 0, right = 0
    # Bins from ``bin`` on fire, the missing, which come last, among them or not.
    cdef uint32_t span = <uint32_t> (missing + side - bin)
    if of_code != NULL:
        for i in range(n):
            _send(rows[i], of_code[codes[rows[i]]] & 1, spare, n, &left, &right)
    else:
        for i in range(n):
            _send(rows[i], <uint32_t> (codes[rows[i]] - bin) < span, spare, n, &left, &right)
    return _settle(least, left, right, rows, spare)


cdef int64_t _divide_sparse(
    const Binned *binned, const code_t *codes, int64_t feature, int64_t bin, uint8_t side,
    const uint8_t *of_code, uint8_t *fires, int64_t least, int64_t n, int32_t *rows,
    int32_t *spare,
) noexcept nogil:
    """Divide rows by the entries of one column; -1 if a part would have too few."""
    cdef int64_t i, k, left = 0, right = 0, missing = binned.n_bins[feature]
    # First as if no row had an entry: other rows may hold anything.
    cdef uint8_t implied = _fires(binned.zero_bin[feature], bin, missing, side, of_code)
    for i in range(n):
        fires[rows[i]] = implied
    for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
        fires[binned.rows[k]] = _fires(codes[k], bin, missing, side, of_code)
    for i in range(n):
        _send(rows[i], fires[rows[i]] & 1, spare, n, &left, &right)
    return _settle(least, left, right, rows, spare)


cdef int64_t _divide(
    const Binned *binned, const code_t *codes, int64_t feature, int64_t bin, uint8_t side,
    const uint8_t *of_code, uint8_t *fires, int64_t least, int64_t n, int32_t *rows,
    int32_t *spare,
) noexcept nogil:
    if binned.bounds == NULL:
        return _divide_dense(codes + feature * binned.n_rows, bin, binned.n_bins[feature], side,
                             of_code, least, n, rows, spare)
    return _divide_sparse(binned, codes, feature, bin, side, of_code, fires, least, n, rows, spare)


def divide(
    object columns not None,
    int64_t feature,  # the split fires in this bin of the column and in those above,
    int64_t bin,
    uint8_t side,  # and where the value is missing if 1
    # (n_bins + 1,), or None: whether each bin fires, and the missing, instead of ``bin`` and
    # ``side``
    const uint8_t[::1] of_code,
    int64_t least,  # rows of each part, at least
    uint8_t[::1] fires not None,  # (n_rows,): scratch for sparse columns
    int32_t[::1] rows not None,  # in and out, (n,): both parts stay in order
    int32_t[::1] spare not None,  # (n,) at least: scratch
):
    """Partition the rows of a leaf in place: rows where the split does not fire come first.

    Returns the number of these; -1, with nothing moved, if a part would have too few. O(n), and
    O(entries of the column) if it is sparse.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef const uint8_t *table = NULL
    cdef int64_t i, n = rows.shape[0], first
    cdef uint32_t largest = 0
    cdef bint fits = (
        0 <= feature < binned.n_features
        and side <= 1
        and (of_code is None or of_code.shape[0] == binned.n_bins[feature] + 1)
        and (of_code is not None or 0 <= bin <= binned.n_bins[feature])
        and fires.shape[0] == binned.n_rows
        and n <= binned.n_rows
        and spare.shape[0] >= n
    )
    for i in range(n):  # a negative one wraps to a large one
        largest = max(largest, <uint32_t> rows[i])
    if not fits or (n and largest >= binned.n_rows):
        raise ValueError("the rows do not fit the columns")
    if n == 0:
        return 0 if least <= 0 else -1
    if of_code is not None:
        table = &of_code[0]
    with nogil:
        if binned.width == 1:
            first = _divide(binned, <const uint8_t *> binned.codes, feature, bin, side, table,
                            &fires[0], least, n, &rows[0], &spare[0])
        else:
            first = _divide(binned, <const int32_t *> binned.codes, feature, bin, side, table,
                            &fires[0], least, n, &rows[0], &spare[0])
    return first


def label(
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
        raise ValueError("there are no such rows")
    with nogil:
        for i in range(rows.shape[0]):
            leaf_of[rows[i]] = leaf


def weigh(
    const int32_t[::1] leaf_of not None,  # (n_rows,)
    const double[::1] won not None,  # each (n_rows,)
    const double[::1] lost not None,
    const uint8_t[::1] taken,  # (n_rows,), or None: whether a row counts; None: all do
    double[::1] wins not None,  # out, each (n_leaves,): sums over the rows that count
    double[::1] losses not None,
    double[::1] gains not None,  # out, (n_leaves,): sums of ``won - lost`` over all rows
):
    """Sum the pair weights of the rows of each leaf, won and lost, in the order of the rows.

    O(n_rows + n_leaves).
    """
    cdef int64_t i, n = leaf_of.shape[0], n_leaves = wins.shape[0]
    cdef int32_t leaf
    check_leaves(leaf_of, won.shape[0], n_leaves)
    if (
        lost.shape[0] != n
        or (taken is not None and taken.shape[0] != n)
        or not losses.shape[0] == gains.shape[0] == n_leaves
    ):
        raise ValueError("the weights do not fit the rows, or the sums the leaves")
    with nogil:
        for i in range(n_leaves):
            wins[i] = losses[i] = gains[i] = 0.0
        for i in range(n):
            leaf = leaf_of[i]
            gains[leaf] += won[i] - lost[i]
            if taken is None or taken[i]:
                wins[leaf] += won[i]
                losses[leaf] += lost[i]
