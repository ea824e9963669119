# Updates of a pairwise perceptron's state on a mistake and a success, for all its loops. Private.
from libc.stdint cimport int64_t

from rankcore._ext._forgetting cimport rc_outgrown, RC_FADE_
from rankcore.core cimport rc_pair_state


cdef inline double successes(const rc_pair_state *m) noexcept nogil:
    """Return the successes of the current hypothesis."""
    return m.streak + <double> m.run * m.unit


cdef inline void count_by(rc_pair_state *m, double unit) noexcept nogil:
    """Count later successes in another unit.

    Whole numbers of one unit are kept as such until then: the sum is the same whether successes
    come one at a time or many at once.
    """
    if unit != m.unit:
        m.streak += <double> m.run * m.unit
        if not m.forgetting.gain > 0:
            m.total += <double> m.right * m.unit
        m.run = m.right = 0
        m.unit = unit


cdef inline int64_t fewest(const rc_pair_state *m) noexcept nogil:
    """Return the member with the fewest successes; the youngest of equal ones."""
    cdef int64_t k, minimum = 0
    for k in range(1, m.kept):
        if m.successes[k] < m.successes[minimum] or (
            m.successes[k] == m.successes[minimum] and m.born[k] > m.born[minimum]
        ):
            minimum = k
    return minimum


cdef inline int64_t place(const rc_pair_state *m) noexcept nogil:
    """Return the slot for the current hypothesis: free, of a member with fewer successes, or -1."""
    cdef int64_t weakest
    if m.kept < m.capacity:
        return m.kept
    if m.capacity == 0:
        return -1
    weakest = fewest(m)
    return weakest if successes(m) > m.successes[weakest] else -1


cdef inline double *admit(rc_pair_state *m, int64_t at) noexcept nogil:
    """Add a member; return the address of its weights."""
    m.successes[at] = successes(m)
    m.born[at] = m.n_mistakes
    if at == m.kept:
        m.kept += 1
    return m.members + at * m.n_features


cdef inline double so_far(const rc_pair_state *m) noexcept nogil:
    """Total count of all hypotheses; with forgetting, that of each times its weight."""
    if m.forgetting.gain > 0:
        return m.total + (m.forgetting.gain * m.forgetting.past + 1) * successes(m)
    return m.total + <double> m.right * m.unit


cdef inline bint end_hypothesis(rc_pair_state *m) noexcept nogil:
    """End the current hypothesis after a mistake; return whether sums must be faded."""
    cdef bint outgrown = False
    if m.forgetting.gain > 0:
        m.total = so_far(m)
        outgrown = rc_outgrown(&m.forgetting.past, m.forgetting.gain)
        if outgrown:
            m.total *= RC_FADE_
    m.streak = 0.0
    m.run = 0
    m.n_mistakes += 1
    return outgrown
