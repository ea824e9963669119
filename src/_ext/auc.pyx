"""Area under the ROC curve: pairs of a positive and a negative row, in one sweep of the scores.

The mark of a row combines its class and weight: the weight for positive rows, minus the weight for
negative rows. The rows of a very large query are first distributed into buckets between splitters;
then each bucket is swept like a query, in cache.

``sum_pairs`` takes scores and marks of shape ``(n_rows,)`` and the bounds of queries; a query of n
rows is sorted in O(n). ``place_splitters``, ``count_buckets`` and ``deal`` are the steps of the
distribution, each O(n_rows).
"""

from libc.math cimport isfinite
from libc.stdint cimport int8_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free

from rankcore._ext._by_score cimport (
    SortWorkspace,
    allocate,
    gather,
    longest_query,
    sort_descending,
)
from rankcore._ext._double cimport Double, add

cdef extern from "_finite.h" nogil:
    int rc_all_finite(const double *x, int64_t n)

ctypedef fused mark_t:
    int8_t  # 1 or -1: counts, summed as integers
    double

cdef enum:
    STRETCH = 64  # groups whose weights are summed without compensation
    SPLITTERS = 1023  # 2**m - 1, for bisection
    CELLS = 4096  # cells of equal width, which narrow the bisection

N_SPLITTERS = SPLITTERS
N_CELLS = CELLS

# Columns of ``sums``. Weights of pairs are unevaluated sums of two float64 numbers.
cpdef enum:
    GREATER
    GREATER_LOW
    EQUAL
    EQUAL_LOW
    POSITIVE
    NEGATIVE
    COLUMNS


cdef void _sweep(
    const SortWorkspace *work, const mark_t *mark, const int64_t *rows, int64_t n, double *sums
) noexcept nogil:
    """Sum the pairs with the positive row above, those that tie, and the weights of the classes.

    Sums of pairs are pairs of doubles, high and low, as they may exceed 53 bits.
    """
    cdef int64_t i = 0, row, count_p, count_q, above = 0, below = 0, greater = 0, equal = 0
    cdef int64_t groups = 0
    cdef uint64_t key
    cdef double p, q, above_here = 0.0, below_here = 0.0, greater_here = 0.0, equal_here = 0.0
    cdef Double sum_above = Double(0.0, 0.0), sum_below = Double(0.0, 0.0)
    cdef Double sum_greater = Double(0.0, 0.0), sum_equal = Double(0.0, 0.0)
    while i < n:
        key = work.key[work.place[i]]
        p = q = 0.0
        count_p = count_q = 0
        while i < n and work.key[work.place[i]] == key:
            row = rows[work.place[i]] if rows else work.place[i]
            if mark_t is int8_t:
                count_p += mark[row] > 0
                count_q += mark[row] < 0
            elif mark[row] > 0:
                p += mark[row]
            else:
                q -= mark[row]
            i += 1
        if mark_t is int8_t:
            greater += count_q * above
            equal += count_q * count_p
            above += count_p
            below += count_q
        else:
            # All terms have one sign, so the rounding errors are relative to the sums.
            greater_here += q * (sum_above.high + above_here)
            equal_here += q * p
            above_here += p
            below_here += q
            groups += 1
            if groups % STRETCH == 0 or i == n:
                add(&sum_greater, greater_here)
                add(&sum_equal, equal_here)
                add(&sum_above, above_here)
                add(&sum_below, below_here)
                greater_here = equal_here = above_here = below_here = 0.0
    if mark_t is int8_t:
        sums[GREATER], sums[EQUAL] = <double> greater, <double> equal
        sums[GREATER_LOW] = greater - <int64_t> sums[GREATER]
        sums[EQUAL_LOW] = equal - <int64_t> sums[EQUAL]
        sums[POSITIVE], sums[NEGATIVE] = above, below
    else:
        sums[GREATER], sums[GREATER_LOW] = sum_greater.high, sum_greater.low
        sums[EQUAL], sums[EQUAL_LOW] = sum_equal.high, sum_equal.low
        sums[POSITIVE], sums[NEGATIVE] = sum_above.high, sum_below.high


def sum_pairs(
    const double[::1] scores not None,
    const mark_t[::1] marks not None,
    const int64_t[::1] rows,
    const int64_t[::1] bounds not None,
    int64_t first,
    int64_t last,
    double[:, ::1] sums not None,
):
    """Sum the weights of the pairs of the queries from ``first`` up to ``last``.

    Query ``i`` has the rows ``bounds[i]`` up to ``bounds[i + 1]``, or the entries of ``rows`` in
    this range. Its row of ``sums`` gets the weight of the pairs whose positive row has the higher
    score, as the sum of two numbers; that of those that tie, likewise; and the weight of the
    positive rows and of the negative ones. The GIL is released.

    Returns the first query with a score that is not finite; -1 if there is none.
    """
    cdef SortWorkspace work
    cdef int64_t i = first, n, n_rows = scores.shape[0]
    cdef int64_t longest = longest_query(bounds, first, last, n_rows)
    cdef const double *score
    cdef const int64_t *row = NULL
    cdef bint whole = True
    if marks.shape[0] != n_rows or (rows is not None and rows.shape[0] != n_rows):
        raise ValueError("scores, marks and rows differ in length")
    if sums.shape[0] < last or sums.shape[1] != COLUMNS:
        raise ValueError("sums has the wrong shape")
    if first == last or longest == 0:
        return -1
    if rows is not None:
        row = &rows[0]
    if not allocate(&work, longest):
        raise MemoryError()
    with nogil:
        while i < last:
            n = bounds[i + 1] - bounds[i]
            score = gather(&scores[0], row, work.score, bounds[i], n, n_rows)
            whole = score != NULL
            if not whole or not rc_all_finite(score, n):
                break
            sort_descending(&work, score, n)
            if row:
                _sweep(&work, &marks[0], row + bounds[i], n, &sums[i, 0])
            else:
                _sweep(&work, &marks[0] + bounds[i], row, n, &sums[i, 0])
            i += 1
        free(work.block)
    if not whole:
        raise IndexError("rows has an index that is out of range")
    return i if i < last else -1


cdef struct Splitters:
    const double *value
    const uint16_t *start  # by cell, the number of splitters in the cells before
    double low
    double cells_each
    int64_t half  # a power of two: no cell has twice as many splitters


cdef inline int64_t _cell(double x, double low, double cells_each) noexcept nogil:
    """Return the cell of a number; non-decreasing in x despite rounding."""
    return <int64_t> min(max(0.0, (x - low) * cells_each), CELLS - 1.0)


cdef inline int64_t _bucket(const Splitters *s, double x) noexcept nogil:
    """Return the number of splitters that are at most x."""
    cdef int64_t below = s.start[_cell(x, s.low, s.cells_each)], half = s.half
    while half:
        below += half & -<int64_t> (s.value[below + half - 1] <= x)
        half >>= 1
    return below


cdef Splitters _splitters(
    const double[::1] values,
    const uint16_t[::1] starts,
    double low,
    double cells_each,
    int64_t half,
) except *:
    if values.shape[0] != 2 * SPLITTERS or starts.shape[0] != CELLS:
        raise ValueError("splitters must be those of place_splitters")
    if not 0 <= half <= SPLITTERS // 2 + 1:
        raise ValueError("splitters must be those of place_splitters")
    return Splitters(&values[0], &starts[0], low, cells_each, half)


def place_splitters(
    const double[::1] values not None,
    uint16_t[::1] starts not None,
    double low,
    double cells_each,
):
    """Write the number of splitters before each cell; return the steps of bisection.

    ``values`` are the splitters, ascending, padded with infinities to twice the maximum
    number, as a search may read some of the padding.
    """
    cdef int64_t cell, most = 0, i = 0, half = 1
    if values.shape[0] != 2 * SPLITTERS or starts.shape[0] != CELLS:
        raise ValueError("splitters must be those of place_splitters")
    for cell in range(CELLS):
        starts[cell] = <uint16_t> i
        while i < SPLITTERS and isfinite(values[i]) and _cell(values[i], low, cells_each) <= cell:
            i += 1
        most = max(most, i - starts[cell])
    while 2 * half <= most:
        half *= 2
    return half


def count_buckets(
    const double[::1] scores not None,
    const double[::1] values not None,
    const uint16_t[::1] starts not None,
    double low,
    double cells_each,
    int64_t half,
    int64_t[::1] counts not None,
):
    """Count the rows between the splitters of `place_splitters`, except rows equal to a splitter.

    Bucket ``i`` lies above ``i`` splitters. The GIL is released.

    Returns whether all scores are finite; else nothing is counted.
    """
    cdef int64_t i, b
    cdef bint finite = True
    cdef Splitters s = _splitters(values, starts, low, cells_each, half)
    if counts.shape[0] != SPLITTERS + 1:
        raise ValueError("counts has the wrong length")
    if scores.shape[0] == 0:
        return True
    with nogil:
        finite = rc_all_finite(&scores[0], scores.shape[0])
        for i in range(scores.shape[0] if finite else 0):
            b = _bucket(&s, scores[i])
            counts[b] += b == 0 or s.value[b - 1] != scores[i]
    return finite


def deal(
    const double[::1] scores not None,
    const mark_t[::1] marks not None,
    const double[::1] values not None,
    const uint16_t[::1] starts not None,
    double low,
    double cells_each,
    int64_t half,
    int64_t[::1] places not None,
    double[::1] dealt_scores not None,
    mark_t[::1] dealt_marks not None,
    double[:, ::1] tied not None,
):
    """Move rows to their buckets; ``places[i]`` is the next place in bucket ``i``.

    The weights of rows equal to a splitter are added to its row of ``tied`` instead, by class. The
    GIL is released.
    """
    cdef int64_t i, b, n = scores.shape[0], capacity = dealt_scores.shape[0]
    cdef double x, m
    cdef bint fits = True
    cdef Splitters s = _splitters(values, starts, low, cells_each, half)
    if places.shape[0] != SPLITTERS + 1:
        raise ValueError("places has the wrong length")
    if marks.shape[0] != n or dealt_marks.shape[0] != capacity:
        raise ValueError("scores and marks differ in length")
    if tied.shape[0] != SPLITTERS or tied.shape[1] != 2:
        raise ValueError("tied has the wrong shape")
    with nogil:
        for i in range(n):
            x = scores[i]
            b = _bucket(&s, x)
            if b > 0 and s.value[b - 1] == x:
                m = marks[i]
                if m > 0:
                    tied[b - 1, 0] += m
                else:
                    tied[b - 1, 1] -= m
            elif 0 <= places[b] < capacity:
                dealt_scores[places[b]] = x
                dealt_marks[places[b]] = marks[i]
                places[b] += 1
            else:
                fits = False
                break
    if not fits:
        raise ValueError("a bucket has more rows than were counted")
