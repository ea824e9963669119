"""Measures that do not depend on the order of the retrieved documents: counts and fractions.

Each function counts the labels of the n retrieved documents of one query (``_query.pxd``): O(n).
"""

from libc.math cimport NAN
from libc.stdint cimport int64_t

from rankcore._ext._query cimport Measure, Query, count_relevant, registered


cdef double _n_retrieved(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return q.n


cdef double _n_relevant(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return relevant


cdef double _n_relevant_retrieved(
    const Measure *m, const Query *q, int64_t relevant
) noexcept nogil:
    return count_relevant(q, 0, q.n, m.rel)


cdef double _n_nonrelevant_retrieved(
    const Measure *m, const Query *q, int64_t relevant
) noexcept nogil:
    """Count the retrieved documents that were judged nonrelevant."""
    cdef int64_t i, judged = 0
    for i in range(q.n):
        judged += q.y[i] >= 0
    return judged - count_relevant(q, 0, q.n, m.rel)


cdef double _utility(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    cdef int64_t found = count_relevant(q, 0, q.n, m.rel)
    return (
        m.weights[0] * found
        + m.weights[1] * (q.n - found)
        + m.weights[2] * (relevant - found)
        + m.weights[3] * (found - q.n - relevant)
    )


cdef double _set_precision(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return <double> count_relevant(q, 0, q.n, m.rel) / q.n if q.n else 0.0


cdef double _set_recall(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return <double> count_relevant(q, 0, q.n, m.rel) / relevant if relevant else NAN


cdef double _set_ap(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    return _set_precision(m, q, relevant) * _set_recall(m, q, relevant)


cdef double _set_relative_precision(
    const Measure *m, const Query *q, int64_t relevant
) noexcept nogil:
    if relevant == 0:
        return NAN
    return <double> count_relevant(q, 0, q.n, m.rel) / min(q.n, relevant) if q.n else 0.0


cdef double _set_f(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the weighted harmonic mean of precision and recall."""
    cdef double precision = _set_precision(m, q, relevant)
    cdef double recall = _set_recall(m, q, relevant)
    if relevant == 0:
        return NAN
    return (m.x + 1.0) * precision * recall / (m.x * precision + recall) if recall > 0 else 0.0


n_retrieved = registered(_n_retrieved)
n_relevant = registered(_n_relevant)
n_relevant_retrieved = registered(_n_relevant_retrieved)
n_nonrelevant_retrieved = registered(_n_nonrelevant_retrieved)
utility = registered(_utility)
set_precision = registered(_set_precision)
set_recall = registered(_set_recall)
set_ap = registered(_set_ap)
set_relative_precision = registered(_set_relative_precision)
set_f = registered(_set_f)
