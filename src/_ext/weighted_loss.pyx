"""Losses of pairs in the wrong order, weighed by the positions of the rows: O(n log n).

A walk down the scores of a query, with a Fenwick tree (1994) that counts the rows passed by label.
Scores and labels have shape ``(n_rows,)``; queries are given by their bounds.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankcore._ext._by_score cimport (
    NO_MEMORY,
    NOTHING,
    Data,
    Query,
    SortWorkspace,
    allocate,
    data_of,
    find_levels,
    load,
    longest_query,
    sort_descending,
)
from rankcore._ext._double cimport Double, add_product


cdef struct Weight:
    int64_t k  # the better row is among the first k positions
    int64_t split  # if not 0: the better row is among the first `split`, the other is not
    const double *values  # or NULL: the weight is the difference of the values of the positions


cdef inline void _add_count(int64_t *tree, int64_t n, int64_t level) noexcept nogil:
    level += 1
    while level <= n:
        tree[level] += 1
        level += level & -level


cdef inline int64_t _count_below(const int64_t *tree, int64_t level) noexcept nogil:
    cdef int64_t count = 0
    while level > 0:
        count += tree[level]
        level -= level & -level
    return count


cdef double _position_loss(
    SortWorkspace *work, Query *q, const Weight *w, int64_t *seen, int64_t *at, int64_t *net
) noexcept nogil:
    """Return the sum of the weights of the pairs in the wrong order, with ties in row order.

    The position of a row is 1 plus the number of rows with higher labels. `net` counts, by level,
    the pairs in the wrong order in which it is the better row minus those in which it is the worse
    row; the sum is that of `net` times values.
    """
    cdef int64_t n_levels = find_levels(work, q)
    cdef int64_t *before = <int64_t *> work.label
    cdef int64_t i, level, better, wrong, total = 0
    cdef Double loss = Double(0.0, 0.0)
    if w.split:
        for i in range(q.n):
            work.level[i] = before[work.level[i]] >= w.split
        n_levels = 2
        before[1] = 0  # not requested
    sort_descending(work, q.score, q.n)
    memset(seen, 0, (n_levels + 1) * sizeof(int64_t))
    memset(at, 0, n_levels * sizeof(int64_t))
    memset(net, 0, n_levels * sizeof(int64_t))
    for i in range(q.n):
        level = work.level[work.place[i]]
        better = _count_below(seen, level)
        wrong = i - better - at[level]  # worse rows that are ranked above
        net[level] += wrong - (before[level] - better)
        if before[level] < w.k:
            total += wrong
        _add_count(seen, n_levels, level)
        at[level] += 1
    if w.values == NULL:
        return <double> total
    for level in range(n_levels):
        add_product(&loss, <double> net[level], w.values[before[level]])
    return loss.high


def position_losses(
    const double[::1] scores not None,
    const double[::1] labels not None,
    const int64_t[::1] rows,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    int64_t k,
    int64_t split,
    const double[::1] position_values,
    double[::1] values not None,
):
    """Write the weighted ranking loss of the queries from ``first`` up to ``last``.

    Queries are given as for `count_pairs`. A pair in the wrong order weighs 1 if the better row's
    position is at most ``k`` and, where ``split`` is not 0, only that row is among the first
    ``split``; or, if ``position_values`` are given, which descend, their difference.
    """
    cdef Data data = data_of(scores, labels, rows, bounds)
    cdef int64_t i = first, longest = longest_query(bounds, first, last, data.n_rows)
    cdef int32_t status = NOTHING
    cdef SortWorkspace work
    cdef Query q
    cdef Weight w
    cdef int64_t *counts
    cdef double pairs
    if values.shape[0] < last:
        raise ValueError("values has the wrong length")
    if position_values is not None and position_values.shape[0] < longest:
        raise ValueError("there are fewer values than positions")
    w.k, w.split = k, split
    w.values = &position_values[0] if position_values is not None and longest else NULL
    if not allocate(&work, longest):
        return NO_MEMORY, first
    with nogil:
        counts = <int64_t *> malloc(3 * (longest + 2) * sizeof(int64_t))
        if counts == NULL:
            status = NO_MEMORY
        while status == NOTHING and i < last:
            status = load(&data, &work, i, &q)
            if status:
                break
            values[i] = 0.0
            if q.n > 1:
                pairs = 0.5 * q.n * (q.n - 1)
                values[i] = _position_loss(
                    &work, &q, &w, counts, counts + longest + 2, counts + 2 * (longest + 2)
                ) / pairs
            i += 1
        free(counts)
        free(work.block)
    return status, i
