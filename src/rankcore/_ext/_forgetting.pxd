# Averages that forget: the weights of examples, shared by all online learners. Private.
from libc.stdint cimport int64_t

from rankcore.core cimport rc_forgetting


cdef extern from "_forgetting.h" nogil:
    const double RC_MOST_PAST_
    const double RC_FADE_
    bint rc_outgrown(double *past, double gain)


cdef inline double weight_before(const rc_forgetting *f, int64_t t) noexcept nogil:
    """Return the weight of the examples so far: t without forgetting."""
    return f.past if f.gain > 0 else <double> t


cdef inline void fade(double *sums, int64_t n) noexcept nogil:
    """Multiply lazy sums, if any, by `RC_FADE_`."""
    cdef int64_t i
    if sums != NULL:
        for i in range(n):
            sums[i] *= RC_FADE_


cdef inline void forget(
    rc_forgetting *f, double *sums, int64_t n, double *others, int64_t n_others
) noexcept nogil:
    """Weigh one more example in two lazy sums, either of which may be NULL."""
    if f.gain > 0 and rc_outgrown(&f.past, f.gain):
        fade(sums, n)
        fade(others, n_others)
