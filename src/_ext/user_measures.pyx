"""Measures by models of how far a user reads: ERR, RBP.

Each function reads the labels of one sorted query (``_query.pxd``) down to its cut-off k: O(k), and
O(t r) for t tied documents with r that may satisfy.
"""

from libc.math cimport exp2
from libc.stdint cimport int64_t

from rankcore._ext._query cimport Measure, Query, registered


cdef inline double _satisfied(const Measure *m, double y) noexcept nogil:
    """Return the probability that a document of this label ends the search."""
    return (exp2(y) - 1.0) * exp2(-m.x) if y > 0 else 0.0


cdef inline double _group_stops(
    const Measure *m, const Query *q, int64_t start, int64_t stop, int64_t last, double *left
) noexcept nogil:
    """Return the expected sum of chances to stop at start .. last - 1, each over its position.

    The g positions up to `stop` tie, in any order; r of their documents may satisfy. products[i] is
    the expected probability to pass i of these. The loop keeps the distribution of the number of
    them above a position: O(g r). left is multiplied by the probability to pass them all.
    """
    cdef double *passed = q.products
    cdef double *come = q.chances
    cdef double value = 0.0, chance, reached
    cdef int64_t i, j, r = 0, g = stop - start
    passed[0] = 1.0
    for i in range(start, stop):
        chance = _satisfied(m, q.y[i])
        if chance > 0:
            # Average over subsets with one more document, which is in a subset of j or not.
            passed[r + 1] = passed[r] * (1.0 - chance)
            for j in range(r, 0, -1):
                passed[j] = (
                    passed[j] * (<double> (r + 1 - j) / (r + 1))
                    + passed[j - 1] * (1.0 - chance) * (<double> j / (r + 1))
                )
            r += 1
    come[0] = 1.0
    for j in range(1, r + 1):
        come[j] = 0.0
    for i in range(last - start):
        for j in range(min(r - 1, i), max(<int64_t> 0, r - (g - i)) - 1, -1):
            reached = come[j] * (<double> (r - j) / (g - i))
            come[j] *= <double> (g - i - (r - j)) / (g - i)
            come[j + 1] += reached
            value += reached * (passed[j] - passed[j + 1]) / (start + i + 1)
    value *= left[0]
    left[0] *= passed[r]
    return value


cdef double _err(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return ERR (Chapelle et al. 2009).

    A user stops at a document with probability (2^y - 1) / 2^(max y).
    """
    cdef int64_t start = 0, stop, depth = min(m.k, q.n)
    cdef double value = 0.0, left = 1.0, chance
    while start < depth:
        if not q.grouped or q.ends[start] == start + 1:
            chance = _satisfied(m, q.y[start])
            value += left * chance / (start + 1)
            left *= 1.0 - chance
            start += 1
            continue
        stop = q.ends[start]
        value += _group_stops(m, q, start, stop, min(stop, depth), &left)
        start = stop
    return value


cdef double _rbp(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return RBP (Moffat and Zobel 2008): a user continues with probability x.

    Gains above 1 are divided by the maximum of the query.
    """
    cdef int64_t start = 0, stop, i, _i, depth = min(m.k, q.n)
    cdef double value = 0.0, weight = 1.0, most = 1.0, gains, weights
    cdef bint binary = m.option
    if not binary:
        for i in range(q.n_judged):
            most = max(most, q.label[i])
    while start < depth:
        stop = q.ends[start] if q.grouped else start + 1
        gains = weights = 0.0
        for i in range(start, stop):
            if binary:
                gains += q.y[i] >= m.rel
            else:
                gains += max(q.y[i], 0.0) / most
        for _i in range(start, min(stop, depth)):
            weights += weight
            weight *= m.x
        value += gains / (stop - start) * weights
        start = stop
    return (1.0 - m.x) * value


cdef double _rbp_residual(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the maximum RBP of the unjudged documents; 0 without any, as in trec_eval."""
    cdef int64_t start = 0, stop, i, unjudged = 0, here
    cdef double value = 0.0, weight = 1.0, weights
    while start < q.n:
        stop = q.ends[start] if q.grouped else start + 1
        here = 0
        weights = 0.0
        for i in range(start, stop):
            here += q.y[i] < 0
            weights += weight
            weight *= m.x
        unjudged += here
        value += <double> here / (stop - start) * weights
        start = stop
    return weight + (1.0 - m.x) * value if unjudged else 0.0


err = registered(_err)
rbp = registered(_rbp)
rbp_residual = registered(_rbp_residual)
