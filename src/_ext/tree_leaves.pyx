"""Rows and leaves of a growing tree: partition of rows, and sums of pair weights per leaf."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
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


cdef int64_t _mark(
    const Binned *binned, const code_t *codes, int64_t feature, int64_t bin, uint8_t side,
    const uint8_t *of_code, uint8_t *fires, int64_t n, const int32_t *rows,
) noexcept nogil:
    """Note for each row in turn, or of sparse columns by row, whether it fires; how many do."""
    cdef int64_t i, k, firing = 0, missing = binned.n_bins[feature]
    cdef uint8_t implied
    if binned.bounds == NULL:
        codes += feature * binned.n_rows
        for i in range(n):
            fires[i] = _fires(codes[rows[i]], bin, missing, side, of_code)
            firing += fires[i]
        return firing
    # First as if no row had an entry: other rows may hold anything.
    implied = _fires(binned.zero_bin[feature], bin, missing, side, of_code)
    for i in range(n):
        fires[rows[i]] = implied
    for k in range(binned.bounds[feature], binned.bounds[feature + 1]):
        fires[binned.rows[k]] = _fires(codes[k], bin, missing, side, of_code)
    for i in range(n):
        firing += fires[rows[i]]
    return firing


cdef void _part(
    const uint8_t *fires, bint by_row, int64_t n, int32_t *rows, uint64_t *words,
    int32_t *other_rows, uint64_t *other_words,
) noexcept nogil:
    cdef int64_t i, left = 0, right = 0
    cdef bint goes
    for i in range(n):
        goes = fires[rows[i] if by_row else i]
        # Both are written, one is kept: there is no branch to mispredict.
        other_rows[right] = rows[left] = rows[i]
        other_words[right] = words[left] = words[i]
        right += goes
        left += not goes
    memcpy(rows + left, other_rows, right * sizeof(int32_t))
    memcpy(words + left, other_words, right * sizeof(uint64_t))


def divide(
    object columns not None,
    int64_t feature,  # the split fires in this bin of the column and in those above,
    int64_t bin,
    uint8_t side,  # and where the value is missing if 1
    # (n_bins + 1,), or None: whether each bin fires, and the missing, instead of ``bin`` and
    # ``side``
    const uint8_t[::1] of_code,
    int64_t least,  # rows of each part, at least
    uint8_t[::1] fires not None,  # (n_rows,): scratch
    int32_t[::1] rows not None,  # in and out, (n,): both parts stay in order
    uint64_t[::1] words not None,  # in and out, (n,): moved with the rows
    int32_t[::1] spare_rows not None,  # each (n,) at least: scratch
    uint64_t[::1] spare_words not None,
):
    """Divide the rows of a leaf in place: those where the split does not fire come first.

    Returns how many rows come first; -1 if a part would have too few, then nothing has moved. O(n),
    and O(entries of the column) if it is sparse.
    """
    cdef const Binned *binned = binned_of(columns)
    cdef const uint8_t *table = NULL
    cdef int64_t i, n = rows.shape[0], firing = 0
    cdef uint32_t greatest = 0
    cdef bint fits = (
        0 <= feature < binned.n_features
        and side <= 1
        and (of_code is None or of_code.shape[0] == binned.n_bins[feature] + 1)
        and fires.shape[0] == binned.n_rows
        and n <= binned.n_rows
        and words.shape[0] == n
        and spare_rows.shape[0] >= n
        and spare_words.shape[0] >= n
    )
    for i in range(n):  # a negative one wraps to a large one
        greatest = max(greatest, <uint32_t> rows[i])
    if not fits or (n and greatest >= binned.n_rows):
        raise ValueError("the rows do not fit the columns")
    if n == 0:
        return 0 if least <= 0 else -1
    if of_code is not None:
        table = &of_code[0]
    with nogil:
        if binned.width == 1:
            firing = _mark(binned, <const uint8_t *> binned.codes, feature, bin, side, table,
                           &fires[0], n, &rows[0])
        else:
            firing = _mark(binned, <const int32_t *> binned.codes, feature, bin, side, table,
                           &fires[0], n, &rows[0])
        if min(firing, n - firing) >= least:
            _part(&fires[0], binned.bounds != NULL, n, &rows[0], &words[0], &spare_rows[0],
                  &spare_words[0])
    return n - firing if min(firing, n - firing) >= least else -1


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
