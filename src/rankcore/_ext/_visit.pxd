# A visit of a query: its pairs one by one, with one of four ways to compute scores. Private.
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from rankcore._ext._forgetting cimport fade
from rankcore._ext._pair_state cimport (
    admit, end_hypothesis, fewest, place, so_far, successes
)
from rankcore._ext._pairs cimport (
    RC_BATCH,
    RC_DEPTH,
    RC_LISTED,
    RC_PANEL,
    rc_add_difference,
    rc_add_docs,
    rc_add_scaled,
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
    rc_walk_list,
    rc_walk_listed,
    rc_walk_numbers,
    rc_walk_pairs,
    rc_walk_start,
)
from rankcore.core cimport rc_axpy, rc_dot, rc_pair_state, rc_row, rc_rows, rc_rows_get


cdef enum Way:
    PLAIN
    LAZY
    PACKED
    GRAM

cdef enum Outcome:
    REACHED  # all visits ended
    PAUSED  # the budget of pairs is used up
    FULL  # a hypothesis needs more capacity
    CANDIDATE  # a hypothesis waits to be judged
    OVERFLOWED


cdef struct QueryPairs:
    # The query being visited
    int64_t n  # documents
    int64_t padded
    const int64_t *docs
    const double *labels  # padded
    const double *doc_weights
    const int32_t *winners  # a list of pairs, or NULL
    const int32_t *losers
    const double *pair_weights


cdef struct Batch:
    # Pairs that are visited together: RC_BATCH numbers in each array
    double *numbers
    double *steps
    int32_t *winners
    int32_t *losers
    int64_t at
    int64_t filled


cdef struct Order:
    # Which pairs come next
    bint lexicographic
    int64_t left  # pairs not yet in a batch
    int64_t i, j  # in lexicographic order
    int64_t listed  # in the list
    int32_t *names  # documents by descending label, shuffled within labels, see _walk.h
    rc_level *levels
    int64_t n_levels
    uint32_t *pairs  # by number, see rc_walk_list
    bint in_list
    rc_walk walk


cdef struct Packed:
    # Documents as doubles, width apart
    int64_t width  # features, padded
    double *unfolded
    double *weights  # width


cdef struct Gram:
    rc_gram_visit visit
    double *panels
    double *making  # a matrix that is not yet complete, or NULL
    int64_t made  # steps of its computation that are done


cdef struct Visit:
    # Working memory, for the largest query
    const rc_rows *X
    # (n_features,): factors of features, or NULL; weights are without them, and 0 where they are 0
    const double *scale
    double *squared_scale  # (n_features,)
    double *scratch  # (n_features,)
    double *scores  # padded, as are all arrays by document
    double *alpha  # steps of each document in this visit
    double *beta  # the same times the successes before each
    double *padded_labels
    int64_t *stamps  # version of the weights that a score is of
    int64_t row_work  # work of the score of a row, in units of `learn`'s budget
    # Progress of the visit
    bint open
    Way way
    double eta
    int64_t version  # of the weights
    int64_t mistakes
    double judge_above  # hypotheses with more successes are kept, or judged by the caller
    bint judge  # whether the caller judges
    int64_t most_kept
    bint judged  # whether the current hypothesis was judged
    QueryPairs query
    Batch batch
    Order order
    Packed packed
    Gram gram


cdef inline void begin_walk(Visit *v, uint64_t seed, uint64_t number) noexcept nogil:
    """Put the pairs of the query into the order of one of its visits."""
    cdef uint64_t stream = rc_stream(seed, number)
    cdef int64_t k, i, j, first = 0, n_levels = 0
    cdef double pairs = 0
    cdef int32_t name
    cdef rc_level *level
    if v.query.winners == NULL:
        for k in range(v.query.n):
            v.order.names[k] = <int32_t> k
        for k in range(1, v.query.n + 1):
            if k < v.query.n and v.query.labels[k] == v.query.labels[first]:
                continue
            i = k - 1
            while i > first:
                j = first + rc_below(&stream, i - first + 1)
                name = v.order.names[i]
                v.order.names[i] = v.order.names[j]
                v.order.names[j] = name
                i -= 1
            if k < v.query.n:
                level = &v.order.levels[n_levels]
                level.first_pair = pairs
                level.width = <double> (v.query.n - k)
                level.inverse = 1.0 / level.width
                level.origin = pairs - <double> first * level.width
                pairs += <double> (k - first) * level.width
                n_levels += 1
            first = k
    v.order.n_levels = n_levels
    for k in range(n_levels, 8):
        v.order.levels[k].first_pair = INFINITY
    v.order.in_list = v.query.winners == NULL and v.order.left <= RC_LISTED
    if v.order.in_list:
        rc_walk_list(v.order.levels, n_levels, v.query.n, v.order.names, v.order.pairs)
    if v.order.left:
        rc_walk_start(&v.order.walk, <uint64_t> v.order.left, &stream)


cdef inline void add_row(const Visit *v, rc_row x, double a, double *weights) noexcept nogil:
    """Add a multiple of a row to weights of original features."""
    if v.scale == NULL:
        rc_axpy(x, a, weights)
    else:
        rc_add_scaled(x, a, v.squared_scale, weights)


cdef inline void add_query(
    const Visit *v, const double *by, int64_t n_features, double *weights
) noexcept nogil:
    """Add multiples of the query's documents to weights of original features."""
    cdef int64_t f
    if v.scale == NULL:
        rc_add_docs(v.X, v.query.docs, by, v.query.n, weights)
        return
    for f in range(n_features):
        v.scratch[f] = weights[f] / v.squared_scale[f] if v.squared_scale[f] > 0 else 0.0
    rc_add_docs(v.X, v.query.docs, by, v.query.n, v.scratch)
    for f in range(n_features):
        if v.squared_scale[f] > 0:
            weights[f] = v.scratch[f] * v.squared_scale[f]


cdef inline void pack_weights(Visit *v, const rc_pair_state *m) noexcept nogil:
    """Copy the weights, divided by the factors, for a visit of unfolded documents."""
    cdef int64_t f
    memcpy(v.packed.weights, m.weights, m.n_features * sizeof(double))
    if v.scale != NULL:
        for f in range(m.n_features):
            v.packed.weights[f] = m.weights[f] / v.scale[f] if v.scale[f] > 0 else 0.0


cdef inline void unpack_weights(
    const Visit *v, const rc_pair_state *m, double *to
) noexcept nogil:
    """Copy the weights back, times the factors."""
    cdef int64_t f
    memcpy(to, v.packed.weights, m.n_features * sizeof(double))
    if v.scale != NULL:
        for f in range(m.n_features):
            to[f] *= v.scale[f]


cdef inline void clear_row(rc_row x, double *values) noexcept nogil:
    """Set the values of the columns of a sparse row to 0."""
    cdef int64_t k
    for k in range(x.n):
        values[x.indices[k]] = 0.0


cdef inline bint make_gram(Visit *v, int64_t *budget) noexcept nogil:
    """Continue to compute the query's Gram matrix; return whether it is complete.

    The first document is subtracted from all, which changes no difference of scores, so that
    columns far from 0 lose no digits.
    A step is a panel of 8 documents for some features, later to be mirrored, or a sparse document.
    A unit of the budget takes about as long as 64 multiplications, one by one.
    """
    cdef int64_t p = v.query.padded, n_panels = p // RC_PANEL, depth = 0, first, i, j, step
    cdef int64_t n_blocks = (v.X.n_features + RC_DEPTH - 1) // RC_DEPTH
    cdef bint dense = v.X.indptr == NULL
    cdef int64_t n_steps = (n_blocks + 1) * n_panels if dense else v.query.n
    cdef double *G = v.gram.making
    cdef double of_origin
    cdef rc_row x, origin
    while v.gram.made < n_steps and budget[0] > 0:
        step = v.gram.made % n_panels if dense else v.gram.made
        first = v.gram.made // n_panels * RC_DEPTH
        if not dense:  # each row in turn is expanded, and cleared afterwards
            x = rc_rows_get(v.X, v.query.docs[step])
            origin = rc_rows_get(v.X, v.query.docs[0])
            add_row(v, x, 1.0, v.gram.panels)
            add_row(v, origin, -1.0, v.gram.panels)
            of_origin = rc_dot(origin, v.gram.panels)
            for j in range(step, v.query.n):
                G[step * p + j] = (
                    rc_dot(rc_rows_get(v.X, v.query.docs[j]), v.gram.panels) - of_origin
                )
                G[j * p + step] = G[step * p + j]
            clear_row(x, v.gram.panels)
            clear_row(origin, v.gram.panels)
            for j in range(v.query.n, p):
                G[step * p + j] = 0
            budget[0] -= (v.query.n - step) * (1 + v.row_work)
        elif first < v.X.n_features:
            depth = min(<int64_t> RC_DEPTH, v.X.n_features - first)
            if step == 0:
                rc_pack_docs(
                    v.X, v.query.docs, v.query.n, v.scale, first, depth, v.gram.panels
                )
            if first == 0:
                for i in range(step * RC_PANEL, (step + 1) * RC_PANEL):
                    memset(G + i * p + step * RC_PANEL, 0, (p - step * RC_PANEL) * sizeof(double))
            rc_gram_panel(v.gram.panels, step, p, depth, G)
            budget[0] -= (n_panels - step) * (1 + depth // 4)
        else:
            rc_mirror_panel(G, step, p)
            budget[0] -= (n_panels - step) * 4
        v.gram.made += 1
    return v.gram.made == n_steps


cdef inline bint may_overflow(const rc_pair_state *m) noexcept nogil:
    """Return whether weights are so large that a score could be infinite. O(n_features)."""
    cdef int64_t f
    for f in range(m.n_features):
        if not fabs(m.weights[f]) < 1e100:
            return True
    return False


cdef inline bint close_visit(Visit *v, rc_pair_state *m) noexcept nogil:
    """End a visit: update the weights; return whether the last scores are finite."""
    cdef int64_t k
    cdef double sum = 0
    cdef bint scored = v.way == LAZY or v.way == GRAM
    if v.way >= PACKED and v.mistakes:
        if v.way == GRAM:
            add_query(v, v.alpha, m.n_features, m.weights)
        else:
            unpack_weights(v, m, m.weights)
        add_query(v, v.beta, m.n_features, m.weight_sums)
    if not scored and v.mistakes and (v.way == PLAIN or may_overflow(m)):
        rc_score_docs(v.X, v.query.docs, v.query.n, m.weights, v.scores)
        scored = True
    if scored:
        for k in range(v.query.n):
            sum += v.scores[k] - v.scores[k]
    v.open = False
    return sum == 0


cdef inline void fill(Visit *v) noexcept nogil:
    """Put the next pairs and their steps into the batch."""
    cdef int64_t n = min(v.order.left, <int64_t> RC_BATCH), k = 0, at
    cdef int32_t *winners = v.batch.winners
    cdef int32_t *losers = v.batch.losers
    cdef const int32_t *names = v.order.names
    cdef const double *weights = v.query.doc_weights
    if not v.order.lexicographic and not v.order.in_list:
        rc_walk_numbers(&v.order.walk, v.batch.numbers)
    if v.query.winners != NULL:
        for k in range(n):
            at = v.order.listed + k if v.order.lexicographic else <int64_t> v.batch.numbers[k]
            winners[k] = v.query.winners[at]
            losers[k] = v.query.losers[at]
            v.batch.steps[k] = v.eta
            if v.query.pair_weights != NULL:
                v.batch.steps[k] *= v.query.pair_weights[at]
        v.order.listed += n
    elif not v.order.lexicographic and v.order.in_list:
        rc_walk_listed(&v.order.walk, v.order.pairs, winners, losers)
    elif not v.order.lexicographic:
        rc_walk_pairs(v.batch.numbers, v.order.levels, v.order.n_levels, v.query.n, winners, losers)
        for k in range(n):
            winners[k] = names[winners[k]]
            losers[k] = names[losers[k]]
    else:
        while k < n and v.order.i < v.query.n:
            while k < n and v.order.j < v.query.n:
                if v.query.labels[v.order.j] < v.query.labels[v.order.i]:
                    winners[k] = <int32_t> v.order.i
                    losers[k] = <int32_t> v.order.j
                    k += 1
                v.order.j += 1
            if v.order.j == v.query.n:
                v.order.i += 1
                v.order.j = 0
        n = k
    if v.query.winners == NULL and v.query.doc_weights != NULL:
        for k in range(n):
            v.batch.steps[k] = v.eta * (weights[winners[k]] * weights[losers[k]])
    v.batch.at = 0
    v.batch.filled = n
    v.order.left -= n


cdef inline void copy_hypothesis(
    const Visit *v, const rc_pair_state *m, double *to
) noexcept nogil:
    """Copy the weights of the current hypothesis."""
    if v.open and v.way == PACKED:
        unpack_weights(v, m, to)
        return
    memcpy(to, m.weights, m.n_features * sizeof(double))
    if v.open and v.way == GRAM and v.mistakes:
        add_query(v, v.alpha, m.n_features, to)


cdef inline Outcome judge(Visit *v, rc_pair_state *m) noexcept nogil:
    """Evaluate or store the current hypothesis, which is about to end, unless that is done."""
    if not v.judged and successes(m) > v.judge_above:
        if m.kept == m.capacity and m.kept < v.most_kept:
            return FULL
        if v.judge:
            return CANDIDATE
        copy_hypothesis(v, m, admit(m, place(m)))
        if m.kept == v.most_kept:
            v.judge_above = m.successes[fewest(m)]
    v.judged = True
    return REACHED


cdef inline void mistake(
    Visit *v, rc_pair_state *m, int64_t i, int64_t j, double step
) noexcept nogil:
    """End the current hypothesis and move the weights."""
    cdef const double *documents = v.packed.unfolded
    cdef int64_t width = v.packed.width
    cdef double before = so_far(m) * step
    cdef rc_row winner, loser
    if v.way == PACKED:
        rc_add_difference(
            v.packed.weights, documents + i * width, documents + j * width, step, width
        )
        v.beta[i] += before
        v.beta[j] -= before
    else:
        winner, loser = rc_rows_get(v.X, v.query.docs[i]), rc_rows_get(v.X, v.query.docs[j])
        add_row(v, winner, step, m.weights)
        add_row(v, loser, -step, m.weights)
        add_row(v, winner, before, m.weight_sums)
        add_row(v, loser, -before, m.weight_sums)
        v.version += 1
    if end_hypothesis(m):
        fade(m.weight_sums, m.n_features)
        if v.way == PACKED:
            fade(v.beta, v.query.padded)
    v.judged = False
    v.mistakes += 1


cdef inline void enter_gram(Visit *v, const rc_pair_state *m) noexcept nogil:
    """Copy the counters of the state for loops over a Gram matrix."""
    v.gram.visit.streak = m.streak
    v.gram.visit.total = m.total
    v.gram.visit.unit = m.unit
    v.gram.visit.gain = m.forgetting.gain
    v.gram.visit.past = m.forgetting.past
    v.gram.visit.faded = 0
    v.gram.visit.run = m.run
    v.gram.visit.right = m.right
    v.gram.visit.mistakes = 0
    v.gram.visit.judge_above = v.judge_above
    v.gram.visit.judged = v.judged


cdef inline void leave_gram(Visit *v, rc_pair_state *m) noexcept nogil:
    """Copy the counters back."""
    m.streak = v.gram.visit.streak
    m.total = v.gram.visit.total
    m.forgetting.past = v.gram.visit.past
    while v.gram.visit.faded:
        fade(m.weight_sums, m.n_features)
        v.gram.visit.faded -= 1
    m.run = v.gram.visit.run
    m.right = v.gram.visit.right
    m.n_mistakes += v.gram.visit.mistakes
    v.mistakes += v.gram.visit.mistakes
    v.judged = v.gram.visit.judged


cdef inline double renewed(Visit *v, const rc_pair_state *m, int64_t k) noexcept nogil:
    """Return the score of a document by the current weights; recompute it if it is outdated."""
    if v.stamps[k] != v.version:
        v.stamps[k] = v.version
        v.scores[k] = rc_dot(rc_rows_get(v.X, v.query.docs[k]), m.weights)
    return v.scores[k]


cdef inline bint violated(
    Visit *v, const rc_pair_state *m, int64_t i, int64_t j
) noexcept nogil:
    """Return whether a pair is ranked wrongly, with PLAIN or LAZY scores."""
    if v.way == PLAIN:
        return not (
            rc_dot(rc_rows_get(v.X, v.query.docs[i]), m.weights)
            - rc_dot(rc_rows_get(v.X, v.query.docs[j]), m.weights)
            > m.margin
        )
    return not (renewed(v, m, i) - renewed(v, m, j) > m.margin)


cdef inline Outcome batch(Visit *v, rc_pair_state *m) noexcept nogil:
    """Visit the pairs of the batch."""
    cdef const int32_t *winners = v.batch.winners
    cdef const int32_t *losers = v.batch.losers
    cdef int64_t at, filled = v.batch.filled
    cdef const double *steps = NULL
    cdef Outcome outcome
    if v.query.pair_weights != NULL or v.query.doc_weights != NULL:
        steps = v.batch.steps
    while True:
        at = v.batch.at
        if v.way == GRAM:
            enter_gram(v, m)
            at = rc_gram_batch(&v.gram.visit, winners, losers, steps, v.eta, at, filled)
            leave_gram(v, m)
        else:
            if v.way == PACKED:
                at = rc_next_wrong(
                    v.packed.unfolded, v.packed.width, v.packed.weights, winners, losers, at,
                    filled, m.margin,
                )
            else:
                while at < filled and not violated(v, m, winners[at], losers[at]):
                    at += 1
            m.run += at - v.batch.at
            m.right += at - v.batch.at
        m.n_pairs += at - v.batch.at
        v.batch.at = at
        if at == filled:
            return REACHED
        outcome = judge(v, m)
        if outcome != REACHED:
            return outcome
        if v.way != GRAM:
            mistake(v, m, winners[at], losers[at], v.eta if steps == NULL else steps[at])
            m.n_pairs += 1
            v.batch.at += 1


cdef inline Outcome scan(Visit *v, rc_pair_state *m) noexcept nogil:
    """Visit the pairs of the winner v.order.i, in lexicographic order."""
    cdef int64_t seen
    cdef Outcome outcome
    while True:
        seen = 0
        enter_gram(v, m)
        v.order.j = rc_gram_scan(
            &v.gram.visit, v.padded_labels, v.query.doc_weights, v.eta, v.order.i, v.order.j, &seen
        )
        leave_gram(v, m)
        m.n_pairs += seen
        if v.order.j == v.query.padded:
            v.order.i += 1
            v.order.j = 0
            return REACHED
        outcome = judge(v, m)
        if outcome != REACHED:
            return outcome
