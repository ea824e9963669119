# Measures that only trec_eval reports, and those that distinguish unjudged documents. Private.
#
# A label below 0 says that nobody judged the document, -DBL_MAX that it was in no pool either.
from libc.float cimport DBL_MAX
from libc.math cimport NAN, log2
from libc.stdint cimport int64_t

from rankcore._ext._query cimport GIVEN, Measure, Query, gain_of

# Constant that trec_eval adds to counts before taking their ratio.
cdef enum:
    INVERSE_OF_ADDED = 100000


cdef inline double bpref(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Buckley and Voorhees (2004): judged pairs in order, of the first R that are not relevant.

    In a tied group a relevant document has 0 to h of the h judged others before it, each number as
    likely.
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


cdef inline double inferred_ap(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Yilmaz and Aslam (2006): precisions expected where only a sample of the pool was judged."""
    cdef int64_t i, found = 0, others = 0, sampled_out = 0
    cdef double value = 0.0, added = 1.0 / INVERSE_OF_ADDED, j
    for i in range(q.n):
        if q.y[i] == -DBL_MAX:
            continue
        if q.y[i] < 0:
            sampled_out += 1
        elif q.y[i] < m.rel:
            others += 1
        else:
            found += 1
            if i == 0:
                value += 1.0
            else:
                j = i
                value += 1.0 / (j + 1.0) + (j / (j + 1.0)) * (
                    (found - 1 + others + sampled_out) / j
                ) * ((found - 1 + added) / (found - 1 + others + 2 * added))
    return value / relevant


cdef inline double interpolated_precision(
    const Measure *m, const Query *q, int64_t relevant
) noexcept nogil:
    """Maximum precision at positions where the recall is at least x."""
    cdef int64_t i, wanted, found = 0
    cdef double value = 0.0
    wanted = <int64_t> (m.x * relevant + (0.9 if m.up else 0.5))
    for i in range(q.n):
        found += q.y[i] >= m.rel
        if found >= wanted:
            value = max(value, <double> found / (i + 1))
    return value


cdef inline double binary_g(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Each relevant document counts by the number of others before it."""
    cdef int64_t i, others = 0
    cdef double value = 0.0
    for i in range(q.n):
        if q.y[i] >= m.rel:
            value += 1.0 / log2(<double> (2 + others))
        else:
            others += 1
    return value / relevant


cdef inline double _gain_at(const Measure *m, const Query *q, int64_t i) noexcept nogil:
    """Gain of a document; what is negative counts 0."""
    return max(gain_of(m, q.g[i] if m.gain == GIVEN else q.y[i]), 0.0)


cdef inline double _ideal_at(const Measure *m, const Query *q, int64_t i) noexcept nogil:
    """The same of an ideal order, 0 where it has ended."""
    return max(gain_of(m, q.ideal[i]), 0.0) if i < q.n_ideal else 0.0


cdef inline double graded_g(const Measure *m, const Query *q) noexcept nogil:
    """Gains by what an ideal order would have gained so far and this one has not."""
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


cdef inline double ndcg_at_relevant(
    const Measure *m, const Query *q, const double *discount
) noexcept nogil:
    """Mean of the NDCGs at documents of some gain; those not retrieved count with the last."""
    cdef int64_t i, found = 0, there = 0
    cdef double value = 0.0, dcg = 0.0, ideal = 0.0, gain
    for i in range(max(q.n, q.n_ideal)):
        gain = _ideal_at(m, q, i)
        if gain > 0:
            ideal += gain * discount[i]
            there += 1
        if i < q.n:
            gain = _gain_at(m, q, i)
            if gain > 0:
                dcg += gain * discount[i]
                value += dcg / ideal
                found += 1
    if there == 0:
        return NAN
    return (value + (there - found) * dcg / ideal) / there


cdef inline double ndcg_at_levels(
    const Measure *m, const Query *q, const double *discount
) noexcept nogil:
    """Mean of the NDCGs where the gain of the ideal order falls, and at the last document."""
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
            dcg += _gain_at(m, q, i) * discount[i]
        if gain > 0:
            ideal += gain * discount[i]
    if end and q.n > end + 1:
        for i in range(end + 1, q.n):
            dcg += _gain_at(m, q, i) * discount[i]
        value += dcg / ideal
        falls += 1
    return value / falls if falls else NAN
