# Weighted moments of columns, and standardised rows. Private.
from libc.stdint cimport int64_t

from rankcore._ext._units cimport rc_moments, rc_units
from rankcore.core cimport rc_row, rc_rows

cdef extern from "_moments.h" nogil:
    # Adds rows to moments; weights may be NULL for 1.
    void rc_moments_add_rows(
        rc_moments *m, const rc_rows *X, const double *weights, int64_t start, int64_t stop
    )

    # Counts the values of a row that are not 0.
    int64_t rc_n_nonzero(rc_row x)

cdef extern from "_standardized.h" nogil:
    rc_row rc_standardized(const rc_units *u, rc_row x, double *out)
    void rc_standardize_rows(
        const rc_units *u, const rc_rows *X, int64_t start, int64_t stop, double *out
    )
