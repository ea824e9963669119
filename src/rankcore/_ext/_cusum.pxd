# The rule of CuSum Rank, shared by the linear learner and its dual form. Private.
from libc.stdint cimport int32_t

from rankcore.core cimport (
    RC_TIE_HIGH,
    RC_TIE_LOW,
    RC_UPDATE_PA,
    RC_UPDATE_PA1,
    RC_UPDATE_PA2,
    RC_UPDATE_PERCEPTRON,
    rc_best,
    rc_cusum_state,
)


cdef inline int follow_cusum(rc_cusum_state *m, object params, double scale) except -1:
    """Read the parameters of the rule from attributes."""
    cdef str update = params.update
    m.update = (
        RC_UPDATE_PERCEPTRON if update == "perceptron" else RC_UPDATE_PA if update == "pa"
        else RC_UPDATE_PA1 if update == "pa1" else RC_UPDATE_PA2
    )
    m.C = params.C
    m.delta = params.delta
    m.margin = params.margin
    m.tie = RC_TIE_LOW if params.tie_break == "low" else RC_TIE_HIGH
    m.zero_one = params.pa_loss == "zero_one"
    m.scale = scale
    return 0


cdef inline int32_t cusum_rival(
    const rc_cusum_state *m, int32_t predicted, int32_t rank
) noexcept nogil:
    """Return the rival of the true rank: the best rank by score plus margin."""
    cdef int32_t r
    cdef double *scores = m.scores + m.n_ranks
    if m.margin == 0:
        return predicted
    for r in range(m.n_ranks):
        scores[r] = m.scores[r] + m.margin * (r - rank if r > rank else rank - r)
    r = rc_best(scores, m.n_ranks, m.tie)
    return rank if scores[r] == scores[rank] else r


cdef inline double cusum_step(
    const rc_cusum_state *m, double squared_length, int32_t rank, int32_t rival, double weight
) noexcept nogil:
    """Return the signed step of the tasks between the true rank and its rival; NaN if none.

    ``squared_length`` is that of the example, without the constant that represents the thresholds.
    ``weight`` is that of the example: it multiplies the perceptron's step, and C.
    """
    cdef int32_t off = rank - rival if rank > rival else rival - rank
    cdef double sign = 1.0 if rank > rival else -1.0
    cdef double deficit, norm, C = m.C * weight
    if m.update == RC_UPDATE_PERCEPTRON:
        return sign * weight
    deficit = m.delta * (1 if m.zero_one else off) - (m.scores[rank] - m.scores[rival])
    if deficit <= 0.0:  # a rival within the margin, but without loss
        return 0.0
    norm = off * (squared_length + m.scale)
    if norm - norm != 0:
        return norm - norm
    if m.update == RC_UPDATE_PA2:
        norm += 1.0 / (2.0 * C)
    elif norm == 0.0:  # an empty row without intercept: nothing to move
        return 0.0
    elif m.update == RC_UPDATE_PA1 and deficit > C * norm:
        return sign * C
    return sign * (deficit / norm)
