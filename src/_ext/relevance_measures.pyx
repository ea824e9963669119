"""Measures of the positions of relevant documents: precision, recall, and measures made of them.

Each function reads the labels of one sorted query (``_query.pxd``) down to its cut-off k: O(k). Phi
with m takes O(t m) for the t tied documents among which its m-th relevant document is.
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t

from rankcore._ext._query cimport Measure, Query, count_relevant, found_in, registered

# The divisor of a number of relevant documents.
cpdef enum Divisor:
    K
    AVAILABLE
    RELEVANT
    REACHABLE
    FOUND


cdef double _first(
    const Query *q, int64_t depth, double rel, bint reciprocal
) noexcept nogil:
    """Return the expected 1 or 1/position of the first relevant document, 0 beyond `depth`.

    While none of a group of g has come up, the next is relevant with chance r / (those left).
    """
    cdef int64_t start = 0, stop, i, r
    cdef double none = 1.0, chance, value = 0.0
    while start < depth:
        stop = q.ends[start] if q.grouped else start + 1
        r = count_relevant(q, start, stop, rel)
        if r > 0:
            for i in range(start, min(stop, depth)):
                if r >= stop - i:
                    return value + (none / (i + 1) if reciprocal else none)
                chance = <double> r / (stop - i)
                value += none * chance / (i + 1) if reciprocal else none * chance
                none *= 1.0 - chance
            return value
        start = stop
    return value


cdef double _group_precisions(
    int64_t start, int64_t stop, int64_t last, int64_t r, int64_t before
) noexcept nogil:
    """Return the expected sum of precisions at relevant documents at start .. last - 1.

    The positions up to `stop` tie, r of their g documents are relevant, and so are `before` of
    those above. A position is relevant with chance r / g; then each of the others before it in
    the group is with chance (r - 1) / (g - 1).
    """
    cdef double value = 0.0, chance = <double> r / (stop - start), others
    cdef int64_t i
    others = <double> (r - 1) / max(stop - start - 1, <int64_t> 1)
    for i in range(start, last):
        value += chance * (before + 1 + others * (i - start)) / (i + 1)
    return value


cdef double _precisions(
    const Query *q, int64_t depth, double rel, bint together
) noexcept nogil:
    """Sum the precisions at the relevant documents of the first `depth` positions.

    With `together`, all relevant documents of a tied group have the precision at its end.
    """
    cdef int64_t start = 0, stop, r, before = 0
    cdef double value = 0.0
    while start < depth:
        if not q.grouped or q.ends[start] == start + 1:
            if q.y[start] >= rel:
                before += 1
                value += <double> before / (start + 1)
            start += 1
            continue
        stop = q.ends[start]
        r = count_relevant(q, start, stop, rel)
        if r > 0 and together:
            before += r
            value += r * (<double> before / stop) if stop <= depth else 0.0
        elif r > 0:
            value += _group_precisions(start, stop, min(stop, depth), r, before)
            before += r
        start = stop
    return value


cdef double _phi_sum(const Query *q, int64_t m, double rel) noexcept nogil:
    """Sum i / (position of the i-th relevant document) for i up to m.

    A group that stays within the first m is a sum of precisions. In the group in which m ends, the
    chances of how many relevant ones have come up are carried from position to position: O(g m) for
    g documents. States that no order reaches are left out, and chances only multiplied by numbers
    from 0 to 1, so that every one of them is exact to rounding.
    """
    cdef int64_t start = 0, stop, i, j, r, g, n, before = 0
    cdef double value = 0.0, reached
    while start < q.n and before < m:
        stop = q.ends[start] if q.grouped else start + 1
        r = count_relevant(q, start, stop, rel)
        if r == stop - start:
            for i in range(min(r, m - before)):
                value += <double> (before + i + 1) / (start + i + 1)
        elif r > 0 and before + r <= m:
            value += _group_precisions(start, stop, stop, r, before)
        elif r > 0:
            g = stop - start
            n = m - before  # fewer than r: documents after the n-th do not count
            q.chances[0] = 1.0
            for j in range(1, n):
                q.chances[j] = 0.0
            for i in range(g):
                for j in range(min(n - 1, i), max(<int64_t> 0, r - (g - i)) - 1, -1):
                    reached = q.chances[j] * (<double> (r - j) / (g - i))
                    q.chances[j] *= <double> (g - i - (r - j)) / (g - i)
                    if j + 1 < n:
                        q.chances[j + 1] += reached
                    value += reached * (before + j + 1) / (start + i + 1)
        before += r
        start = stop
    return value


# ---------------------------------------------------------------- measures


cdef double _precision(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    if relevant == 0:
        return NAN
    if depth == 0:
        return 0.0
    return found_in(q, depth, m.rel) / (depth if m.option == AVAILABLE else m.k)


cdef double _recall(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    if relevant == 0:
        return NAN
    return found_in(q, depth, m.rel) / relevant if depth else 0.0


cdef double _r_precision(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(relevant, q.n)
    if relevant == 0:
        return NAN
    return found_in(q, depth, m.rel) / relevant if depth else 0.0


cdef double _r_multiple(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the precision at a multiple of the number of relevant documents."""
    cdef int64_t reached = <int64_t> (m.x * relevant + 0.9)
    if relevant == 0:
        return NAN
    if reached <= 0 or q.n == 0:
        return 0.0
    return found_in(q, min(reached, q.n), m.rel) / reached


cdef double _relative_precision(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    if relevant == 0:
        return NAN
    return found_in(q, depth, m.rel) / min(m.k, relevant) if depth else 0.0


cdef double _f1(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the harmonic mean of precision and recall."""
    cdef int64_t depth = min(m.k, q.n)
    if relevant == 0:
        return NAN
    return 2 * found_in(q, depth, m.rel) / (<double> m.k + relevant) if depth else 0.0


cdef double _hit(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return _first(q, min(m.k, q.n), m.rel, False) if relevant else NAN


cdef double _reciprocal_rank(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return _first(q, min(m.k, q.n), m.rel, True) if relevant else NAN


cdef double _average_precision(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    if relevant == 0:
        return NAN
    if depth == 0:
        return 0.0
    if m.option == FOUND:
        relevant = count_relevant(q, 0, depth, m.rel)
    elif m.option == REACHABLE:
        relevant = min(relevant, m.k)
    return _precisions(q, depth, m.rel, m.together) / relevant if relevant else 0.0


cdef double _phi(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    if relevant == 0:
        return NAN
    return _phi_sum(q, m.k if m.k else relevant, m.rel) / (m.z if m.z else relevant)


cdef double _hits(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    return found_in(q, depth, m.rel) if depth else 0.0


cdef double _judged(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    return found_in(q, depth, m.rel) / depth if depth else 0.0


cdef double _unjudged(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t depth = min(m.k, q.n)
    return (depth - found_in(q, depth, 0.0)) / m.k if depth else 0.0


precision = registered(_precision)
recall = registered(_recall)
r_precision = registered(_r_precision)
r_multiple = registered(_r_multiple)
relative_precision = registered(_relative_precision)
f1 = registered(_f1)
hit = registered(_hit)
reciprocal_rank = registered(_reciprocal_rank)
average_precision = registered(_average_precision)
phi = registered(_phi)
hits = registered(_hits)
judged = registered(_judged)
unjudged = registered(_unjudged)
