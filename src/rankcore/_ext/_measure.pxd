# What each measure says of one query whose documents are in order. Private.
#
# Documents of equal score that have no order are a group: every order of them is as likely, and
# a measure is worth its expectation.
from libc.math cimport NAN, exp2, isfinite
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef enum Kind:
    PRECISION
    RECALL
    R_PRECISION
    HIT
    RECIPROCAL_RANK
    AVERAGE_PRECISION
    PHI
    DCG
    NDCG


cdef enum Gain:
    LINEAR
    EXP2
    GIVEN


cdef enum Divisor:
    BY_CUTOFF
    BY_AVAILABLE
    BY_RELEVANT
    BY_REACHABLE
    BY_FOUND


cdef struct Measure:
    int32_t kind
    int32_t gain  # of DCG and NDCG
    int32_t divisor  # of PRECISION and AVERAGE_PRECISION
    int32_t clipped  # negative gains count 0
    int32_t together  # AVERAGE_PRECISION: a group stands where it ends
    int32_t unused
    int64_t k  # positions looked at; of PHI its m, 0 for the number of relevant documents
    int64_t z  # PHI's Z, 0 for the number of relevant documents
    double rel  # least relevant label


cdef struct Query:
    int64_t n_judged  # documents there are
    int64_t n  # documents that were retrieved: the first n of the judged
    const double *score
    const double *label
    const double *gain
    bint grouped  # whether documents of equal score are a group
    const double *y  # labels by position, as deep as the measures look
    const double *g  # gains by position
    const uint32_t *ends  # end of the group of each position, if grouped
    double *ideal  # the best labels or gains, descending
    int64_t n_ideal  # how many there are
    double *chances  # room for n + 1 numbers


cdef inline int64_t _relevant(
    const Query *q, int64_t start, int64_t stop, double rel
) noexcept nogil:
    cdef int64_t i, count = 0
    for i in range(start, stop):
        count += q.y[i] >= rel
    return count


cdef inline double _found(const Query *q, int64_t depth, double rel) noexcept nogil:
    """Relevant documents in the first `depth` positions, expected if the last are tied."""
    cdef int64_t start, stop, r
    if not q.grouped or q.ends[depth - 1] == depth:
        return _relevant(q, 0, depth, rel)
    start = depth - 1
    stop = q.ends[start]
    while start > 0 and q.ends[start - 1] == stop:
        start -= 1
    r = _relevant(q, start, stop, rel)
    return _relevant(q, 0, start, rel) + r * <double> (depth - start) / (stop - start)


cdef inline double _first(
    const Query *q, int64_t depth, double rel, bint reciprocal
) noexcept nogil:
    """Expectation of 1 or of 1/position for the first relevant document, 0 beyond `depth`.

    While none of a group of g has come up, the next is relevant with chance r / (those left).
    """
    cdef int64_t start = 0, stop, i, r
    cdef double none = 1.0, chance, value = 0.0
    while start < depth:
        stop = q.ends[start] if q.grouped else start + 1
        r = _relevant(q, start, stop, rel)
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


cdef inline double _group_precisions(
    int64_t start, int64_t stop, int64_t last, int64_t r, int64_t before
) noexcept nogil:
    """Expected sum of precisions at the relevant documents of positions start .. last - 1.

    The positions up to `stop` tie, r of their g documents are relevant, and so are `before` of
    those above. A position is relevant with chance r / g; then each of the others before it in
    the group is with chance (r - 1) / (g - 1).
    """
    cdef double value = 0.0, share = <double> r / (stop - start), others
    cdef int64_t i
    others = <double> (r - 1) / max(stop - start - 1, <int64_t> 1)
    for i in range(start, last):
        value += share * (before + 1 + others * (i - start)) / (i + 1)
    return value


cdef inline double _precisions(
    const Query *q, int64_t depth, double rel, bint together
) noexcept nogil:
    """Sum of the precisions at the relevant documents of the first `depth` positions.

    If a group of tied documents stands together, each of its relevant ones has the precision at its
    end.
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
        r = _relevant(q, start, stop, rel)
        if r > 0 and together:
            before += r
            value += r * (<double> before / stop) if stop <= depth else 0.0
        elif r > 0:
            value += _group_precisions(start, stop, min(stop, depth), r, before)
            before += r
        start = stop
    return value


cdef inline double _phi_sum(const Query *q, int64_t m, double rel) noexcept nogil:
    """Sum of i / (position of the i-th relevant document) for i up to m.

    A group that stays within the first m is a sum of precisions. In the group in which m ends, the
    chances of how many relevant ones have come up are carried from position to position: O(g m) for
    g documents. States that no order reaches are left out, and chances only multiplied by numbers
    from 0 to 1, so that every one of them is exact to rounding.
    """
    cdef int64_t start = 0, stop, i, j, r, g, n, before = 0
    cdef double value = 0.0, reached
    while start < q.n and before < m:
        stop = q.ends[start] if q.grouped else start + 1
        r = _relevant(q, start, stop, rel)
        if r == stop - start:
            for i in range(min(r, m - before)):
                value += <double> (before + i + 1) / (start + i + 1)
        elif r > 0 and before + r <= m:
            value += _group_precisions(start, stop, stop, r, before)
        elif r > 0:
            g = stop - start
            n = m - before  # fewer than r: what comes after the n-th does not count
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


cdef inline double _gain(const Measure *m, double x) noexcept nogil:
    cdef int64_t level
    if m.gain == EXP2:
        if 0 <= x < 63:
            level = <int64_t> x
            x = <double> ((<int64_t> 1 << level) - 1) if level == x else exp2(x) - 1.0
        else:
            x = exp2(x) - 1.0
    return 0.0 if m.clipped and x < 0 else x


cdef inline double _dcg(
    const Measure *m, const Query *q, const double *discount, int64_t depth
) noexcept nogil:
    cdef const double *x = q.g if m.gain == GIVEN else q.y
    cdef int64_t start = 0, stop, i
    cdef double value = 0.0, gains, discounts
    cdef bint alike
    while start < depth:
        if not q.grouped or q.ends[start] == start + 1:
            value += _gain(m, x[start]) * discount[start]
            start += 1
            continue
        stop = q.ends[start]
        gains = discounts = 0.0
        alike = True
        for i in range(start, stop):
            gains += _gain(m, x[i])
            alike &= x[i] == x[start]
        if alike:  # position by position, as the ideal is summed: a perfect order gets exactly 1
            for i in range(start, min(stop, depth)):
                value += _gain(m, x[i]) * discount[i]
        else:
            for i in range(start, min(stop, depth)):
                discounts += discount[i]
            value += gains / (stop - start) * discounts
        start = stop
    return value


cdef inline double _ideal_dcg(
    const Measure *m, const Query *q, const double *discount
) noexcept nogil:
    cdef int64_t i
    cdef double value = 0.0
    for i in range(min(m.k, q.n_ideal)):
        value += _gain(m, q.ideal[i]) * discount[i]
    return value


cdef inline double value_of(
    const Measure *m, const Query *q, const double *discount, int64_t relevant
) noexcept nogil:
    """What a measure says of a query; NaN if there is nothing to find."""
    cdef int64_t depth = min(m.k, q.n), z
    cdef double ideal
    if m.kind == DCG:
        return _dcg(m, q, discount, depth)
    if m.kind == NDCG:
        ideal = _ideal_dcg(m, q, discount)
        return _dcg(m, q, discount, depth) / ideal if ideal > 0 else NAN
    if relevant == 0:
        return NAN
    if m.kind == RECIPROCAL_RANK or m.kind == HIT:
        return _first(q, depth, m.rel, m.kind == RECIPROCAL_RANK)
    if m.kind == PHI:
        z = m.z if m.z else relevant
        return _phi_sum(q, m.k if m.k else relevant, m.rel) / z
    if m.kind == R_PRECISION:
        depth = min(relevant, q.n)
    if depth == 0:
        return 0.0
    if m.kind == AVERAGE_PRECISION:
        if m.divisor == BY_FOUND:
            relevant = _relevant(q, 0, depth, m.rel)
        elif m.divisor == BY_REACHABLE:
            relevant = min(relevant, m.k)
        return _precisions(q, depth, m.rel, m.together) / relevant if relevant else 0.0
    if m.kind == PRECISION:
        return _found(q, depth, m.rel) / (depth if m.divisor == BY_AVAILABLE else m.k)
    return _found(q, depth, m.rel) / relevant  # RECALL and R_PRECISION


cdef inline bint is_number(
    const Measure *m, const Query *q, double value, const double *discount
) noexcept nogil:
    """Whether no sum of a DCG or an NDCG is beyond float64; an infinite ideal makes 0 or NaN."""
    if m.kind == DCG or value > 0:
        return isfinite(value)
    return isfinite(_ideal_dcg(m, q, discount))
