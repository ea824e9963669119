# A query with sorted documents, and the parameters of a measure. Private.
from libc.math cimport exp2
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef enum Kind:
    PRECISION
    RECALL
    R_PRECISION
    HIT
    RECIPROCAL_RANK
    AVERAGE_PRECISION
    PHI
    DCG
    NDCG
    ERR
    RBP
    RBP_RESIDUAL
    JUDGED
    UNJUDGED
    BPREF
    HITS
    F1
    RELATIVE_PRECISION
    R_MULTIPLE
    # no expectation over the orders of tied documents in closed form
    INFERRED_AP
    INTERPOLATED_PRECISION
    BINARY_G
    # with the gains of an ideal order
    GRADED_G
    NDCG_AT_RELEVANT
    NDCG_AT_LEVELS
    # whatever the order
    SET_PRECISION
    SET_RECALL
    SET_F
    SET_AP
    SET_RELATIVE_PRECISION
    UTILITY
    N_RETRIEVED
    N_RELEVANT
    N_RELEVANT_RETRIEVED
    N_NONRELEVANT_RETRIEVED


cdef enum Gain:
    LINEAR
    EXP2
    GIVEN


cdef enum Divisor:
    BY_CUTOFF
    BY_AVAILABLE
    BY_RELEVANT
    BY_REACHABLE
    BY_FOUND


cdef struct Measure:
    int32_t kind
    int32_t gain  # of DCG and NDCG
    int32_t divisor  # of PRECISION, AVERAGE_PRECISION; RBP: BY_RELEVANT has binary gains
    int32_t clipped  # negative gains count 0
    int32_t together  # AVERAGE_PRECISION: a group stands where it ends
    int32_t up  # INTERPOLATED_PRECISION: shares of the relevant documents are rounded up
    int64_t k  # positions looked at; of PHI its m, 0 for the number of relevant documents
    int64_t z  # PHI's Z, 0 for the number of relevant documents
    double rel  # least relevant label
    double x  # parameter: RBP's persistence, ERR's maximum label, a recall, a multiple, F's weight
    double weights[4]  # of UTILITY


cdef struct Query:
    int64_t n_judged  # documents there are
    int64_t n  # documents that were retrieved: the first n of the judged
    const double *score
    const double *label
    const double *gain
    bint grouped  # whether documents of equal score are a group
    const double *y  # labels by position, as deep as the measures look
    const double *g  # gains by position
    const uint32_t *ends  # end of the group of each position, if grouped
    double *ideal  # the best labels or gains, descending
    int64_t n_ideal  # how many there are
    double *chances  # room for n + 1 numbers
    double *products  # the same again


cdef inline int64_t count_relevant(
    const Query *q, int64_t start, int64_t stop, double rel
) noexcept nogil:
    cdef int64_t i, count = 0
    for i in range(start, stop):
        count += q.y[i] >= rel
    return count


cdef inline double gain_of(const Measure *m, double x) noexcept nogil:
    cdef int64_t level
    if m.gain == EXP2:
        if 0 <= x < 63:
            level = <int64_t> x
            x = <double> ((<int64_t> 1 << level) - 1) if level == x else exp2(x) - 1.0
        else:
            x = exp2(x) - 1.0
    return 0.0 if m.clipped and x < 0 else x
