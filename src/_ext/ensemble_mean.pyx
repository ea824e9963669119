"""The mean of an ensemble's members, updated with each example of a stream."""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._learner cimport Learner, capsule_of, update_t
from rankcore._ext._prank cimport count
from rankcore.core cimport rc_axpy, rc_counts, rc_dot, rc_rank, rc_row


cdef struct MeanState:
    double *weights  # n_features: the mean of the members' weights
    int64_t *totals  # n_ranks - 1: the sum of the members' steps
    double *thresholds  # n_ranks - 1: scale * totals / n_members
    const int32_t *moved  # what the members moved their thresholds by, example for example
    int64_t left  # examples in moved yet to come
    double scale
    double n_members
    int32_t n_ranks
    rc_counts seen


cdef int32_t mean_update(MeanState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.weights)
    cdef int32_t predicted, r, tasks = m.n_ranks - 1, change = 0
    if score - score != 0 or not 0 <= rank < m.n_ranks or m.left == 0:
        return -1
    predicted = rc_rank(m.thresholds, m.n_ranks, score)
    for r in range(tasks):
        change += m.moved[r]
        m.totals[r] -= m.moved[r]
        # Quotients of ordered integers by one divisor stay ordered.
        m.thresholds[r] = m.scale * (<double> m.totals[r] / m.n_members)
    if change:
        rc_axpy(x, change / m.n_members, m.weights)
    m.moved += tasks
    m.left -= 1
    count(&m.seen, predicted, rank)
    return predicted


@final
cdef class Mean:
    """The mean of the members, to be updated with a block of examples."""

    cdef MeanState m
    cdef Learner learner
    cdef readonly object capsule  # the learner for ``online_loop.learn``, while this object lives
    cdef tuple arrays

    def __init__(
        self,
        double[::1] weights not None,
        int64_t[::1] totals not None,
        double[::1] thresholds not None,
        const int32_t[:, ::1] moved not None,
        double scale,
        int64_t n_members,
    ):
        cdef int64_t tasks = totals.shape[0]
        if (
            tasks < 1
            or weights.shape[0] < 1
            or thresholds.shape[0] != tasks
            or moved.shape[0] < 1
            or moved.shape[1] != tasks
            or n_members < 1
        ):
            raise ValueError("weights, totals, thresholds and moved do not fit together")
        self.arrays = (weights, totals, thresholds, moved)
        self.m.weights = &weights[0]
        self.m.totals = &totals[0]
        self.m.thresholds = &thresholds[0]
        self.m.moved = &moved[0, 0]
        self.m.left = moved.shape[0]
        self.m.scale = scale
        self.m.n_members = <double> n_members
        self.m.n_ranks = <int32_t> tasks + 1
        self.capsule = capsule_of(
            &self.learner, <update_t> mean_update, NULL, &self.m, &self.m.seen, weights.shape[0],
            tasks + 1,
        )
