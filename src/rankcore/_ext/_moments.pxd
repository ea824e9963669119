# Weighted moments of columns, and standardised rows. Private.
from libc.stdint cimport int64_t

from rankcore.core cimport rc_row, rc_rows

cdef extern from "_moments.h" nogil:
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

    void rc_moments_add(rc_moments *m, rc_row x, double weight)
    void rc_moments_add_rows(
        rc_moments *m, const rc_rows *X, const double *weights, int64_t start, int64_t stop
    )
    rc_row rc_standardized(const rc_units *u, rc_row x, double *out)


cdef inline int point_to_moments(
    rc_moments *m, double[:, ::1] columns, double[::1] totals
) except -1:
    """Point to the arrays of `Moments`; raise ValueError if they have other shapes."""
    if columns.shape[0] != 4 or columns.shape[1] < 1 or totals.shape[0] != 3:
        raise ValueError("moments must have arrays of shape (4, n_features) and (3,)")
    m.weights = &columns[0, 0]
    m.origins = &columns[1, 0]
    m.sums = &columns[2, 0]
    m.squares = &columns[3, 0]
    m.totals = &totals[0]
    m.n_features = columns.shape[1]
    return 0
