# Memory to sort a query's documents by score and to walk over them, for pair_loss. Private.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport malloc

from rankcore._ext._margin_sums cimport Sums
from rankcore._ext._order cimport N_COUNTS, descending_key
from rankcore._ext._order cimport order as sort_by_key

cdef enum:
    PATIENCE = 4  # moves per document for which insertion is faster than sorting again


cdef struct Room:
    # For the largest query, by place in the order of scores; second halves are in reverse.
    double *score
    double *weight
    double *count
    double *first
    uint32_t *level
    uint64_t *key
    uint64_t *packed
    uint64_t *spare
    uint32_t *counts
    Sums *tree
    double *values
    char *block  # the memory of all of them, to be freed


cdef inline bint allocate(
    Room *room, int64_t n_docs, int64_t n_levels, int64_t width
) noexcept nogil:
    """Allocate memory for queries of at most this size; a tree of rows has `width` columns."""
    cdef size_t each = n_docs
    room.block = <char *> malloc(
        n_levels * sizeof(Sums) + (each * 12 + n_levels * width) * 8
        + each * 2 * 4 + N_COUNTS * sizeof(uint32_t)
    )
    if room.block == NULL:
        return False
    room.tree = <Sums *> room.block
    room.score = <double *> (room.tree + n_levels)
    room.weight = room.score + 2 * each
    room.count = room.weight + 2 * each
    room.first = room.count + 2 * each
    room.key = <uint64_t *> (room.first + 2 * each)
    room.packed = room.key + each
    room.spare = room.packed + each
    room.values = <double *> (room.spare + each)
    room.level = <uint32_t *> (room.values + each + n_levels * width)
    room.counts = room.level + 2 * each
    return True


cdef inline bint _insert(const double *score, uint32_t *place, int64_t n) noexcept nogil:
    """Sort places by descending score if they are nearly sorted; return whether it was done."""
    cdef int64_t i, j, left = PATIENCE * n
    cdef uint32_t moved
    cdef double value
    for i in range(1, n):
        moved = place[i]
        value = score[moved]
        j = i
        while j > 0 and score[place[j - 1]] < value:
            place[j] = place[j - 1]
            j -= 1
        place[j] = moved
        left -= i - j
        if left < 0:
            return False
    return True


cdef inline void sort_places(
    Room *room, const double *score, uint32_t *place, int64_t n
) noexcept nogil:
    """Sort places by descending score; they are likely nearly sorted."""
    cdef int64_t i
    if _insert(score, place, n):
        return
    for i in range(n):
        room.key[i] = descending_key(score[i])
    sort_by_key(room.key, place, n, room.packed, room.spare, room.counts)
