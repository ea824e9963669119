# The model of pairwise perceptrons. Private.
from libc.stdint cimport int64_t

from rankcore._ext.online_model cimport OnlineModel
from rankcore.core cimport rc_pair_state


cdef class PairModel(OnlineModel):
    cdef rc_pair_state m
    cdef double *clock
    cdef double *longest
    cdef int64_t limit  # maximum number of members
    cdef bint judged

    cdef int check_room(self) except -1
    cdef double bar(self) noexcept nogil
