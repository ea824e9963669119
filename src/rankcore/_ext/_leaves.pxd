# What weights of pairs share: whether rows have leaves, and sums. Private.
from libc.stdint cimport int32_t, int64_t


cdef inline int check_leaves(
    const int32_t[::1] leaf_of, int64_t n_rows, int64_t n_leaves
) except -1:
    """Raise ValueError unless each row is in one of the leaves, of which there are some."""
    cdef int64_t i
    cdef bint fits = leaf_of.shape[0] == n_rows and n_leaves > 0
    for i in range(n_rows if fits else 0):
        fits = fits and 0 <= leaf_of[i] < n_leaves
    if not fits:
        raise ValueError("the leaves do not fit the rows")
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
