"""Ranking measures of many queries; one sort per query serves all measures.

The documents of a query are sorted by score, down to the maximum cut-off; measures are computed
from the labels by position. Documents with equal scores either get an order (that of the rows, its
reverse, the best, the worst) or remain a group, for which measures are the expectation over all
orders in closed form.
"""

from libc.math cimport INFINITY, nextafter
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from rankcore._ext._by_score cimport Room, allocate
from rankcore._ext._order cimport descending_key, order
from rankcore._ext._query cimport Measure, Query, as_function, value_t

cdef extern from "_scan.h" nogil:
    enum:
        RC_LANES

    int rc_all_finite(const double *x, int64_t n)
    int64_t rc_count_from(const double *x, int64_t n, double least)
    void rc_top_values(const double *x, int64_t n, int64_t k, double *top)
    double rc_reached(const double *x, int64_t n, int64_t k)
    int64_t rc_places_from(const double *x, int64_t n, double least, uint32_t *places)

# Order of tied documents.
cpdef enum Ties:
    AVERAGE
    FIRST
    LAST
    OPTIMISTIC
    PESSIMISTIC

cdef enum:
    # Maximum length of a prefix that is selected instead of sorted, if the query is several times
    # longer.
    SELECT = 64
    LONGER = 4
    # Of so few, a number that they reach is found first.
    FEW = 16

# Why a query cannot be measured.
cpdef enum Trouble:
    NOTHING
    MEMORY
    ROW
    SCORE
    LABEL
    GAIN
    NEGATIVE
    HUGE
    TIED
    BEYOND


cdef struct Desk:
    # Working memory of a query: to sort it, and for its measures
    Room room
    double *gain
    double *y
    double *g
    double *ideal
    double *chances
    double *products
    uint32_t *ends
    char *block  # of malloc


cdef bint _allocate(Desk *desk, int64_t n) noexcept nogil:
    """Memory for a query of n documents. Untouched pages take no memory."""
    cdef size_t each = n + 1
    cdef double *numbers
    desk.block = NULL
    if not allocate(&desk.room, n):
        return False
    desk.block = <char *> malloc(each * (6 * 8 + 4))
    if desk.block == NULL:
        return False
    numbers = <double *> desk.block
    desk.gain = numbers
    desk.y = numbers + each
    desk.g = numbers + 2 * each
    desk.ideal = numbers + 3 * each
    desk.chances = numbers + 4 * each
    desk.products = numbers + 5 * each
    desk.ends = <uint32_t *> (numbers + 6 * each)
    return True


# ---------------------------------------------------------------- order


cdef void _sort_values(Desk *desk, double *x, int64_t n, bint descending) noexcept nogil:
    """Sort numbers in place; uses the room of the order, which is lost."""
    cdef int64_t i
    cdef uint32_t *place = desk.room.place
    for i in range(n):
        place[i] = <uint32_t> i
        desk.room.key[i] = descending_key(x[i] if descending else -x[i])
    order(desk.room.key, place, n, desk.room.packed, desk.room.spare, desk.room.counts)
    for i in range(n):
        desk.chances[i] = x[place[i]]
    memcpy(x, desk.chances, n * sizeof(double))


cdef void _arrange(Desk *desk, double *x, int64_t n, int32_t ties) noexcept nogil:
    """Order tied documents as requested."""
    cdef int64_t i
    cdef double moved
    if ties == LAST:
        for i in range(n // 2):
            moved = x[i]
            x[i] = x[n - 1 - i]
            x[n - 1 - i] = moved
    else:
        _sort_values(desk, x, n, ties == OPTIMISTIC)


cdef void _put_in_order(
    Desk *desk, Query *q, int64_t depth, int32_t ties, bint with_gains
) noexcept nogil:
    """Fill labels (and gains) by position at least as deep as `depth`."""
    cdef uint32_t *place = desk.room.place
    cdef int64_t i, start, stop, m = q.n
    cdef double least
    cdef bint tied, selected
    depth = min(depth, q.n)
    q.y, q.g, q.ends, q.grouped = desk.y, desk.g, desk.ends, False
    if depth == 0:
        return
    selected = depth <= SELECT and depth * LONGER <= q.n
    if selected:
        if depth <= FEW and q.n >= RC_LANES:
            least = rc_reached(q.score, q.n, depth)
        else:
            rc_top_values(q.score, q.n, depth, desk.chances)
            least = desk.chances[depth - 1]
        m = rc_places_from(q.score, q.n, least, place)
    else:
        for i in range(m):
            place[i] = <uint32_t> i
    for i in range(m):
        desk.room.key[place[i]] = descending_key(q.score[place[i]])
    tied = order(desk.room.key, place, m, desk.room.packed, desk.room.spare, desk.room.counts)
    if selected and m > depth:
        # All documents tied with the last one are included, as they share its position, but no
        # others.
        while desk.room.key[place[m - 1]] != desk.room.key[place[depth - 1]]:
            m -= 1
        start, tied = 1, tied and m > 1
        while tied and desk.room.key[place[start]] != desk.room.key[place[start - 1]]:
            start += 1
            tied = start < m
    for i in range(m):
        desk.y[i] = q.label[place[i]]
    if with_gains:
        for i in range(m):
            desk.g[i] = q.gain[place[i]]
    if not tied or ties == FIRST:
        return
    start = 0
    while start < m:
        stop = start + 1
        while stop < m and desk.room.key[place[stop]] == desk.room.key[place[start]]:
            stop += 1
        for i in range(start, stop):
            desk.ends[i] = <uint32_t> stop
        start = stop
    if ties == AVERAGE:
        q.grouped = True
        return
    start = 0
    while start < m:
        stop = desk.ends[start]
        if stop - start > 1:
            _arrange(desk, desk.y + start, stop - start, ties)
            if with_gains:
                _arrange(desk, desk.g + start, stop - start, ties)
        start = stop


cdef bint _counted(const double *x, int64_t n, int64_t *counts) noexcept nogil:
    """Count each of the numbers 0 to 255; whether there are no others."""
    cdef int64_t i
    cdef uint8_t level
    memset(counts, 0, 256 * sizeof(int64_t))
    for i in range(n):
        if not 0 <= x[i] < 256:
            return False
        level = <uint8_t> x[i]
        if level != x[i]:
            return False
        counts[level] += 1
    return True


cdef void _fill_ideal(Desk *desk, Query *q, int64_t depth, bint gains) noexcept nogil:
    """The `depth` largest labels or gains of the query, descending."""
    cdef const double *x = q.gain if gains else q.label
    cdef int64_t i, m, level, n = q.n_judged, filled = 0
    cdef int64_t counts[256]
    cdef double least
    depth = min(depth, n)
    if 0 < depth <= FEW and depth * LONGER <= n and n >= RC_LANES:
        # Those above a number that this many reach, then the number itself.
        least = rc_reached(x, n, depth)
        m = rc_places_from(x, n, nextafter(least, INFINITY), desk.room.place)
        for i in range(m):
            desk.chances[i] = x[desk.room.place[i]]
        rc_top_values(desk.chances, m, min(m, depth), desk.ideal)
        for i in range(m, depth):
            desk.ideal[i] = least
    elif depth <= SELECT and depth * LONGER <= n:
        rc_top_values(x, n, depth, desk.ideal)
    elif _counted(x, n, counts):
        for level in range(255, -1, -1):
            for i in range(counts[level]):
                desk.ideal[filled + i] = level
            filled += counts[level]
    else:
        memcpy(desk.ideal, x, n * sizeof(double))
        _sort_values(desk, desk.ideal, n, True)
    q.ideal = desk.ideal
    q.n_ideal = depth


# ---------------------------------------------------------------- queries


cdef struct Data:
    const double *scores
    const double *labels
    const double *gains  # or NULL
    const int64_t *rows  # or NULL: the rows of a query are neighbours
    const uint8_t *retrieved  # or NULL: all are
    int64_t n_rows


cdef int32_t _load(const Data *data, Desk *desk, Query *q, int64_t start, int64_t n) noexcept nogil:
    """Point to the documents of a query, side by side with the retrieved ones first."""
    cdef int64_t i, row, to, back = n
    q.n = q.n_judged = n
    if data.rows == NULL and data.retrieved == NULL:
        q.score, q.label = data.scores + start, data.labels + start
        q.gain = data.gains + start if data.gains else NULL
    else:
        q.score, q.label, q.gain = desk.room.score, desk.room.label, desk.gain
        q.n = 0
        for i in range(start, start + n):
            row = data.rows[i] if data.rows else i
            if not 0 <= row < data.n_rows:
                return ROW
            if data.retrieved == NULL or data.retrieved[row]:
                to = q.n
                q.n += 1
                desk.room.score[to] = data.scores[row]
            else:
                back -= 1
                to = back
            desk.room.label[to] = data.labels[row]
            if data.gains:
                desk.gain[to] = data.gains[row]
    if not rc_all_finite(q.score, q.n):
        return SCORE
    if not rc_all_finite(q.label, n):
        return LABEL
    if data.gains and not rc_all_finite(q.gain, n):
        return GAIN
    return NOTHING


cdef int32_t _measure(
    Desk *desk,
    Query *q,
    const Measure *measures,
    value_t *functions,
    int64_t n_measures,
    int32_t ties,
    double *values,
    int64_t stride,
) noexcept nogil:
    cdef int64_t j, depth = 0, relevant = -1
    cdef int64_t ideal_depth[2]
    cdef int64_t ideal_filled = -1
    cdef double rel = 0.0
    cdef bint with_gains = False
    cdef const Measure *m
    cdef const double *x
    ideal_depth[:] = [0, 0]
    for j in range(n_measures):
        m = measures + j
        depth = max(depth, q.n if m.whole else m.k)
        with_gains |= m.given
        if m.ideal:
            ideal_depth[m.given] = max(ideal_depth[m.given], m.k)
    _put_in_order(desk, q, depth, ties, with_gains)
    for j in range(n_measures):
        m = measures + j
        if q.grouped and m.ordered:
            return TIED
        if m.bounded and rc_count_from(q.label, q.n_judged, nextafter(m.x, INFINITY)):
            return BEYOND
        if m.ideal:
            x = q.gain if m.given else q.label
            if not m.clipped and rc_count_from(x, q.n_judged, 0.0) < q.n_judged:
                return NEGATIVE
            if ideal_filled != m.given:
                _fill_ideal(desk, q, ideal_depth[m.given], m.given)
                ideal_filled = m.given
        if m.counted and (relevant < 0 or m.rel != rel):
            rel = m.rel
            relevant = rc_count_from(q.label, q.n_judged, rel)
        values[j * stride] = functions[j](m, q, relevant)
        if values[j * stride] == INFINITY:
            return HUGE
    return NOTHING


def layout():
    """Return an object whose dtype in NumPy is that of a measure's parameters."""
    cdef Measure none
    memset(&none, 0, sizeof(none))
    return (<Measure[:1]> &none).copy()


def measure(
    const double[::1] scores not None,
    const double[::1] labels not None,
    const double[::1] gains,
    const int64_t[::1] rows,
    const uint8_t[::1] retrieved,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    const Measure[::1] measures not None,
    list functions not None,
    const double[::1] discounts not None,
    int32_t ties,
    double[:, ::1] values not None,
):
    """Measure the queries from ``first`` up to ``last``.

    Query ``i`` has the rows ``bounds[i]`` up to ``bounds[i + 1]``, or those that ``rows`` names at
    these places. ``functions`` are the measures' own, of other kernels. Column ``i`` of ``values``
    gets the values of the measures; NaN where undefined.
    The GIL is released.

    Returns a `Trouble`, 0 if all went well, and the query in which it came up.
    """
    cdef Desk desk
    cdef Query q
    cdef Data data
    cdef int64_t i, n, n_rows = scores.shape[0], longest = 0, deepest = 0
    cdef int32_t trouble = NOTHING
    if labels.shape[0] != n_rows or not 0 <= first <= last < bounds.shape[0]:
        raise ValueError("scores, labels and bounds do not match")
    if (
        (gains is not None and gains.shape[0] != n_rows)
        or (rows is not None and rows.shape[0] != n_rows)
        or (retrieved is not None and retrieved.shape[0] != n_rows)
        or values.shape[0] != measures.shape[0]
        or len(functions) != measures.shape[0]
        or values.shape[1] < last
    ):
        raise ValueError("an array has the wrong length")
    for i in range(first, last):
        if not 0 <= bounds[i] <= bounds[i + 1] <= n_rows:
            raise ValueError("bounds must ascend from 0 to the number of rows")
        longest = max(longest, bounds[i + 1] - bounds[i])
    if longest >= <int64_t> 1 << 32:
        raise ValueError("a query has more than 4294967295 documents")
    for i in range(measures.shape[0]):
        if measures[i].k < 0 or (measures[i].given and gains is None):
            raise ValueError("a measure requires data that are missing")
        if measures[i].given not in (0, 1):
            raise ValueError("given must be 0 or 1")
        if measures[i].gained:
            deepest = max(deepest, min(measures[i].k, longest))
    if discounts.shape[0] < deepest:
        raise ValueError("there are fewer discounts than positions")
    if first == last or measures.shape[0] == 0:
        return NOTHING, first
    data.scores = &scores[0] if n_rows else NULL
    data.labels = &labels[0] if n_rows else NULL
    data.gains = &gains[0] if gains is not None and n_rows else NULL
    data.rows = &rows[0] if rows is not None and n_rows else NULL
    data.retrieved = &retrieved[0] if retrieved is not None and n_rows else NULL
    data.n_rows = n_rows
    q.discount = &discounts[0] if deepest else NULL
    cdef value_t *values_of = <value_t *> malloc(measures.shape[0] * sizeof(value_t))
    if values_of == NULL:
        return MEMORY, first
    try:
        for i in range(measures.shape[0]):
            values_of[i] = as_function(functions[i])
    except BaseException:
        free(values_of)
        raise
    with nogil:
        if not _allocate(&desk, longest):
            trouble = MEMORY
        i = first
        while trouble == NOTHING and i < last:
            n = bounds[i + 1] - bounds[i]
            trouble = _load(&data, &desk, &q, bounds[i], n)
            if trouble == NOTHING:
                q.chances, q.products = desk.chances, desk.products
                trouble = _measure(
                    &desk, &q, &measures[0], values_of, measures.shape[0], ties,
                    &values[0, i], values.shape[1],
                )
            if trouble == NOTHING:
                i += 1
        free(values_of)
        free(desk.block)
        free(desk.room.block)
    return trouble, i
