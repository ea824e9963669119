# Moments of columns, and units that follow from them. Private.
from libc.stdint cimport int64_t

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
