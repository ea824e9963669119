# Losses of pairs that are listed, one by one, for pair_loss. Private.
from libc.stdint cimport int32_t, int64_t


cdef struct Listed:
    # Pairs of one query, as indices of documents within the query.
    const int32_t *winners
    const int32_t *losers
    const double *weights  # NULL: all weigh 1
    int64_t n
    double step  # factor of all pairs


cdef inline double _weight(const Listed *pairs, int64_t p) noexcept nogil:
    return pairs.step * (1.0 if pairs.weights == NULL else pairs.weights[p])


cdef inline void sum_listed(
    const Listed *pairs, const double *score,
    const double *margins, const double *factors, int64_t n_margins,
    double *slopes, double *curvatures, double *sums,  # out: added to
) noexcept nogil:
    """Compute the loss and its derivatives by the scores."""
    cdef int64_t p, m, i, j
    cdef double gap, v, by
    for p in range(pairs.n):
        i, j, v = pairs.winners[p], pairs.losers[p], _weight(pairs, p)
        for m in range(n_margins):
            if not score[i] - score[j] < margins[m]:
                continue
            gap = margins[m] - (score[i] - score[j])
            sums[2 * m] += v * gap
            sums[2 * m + 1] += v * gap * gap
            by = 2.0 * factors[m] * v
            slopes[i] -= by * gap
            slopes[j] += by * gap
            curvatures[i] += by
            curvatures[j] += by


cdef inline void curve_listed(
    const Listed *pairs, const double *score, const double *z, int64_t width,
    const double *margins, const double *factors, int64_t n_margins,
    double *out,  # added to
) noexcept nogil:
    """Multiply `width` vectors side by side by the second derivatives."""
    cdef int64_t p, m, i, j, f
    cdef double by, change
    for p in range(pairs.n):
        i, j = pairs.winners[p], pairs.losers[p]
        by = 0.0
        for m in range(n_margins):
            if score[i] - score[j] < margins[m]:
                by += 2.0 * factors[m]
        by *= _weight(pairs, p)
        if by == 0.0:
            continue
        for f in range(width):
            change = by * (z[i * width + f] - z[j * width + f])
            out[i * width + f] += change
            out[j * width + f] -= change
