"""PRank that keeps its past hypotheses, each with the number of examples it survived.

Voting after Freund and Schapire ("Large Margin Classification Using the Perceptron Algorithm",
1999). Either all hypotheses are kept, and the arrays grow between two calls when they are full, or
those with the most votes, in a queue of fixed size.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._learner cimport Learner, capsule_of, update_t
from rankcore._ext._prank cimport count, prank_step, too_close
from rankcore.core cimport (
    RC_TIE_CRAMMER, RC_TIE_STRICT, rc_counts, rc_dot, rc_prank_state, rc_rank, rc_row
)


cdef struct VotedState:
    rc_prank_state prank
    double margin
    double *weights  # capacity * n_features: past hypotheses
    double *thresholds  # capacity * (n_ranks - 1)
    int64_t *votes  # capacity: examples each survived
    int64_t *born  # capacity: which hypothesis it is, counted from 0
    int64_t *progress  # [hypotheses kept, votes of the current one, hypotheses so far]
    int64_t capacity
    int64_t fewest  # at most the votes of any hypothesis kept, which only grow
    int64_t first_vote  # votes a hypothesis is born with
    bint capped


cdef void _keep(VotedState *m, int64_t slot) noexcept nogil:
    cdef int64_t i, d = m.prank.n_features, tasks = m.prank.n_ranks - 1
    for i in range(d):
        m.weights[slot * d + i] = m.prank.weights[i]
    for i in range(tasks):
        m.thresholds[slot * tasks + i] = m.prank.thresholds[i]
    m.votes[slot] = m.progress[1]
    m.born[slot] = m.progress[2]


cdef int64_t _slot(
    const int64_t *votes, const int64_t *born, const int64_t *progress, int64_t capacity,
    int64_t *fewest,  # out, if there is no free slot: the fewest votes
) noexcept nogil:
    """Slot for the current hypothesis: a free one, that with the fewest votes, or none (-1).

    The slot with the fewest votes, the youngest of ties, is replaced only by more votes.
    """
    cdef int64_t i, least = 0
    if progress[0] < capacity:
        return progress[0]
    for i in range(1, capacity):
        if votes[i] < votes[least] or (votes[i] == votes[least] and born[i] > born[least]):
            least = i
    fewest[0] = votes[least]
    return least if progress[1] > votes[least] else -1


cdef void _end_hypothesis(VotedState *m) noexcept nogil:
    """Store the current hypothesis, which is about to change, if it qualifies."""
    cdef int64_t slot
    # Most hypotheses end after few votes: they are not looked up among those kept.
    if m.progress[0] < m.capacity or m.progress[1] > m.fewest:
        slot = _slot(m.votes, m.born, m.progress, m.capacity, &m.fewest)
        if slot >= 0:
            _keep(m, slot)
            if slot == m.progress[0]:
                m.progress[0] += 1
    m.progress[1] = m.first_vote
    m.progress[2] += 1


cdef int32_t voted_update(VotedState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.prank.weights)
    cdef int32_t predicted
    if score - score != 0 or not 0 <= rank < m.prank.n_ranks:
        return -1
    if not too_close(score, rank, m.prank.n_ranks, m.prank.thresholds, m.margin):
        predicted = rc_rank(m.prank.thresholds, m.prank.n_ranks, score)
        m.progress[1] += 1
        count(&m.prank.seen, predicted, rank)
        return predicted
    if not m.capped and m.progress[0] == m.capacity:
        return -1  # needs room first
    _end_hypothesis(m)
    return prank_step(&m.prank, x, rank, m.margin)


@final
cdef class Voted:
    """PRank that keeps its hypotheses and how many examples each survived.

    ``hypotheses`` (capacity, n_features), ``cuts`` (capacity, n_ranks - 1), ``votes`` and ``born``
    (capacity,) are past ones; ``progress`` has how many are kept, the votes of the current one, and
    how many there have been.
    """

    cdef VotedState m
    cdef Learner learner
    cdef readonly object capsule  # the learner for ``online_loop.learn``, while this object lives
    cdef tuple arrays

    def __init__(
        self,
        double[::1] weights not None,
        int64_t[::1] steps not None,
        double[::1] thresholds not None,
        double[:, ::1] hypotheses not None,
        double[:, ::1] cuts not None,
        int64_t[::1] votes not None,
        int64_t[::1] born not None,
        int64_t[::1] progress not None,
        double scale,
        double margin,
        bint strict,
        int64_t first_vote,
        bint capped,
    ):
        cdef int64_t d = weights.shape[0], tasks = steps.shape[0], capacity = votes.shape[0]
        if (
            d < 1
            or tasks < 1
            or capacity < 1
            or thresholds.shape[0] != tasks
            or hypotheses.shape[0] != capacity
            or hypotheses.shape[1] != d
            or cuts.shape[0] != capacity
            or cuts.shape[1] != tasks
            or born.shape[0] != capacity
            or progress.shape[0] != 3
            or not 0 <= progress[0] <= capacity
        ):
            raise ValueError("the arrays of a voted state do not fit together")
        self.arrays = (weights, steps, thresholds, hypotheses, cuts, votes, born, progress)
        self.m.prank.weights = &weights[0]
        self.m.prank.steps = &steps[0]
        self.m.prank.thresholds = &thresholds[0]
        self.m.prank.weight_sums = NULL
        self.m.prank.step_sums = NULL
        self.m.prank.scale = scale
        self.m.margin = margin
        self.m.prank.n_features = d
        self.m.prank.n_ranks = <int32_t> tasks + 1
        self.m.prank.tie = RC_TIE_STRICT if strict else RC_TIE_CRAMMER
        self.m.weights = &hypotheses[0, 0]
        self.m.thresholds = &cuts[0, 0]
        self.m.votes = &votes[0]
        self.m.born = &born[0]
        self.m.progress = &progress[0]
        self.m.capacity = capacity
        self.m.fewest = -1
        self.m.first_vote = first_vote
        self.m.capped = capped
        cdef rc_counts *seen = &self.m.prank.seen
        cdef update_t update = <update_t> voted_update
        self.capsule = capsule_of(&self.learner, update, NULL, &self.m, seen, d, tasks + 1)


def place(
    const int64_t[::1] votes not None,  # as of `Voted`
    const int64_t[::1] born not None,
    const int64_t[::1] progress not None,
    bint capped,  # whether there are as many places as there will be
):
    """Slot of the current hypothesis after a mistake; -1 for none."""
    if votes.shape[0] < 1 or born.shape[0] != votes.shape[0] or progress.shape[0] != 3:
        raise ValueError("the arrays of a voted state do not fit together")
    cdef int64_t fewest = -1
    if not capped:
        return progress[0]
    return _slot(&votes[0], &born[0], &progress[0], votes.shape[0], &fewest)
