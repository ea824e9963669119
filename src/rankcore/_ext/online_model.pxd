# The base class of the models of online learners, and functions of the loop over rows. Private.
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._candidates cimport Candidates, decide_t
from rankcore._ext._units cimport rc_moments, rc_units
from rankcore.core cimport rc_counts, rc_forgetting, rc_row

# Predicts a row's rank, learns from the true one, returns the prediction; -1 if it could not.
ctypedef int32_t (*update_t)(void *state, rc_row x, int32_t rank) noexcept nogil

# The same with the weight of the row.
ctypedef int32_t (*weighted_t)(void *state, rc_row x, int32_t rank, double weight) noexcept nogil


# Rows that are added to the moments and standardised together.
cdef enum:
    ROWS_AHEAD = 4


cdef struct Learner:
    update_t update
    weighted_t weighted  # NULL if the learner takes no weights
    void *state
    rc_counts *seen
    rc_forgetting *forgetting  # NULL if averages cannot forget


# How rows are standardised before they are learned.
cdef struct Standard:
    rc_units units
    rc_moments moments
    double *rows  # (ROWS_AHEAD, n_features): standardised rows, of which the last are ready
    int64_t ready  # the next rows that are standardised already
    int64_t ahead  # the next rows that the moments have already
    bint active  # whether units differ from those of the rows
    bint done  # whether the rows that come are standardised
    bint follows  # whether the moments follow the rows that are learned
    bint due  # whether the units must be computed again before the next row


# An array of float64 to check: (outer, n_features or 1, inner).
cdef struct Checked:
    const double *data
    int64_t outer
    int64_t inner
    bint by_feature


cdef class OnlineModel:
    cdef Learner learner
    cdef Standard standard
    cdef Candidates candidates
    cdef object scratch
    cdef object candidate_scratch
    cdef int64_t *counts  # examples seen, their total rank loss, mistakes
    cdef double *past  # weight of these examples in averages that forget, else NULL
    cdef double gain  # of each example's weight over that of the one before, 0 if they do not
    cdef readonly dict settings
    cdef readonly int64_t n_features
    cdef readonly int32_t n_ranks
    cdef dict held  # all arrays by name
    cdef readonly object arrays  # the same, read-only
    cdef readonly dict forms  # their declarations
    cdef readonly bint writable
    cdef object computed  # parameters for predictions, until the next row is learned
    cdef Checked *checked
    cdef int n_checked

    cdef int bind(self) except -1
    cdef int follow(self, object params) except -1
    cdef void *at(self, str name) except? NULL
    cdef int learns_by(
        self, update_t update, weighted_t weighted, void *state, rc_counts *seen,
        rc_forgetting *forgetting=*
    ) except -1
    cdef void *sums_at(self, str name) except? NULL
    cdef int decides_by(self, decide_t decide) except -1
    cdef int begin(self, object params) except -1
    cdef void end(self) noexcept
    cdef bint finite(self, const int32_t *columns, int64_t n) noexcept nogil
