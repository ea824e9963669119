# Rows of a query in the order of their scores, for measures of pairs of rows. Private.
#
# Queries are described by ``bounds``, (n_queries + 1,): query i has the rows bounds[i] up to
# bounds[i + 1] of scores and labels, (n_rows,), or the entries of ``rows``, (n_rows,), in this
# range. Loading and sorting a query of n rows is O(n), in 48 n bytes.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport malloc

from rankcore._ext._order cimport N_COUNTS, descending_key, order

cdef extern from "_finite.h" nogil:
    int rc_all_finite(const double *x, int64_t n)


cdef enum Status:
    NOTHING
    NO_MEMORY
    BAD_ROW
    ODD_SCORE
    ODD_LABEL
    HUGE


cdef struct SortWorkspace:
    # Arrays of n + 1 entries for the largest query of n rows.
    double *score  # of the query, if its rows are not contiguous
    double *label
    uint64_t *key  # integer in the order of the sorted numbers, by row
    uint64_t *packed  # scratch of the sort
    uint64_t *spare  # scratch of the sort
    uint32_t *place  # rows in sorted order
    uint32_t *level  # index of the label among the distinct ones, by row
    uint32_t *counts  # scratch of the sort: N_COUNTS
    char *block  # the memory of all of them, to be freed


cdef inline bint allocate(SortWorkspace *work, int64_t n) noexcept nogil:
    """Allocate memory for a query of n rows. Untouched pages take no memory."""
    cdef size_t each = n + 1
    cdef double *numbers
    work.block = <char *> malloc(each * (5 * 8 + 2 * 4) + N_COUNTS * sizeof(uint32_t))
    if work.block == NULL:
        return False
    numbers = <double *> work.block
    work.score = numbers
    work.label = numbers + each
    work.key = <uint64_t *> (numbers + 2 * each)
    work.packed = <uint64_t *> (numbers + 3 * each)
    work.spare = <uint64_t *> (numbers + 4 * each)
    work.place = <uint32_t *> (numbers + 5 * each)
    work.level = work.place + each
    work.counts = work.level + each
    return True


cdef inline int64_t longest_query(
    const int64_t[::1] bounds, int64_t first, int64_t last, int64_t n_rows
) except -1:
    """Check the bounds of some queries; return the maximum number of rows."""
    cdef int64_t i, longest = 0
    if not 0 <= first <= last < bounds.shape[0]:
        raise ValueError("first and last must be queries of bounds")
    for i in range(first, last):
        if not 0 <= bounds[i] <= bounds[i + 1] <= n_rows:
            raise ValueError("bounds must ascend from 0 to the number of rows")
        longest = max(longest, bounds[i + 1] - bounds[i])
    if longest >= <int64_t> 1 << 32:
        raise ValueError("a query has more than 4294967295 rows")
    return longest


cdef inline const double *gather(
    const double *x, const int64_t *rows, double *to, int64_t start, int64_t n, int64_t n_rows
) noexcept nogil:
    """Return the numbers of a query, contiguous, or NULL if a row does not exist."""
    cdef int64_t i
    if rows == NULL:
        return x + start
    for i in range(n):
        if not 0 <= rows[start + i] < n_rows:
            return NULL
        to[i] = x[rows[start + i]]
    return to


cdef inline bint sort_descending(SortWorkspace *work, const double *x, int64_t n) noexcept nogil:
    """Fill `work.place` in descending order, ties in input order; return whether there are ties."""
    cdef int64_t i
    for i in range(n):
        work.place[i] = <uint32_t> i
        work.key[i] = descending_key(x[i])
    return order(work.key, work.place, n, work.packed, work.spare, work.counts)


cdef struct Data:
    const double *scores
    const double *labels
    const int64_t *rows  # or NULL: the rows of a query are contiguous
    const int64_t *bounds
    int64_t n_rows


cdef struct Query:
    const double *score
    const double *label
    int64_t n


cdef inline Data data_of(
    const double[::1] scores,
    const double[::1] labels,
    const int64_t[::1] rows,
    const int64_t[::1] bounds,
) except *:
    cdef Data data
    data.n_rows = scores.shape[0]
    if labels.shape[0] != data.n_rows or (rows is not None and rows.shape[0] != data.n_rows):
        raise ValueError("scores, labels and rows differ in length")
    if data.n_rows == 0:
        raise ValueError("scores must not be empty")
    data.scores, data.labels, data.bounds = &scores[0], &labels[0], &bounds[0]
    data.rows = &rows[0] if rows is not None else NULL
    return data


cdef inline int32_t load(const Data *data, SortWorkspace *work, int64_t i, Query *q) noexcept nogil:
    """Load the scores and labels of query `i`, contiguous and finite; return a Status."""
    cdef int64_t start = data.bounds[i]
    q.n = data.bounds[i + 1] - start
    q.score = gather(data.scores, data.rows, work.score, start, q.n, data.n_rows)
    q.label = gather(data.labels, data.rows, work.label, start, q.n, data.n_rows)
    if q.score == NULL or q.label == NULL:
        return BAD_ROW
    if not rc_all_finite(q.score, q.n):
        return ODD_SCORE
    if not rc_all_finite(q.label, q.n):
        return ODD_LABEL
    return NOTHING


cdef inline int64_t find_levels(SortWorkspace *work, Query *q) noexcept nogil:
    """Assign a level to each distinct label, 0 to the highest; return the number of levels.

    Fills `work.level` by row. `work.label` is overwritten by the number of rows with higher labels,
    int64 by level.
    """
    cdef int64_t i
    cdef int64_t *before = <int64_t *> work.label
    cdef int64_t level = -1
    cdef uint64_t key = 0
    sort_descending(work, q.label, q.n)
    for i in range(q.n):
        if i == 0 or work.key[work.place[i]] != key:
            key = work.key[work.place[i]]
            level += 1
            before[level] = i
        work.level[work.place[i]] = <uint32_t> level
    return level + 1
