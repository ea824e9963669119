# The rule of PRank, shared by the single learner and by the members of ensembles. Private.
from libc.stdint cimport int32_t, int64_t, uint64_t

from rankcore._ext._forgetting cimport forget, weight_before
from rankcore.core cimport (
    RC_TIE_CRAMMER,
    rc_axpy,
    rc_counts,
    rc_dot,
    rc_prank_state,
    rc_rank,
    rc_row,
)


cdef inline void count(rc_counts *seen, int32_t predicted, int32_t rank) noexcept nogil:
    """Update the counts with one example."""
    seen.t += 1
    seen.mistakes += predicted != rank
    seen.rank_loss += predicted - rank if predicted > rank else rank - predicted


cdef inline int64_t update_lazy_sum(int64_t sum, int64_t t, int64_t change) noexcept nogil:
    """Return a lazy sum minus t times a change, modulo 2**64.

    Only the steps times the examples minus their lazy sum is used, which is exact while it fits.
    """
    return <int64_t> (<uint64_t> sum - <uint64_t> t * <uint64_t> change)


cdef inline bint too_close(
    double score, int32_t rank, int32_t n_ranks, const double *thresholds, double margin
) noexcept nogil:
    """Return whether thresholds move: the score is on the wrong side of one, or within the margin.

    The thresholds ascend, so the two around the true rank decide.
    """
    return (rank > 0 and score < thresholds[rank - 1] + margin) or (
        rank < n_ranks - 1 and score >= thresholds[rank] - margin
    )


cdef inline int32_t move_thresholds(
    double score, int32_t rank, int32_t n_ranks, bint ties_err, double scale, double margin,
    int64_t t, double *thresholds, int64_t *steps, int64_t *step_sums, int32_t *moved,
    double past, double *real_sums,
) noexcept nogil:
    """Move the thresholds that the score does not clear by the margin; return the sum of the steps.

    ``step_sums`` (lazy average, t examples before this one), ``moved`` (the steps, added up) and
    ``real_sums`` (lazy average, examples of the weight ``past`` before this one) may be NULL. The
    order is preserved: of two equal thresholds both move alike if either approaches the other,
    since a sum rounds alike for both, and two that differ approach by one step at most.
    """
    cdef int32_t r, step, change = 0
    cdef double low, high
    # Arithmetic, not branches: which threshold errs is as unpredictable as the label.
    for r in range(n_ranks - 1):
        low = thresholds[r] - margin
        high = thresholds[r] + margin
        step = ((r < rank) & ((score < high) | (ties_err & (score == high)))) - (
            (r >= rank) & (score >= low)
        )
        change += step
        steps[r] -= step
        thresholds[r] = scale * <double> steps[r]
        if step_sums != NULL:
            step_sums[r] = update_lazy_sum(step_sums[r], t, step)
        if moved != NULL:
            moved[r] += step
        if real_sums != NULL:
            real_sums[r] -= past * step
    return change


cdef inline int32_t prank_step(
    rc_prank_state *m, rc_row x, int32_t rank, double margin, double offset
) noexcept nogil:
    """Predict, learn and count; return the prediction, or -1, unchanged, if that is impossible.

    ``offset`` is what all thresholds have besides their multiples of the scale.
    """
    cdef double score = rc_dot(x, m.weights) - offset
    cdef int32_t predicted, change
    cdef double past
    if score - score != 0 or not 0 <= rank < m.n_ranks:
        return -1
    predicted = rc_rank(m.thresholds, m.n_ranks, score)
    if too_close(score, rank, m.n_ranks, m.thresholds, margin):
        past = weight_before(&m.forgetting, m.seen.t)
        change = move_thresholds(
            score, rank, m.n_ranks, m.tie == RC_TIE_CRAMMER, m.scale, margin, m.seen.t,
            m.thresholds, m.steps, m.step_sums, NULL, past, m.real_step_sums,
        )
        if change:
            rc_axpy(x, change, m.weights)
            if m.weight_sums != NULL:
                rc_axpy(x, past * change, m.weight_sums)
    forget(&m.forgetting, m.weight_sums, m.n_features, m.real_step_sums, m.n_ranks - 1)
    count(&m.seen, predicted, rank)
    return predicted
