# Values of the measures for one query with sorted documents. Private.
#
# Documents of equal score that have no order are a group: every order of them is as likely, and
# a measure is worth its expectation.
from libc.math cimport NAN, isfinite
from libc.stdint cimport int64_t

from rankcore._ext._query cimport (
    AVERAGE_PRECISION,
    BINARY_G,
    BPREF,
    BY_AVAILABLE,
    BY_FOUND,
    BY_REACHABLE,
    DCG,
    ERR,
    F1,
    GIVEN,
    GRADED_G,
    HIT,
    HITS,
    INFERRED_AP,
    INTERPOLATED_PRECISION,
    JUDGED,
    N_NONRELEVANT_RETRIEVED,
    N_RELEVANT,
    N_RELEVANT_RETRIEVED,
    N_RETRIEVED,
    NDCG,
    NDCG_AT_RELEVANT,
    PHI,
    PRECISION,
    R_MULTIPLE,
    R_PRECISION,
    RBP,
    RBP_RESIDUAL,
    RECIPROCAL_RANK,
    RELATIVE_PRECISION,
    SET_AP,
    SET_PRECISION,
    SET_RECALL,
    SET_RELATIVE_PRECISION,
    UNJUDGED,
    UTILITY,
    Measure,
    Query,
    count_relevant,
    gain_of,
)
from rankcore._ext._trec_measures cimport (
    binary_g,
    bpref,
    graded_g,
    inferred_ap,
    interpolated_precision,
    ndcg_at_levels,
    ndcg_at_relevant,
)
from rankcore._ext._user_models cimport expected_reciprocal_rank, rank_biased, rank_biased_residual


cdef inline double _found(const Query *q, int64_t depth, double rel) noexcept nogil:
    """Relevant documents in the first `depth` positions, expected if the last are tied."""
    cdef int64_t start, stop, r
    if not q.grouped or q.ends[depth - 1] == depth:
        return count_relevant(q, 0, depth, rel)
    start = depth - 1
    stop = q.ends[start]
    while start > 0 and q.ends[start - 1] == stop:
        start -= 1
    r = count_relevant(q, start, stop, rel)
    return count_relevant(q, 0, start, rel) + r * <double> (depth - start) / (stop - start)


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
        r = count_relevant(q, start, stop, rel)
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
        r = count_relevant(q, start, stop, rel)
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


cdef inline double _dcg(
    const Measure *m, const Query *q, const double *discount, int64_t depth
) noexcept nogil:
    cdef const double *x = q.g if m.gain == GIVEN else q.y
    cdef int64_t start = 0, stop, i
    cdef double value = 0.0, gains, discounts
    cdef bint alike
    while start < depth:
        if not q.grouped or q.ends[start] == start + 1:
            value += gain_of(m, x[start]) * discount[start]
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
                value += gain_of(m, x[i]) * discount[i]
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
        value += gain_of(m, q.ideal[i]) * discount[i]
    return value


cdef inline double _of_set(const Measure *m, const Query *q, int64_t relevant) noexcept nogil:
    """Measures that do not depend on the order of the retrieved documents."""
    cdef int64_t found = count_relevant(q, 0, q.n, m.rel), i, judged = 0
    cdef double precision, recall
    if m.kind == N_RETRIEVED:
        return q.n
    if m.kind == N_RELEVANT:
        return relevant
    if m.kind == N_RELEVANT_RETRIEVED:
        return found
    if m.kind == N_NONRELEVANT_RETRIEVED:
        for i in range(q.n):
            judged += q.y[i] >= 0
        return judged - found
    if m.kind == UTILITY:
        return (
            m.weights[0] * found
            + m.weights[1] * (q.n - found)
            + m.weights[2] * (relevant - found)
            + m.weights[3] * (found - q.n - relevant)
        )
    precision = <double> found / q.n if q.n else 0.0
    if m.kind == SET_PRECISION:
        return precision
    if relevant == 0:
        return NAN
    recall = <double> found / relevant
    if m.kind == SET_RECALL:
        return recall
    if m.kind == SET_AP:
        return precision * recall
    if m.kind == SET_RELATIVE_PRECISION:
        return <double> found / min(q.n, relevant) if q.n else 0.0
    return (m.x + 1.0) * precision * recall / (m.x * precision + recall) if found else 0.0


cdef inline double _of_ideal(
    const Measure *m, const Query *q, const double *discount, int64_t relevant
) noexcept nogil:
    """Measures that compare gains with those of the ideal order at several positions."""
    if m.kind == GRADED_G:
        return graded_g(m, q)
    if m.kind == NDCG_AT_RELEVANT:
        return ndcg_at_relevant(m, q, discount)
    return ndcg_at_levels(m, q, discount) if relevant else NAN


cdef inline double value_of(
    const Measure *m, const Query *q, const double *discount, int64_t relevant
) noexcept nogil:
    """Value of a measure for a query; NaN if no document is relevant."""
    cdef int64_t depth = min(m.k, q.n), z, reached
    cdef double ideal
    if m.kind == DCG:
        return _dcg(m, q, discount, depth)
    if m.kind == NDCG:
        ideal = _ideal_dcg(m, q, discount)
        return _dcg(m, q, discount, depth) / ideal if ideal > 0 else NAN
    if m.kind == ERR:
        return expected_reciprocal_rank(m, q, depth)
    if m.kind == RBP:
        return rank_biased(m, q, depth)
    if m.kind == RBP_RESIDUAL:
        return rank_biased_residual(m, q)
    if m.kind == JUDGED:
        return _found(q, depth, m.rel) / depth if depth else 0.0
    if m.kind == UNJUDGED:
        return (depth - _found(q, depth, 0.0)) / m.k if depth else 0.0
    if m.kind == HITS:
        return _found(q, depth, m.rel) if depth else 0.0
    if m.kind >= SET_PRECISION:
        return _of_set(m, q, relevant)
    if m.kind >= GRADED_G:
        return _of_ideal(m, q, discount, relevant)
    if relevant == 0:
        return NAN
    if m.kind == RECIPROCAL_RANK or m.kind == HIT:
        return _first(q, depth, m.rel, m.kind == RECIPROCAL_RANK)
    if m.kind == PHI:
        z = m.z if m.z else relevant
        return _phi_sum(q, m.k if m.k else relevant, m.rel) / z
    if m.kind == BPREF:
        return bpref(m, q, relevant)
    if m.kind == R_PRECISION:
        depth = min(relevant, q.n)
    if depth == 0:
        return 0.0
    if m.kind == INFERRED_AP:
        return inferred_ap(m, q, relevant)
    if m.kind == BINARY_G:
        return binary_g(m, q, relevant)
    if m.kind == INTERPOLATED_PRECISION:
        return interpolated_precision(m, q, relevant)
    if m.kind == R_MULTIPLE:
        reached = <int64_t> (m.x * relevant + 0.9)
        return _found(q, min(reached, q.n), m.rel) / reached if reached > 0 else 0.0
    if m.kind == AVERAGE_PRECISION:
        if m.divisor == BY_FOUND:
            relevant = count_relevant(q, 0, depth, m.rel)
        elif m.divisor == BY_REACHABLE:
            relevant = min(relevant, m.k)
        return _precisions(q, depth, m.rel, m.together) / relevant if relevant else 0.0
    if m.kind == PRECISION:
        return _found(q, depth, m.rel) / (depth if m.divisor == BY_AVAILABLE else m.k)
    if m.kind == F1:  # the harmonic mean of precision and recall at k
        return 2 * _found(q, depth, m.rel) / (<double> m.k + relevant)
    if m.kind == RELATIVE_PRECISION:
        return _found(q, depth, m.rel) / min(m.k, relevant)
    return _found(q, depth, m.rel) / relevant  # RECALL and R_PRECISION


cdef inline bint is_number(
    const Measure *m, const Query *q, double value, const double *discount
) noexcept nogil:
    """Whether no sum of a DCG or an NDCG is beyond float64; an infinite ideal makes 0 or NaN."""
    if m.kind == DCG or value > 0:
        return isfinite(value)
    return isfinite(_ideal_dcg(m, q, discount))
