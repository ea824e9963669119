# For kernels that sum rows by leaf: a check of the leaf of each row, and sums of arrays whose
# additions do not wait for each other. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef inline int check_leaves(
    const int32_t[::1] leaf_of, int64_t n_rows, int64_t n_leaves
) except -1:
    """Raise ValueError unless there are leaves and each row is in one of them."""
    cdef int64_t i
    cdef bint fits = leaf_of.shape[0] == n_rows and n_leaves > 0
    for i in range(n_rows if fits else 0):
        fits = fits and 0 <= leaf_of[i] < n_leaves
    if not fits:
        raise ValueError("the leaves do not match the rows")
    return 0


cdef inline double sum_of(const double *values, int64_t n) noexcept nogil:
    # Four sums, because each addition waits for the one before it.
    cdef double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0
    cdef int64_t i = 0
    while i + 4 <= n:
        s0 += values[i]
        s1 += values[i + 1]
        s2 += values[i + 2]
        s3 += values[i + 3]
        i += 4
    while i < n:
        s0 += values[i]
        i += 1
    return (s0 + s2) + (s1 + s3)


cdef inline void sum_apart(
    const double *values, const uint8_t *fires, int64_t n, double *sums
) noexcept nogil:
    """Sum the values where a stump does not fire, and where it does."""
    cdef double s[8]
    cdef int64_t i = 0, k
    for k in range(8):
        s[k] = 0.0
    while i + 4 <= n:
        s[fires[i] & 1] += values[i]
        s[2 + (fires[i + 1] & 1)] += values[i + 1]
        s[4 + (fires[i + 2] & 1)] += values[i + 2]
        s[6 + (fires[i + 3] & 1)] += values[i + 3]
        i += 4
    while i < n:
        s[fires[i] & 1] += values[i]
        i += 1
    sums[0] = (s[0] + s[4]) + (s[2] + s[6])
    sums[1] = (s[1] + s[5]) + (s[3] + s[7])
