# The rows of a query, in the order of their scores. Private.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport malloc

from rankcore._ext._order cimport N_COUNTS, descending_key, order

cdef extern from "_finite.h" nogil:
    int rc_all_finite(const double *x, int64_t n)


cdef enum Trouble:
    NOTHING
    NO_MEMORY
    BAD_ROW
    ODD_SCORE
    ODD_LABEL
    HUGE


cdef struct Room:
    double *score
    double *label
    uint64_t *key
    uint64_t *packed
    uint64_t *spare
    uint32_t *place
    uint32_t *level
    uint32_t *counts
    char *block  # of malloc


cdef inline bint allocate(Room *room, int64_t n) noexcept nogil:
    """Memory for a query of n rows. Untouched pages take no memory."""
    cdef size_t each = n + 1
    cdef double *numbers
    room.block = <char *> malloc(each * (5 * 8 + 2 * 4) + N_COUNTS * sizeof(uint32_t))
    if room.block == NULL:
        return False
    numbers = <double *> room.block
    room.score = numbers
    room.label = numbers + each
    room.key = <uint64_t *> (numbers + 2 * each)
    room.packed = <uint64_t *> (numbers + 3 * each)
    room.spare = <uint64_t *> (numbers + 4 * each)
    room.place = <uint32_t *> (numbers + 5 * each)
    room.level = room.place + each
    room.counts = room.level + each
    return True


cdef inline int64_t longest_query(
    const int64_t[::1] bounds, int64_t first, int64_t last, int64_t n_rows
) except -1:
    """Check the bounds of some queries; return the maximum number of rows."""
    cdef int64_t i, longest = 0
    if not 0 <= first <= last < bounds.shape[0]:
        raise ValueError("there are no such queries")
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
    """Contiguous numbers of a query, copied if necessary; NULL if a row does not exist."""
    cdef int64_t i
    if rows == NULL:
        return x + start
    for i in range(n):
        if not 0 <= rows[start + i] < n_rows:
            return NULL
        to[i] = x[rows[start + i]]
    return to


cdef inline bint sort_descending(Room *room, const double *x, int64_t n) noexcept nogil:
    """Fill `room.place` in descending order, ties in input order; return whether there are ties."""
    cdef int64_t i
    for i in range(n):
        room.place[i] = <uint32_t> i
        room.key[i] = descending_key(x[i])
    return order(room.key, room.place, n, room.packed, room.spare, room.counts)


cdef struct Data:
    const double *scores
    const double *labels
    const int64_t *rows  # or NULL: the rows of a query are neighbours
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
        raise ValueError("there are no rows")
    data.scores, data.labels, data.bounds = &scores[0], &labels[0], &bounds[0]
    data.rows = &rows[0] if rows is not None else NULL
    return data


cdef inline int32_t load(const Data *data, Room *room, int64_t i, Query *q) noexcept nogil:
    """Bring the rows of query `i` together."""
    cdef int64_t start = data.bounds[i]
    q.n = data.bounds[i + 1] - start
    q.score = gather(data.scores, data.rows, room.score, start, q.n, data.n_rows)
    q.label = gather(data.labels, data.rows, room.label, start, q.n, data.n_rows)
    if q.score == NULL or q.label == NULL:
        return BAD_ROW
    if not rc_all_finite(q.score, q.n):
        return ODD_SCORE
    if not rc_all_finite(q.label, q.n):
        return ODD_LABEL
    return NOTHING


cdef inline int64_t find_levels(Room *room, Query *q) noexcept nogil:
    """Number the distinct labels in descending order, from 0; return their number.

    Fills `room.level` by row, and by level how many rows have higher labels. The labels
    themselves are not there afterwards.
    """
    cdef int64_t i
    cdef int64_t *before = <int64_t *> room.label
    cdef int64_t level = -1
    cdef uint64_t key = 0
    sort_descending(room, q.label, q.n)
    for i in range(q.n):
        if i == 0 or room.key[room.place[i]] != key:
            key = room.key[room.place[i]]
            level += 1
            before[level] = i
        room.level[room.place[i]] = <uint32_t> level
    return level + 1
