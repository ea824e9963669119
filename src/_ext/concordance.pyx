"""Measures of pairs of rows with different labels, by sorting instead of pairing: O(n log n).

Scores of a query are visited in descending order. Discordant pairs are the inversions counted by a
merge sort of the labels (Knight 1966); for few labels, and for the margin loss, a Fenwick tree
(1994) sums the rows visited so far.

Scores and labels have shape ``(n_rows,)``; queries are given by their bounds. Counts of pairs are
int64, exact for queries below 2**32 rows.
"""

from libc.math cimport NAN, isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankcore._ext._by_score cimport (
    BAD_ROW,
    HUGE,
    NO_MEMORY,
    NOTHING,
    ODD_LABEL,
    ODD_SCORE,
    Data,
    Query,
    SortWorkspace,
    allocate,
    data_of,
    find_levels,
    gather,
    load,
    longest_query,
    sort_descending,
)
from rankcore._ext._double cimport Double, add, add_product

cdef enum:
    SHORT = 16  # runs that insertion sorts faster than merging
    FEW = 256  # levels of labels whose counts stay in the nearest cache

# Errors of a query, by number.
ERRORS = {
    NO_MEMORY: "memory",
    BAD_ROW: "row",
    ODD_SCORE: "score",
    ODD_LABEL: "label",
    HUGE: "huge",
}

# Columns of the counts of pairs.
cpdef enum:
    PAIRS
    DISCORDANT
    TIED
    APART
    N_COUNTS


# ---------------------------------------------------------------- counts


cdef int64_t _sort_labels(double *x, double *spare, int64_t n) noexcept nogil:
    """Sort descending; return the number of pairs in ascending order."""
    cdef int64_t i, j, k, start, middle, stop, width = SHORT, undone = 0
    cdef int64_t later
    cdef double moved, left, right
    start = 0
    while start < n:
        for i in range(start + 1, min(start + SHORT, n)):
            moved = x[i]
            j = i
            while j > start and x[j - 1] < moved:
                x[j] = x[j - 1]
                j -= 1
            x[j] = moved
            undone += i - j
        start += SHORT
    while width < n:
        start = 0
        while start + width < n:
            middle, stop = start + width, min(start + 2 * width, n)
            if x[middle - 1] < x[middle]:
                for i in range(start, middle):
                    spare[i] = x[i]
                i, j, k = start, middle, start
                while i < middle and j < stop:
                    # Without a branch, which would be unpredictable.
                    left, right = spare[i], x[j]
                    later = left < right
                    x[k] = right if later else left
                    undone += (middle - i) & -later
                    j += later
                    i += 1 - later
                    k += 1
                while i < middle:
                    x[k] = spare[i]
                    i += 1
                    k += 1
            start = stop
        width *= 2
    return undone


cdef inline int64_t _pairs(int64_t n) noexcept nogil:
    """Return the number of pairs of n rows, without overflow of the product."""
    return n // 2 * (n - 1) if n % 2 == 0 else (n - 1) // 2 * n


cdef int64_t _equal_pairs(const double *x, int64_t n) noexcept nogil:
    """Count the pairs of equal numbers; x is sorted."""
    cdef int64_t i = 0, start, pairs = 0
    while i < n:
        start = i
        while i < n and x[i] == x[start]:
            i += 1
        pairs += _pairs(i - start)
    return pairs


cdef int64_t _pass_levels(
    SortWorkspace *work, int64_t n_levels, int64_t n, int64_t *ties
) noexcept nogil:
    """Count discordant pairs; write to `ties` the pairs of equal score, all and of equal label.

    A Fenwick tree over few levels is faster than a merge sort of the rows: O(n log n_levels).
    """
    cdef int64_t *tree = <int64_t *> work.packed
    cdef int64_t *tied = <int64_t *> work.spare  # rows of the current score, by level
    cdef int64_t i, level, start, stop = 0, discordant = 0
    memset(tree, 0, (n_levels + 1) * sizeof(int64_t))
    memset(tied, 0, n_levels * sizeof(int64_t))
    while stop < n:
        start = stop
        while stop < n and work.key[work.place[stop]] == work.key[work.place[start]]:
            level = work.level[work.place[stop]] + 1
            discordant += start
            while level > 0:
                discordant -= tree[level]
                level -= level & -level
            stop += 1
        for i in range(start, stop):
            level = work.level[work.place[i]]
            ties[1] += tied[level]
            tied[level] += 1
            level += 1
            while level <= n_levels:
                tree[level] += 1
                level += level & -level
        for i in range(start, stop):
            tied[work.level[work.place[i]]] = 0
        ties[0] += _pairs(stop - start)
    return discordant


cdef int64_t _merge_levels(SortWorkspace *work, int64_t n, bint tied, int64_t *ties) noexcept nogil:
    """Count as `_pass_levels` does, by a merge sort of the levels in the order of the scores."""
    cdef double *label = <double *> work.packed
    cdef double *spare = <double *> work.spare
    cdef int64_t i, start, stop = 0
    for i in range(n):
        label[i] = -<double> work.level[work.place[i]]
    while tied and stop < n:
        start = stop
        while stop < n and work.key[work.place[stop]] == work.key[work.place[start]]:
            stop += 1
        if stop - start > 1:
            _sort_labels(label + start, spare, stop - start)
            ties[0] += _pairs(stop - start)
            ties[1] += _equal_pairs(label + start, stop - start)
    return _sort_labels(label, spare, n)


cdef void _count(SortWorkspace *work, Query *q, int64_t *counts) noexcept nogil:
    """Count pairs with different labels, those of them discordant or tied, and all untied pairs."""
    cdef int64_t n_levels = find_levels(work, q), level, stop
    cdef const int64_t *before = <const int64_t *> work.label
    cdef int64_t ties[2]
    cdef bint tied
    counts[PAIRS] = counts[APART] = _pairs(q.n)
    for level in range(n_levels):
        stop = before[level + 1] if level + 1 < n_levels else q.n
        counts[PAIRS] -= _pairs(stop - before[level])
    ties[0] = ties[1] = 0
    tied = sort_descending(work, q.score, q.n)
    if n_levels <= FEW:
        counts[DISCORDANT] = _pass_levels(work, n_levels, q.n, ties)
    else:
        counts[DISCORDANT] = _merge_levels(work, q.n, tied, ties)
    counts[TIED] = ties[0] - ties[1]
    counts[APART] -= ties[0]


def count_pairs(
    const double[::1] scores not None,
    const double[::1] labels not None,
    const int64_t[::1] rows,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    int64_t[:, ::1] counts not None,
):
    """Count the pairs of the queries from ``first`` up to ``last``.

    Query ``i`` has the rows ``bounds[i]`` up to ``bounds[i + 1]``, or the entries of ``rows`` in
    this range. Its row of ``counts`` gets the pairs with different labels, how many of these are in
    the wrong order and how many have equal scores, and all pairs with different scores. The GIL is
    released.

    Returns a key of `ERRORS`, or 0 for success, and the query that failed.
    """
    cdef Data data = data_of(scores, labels, rows, bounds)
    cdef int64_t i = first, longest = longest_query(bounds, first, last, data.n_rows)
    cdef int32_t status = NOTHING
    cdef SortWorkspace work
    cdef Query q
    if counts.shape[0] < last or counts.shape[1] != N_COUNTS:
        raise ValueError("counts has the wrong shape")
    if not allocate(&work, longest):
        return NO_MEMORY, first
    with nogil:
        while i < last:
            status = load(&data, &work, i, &q)
            if status:
                break
            _count(&work, &q, &counts[i, 0])
            i += 1
        free(work.block)
    return status, i


def sort_queries(
    const double[::1] scores not None,
    const int64_t[::1] rows,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    int64_t[::1] sorted_rows not None,
):
    """Sort the rows of the queries from ``first`` up to ``last`` by descending score.

    Query ``i`` has the rows ``bounds[i]`` up to ``bounds[i + 1]``, or the entries of ``rows`` in
    this range. They are written to the same range of ``sorted_rows``; equal scores keep their
    order. The GIL is released.
    """
    cdef SortWorkspace work
    cdef int64_t i, k, start, n, n_rows = scores.shape[0]
    cdef int64_t longest = longest_query(bounds, first, last, n_rows)
    cdef const double *score
    cdef const int64_t *row = NULL
    cdef bint whole = True
    if sorted_rows.shape[0] != n_rows or (rows is not None and rows.shape[0] != n_rows):
        raise ValueError("scores and rows differ in length")
    if first == last or longest == 0:
        return
    if rows is not None:
        row = &rows[0]
    if not allocate(&work, longest):
        raise MemoryError()
    with nogil:
        for i in range(first, last):
            start, n = bounds[i], bounds[i + 1] - bounds[i]
            score = gather(&scores[0], row, work.score, start, n, n_rows)
            whole = score != NULL
            if not whole:
                break
            sort_descending(&work, score, n)
            for k in range(n):
                sorted_rows[start + k] = start + work.place[k]
                if row:
                    sorted_rows[start + k] = row[sorted_rows[start + k]]
        free(work.block)
    if not whole:
        raise IndexError("rows must be row numbers below the number of rows")


cdef struct Node:
    int64_t passed
    int64_t near
    Double sum  # of the scores of the near rows


# ---------------------------------------------------------------- margin loss


cdef inline void _pass(Node *tree, int64_t n, int64_t level, double score) noexcept nogil:
    """Count a row that the walk has passed."""
    level += 1
    while level <= n:
        tree[level].passed += 1
        tree[level].near += 1
        add(&tree[level].sum, score)
        level += level & -level


cdef inline void _leave(Node *tree, int64_t n, int64_t level, double score) noexcept nogil:
    """Remove a row from the near rows once it is a whole margin above."""
    level += 1
    while level <= n:
        tree[level].near -= 1
        add(&tree[level].sum, -score)
        level += level & -level


cdef bint _margin_loss(
    SortWorkspace *work, Query *q, Node *tree, double rho, double *value
) noexcept nogil:
    """Write the mean loss over pairs with different labels; return whether it is finite.

    It is NaN without such pairs.

    For every row, the better rows above it are passed; those less than rho above are near. Better
    rows that were not passed cost 1, near ones 1 - distance / rho.
    """
    cdef int64_t n_levels = find_levels(work, q)
    cdef int64_t *before = <int64_t *> work.label
    cdef int64_t i, at, start, stop = 0, left = 0, passed, near, n = q.n
    cdef int64_t pairs = 0, wrong = 0
    cdef double score
    cdef Double sums, short_of = Double(0.0, 0.0)
    sort_descending(work, q.score, n)
    memset(tree, 0, (n_levels + 1) * sizeof(Node))
    while stop < n:
        start = stop
        score = q.score[work.place[start]]
        while left < start and q.score[work.place[left]] - score >= rho:
            _leave(tree, n_levels, work.level[work.place[left]], q.score[work.place[left]])
            left += 1
        while stop < n and q.score[work.place[stop]] == score:
            at = work.level[work.place[stop]]
            pairs += before[at]
            passed = near = 0
            sums = Double(0.0, 0.0)
            while at > 0:
                passed += tree[at].passed
                if tree[at].near:
                    near += tree[at].near
                    add(&sums, tree[at].sum.high)
                    add(&sums, tree[at].sum.low)
                at -= at & -at
            wrong += before[work.level[work.place[stop]]] - passed
            if near:
                add_product(&short_of, near, rho)
                add_product(&short_of, near, score)
                add(&short_of, -sums.high)
                add(&short_of, -sums.low)
            stop += 1
        for i in range(start, stop):
            _pass(tree, n_levels, work.level[work.place[i]], score)
    value[0] = (wrong + max(0.0, short_of.high / rho)) / pairs if pairs else NAN
    return isfinite(short_of.high)


def margin_losses(
    const double[::1] scores not None,
    const double[::1] labels not None,
    const int64_t[::1] rows,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    double rho,
    double[::1] values not None,
):
    """Write the margin loss of the queries from ``first`` up to ``last``.

    Queries are given as for `count_pairs`. The loss is NaN for a query without pairs of different
    labels.
    """
    cdef Data data = data_of(scores, labels, rows, bounds)
    cdef int64_t i = first, longest = longest_query(bounds, first, last, data.n_rows)
    cdef int32_t status = NOTHING
    cdef SortWorkspace work
    cdef Query q
    cdef Node *tree = NULL
    if values.shape[0] < last:
        raise ValueError("values has the wrong length")
    if not allocate(&work, longest):
        return NO_MEMORY, first
    with nogil:
        tree = <Node *> malloc((longest + 2) * sizeof(Node))
        if tree == NULL:
            status = NO_MEMORY
        while status == NOTHING and i < last:
            status = load(&data, &work, i, &q)
            if status:
                break
            if not _margin_loss(&work, &q, tree, rho, &values[i]):
                status = HUGE
                break
            i += 1
        free(tree)
        free(work.block)
    return status, i
