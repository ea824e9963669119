# Choice of a half-life while a stream is learned. Private.
#
# The candidates are the last parameters, the average of all examples and averages of three
# half-lives, whose lazy sums lie side by side: four to a weight. Before a row is learned, each
# candidate predicts its rank; the losses are added up with weights that decay. What a row changes
# is found by comparison with a copy of its weights, so that any learner can be averaged.
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._forgetting cimport RC_FADE_, rc_outgrown
from rankcore.core cimport rc_dots, rc_row

cdef enum:
    AVERAGES = 4  # that of all examples, and three that forget
    CANDIDATES = 5  # and the last parameters, the first
    MOST_PARTS = 2

# Returns a rank from the scores of the vectors, given the other averaged arrays one after the
# other.
ctypedef int32_t (*decide_t)(void *state, const double *scores, const double *others) noexcept nogil


cdef extern from *:
    """
    /* Weight of the losses before a row: those of the last 200 rows count. */
    #define RC_KEPT_ 0.995
    /* A candidate is replaced by one with less than this fraction of its loss. */
    #define RC_CLEARLY_ 0.95
    """
    const double RC_KEPT_
    const double RC_CLEARLY_


cdef struct Part:
    # An averaged array besides the weights: real or whole numbers, and AVERAGES sums of each
    const double *real
    const int64_t *whole
    double *sums
    int64_t n


cdef struct Candidates:
    bint active
    decide_t decide
    void *state
    const double *weights  # n_features * width
    double *weight_sums  # AVERAGES of each
    int64_t n_features
    int32_t width
    Part parts[MOST_PARTS]
    int32_t n_parts
    double *past  # (AVERAGES,): weights of the examples so far
    double gains[AVERAGES]
    double *losses  # (CANDIDATES + 1,): decaying losses, and the candidate that is chosen
    double *before  # scratch: the row's weights and the other arrays before it is learned
    double *scores  # scratch, (CANDIDATES + 1) * width
    double *others  # scratch, twice as many numbers
    int32_t predicted[CANDIDATES]


cdef inline double value_of(const Part *part, int64_t i) noexcept nogil:
    return part.real[i] if part.whole == NULL else <double> part.whole[i]


cdef inline void foresee(Candidates *k, rc_row x) noexcept nogil:
    """Let all candidates predict a row, and copy what learning it may change."""
    cdef int64_t i, at, n
    cdef int32_t v, c, p
    cdef double total
    cdef double *late = k.scores + 2 * k.width
    cdef double *values = k.others
    rc_dots(x, k.weights, k.width, k.scores)
    rc_dots(x, k.weight_sums, AVERAGES * k.width, late)
    n = 0
    for p in range(k.n_parts):
        for i in range(k.parts[p].n):
            values[n] = value_of(&k.parts[p], i)
            n += 1
    k.predicted[0] = k.decide(k.state, k.scores, values)
    for c in range(AVERAGES):
        total = k.past[c] if k.past[c] > 0 else 1.0
        for v in range(k.width):
            k.scores[k.width + v] = k.scores[v] - late[v * AVERAGES + c] / total
        at = 0
        for p in range(k.n_parts):
            for i in range(k.parts[p].n):
                values[n + at] = values[at] - k.parts[p].sums[i * AVERAGES + c] / total
                at += 1
        k.predicted[c + 1] = k.decide(k.state, k.scores + k.width, values + n)
    for i in range(x.n):
        at = (x.indices[i] if x.indices != NULL else i) * k.width
        for v in range(k.width):
            k.before[i * k.width + v] = k.weights[at + v]


cdef inline void add_change(Candidates *k, double change, double *sums) noexcept nogil:
    cdef int32_t c
    if change != 0:
        for c in range(AVERAGES):
            sums[c] += k.past[c] * change


cdef inline void fade_one(double *sums, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        sums[i * AVERAGES] *= RC_FADE_


cdef inline void follow_row(Candidates *k, rc_row x, int32_t rank) noexcept nogil:
    """Add what a row has changed to the sums, and the losses of its predictions."""
    cdef int64_t i, at, n = 0
    cdef int32_t v, c, p, off, best = 0
    for i in range(x.n):
        at = (x.indices[i] if x.indices != NULL else i) * k.width
        for v in range(k.width):
            add_change(
                k, k.weights[at + v] - k.before[i * k.width + v],
                k.weight_sums + (at + v) * AVERAGES,
            )
    for p in range(k.n_parts):
        for i in range(k.parts[p].n):
            add_change(
                k, value_of(&k.parts[p], i) - k.others[n], k.parts[p].sums + i * AVERAGES
            )
            n += 1
    for c in range(AVERAGES):
        if rc_outgrown(&k.past[c], k.gains[c]):
            fade_one(k.weight_sums + c, k.n_features * k.width)
            for p in range(k.n_parts):
                fade_one(k.parts[p].sums + c, k.parts[p].n)
    for c in range(CANDIDATES):
        off = k.predicted[c] - rank
        k.losses[c] = RC_KEPT_ * k.losses[c] + (off if off > 0 else -off)
        if k.losses[c] < k.losses[best]:
            best = c
    c = <int32_t> k.losses[CANDIDATES]
    if k.losses[best] < RC_CLEARLY_ * k.losses[c]:
        k.losses[CANDIDATES] = best
