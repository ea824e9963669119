# What a mistake and a success do to a pairwise perceptron's state, once for all its loops. Private.
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from rankcore.core cimport rc_axpy, rc_dot, rc_pair_state, rc_row, rc_rows


cdef extern from "_docs.h" nogil:
    enum:
        RC_PANEL
        RC_DEPTH
        RC_BATCH

    void rc_add_docs(
        const rc_rows *X, const int64_t *docs, const double *by, int64_t n, double *w
    ) noexcept


cdef extern from "_pairs.h" nogil:
    void rc_score_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, const double *w, double *scores
    ) noexcept
    void rc_add_difference(
        double *weights, const double *x, const double *y, double a, int64_t n
    ) noexcept
    void rc_unfold_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, int64_t width, double *unfolded
    ) noexcept
    int64_t rc_next_wrong(
        const double *unfolded, int64_t width, const double *weights, const int32_t *winners,
        const int32_t *losers, int64_t at, int64_t stop, double margin,
    ) noexcept


cdef extern from "_gram.h" nogil:
    ctypedef struct rc_ahead:
        const char *next
        const char *stop

    ctypedef struct rc_gram_visit:
        double *scores
        const double *G
        int64_t padded
        double *alpha
        double *beta
        double margin
        double streak
        double total
        double unit
        int64_t run
        int64_t right
        int64_t mistakes
        double judge_above
        int32_t judged
        rc_ahead gram_ahead
        rc_ahead rows_ahead

    void rc_pack_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, int64_t first, int64_t depth,
        double *panels,
    ) noexcept
    void rc_gram_panel(
        const double *panels, int64_t p, int64_t n_padded, int64_t depth, double *G
    ) noexcept
    void rc_mirror_panel(double *G, int64_t p, int64_t n_padded) noexcept
    int64_t rc_gram_batch(
        rc_gram_visit *visit, const int32_t *winners, const int32_t *losers, const double *steps,
        double eta, int64_t at, int64_t stop,
    ) noexcept
    int64_t rc_gram_scan(
        rc_gram_visit *visit, const double *labels, const double *weights, double eta, int64_t i,
        int64_t j, int64_t *seen,
    ) noexcept


cdef extern from "_random.h" nogil:
    uint64_t rc_stream(uint64_t seed, uint64_t visit) noexcept
    int64_t rc_below(uint64_t *state, int64_t n) noexcept


cdef extern from "_walk.h" nogil:
    ctypedef struct rc_level:
        double first_pair
        double width
        double inverse
        double origin

    ctypedef struct rc_walk:
        double n

    void rc_walk_start(rc_walk *walk, uint64_t n, uint64_t *state) noexcept
    void rc_walk_numbers(rc_walk *walk, double *numbers) noexcept
    void rc_walk_pairs(
        const double *numbers, const rc_level *levels, int64_t n_levels, int64_t n,
        int32_t *winners, int32_t *losers,
    ) noexcept


cdef inline double successes(const rc_pair_state *m) noexcept nogil:
    """What the present hypothesis has counted."""
    return m.streak + <double> m.run * m.unit


cdef inline void count_by(rc_pair_state *m, double unit) noexcept nogil:
    """Count successes by another unit from here on.

    Whole numbers of one unit are kept as such until then: the sum is the same whether successes
    come one at a time or many at once.
    """
    if unit != m.unit:
        m.streak += <double> m.run * m.unit
        m.total += <double> m.right * m.unit
        m.run = m.right = 0
        m.unit = unit


cdef inline int64_t least(const rc_pair_state *m) noexcept nogil:
    """The member of fewest successes; of equal ones the youngest."""
    cdef int64_t k, found = 0
    for k in range(1, m.kept):
        if m.successes[k] < m.successes[found] or (
            m.successes[k] == m.successes[found] and m.born[k] > m.born[found]
        ):
            found = k
    return found


cdef inline int64_t place(const rc_pair_state *m, int64_t weakest) noexcept nogil:
    """Where the present hypothesis goes: a free place, that of the weakest, or nowhere (-1)."""
    if m.kept < m.capacity:
        return m.kept
    if m.capacity == 0 or not successes(m) > m.successes[weakest]:
        return -1
    return weakest


cdef inline double *enter(rc_pair_state *m, int64_t at) noexcept nogil:
    """Note a new member; where its weights go."""
    m.successes[at] = successes(m)
    m.born[at] = m.n_mistakes
    if at == m.kept:
        m.kept += 1
    return m.members + at * m.n_features


cdef inline void end_hypothesis(rc_pair_state *m) noexcept nogil:
    """A mistake has ended the present hypothesis; the next one begins."""
    m.streak = 0.0
    m.run = 0
    m.n_mistakes += 1


cdef inline double so_far(const rc_pair_state *m) noexcept nogil:
    """What all hypotheses have counted."""
    return m.total + <double> m.right * m.unit


cdef inline void move(rc_pair_state *m, rc_row winner, rc_row loser, double step) noexcept nogil:
    """Move the weights, and the sums of which the average is made."""
    cdef double before
    rc_axpy(winner, step, m.weights)
    rc_axpy(loser, -step, m.weights)
    if m.weight_sums != NULL:
        before = so_far(m) * step
        rc_axpy(winner, before, m.weight_sums)
        rc_axpy(loser, -before, m.weight_sums)
