# The updates of learners in dual form, of _ext/kernel_learners. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from rankcore._ext._cusum cimport cusum_rival, cusum_step
from rankcore._ext._dual cimport (
    Dual,
    absorb,
    begin_block,
    begin_row,
    dual_output,
    dual_overflows,
    dual_self,
    rc_draws_,
)
from rankcore._ext._kernel_block cimport RC_ROWS_, padded
from rankcore._ext._prank cimport count, move_thresholds, too_close
from rankcore.core cimport rc_best, rc_counts, rc_cusum_state, rc_rank, rc_row


cdef inline void forget_changes(Dual *m, double t) noexcept nogil:
    cdef int32_t j
    memset(m.change, 0, m.n_outputs * sizeof(double))
    memset(m.late, 0, m.n_outputs * sizeof(double))
    for j in range(m.n_outputs):
        m.seen[j] = t


cdef struct PRankRule:
    Dual *dual
    int64_t *steps
    double *thresholds
    int64_t *step_sums  # or NULL
    double scale
    double margin
    int32_t n_ranks
    int32_t ties_err
    rc_counts seen


cdef inline int32_t prank_update(PRankRule *m, rc_row x, int32_t rank) noexcept nogil:
    cdef Dual *dual = m.dual
    cdef double score
    cdef int32_t predicted, change
    begin_block(dual, NULL)
    begin_row(dual)
    score = dual_output(dual, dual.position, 0)
    if score - score != 0 or not 0 <= rank < m.n_ranks:
        return -1
    forget_changes(dual, <double> m.seen.t)
    predicted = rc_rank(m.thresholds, m.n_ranks, score)
    if too_close(score, rank, m.n_ranks, m.thresholds, m.margin):
        if dual_overflows(dual, dual.position):
            return -1
        change = move_thresholds(
            score, rank, m.n_ranks, m.ties_err, m.scale, m.margin, m.seen.t, m.thresholds, m.steps,
            m.step_sums, NULL, 0, NULL,
        )
        dual.change[0] = change
        dual.late[0] = <double> m.seen.t * change
    absorb(dual, x)
    count(&m.seen, predicted, rank)
    return predicted


cdef struct CuSumRule:
    Dual *dual
    rc_cusum_state rule  # without weights


cdef inline int32_t cusum_update(CuSumRule *m, rc_row x, int32_t rank) noexcept nogil:
    return cusum_weighted(m, x, rank, 1.0)


cdef inline int32_t cusum_weighted(
    CuSumRule *m, rc_row x, int32_t rank, double weight
) noexcept nogil:
    cdef Dual *dual = m.dual
    cdef rc_cusum_state *rule = &m.rule
    cdef int32_t tasks = rule.n_ranks - 1, predicted, rival, j, low, high
    cdef int64_t row = dual.position
    cdef double t = <double> rule.seen.t, step
    begin_block(dual, NULL)
    begin_row(dual)
    rule.scores[0] = 0.0
    for j in range(tasks):
        step = dual_output(dual, row, j) - rule.thresholds[j]
        rule.scores[j + 1] = rule.scores[j] + step
    # An overflow of any partial sum is still visible in the last sum.
    if rule.scores[tasks] - rule.scores[tasks] != 0 or not 0 <= rank < rule.n_ranks:
        return -1
    forget_changes(dual, t)
    predicted = rc_best(rule.scores, rule.n_ranks, rule.tie)
    rival = cusum_rival(rule, predicted, rank)
    if rival != rank:
        if dual_overflows(dual, row):
            return -1
        step = cusum_step(rule, dual_self(dual, row), rank, rival, weight)
        if step - step != 0:
            return -1
        low = rank if rank < rival else rival
        high = rival if rank < rival else rank
        for j in range(low, high):
            dual.change[j] = step
            dual.late[j] = t * step
            if rule.scale != 0:
                rule.thresholds[j] -= rule.scale * step
                if rule.threshold_sums != NULL:
                    rule.threshold_sums[j] -= t * (rule.scale * step)
    absorb(dual, x)
    count(&rule.seen, predicted, rank)
    return predicted


cdef struct OAPRule:
    Dual *dual  # an output for each member, and the sum of all
    int64_t *steps  # n_members * (n_ranks - 1), as are the next two
    double *thresholds
    int64_t *step_sums  # or NULL
    rc_counts *members
    int64_t *totals
    double *mean_thresholds
    const uint64_t *cumulative
    int64_t n_cumulative
    uint64_t *draws
    int64_t *times
    int32_t *moved
    uint64_t seed
    double scale
    double margin
    int32_t n_members
    int32_t n_ranks
    int32_t ties_err
    rc_counts seen


cdef inline int32_t _member_update(
    OAPRule *m, int32_t j, int32_t rank, double own, int64_t times
) noexcept nogil:
    """Let a member learn the current row a number of times; return the sum of its steps."""
    cdef Dual *dual = m.dual
    cdef int32_t tasks = m.n_ranks - 1, predicted, change, total = 0
    cdef int64_t _again
    cdef double score = dual_output(dual, dual.position, j)
    if score - score != 0:
        return -2**30
    for _again in range(times):
        predicted = rc_rank(m.thresholds + j * tasks, m.n_ranks, score)
        if too_close(score, rank, m.n_ranks, m.thresholds + j * tasks, m.margin):
            change = move_thresholds(
                score, rank, m.n_ranks, m.ties_err, m.scale, m.margin, m.members[j].t,
                m.thresholds + j * tasks, m.steps + j * tasks,
                m.step_sums + j * tasks if m.step_sums != NULL else NULL, m.moved, 0, NULL,
            )
            dual.change[j] += change
            dual.late[j] += <double> m.members[j].t * change
            score += change * own
            total += change
        count(&m.members[j], predicted, rank)
    return total


cdef inline void _draw_block(OAPRule *m) noexcept nogil:
    """Find which members take which rows of the block, as only these are scored."""
    cdef Dual *dual = m.dual
    cdef int32_t n = m.n_members, j
    cdef int64_t i
    cdef uint8_t *wanted
    memset(dual.wanted, 0, padded(dual.block.n) // RC_ROWS_ * (n + 1))
    for i in range(dual.block.n):
        rc_draws_(
            m.seed, m.seen.t + i, 0, n, m.cumulative, m.n_cumulative, m.draws, m.times,
        )
        wanted = dual.wanted + i // RC_ROWS_ * (n + 1)
        for j in range(n):
            wanted[j] |= m.times[j] > 0
        wanted[n] = 1
    begin_block(dual, dual.wanted)


cdef inline int32_t oap_update(OAPRule *m, rc_row x, int32_t rank) noexcept nogil:
    cdef Dual *dual = m.dual
    cdef int32_t n = m.n_members, predicted, j, r, change
    cdef double score, own = dual_self(dual, dual.position)
    if dual.sums != NULL and dual.n_summed >= 0:
        _draw_block(m)
    begin_row(dual)
    score = dual_output(dual, dual.position, n) / n
    # A row in which any member could make a mistake must be able to join.
    if score - score != 0 or dual_overflows(dual, dual.position) or not 0 <= rank < m.n_ranks:
        return -1
    predicted = rc_rank(m.mean_thresholds, m.n_ranks, score)
    forget_changes(dual, 0.0)
    memset(m.moved, 0, (m.n_ranks - 1) * sizeof(int32_t))
    rc_draws_(m.seed, m.seen.t, 0, n, m.cumulative, m.n_cumulative, m.draws, m.times)
    for j in range(n):
        dual.seen[j] = <double> m.members[j].t
        if m.times[j] > 0:
            change = _member_update(m, j, rank, own, m.times[j])
            if change == -2**30:
                return -1
            dual.change[n] += change
    for r in range(m.n_ranks - 1):
        m.totals[r] -= m.moved[r]
        m.mean_thresholds[r] = m.scale * (<double> m.totals[r] / n)
    absorb(dual, x)
    count(&m.seen, predicted, rank)
    return predicted
