# The rows of a query, in the order of their scores. Private.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport malloc

from rankcore._ext._order cimport N_COUNTS, descending_key, order


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
    """Room for a query of n rows. What is not written to costs no memory."""
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
    """Check the bounds of some queries; the most rows that one of them has."""
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
    """The numbers of a query side by side, copied if need be; NULL for a row there is not."""
    cdef int64_t i
    if rows == NULL:
        return x + start
    for i in range(n):
        if not 0 <= rows[start + i] < n_rows:
            return NULL
        to[i] = x[rows[start + i]]
    return to


cdef inline bint sort_descending(Room *room, const double *x, int64_t n) noexcept nogil:
    """Fill `room.place`, the greatest first and equals in order; whether there are equals."""
    cdef int64_t i
    for i in range(n):
        room.place[i] = <uint32_t> i
        room.key[i] = descending_key(x[i])
    return order(room.key, room.place, n, room.packed, room.spare, room.counts)
