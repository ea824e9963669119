# Thresholds of bins of a column: between two values, and those that divide many values into bins of
# about equal counts. Private.
from libc.stdint cimport int64_t


cdef inline double split(double lower, double upper) noexcept nogil:
    """Return a threshold t between two neighbouring values, lower <= t < upper.

    If possible, it also separates the two after rounding to float32: a model scores its training
    rows alike in both precisions.
    """
    cdef double low = lower, high = upper, middle
    if <double> (<float> lower) > low:
        low = <double> (<float> lower)
    if <double> (<float> upper) < high:
        high = <double> (<float> upper)
    if low >= high:
        low = lower
        high = upper
    middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


cdef inline int64_t weight(const int64_t *counts, int64_t first, int64_t last) noexcept nogil:
    """Return the number of rows of some values: one each without counts."""
    cdef int64_t i, total = 0
    if counts == NULL:
        return last - first
    for i in range(first, last):
        total += counts[i]
    return total


cdef inline int64_t share(
    const double *low, const double *high, const int64_t *counts,  # in: see `cut`
    int64_t first, int64_t last, int64_t n_bins,
    double *cuts,  # out
) noexcept nogil:
    """Cut values into at most n_bins bins of about equal counts; return the number of cuts."""
    cdef int64_t i = first, j, held = 0, left = weight(counts, first, last), made = 0
    while i < last:
        j = i + 1
        while j < last and low[j] == low[i]:
            j += 1
        held += weight(counts, i, j)
        # The remaining bins share the remaining weight: a heavy value costs its neighbours none.
        if j < last and made + 1 < n_bins and held * (n_bins - made) >= left:
            cuts[made] = split(high[j - 1], low[j])
            made += 1
            left -= held
            held = 0
        i = j
    return made


cdef inline int64_t cut(
    const double *low, const double *high, const int64_t *counts, int64_t n, bint zero,
    int64_t max_bins,
    double *cuts,  # out
) noexcept nogil:
    """Write the ascending thresholds of a column; return their number.

    The present values ascend: one per row, with low and high the same array; or groups of
    neighbouring values between low and high, with counts of rows, without zeros. ``zero`` is
    whether 0 is one more value.
    """
    cdef int64_t i, made = 0, negative = 0, positive, n_negative, distinct = 0, below, above
    while negative < n and low[negative] < 0:
        negative += 1
    positive = negative
    while positive < n and low[positive] == 0:
        positive += 1
    zero = zero or positive > negative
    for i in range(n):
        distinct += low[i] != 0 and (i == 0 or low[i] != low[i - 1])
    if distinct + zero <= max_bins:
        n_negative = max_bins = weight(counts, 0, n) + 2  # a bin for each value
    else:
        below = weight(counts, 0, negative)
        above = weight(counts, positive, n)
        max_bins -= zero
        n_negative = (max_bins * below) // (below + above)
        if negative and n_negative < 1:
            n_negative = 1
        if n > positive and max_bins - n_negative < 1:
            n_negative = max_bins - 1
        max_bins -= n_negative
    made = share(low, high, counts, 0, negative, n_negative, cuts)
    if n_negative and negative and (zero or n > positive):  # two bins cannot separate three signs
        cuts[made] = split(high[negative - 1], 0.0 if zero else low[positive])
        made += 1
    if zero and n > positive:
        cuts[made] = split(0.0, low[positive])
        made += 1
    return made + share(low, high, counts, positive, n, max_bins, cuts + made)


cdef inline int64_t count_below(const double *cuts, int64_t n, double x) noexcept nogil:
    """Return how many of the ascending thresholds are below x."""
    cdef int64_t low = 0, half
    while n > 0:
        half = n >> 1
        if cuts[low + half] < x:
            low += half + 1
            n -= half + 1
        else:
            n = half
    return low
