"""Measures that only trec_eval reports, and those that distinguish unjudged documents.

A label below 0 marks an unjudged document, -DBL_MAX one that was not in the pool either. Each
function reads the labels of one sorted query (``_query.pxd``): O(n).
"""

from libc.float cimport DBL_MAX
from libc.math cimport log2
from libc.stdint cimport int64_t

from rankcore._ext._query cimport Measure, Query, registered

# Constant that trec_eval adds to counts before taking their ratio.
cdef enum:
    INVERSE_OF_ADDED = 100000


cdef double _bpref(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return bpref (Buckley and Voorhees 2004): judged pairs in the right order.

    Only the first R nonrelevant documents count.

    In a tied group with h judged nonrelevant documents, 0 to h of them precede a relevant document,
    with equal probabilities.
    """
    cdef int64_t start = 0, stop, i, j, others = 0, before = 0, r, h
    cdef double value = 0.0, share
    for i in range(q.n_judged):
        others += 0 <= q.label[i] < m.rel
    others = min(others, relevant)
    while start < q.n:
        stop = q.ends[start] if q.grouped else start + 1
        r = h = 0
        for i in range(start, stop):
            if q.y[i] >= m.rel:
                r += 1
            elif q.y[i] >= 0:
                h += 1
        if r:
            share = 0.0
            for j in range(h + 1):
                if before + j == 0:
                    share += 1.0
                else:
                    share += 1.0 - <double> min(before + j, relevant) / others
            value += r * (share / (h + 1))
        before += h
        start = stop
    return value / relevant


cdef double _inferred_ap(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return inferred AP (Yilmaz and Aslam 2006): expected precisions if a sample was judged."""
    cdef int64_t i, relevant_so_far = 0, others = 0, sampled_out = 0
    cdef double value = 0.0, added = 1.0 / INVERSE_OF_ADDED, j
    for i in range(q.n):
        if q.y[i] == -DBL_MAX:
            continue
        if q.y[i] < 0:
            sampled_out += 1
        elif q.y[i] < m.rel:
            others += 1
        else:
            relevant_so_far += 1
            if i == 0:
                value += 1.0
            else:
                j = i
                value += 1.0 / (j + 1.0) + (j / (j + 1.0)) * (
                    (relevant_so_far - 1 + others + sampled_out) / j
                ) * ((relevant_so_far - 1 + added) / (relevant_so_far - 1 + others + 2 * added))
    return value / relevant


cdef double _interpolated_precision(
    const Measure *m, const Query *q, int64_t relevant
) noexcept nogil:
    """Return the maximum precision at positions where the recall is at least x."""
    cdef int64_t i, wanted, relevant_so_far = 0
    cdef double value = 0.0
    wanted = <int64_t> (m.x * relevant + (0.9 if m.up else 0.5))
    for i in range(q.n):
        relevant_so_far += q.y[i] >= m.rel
        if relevant_so_far >= wanted:
            value = max(value, <double> relevant_so_far / (i + 1))
    return value


cdef double _binary_g(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Return the gain of relevant documents, discounted by the number of others before each."""
    cdef int64_t i, others = 0
    cdef double value = 0.0
    for i in range(q.n):
        if q.y[i] >= m.rel:
            value += 1.0 / log2(<double> (2 + others))
        else:
            others += 1
    return value / relevant


bpref = registered(_bpref)
inferred_ap = registered(_inferred_ap)
interpolated_precision = registered(_interpolated_precision)
binary_g = registered(_binary_g)
