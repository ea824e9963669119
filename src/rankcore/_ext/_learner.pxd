# Interface of a learner for a pass: an update function and a state. Private.
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t

from rankcore.core cimport rc_counts, rc_row

# Predicts a row's rank, learns from the true one, returns the prediction; -1 if it could not.
ctypedef int32_t (*update_t)(void *state, rc_row x, int32_t rank) noexcept nogil

# The same with the weight of the row.
ctypedef int32_t (*weighted_t)(void *state, rc_row x, int32_t rank, double weight) noexcept nogil


cdef struct Learner:
    update_t update
    weighted_t weighted  # NULL if the learner takes no weights
    void *state
    rc_counts *seen
    int64_t n_features
    int32_t n_ranks


cdef inline object capsule_of(
    Learner *learner, update_t update, weighted_t weighted, void *state, rc_counts *seen,
    int64_t n_features, int64_t n_ranks,
):
    """Fill in the learner of a bound state; the capsule from which `learner_of` takes it."""
    learner.update = update
    learner.weighted = weighted
    learner.state = state
    learner.seen = seen
    learner.n_features = n_features
    learner.n_ranks = <int32_t> n_ranks
    return PyCapsule_New(learner, "rankcore.learner", NULL)


cdef inline Learner *learner_of(object bound) except NULL:
    """The C learner inside a bound state; it lives as long as that does."""
    return <Learner *> PyCapsule_GetPointer(bound.capsule, "rankcore.learner")
