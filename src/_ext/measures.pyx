"""Ranking measures of many queries; one sort per query serves all measures.

The documents of a query are sorted by score, down to the maximum cut-off; measures are computed
from the labels by position. Documents with equal scores either get an order (that of the rows, its
reverse, the best, the worst) or remain a group, for which measures are the expectation over all
orders in closed form.

``measure`` takes scores, labels and possibly gains of shape ``(n_rows,)``, the bounds of queries,
``(n_queries + 1,)``, and writes ``(n_measures, n_queries)``. The measures themselves are functions
of other kernels (``gain_measures``, ``relevance_measures``, ...), which see a sorted `Query`. A
query of n documents takes O(n) for a short cut-off and a few radix passes otherwise.
"""

from libc.math cimport INFINITY, nextafter
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from rankcore._ext._by_score cimport SortWorkspace, allocate
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
    # Up to SELECT documents are selected, not sorted, if the query has LONGER times as many.
    SELECT = 64
    LONGER = 4
    # For cut-offs up to this, first find a lower bound of the score at the cut-off.
    FEW = 16

# Why a query cannot be measured; NOTHING if it can.
cpdef enum Status:
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


cdef struct Workspace:
    # Memory for the largest query of n documents: to sort it, and for its measures. Arrays have
    # n + 1 entries.
    SortWorkspace sorting
    double *gain  # of the documents of the query
    double *y  # labels by position
    double *g  # gains by position
    double *ideal  # labels or gains in the ideal order
    double *chances  # scratch of the measures, and of sorting
    double *products  # scratch of the measures
    uint32_t *ends  # end of the group of tied documents, by position
    char *block  # the memory of all of them, to be freed


cdef bint _allocate(Workspace *work, int64_t n) noexcept nogil:
    """Allocate memory for a query of n documents. Untouched pages take no memory."""
    cdef size_t each = n + 1
    cdef double *numbers
    work.block = NULL
    if not allocate(&work.sorting, n):
        return False
    work.block = <char *> malloc(each * (6 * 8 + 4))
    if work.block == NULL:
        return False
    numbers = <double *> work.block
    work.gain = numbers
    work.y = numbers + each
    work.g = numbers + 2 * each
    work.ideal = numbers + 3 * each
    work.chances = numbers + 4 * each
    work.products = numbers + 5 * each
    work.ends = <uint32_t *> (numbers + 6 * each)
    return True


# ---------------------------------------------------------------- order


cdef void _sort_values(Workspace *work, double *x, int64_t n, bint descending) noexcept nogil:
    """Sort numbers in place. Overwrites the order of the documents and `chances`."""
    cdef int64_t i
    cdef uint32_t *place = work.sorting.place
    for i in range(n):
        place[i] = <uint32_t> i
        work.sorting.key[i] = descending_key(x[i] if descending else -x[i])
    order(work.sorting.key, place, n, work.sorting.packed, work.sorting.spare, work.sorting.counts)
    for i in range(n):
        work.chances[i] = x[place[i]]
    memcpy(x, work.chances, n * sizeof(double))


cdef void _arrange(Workspace *work, double *x, int64_t n, int32_t ties) noexcept nogil:
    """Order tied documents as requested."""
    cdef int64_t i
    cdef double moved
    if ties == LAST:
        for i in range(n // 2):
            moved = x[i]
            x[i] = x[n - 1 - i]
            x[n - 1 - i] = moved
    else:
        _sort_values(work, x, n, ties == OPTIMISTIC)


cdef void _put_in_order(
    Workspace *work, Query *q, int64_t depth, int32_t ties, bint with_gains
) noexcept nogil:
    """Fill labels (and gains) by position, at least down to `depth`."""
    cdef uint32_t *place = work.sorting.place
    cdef int64_t i, start, stop, m = q.n
    cdef double least
    cdef bint tied, selected
    depth = min(depth, q.n)
    q.y, q.g, q.ends, q.grouped = work.y, work.g, work.ends, False
    if depth == 0:
        return
    selected = depth <= SELECT and depth * LONGER <= q.n
    if selected:
        if depth <= FEW and q.n >= RC_LANES:
            least = rc_reached(q.score, q.n, depth)
        else:
            rc_top_values(q.score, q.n, depth, work.chances)
            least = work.chances[depth - 1]
        m = rc_places_from(q.score, q.n, least, place)
    else:
        for i in range(m):
            place[i] = <uint32_t> i
    for i in range(m):
        work.sorting.key[place[i]] = descending_key(q.score[place[i]])
    tied = order(
        work.sorting.key, place, m, work.sorting.packed, work.sorting.spare, work.sorting.counts
    )
    if selected and m > depth:
        # All documents tied with the last one are included, as they share its position, but no
        # others.
        while work.sorting.key[place[m - 1]] != work.sorting.key[place[depth - 1]]:
            m -= 1
        start, tied = 1, tied and m > 1
        while tied and work.sorting.key[place[start]] != work.sorting.key[place[start - 1]]:
            start += 1
            tied = start < m
    for i in range(m):
        work.y[i] = q.label[place[i]]
    if with_gains:
        for i in range(m):
            work.g[i] = q.gain[place[i]]
    if not tied or ties == FIRST:
        return
    start = 0
    while start < m:
        stop = start + 1
        while stop < m and work.sorting.key[place[stop]] == work.sorting.key[place[start]]:
            stop += 1
        for i in range(start, stop):
            work.ends[i] = <uint32_t> stop
        start = stop
    if ties == AVERAGE:
        q.grouped = True
        return
    start = 0
    while start < m:
        stop = work.ends[start]
        if stop - start > 1:
            _arrange(work, work.y + start, stop - start, ties)
            if with_gains:
                _arrange(work, work.g + start, stop - start, ties)
        start = stop


cdef bint _counted(const double *x, int64_t n, int64_t *counts) noexcept nogil:
    """Count each of the numbers 0 to 255; return whether there are no others."""
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


cdef void _fill_ideal(Workspace *work, Query *q, int64_t depth, bint gains) noexcept nogil:
    """Fill the ideal order with the `depth` largest labels or gains, descending."""
    cdef const double *x = q.gain if gains else q.label
    cdef int64_t i, m, level, n = q.n_judged, filled = 0
    cdef int64_t counts[256]
    cdef double least
    depth = min(depth, n)
    if 0 < depth <= FEW and depth * LONGER <= n and n >= RC_LANES:
        # The numbers above the lower bound, then the bound itself as often as is missing.
        least = rc_reached(x, n, depth)
        m = rc_places_from(x, n, nextafter(least, INFINITY), work.sorting.place)
        for i in range(m):
            work.chances[i] = x[work.sorting.place[i]]
        rc_top_values(work.chances, m, min(m, depth), work.ideal)
        for i in range(m, depth):
            work.ideal[i] = least
    elif depth <= SELECT and depth * LONGER <= n:
        rc_top_values(x, n, depth, work.ideal)
    elif _counted(x, n, counts):
        for level in range(255, -1, -1):
            for i in range(counts[level]):
                work.ideal[filled + i] = level
            filled += counts[level]
    else:
        memcpy(work.ideal, x, n * sizeof(double))
        _sort_values(work, work.ideal, n, True)
    q.ideal = work.ideal
    q.n_ideal = depth


# ---------------------------------------------------------------- queries


cdef struct Data:
    const double *scores
    const double *labels
    const double *gains  # or NULL
    const int64_t *rows  # or NULL: the rows of a query are contiguous
    const uint8_t *retrieved  # or NULL: all are
    int64_t n_rows


cdef int32_t _load(
    const Data *data, Workspace *work, Query *q, int64_t start, int64_t n
) noexcept nogil:
    """Gather the documents of a query, retrieved ones first; copy them only if necessary."""
    cdef int64_t i, row, to, back = n
    q.n = q.n_judged = n
    if data.rows == NULL and data.retrieved == NULL:
        q.score, q.label = data.scores + start, data.labels + start
        q.gain = data.gains + start if data.gains else NULL
    else:
        q.score, q.label, q.gain = work.sorting.score, work.sorting.label, work.gain
        q.n = 0
        for i in range(start, start + n):
            row = data.rows[i] if data.rows else i
            if not 0 <= row < data.n_rows:
                return ROW
            if data.retrieved == NULL or data.retrieved[row]:
                to = q.n
                q.n += 1
                work.sorting.score[to] = data.scores[row]
            else:
                back -= 1
                to = back
            work.sorting.label[to] = data.labels[row]
            if data.gains:
                work.gain[to] = data.gains[row]
    if not rc_all_finite(q.score, q.n):
        return SCORE
    if not rc_all_finite(q.label, n):
        return LABEL
    if data.gains and not rc_all_finite(q.gain, n):
        return GAIN
    return NOTHING


cdef int32_t _measure(
    Workspace *work,
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
    _put_in_order(work, q, depth, ties, with_gains)
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
                _fill_ideal(work, q, ideal_depth[m.given], m.given)
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

    Query ``i`` has the rows ``bounds[i]`` up to ``bounds[i + 1]``, or the entries of ``rows`` in
    this range. ``functions`` has the capsule of each measure's function. Column ``i`` of ``values``
    gets the values of the measures; NaN where undefined. The GIL is released.

    Returns a `Status`, 0 for success, and the query that failed.
    """
    cdef Workspace work
    cdef Query q
    cdef Data data
    cdef int64_t i, n, n_rows = scores.shape[0], longest = 0, deepest = 0
    cdef int32_t status = NOTHING
    if labels.shape[0] != n_rows or not 0 <= first <= last < bounds.shape[0]:
        raise ValueError("scores, labels and bounds are inconsistent")
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
        if not _allocate(&work, longest):
            status = MEMORY
        i = first
        while status == NOTHING and i < last:
            n = bounds[i + 1] - bounds[i]
            status = _load(&data, &work, &q, bounds[i], n)
            if status == NOTHING:
                q.chances, q.products = work.chances, work.products
                status = _measure(
                    &work, &q, &measures[0], values_of, measures.shape[0], ties,
                    &values[0, i], values.shape[1],
                )
            if status == NOTHING:
                i += 1
        free(values_of)
        free(work.block)
        free(work.sorting.block)
    return status, i
