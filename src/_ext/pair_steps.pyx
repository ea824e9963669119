"""Single steps of a pairwise perceptron, for C programs with their own loop."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

from rankcore._ext._pair_state cimport (
    count_by,
    end_hypothesis,
    enter,
    least,
    move,
    place,
    so_far,
    successes,
)
from rankcore.core cimport rc_dot, rc_pair_state, rc_row


cdef int32_t pair_update(
    rc_pair_state *m, rc_row winner, rc_row loser, double step, double unit
) noexcept nogil:
    cdef double difference = rc_dot(winner, m.weights) - rc_dot(loser, m.weights)
    cdef int64_t at
    if difference - difference != 0:
        return -1
    count_by(m, unit)
    m.n_pairs += 1
    if difference > m.margin:
        m.run += 1
        m.right += 1
        return 0
    at = place(m, least(m))
    if at >= 0:
        memcpy(enter(m, at), m.weights, m.n_features * sizeof(double))
    move(m, winner, loser, step)
    end_hypothesis(m)
    return 1


cdef int32_t pair_average(const rc_pair_state *m, double *weights) noexcept nogil:
    cdef int64_t f
    cdef double total = so_far(m)
    if m.weight_sums == NULL:
        return -1
    for f in range(m.n_features):
        weights[f] = m.weights[f]
        if total > 0:
            weights[f] -= m.weight_sums[f] / total
    return 0


cdef int32_t pair_committee(const rc_pair_state *m, double *weights) noexcept nogil:
    cdef int64_t k, f, last = place(m, least(m)), n = m.kept + (last == m.kept)
    cdef const double *member
    cdef double total = 0, count
    if m.capacity == 0:
        return -1
    for k in range(n):
        total += successes(m) if k == last else m.successes[k]
    memset(weights, 0, m.n_features * sizeof(double))
    for k in range(n):
        count = successes(m) if k == last else m.successes[k]
        count = count / total if total > 0 else 1.0 / n
        member = m.weights if k == last else m.members + k * m.n_features
        for f in range(m.n_features):
            weights[f] += count * member[f]
    return 0


c_functions = {
    "pair_update": PyCapsule_New(<void *> &pair_update, "pair_update", NULL),
    "pair_average": PyCapsule_New(<void *> &pair_average, "pair_average", NULL),
    "pair_committee": PyCapsule_New(<void *> &pair_committee, "pair_committee", NULL),
}
