# Moments of columns, units that follow from them, and large values. Private.
from libc.stdint cimport int64_t

from rankcore.core cimport rc_row

cdef extern from "_units.h" nogil:
    ctypedef struct rc_moments:
        double *weights
        double *origins
        double *sums
        double *squares
        double *totals
        int64_t n_features

    ctypedef struct rc_units:
        const double *center
        const double *factor
        const double *blank
        int64_t n_features

    bint rc_any_beyond(rc_row x, double limit)
