# A visit of a query: its pairs one after the other, in one of four ways to know scores. Private.
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from rankcore._ext._pairs cimport (
    RC_BATCH,
    RC_DEPTH,
    RC_PANEL,
    enter,
    move,
    end_hypothesis,
    rc_add_difference,
    rc_add_docs,
    rc_below,
    rc_gram_batch,
    rc_gram_panel,
    rc_gram_scan,
    rc_gram_visit,
    rc_level,
    rc_mirror_panel,
    rc_next_wrong,
    rc_pack_docs,
    rc_score_docs,
    rc_stream,
    rc_walk,
    rc_walk_numbers,
    rc_walk_pairs,
    rc_walk_start,
    so_far,
    successes,
)
from rankcore.core cimport rc_axpy, rc_dot, rc_pair_state, rc_row, rc_rows, rc_rows_get


cdef enum Way:
    PLAIN
    LAZY
    PACKED
    GRAM

cdef enum Outcome:
    REACHED  # all visits made
    PAUSED  # enough pairs seen for now
    FULL  # a hypothesis needs room
    CANDIDATE  # a hypothesis waits to be judged
    OVERFLOWED


cdef struct Visit:
    # Working memory, for the largest query
    const rc_rows *X
    double *scores  # padded, as all that are indexed by document
    double *alpha  # steps of each document in this visit
    double *beta  # the same times the successes before each
    double *padded_labels
    int64_t *stamps  # version of the weights that a score is of
    int32_t *names  # documents in the order of the walk
    rc_level *levels
    double *panels
    int64_t row_work  # in units of `learn`'s budget: that of a row
    int64_t width  # features, padded
    double *unfolded  # documents as doubles, width apart
    double *weights  # width
    double *numbers  # RC_BATCH, as the other parts of a batch
    double *steps
    int32_t *batch_winners
    int32_t *batch_losers
    bint lexicographic
    # The query being visited
    bint open
    double *making  # a Gram matrix that is not yet whole, or NULL
    int64_t made  # steps towards it
    Way way
    int64_t query
    int64_t n  # documents
    int64_t padded
    int64_t left  # pairs not yet in a batch
    double eta
    const int64_t *docs
    const double *labels  # padded
    const double *doc_weights
    const int32_t *winners  # a list of pairs, or NULL
    const int32_t *losers
    const double *pair_weights
    # Where it is
    int64_t at, filled  # in the batch
    int64_t i, j  # in lexicographic order
    int64_t listed  # in the list
    int64_t n_levels
    int64_t version  # of the weights
    int64_t mistakes
    double judge_above  # successes beyond which a hypothesis is the caller's to judge
    bint judged  # the present one was
    rc_walk walk
    rc_gram_visit gram


cdef inline void begin_walk(Visit *v, uint64_t seed, uint64_t number) noexcept nogil:
    """Put the pairs of the query into the order of one of its visits."""
    cdef uint64_t stream = rc_stream(seed, number)
    cdef int64_t k, i, j, first = 0, n_levels = 0
    cdef double pairs = 0
    cdef int32_t name
    cdef rc_level *level
    if v.winners == NULL:
        for k in range(v.n):
            v.names[k] = <int32_t> k
        for k in range(1, v.n + 1):
            if k < v.n and v.labels[k] == v.labels[first]:
                continue
            i = k - 1
            while i > first:
                j = first + rc_below(&stream, i - first + 1)
                name = v.names[i]
                v.names[i] = v.names[j]
                v.names[j] = name
                i -= 1
            if k < v.n:
                level = &v.levels[n_levels]
                level.first_pair = pairs
                level.width = <double> (v.n - k)
                level.inverse = 1.0 / level.width
                level.origin = pairs - <double> first * level.width
                pairs += <double> (k - first) * level.width
                n_levels += 1
            first = k
    v.n_levels = n_levels
    for k in range(n_levels, 8):
        v.levels[k].first_pair = INFINITY
    if v.left:
        rc_walk_start(&v.walk, <uint64_t> v.left, &stream)


cdef inline bint make_gram(Visit *v, int64_t *budget) noexcept nogil:
    """Go on with the Gram matrix of the query's documents; whether it is whole.

    A step is a panel of 8 documents for some features, later to be mirrored, or a sparse document.
    A unit of the budget takes about as long as 64 products of numbers one by one.
    """
    cdef int64_t p = v.padded, n_panels = p // RC_PANEL, depth = 0, first, i, j, step
    cdef int64_t n_blocks = (v.X.n_features + RC_DEPTH - 1) // RC_DEPTH
    cdef bint dense = v.X.indptr == NULL
    cdef int64_t n_steps = (n_blocks + 1) * n_panels if dense else v.n
    cdef double *G = v.making
    cdef rc_row x
    while v.made < n_steps and budget[0] > 0:
        step = v.made % n_panels if dense else v.made
        first = v.made // n_panels * RC_DEPTH
        if not dense:  # each row in turn is spread out, and back to zeros afterwards
            x = rc_rows_get(v.X, v.docs[step])
            rc_axpy(x, 1.0, v.panels)
            for j in range(step, v.n):
                G[step * p + j] = rc_dot(rc_rows_get(v.X, v.docs[j]), v.panels)
                G[j * p + step] = G[step * p + j]
            rc_axpy(x, -1.0, v.panels)
            for j in range(v.n, p):
                G[step * p + j] = 0
            budget[0] -= (v.n - step) * (1 + v.row_work)
        elif first < v.X.n_features:
            depth = min(<int64_t> RC_DEPTH, v.X.n_features - first)
            if step == 0:
                rc_pack_docs(v.X, v.docs, v.n, first, depth, v.panels)
            if first == 0:
                for i in range(step * RC_PANEL, (step + 1) * RC_PANEL):
                    memset(G + i * p + step * RC_PANEL, 0, (p - step * RC_PANEL) * sizeof(double))
            rc_gram_panel(v.panels, step, p, depth, G)
            budget[0] -= (n_panels - step) * (1 + depth // 4)
        else:
            rc_mirror_panel(G, step, p)
            budget[0] -= (n_panels - step) * 4
        v.made += 1
    return v.made == n_steps


cdef inline bint may_overflow(const rc_pair_state *m) noexcept nogil:
    """Whether weights are so large that a score could be infinite. O(n_features)."""
    cdef int64_t f
    for f in range(m.n_features):
        if not fabs(m.weights[f]) < 1e100:
            return True
    return False


cdef inline bint close_visit(Visit *v, rc_pair_state *m) noexcept nogil:
    """End a visit: the weights catch up. Whether the last scores are numbers."""
    cdef int64_t k
    cdef double sum = 0
    cdef bint scored = v.way == LAZY or v.way == GRAM
    if v.way >= PACKED and v.mistakes:
        if v.way == GRAM:
            rc_add_docs(v.X, v.docs, v.alpha, v.n, m.weights)
        else:
            memcpy(m.weights, v.weights, m.n_features * sizeof(double))
        if m.weight_sums != NULL:
            rc_add_docs(v.X, v.docs, v.beta, v.n, m.weight_sums)
    if not scored and v.mistakes and (v.way == PLAIN or may_overflow(m)):
        rc_score_docs(v.X, v.docs, v.n, m.weights, v.scores)
        scored = True
    if scored:
        for k in range(v.n):
            sum += v.scores[k] - v.scores[k]
    v.open = False
    return sum == 0


cdef inline void fill(Visit *v) noexcept nogil:
    """Put the next pairs and their steps into the batch."""
    cdef int64_t n = min(v.left, <int64_t> RC_BATCH), k = 0, at
    cdef int32_t *winners = v.batch_winners
    cdef int32_t *losers = v.batch_losers
    cdef const int32_t *names = v.names
    if not v.lexicographic:
        rc_walk_numbers(&v.walk, v.numbers)
    if v.winners != NULL:
        for k in range(n):
            at = v.listed + k if v.lexicographic else <int64_t> v.numbers[k]
            winners[k] = v.winners[at]
            losers[k] = v.losers[at]
            v.steps[k] = v.eta if v.pair_weights == NULL else v.eta * v.pair_weights[at]
        v.listed += n
    elif not v.lexicographic:
        rc_walk_pairs(v.numbers, v.levels, v.n_levels, v.n, winners, losers)
        for k in range(n):
            winners[k] = names[winners[k]]
            losers[k] = names[losers[k]]
    else:
        while k < n and v.i < v.n:
            while k < n and v.j < v.n:
                if v.labels[v.j] < v.labels[v.i]:
                    winners[k] = <int32_t> v.i
                    losers[k] = <int32_t> v.j
                    k += 1
                v.j += 1
            if v.j == v.n:
                v.i += 1
                v.j = 0
        n = k
    if v.winners == NULL and v.doc_weights != NULL:
        for k in range(n):
            v.steps[k] = v.eta * (v.doc_weights[winners[k]] * v.doc_weights[losers[k]])
    v.at = 0
    v.filled = n
    v.left -= n


cdef inline void copy_hypothesis(
    const Visit *v, const rc_pair_state *m, double *to
) noexcept nogil:
    """The present hypothesis."""
    if v.open and v.way == PACKED:
        memcpy(to, v.weights, m.n_features * sizeof(double))
        return
    memcpy(to, m.weights, m.n_features * sizeof(double))
    if v.open and v.way == GRAM and v.mistakes:
        rc_add_docs(v.X, v.docs, v.alpha, v.n, to)


cdef inline Outcome judge(Visit *v, rc_pair_state *m) noexcept nogil:
    """Have the present hypothesis, which is to end, judged or kept, unless it was."""
    if not v.judged:
        if successes(m) > v.judge_above:
            return CANDIDATE
        if m.capacity:
            if m.kept == m.capacity:
                return FULL
            copy_hypothesis(v, m, enter(m, m.kept))
    v.judged = True
    return REACHED


cdef inline void mistake(
    Visit *v, rc_pair_state *m, int64_t i, int64_t j, double step
) noexcept nogil:
    """End the present hypothesis and move the weights."""
    cdef double before
    if v.way == PACKED:
        rc_add_difference(
            v.weights, v.unfolded + i * v.width, v.unfolded + j * v.width, step, v.width
        )
        if m.weight_sums != NULL:
            before = so_far(m) * step
            v.beta[i] += before
            v.beta[j] -= before
    else:
        move(m, rc_rows_get(v.X, v.docs[i]), rc_rows_get(v.X, v.docs[j]), step)
        v.version += 1
    end_hypothesis(m)
    v.judged = False
    v.mistakes += 1


cdef inline void enter_gram(Visit *v, const rc_pair_state *m) noexcept nogil:
    """Let the loops over a Gram matrix count on from the state."""
    v.gram.streak = m.streak
    v.gram.total = m.total
    v.gram.unit = m.unit
    v.gram.run = m.run
    v.gram.right = m.right
    v.gram.mistakes = 0
    v.gram.judge_above = -1 if m.capacity else v.judge_above
    v.gram.judged = v.judged


cdef inline void leave_gram(Visit *v, rc_pair_state *m) noexcept nogil:
    """Take over what they have counted."""
    m.streak = v.gram.streak
    m.run = v.gram.run
    m.right = v.gram.right
    m.n_mistakes += v.gram.mistakes
    v.mistakes += v.gram.mistakes
    v.judged = v.gram.judged


cdef inline double renewed(Visit *v, const rc_pair_state *m, int64_t k) noexcept nogil:
    """A score of the present weights, computed where that was not done yet."""
    if v.stamps[k] != v.version:
        v.stamps[k] = v.version
        v.scores[k] = rc_dot(rc_rows_get(v.X, v.docs[k]), m.weights)
    return v.scores[k]


cdef inline bint violated(
    Visit *v, const rc_pair_state *m, int64_t i, int64_t j
) noexcept nogil:
    """Whether a pair is ranked wrongly, looked up in one of the slower ways."""
    if v.way == PLAIN:
        return not (
            rc_dot(rc_rows_get(v.X, v.docs[i]), m.weights)
            - rc_dot(rc_rows_get(v.X, v.docs[j]), m.weights)
            > m.margin
        )
    return not (renewed(v, m, i) - renewed(v, m, j) > m.margin)


cdef inline Outcome batch(Visit *v, rc_pair_state *m) noexcept nogil:
    """Look at the pairs of the batch."""
    cdef const int32_t *winners = v.batch_winners
    cdef const int32_t *losers = v.batch_losers
    cdef int64_t at, filled = v.filled
    cdef const double *steps = NULL
    cdef Outcome outcome
    if v.pair_weights != NULL or v.doc_weights != NULL:
        steps = v.steps
    while True:
        at = v.at
        if v.way == GRAM:
            enter_gram(v, m)
            at = rc_gram_batch(&v.gram, winners, losers, steps, v.eta, at, filled)
            leave_gram(v, m)
        else:
            if v.way == PACKED:
                at = rc_next_wrong(
                    v.unfolded, v.width, v.weights, winners, losers, at, filled, m.margin
                )
            else:
                while at < filled and not violated(v, m, winners[at], losers[at]):
                    at += 1
            m.run += at - v.at
            m.right += at - v.at
        m.n_pairs += at - v.at
        v.at = at
        if at == filled:
            return REACHED
        outcome = judge(v, m)
        if outcome != REACHED:
            return outcome
        if v.way != GRAM:
            mistake(v, m, winners[at], losers[at], v.eta if steps == NULL else steps[at])
            m.n_pairs += 1
            v.at += 1


cdef inline Outcome scan(Visit *v, rc_pair_state *m) noexcept nogil:
    """Look at the pairs of the winner v.i, in lexicographic order."""
    cdef int64_t seen
    cdef Outcome outcome
    while True:
        seen = 0
        enter_gram(v, m)
        v.j = rc_gram_scan(
            &v.gram, v.padded_labels, v.doc_weights, v.eta, v.i, v.j, &seen
        )
        leave_gram(v, m)
        m.n_pairs += seen
        if v.j == v.padded:
            v.i += 1
            v.j = 0
            return REACHED
        outcome = judge(v, m)
        if outcome != REACHED:
            return outcome
