"""Measures of the gains of documents: DCG, and those that compare with an ideal order.

Each function reads the gains or labels of one sorted query (``_query.pxd``) down to its cut-off k:
O(k), with the ideal order in descending order.
"""

from libc.math cimport INFINITY, NAN, isfinite, log2
from libc.stdint cimport int64_t

from rankcore._ext._query cimport Measure, Query, gain_of, registered


cdef inline double _gain_sum(const Measure *m, const Query *q, int64_t depth) noexcept nogil:
    cdef const double *x = q.g if m.given else q.y
    cdef int64_t start = 0, stop, i
    cdef double value = 0.0, gains, discounts
    cdef bint alike
    while start < depth:
        if not q.grouped or q.ends[start] == start + 1:
            value += gain_of(m, x[start]) * q.discount[start]
            start += 1
            continue
        stop = q.ends[start]
        gains = discounts = 0.0
        alike = True
        for i in range(start, stop):
            gains += gain_of(m, x[i])
            alike &= x[i] == x[start]
        if alike:  # position by position, as the ideal is summed: a perfect order gets exactly 1
            for i in range(start, min(stop, depth)):
                value += gain_of(m, x[i]) * q.discount[i]
        else:
            for i in range(start, min(stop, depth)):
                discounts += q.discount[i]
            value += gains / (stop - start) * discounts
        start = stop
    return value


cdef inline double _ideal_sum(const Measure *m, const Query *q) noexcept nogil:
    cdef int64_t i
    cdef double value = 0.0
    for i in range(min(m.k, q.n_ideal)):
        value += gain_of(m, q.ideal[i]) * q.discount[i]
    return value


cdef inline double _gain_at(const Measure *m, const Query *q, int64_t i) noexcept nogil:
    """Return the gain of a document; negative gains count as 0."""
    return max(gain_of(m, q.g[i] if m.given else q.y[i]), 0.0)


cdef inline double _ideal_at(const Measure *m, const Query *q, int64_t i) noexcept nogil:
    """Return the gain at a position of the ideal order; 0 beyond its end."""
    return max(gain_of(m, q.ideal[i]), 0.0) if i < q.n_ideal else 0.0


# ---------------------------------------------------------------- measures


cdef double _dcg(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef double value = _gain_sum(m, q, min(m.k, q.n))
    return value if isfinite(value) else INFINITY


cdef double _ndcg(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef double ideal = _ideal_sum(m, q)
    if not isfinite(ideal):
        return INFINITY
    return _gain_sum(m, q, min(m.k, q.n)) / ideal if ideal > 0 else NAN


cdef double _graded_g(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the gains, discounted by how far the gain so far lags behind the ideal order."""
    cdef int64_t i
    cdef double value = 0.0, gain, gained = 0.0, cost = 0.0, most = 0.0
    for i in range(q.n):
        gain = _gain_at(m, q, i)
        gained += gain
        cost += max(_ideal_at(m, q, i), 1.0)
        if gain > 0:
            value += gain / log2(2.0 + cost - gained)
    for i in range(q.n_ideal):
        most += _ideal_at(m, q, i)
    return value / most if most > 0 else NAN


cdef double _ndcg_at_relevant(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the mean NDCG at documents with gain; those not retrieved count with the last."""
    cdef int64_t i, n_found = 0, n_gains = 0
    cdef double value = 0.0, dcg = 0.0, ideal = 0.0, gain
    for i in range(max(q.n, q.n_ideal)):
        gain = _ideal_at(m, q, i)
        if gain > 0:
            ideal += gain * q.discount[i]
            n_gains += 1
        if i < q.n:
            gain = _gain_at(m, q, i)
            if gain > 0:
                dcg += gain * q.discount[i]
                value += dcg / ideal
                n_found += 1
    if n_gains == 0:
        return NAN
    return (value + (n_gains - n_found) * dcg / ideal) / n_gains


cdef double _ndcg_at_levels(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the mean NDCG where the gain of the ideal order falls, and at the last document."""
    cdef int64_t i, falls = 0, end = 0
    cdef double value = 0.0, dcg = 0.0, ideal = 0.0, gain, last = 0.0
    while end < q.n_ideal and _ideal_at(m, q, end) > 0:
        end += 1
    for i in range(end + 1):
        gain = _ideal_at(m, q, i)
        if i and gain != last:
            value += dcg / ideal
            falls += 1
        last = gain
        if i < q.n:
            dcg += _gain_at(m, q, i) * q.discount[i]
        if gain > 0:
            ideal += gain * q.discount[i]
    if end and q.n > end + 1:
        for i in range(end + 1, q.n):
            dcg += _gain_at(m, q, i) * q.discount[i]
        value += dcg / ideal
        falls += 1
    return value / falls if falls else NAN


dcg = registered(_dcg)
ndcg = registered(_ndcg)
graded_g = registered(_graded_g)
ndcg_at_relevant = registered(_ndcg_at_relevant)
ndcg_at_levels = registered(_ndcg_at_levels)
