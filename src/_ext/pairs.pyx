"""Pairwise perceptrons: visits of queries, in which each pair is visited once.

Rosenblatt's perceptron on differences of documents (Elsas, Carvalho and Carbonell, "Fast Learning
of Document Ranking Functions with the Committee Perceptron", WSDM 2008). A misranked pair moves the
weights by a step times its difference, and ends a hypothesis; a correctly ranked pair is a success
of the current one.

Four ways to compute two scores, with the same decisions up to rounding:

PLAIN  two inner products per pair;
LAZY   scores are stored with the version of their weights, and recomputed when read if outdated;
PACKED the query's documents are laid out as doubles, and a pair is an inner product of their
       difference in vector lanes;
GRAM   scores of the whole query are kept current: a mistake on (i, j) adds step * (G_i - G_j) with
       the query's Gram matrix G. The weights do not change during a visit; the steps are collected
       for each document, and added when the visit ends or a hypothesis is kept.

With GRAM a pair costs a comparison, and a mistake n_docs multiplications in vector lanes instead of
4 n_features. Gram matrices are cached for the next epoch if the caller provides memory; recomputed
ones are bit-identical.
"""

from cython cimport final
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._pair_checks cimport check_queries
from rankcore._ext._pair_state cimport count_by
from rankcore._ext._pairs cimport (
    RC_BATCH,
    RC_DEPTH,
    RC_LISTED,
    RC_PANEL,
    rc_ahead,
    rc_level,
    rc_score_docs,
    rc_unfold_docs,
)
from rankcore._ext._visit cimport (
    CANDIDATE,
    FULL,
    GRAM,
    LAZY,
    OVERFLOWED,
    PACKED,
    PAUSED,
    PLAIN,
    REACHED,
    Outcome,
    Visit,
    Way,
    batch,
    begin_walk,
    close_visit,
    copy_hypothesis,
    fill,
    make_gram,
    pack_weights,
    scan,
)
from rankcore._ext.pair_model cimport PairModel
from rankcore.core cimport RC_FLOAT32, rc_rows

WAYS = {"plain": PLAIN, "lazy": LAZY, "packed": PACKED, "gram": GRAM}
OUTCOMES = {
    "reached": REACHED,
    "paused": PAUSED,
    "full": FULL,
    "candidate": CANDIDATE,
    "overflowed": OVERFLOWED,
}


# ------------------------------------------------------------------------------ queries


@final
cdef class PairData:
    """Queries to learn from, and the working memory of a visit.

    Documents of query q are at ``bounds[q]`` up to ``bounds[q + 1]`` of ``docs`` (rows of X),
    ``labels`` and ``doc_weights``. Either the pairs are all those of different label, or they are
    listed: query q has those from ``pair_bounds[q]`` to ``pair_bounds[q + 1]`` of ``winners`` and
    ``losers``, places among the query's documents, and ``pair_weights``. For a walk
    (``lexicographic`` False) without a list, documents must be in descending order of label.

    ``n_pairs`` and ``ways`` are per query. ``cache`` holds the Gram matrix of query q from
    ``cached[q]`` on, padded to a multiple of 8 documents, or nothing if that is -1. Features are
    multiplied by ``scale``, if it is given, while the weights of the model are those of features as
    they are.
    """

    cdef object rows
    cdef const rc_rows *X
    cdef const int64_t[::1] docs, bounds, pair_bounds, n_pairs, cached
    cdef const double[::1] labels, doc_weights, pair_weights, scale
    cdef const int32_t[::1] winners, losers
    cdef const uint8_t[::1] ways
    cdef double[::1] cache
    cdef uint8_t[::1] ready
    cdef bint lexicographic
    cdef uint64_t seed
    cdef double *own_gram
    cdef list memory  # keeps alive what v points to
    cdef int64_t waiting  # work that is not yet charged, in units of `learn`'s budget
    cdef Visit v

    def __init__(
        self,
        object rows not None,
        const int64_t[::1] docs not None,
        const int64_t[::1] bounds not None,
        const double[::1] labels not None,
        const double[::1] doc_weights,
        const int64_t[::1] pair_bounds,
        const int32_t[::1] winners,
        const int32_t[::1] losers,
        const double[::1] pair_weights,
        const int64_t[::1] n_pairs not None,
        const uint8_t[::1] ways not None,
        const int64_t[::1] cached not None,
        double[::1] cache not None,
        bint lexicographic,
        uint64_t seed,
        const double[::1] scale=None,
    ):
        self.rows = rows
        self.X = checked_rows(rows)
        self.docs, self.bounds, self.labels = docs, bounds, labels
        self.doc_weights, self.pair_bounds = doc_weights, pair_bounds
        self.winners, self.losers, self.pair_weights = winners, losers, pair_weights
        self.n_pairs, self.ways, self.cached, self.cache = n_pairs, ways, cached, cache
        self.lexicographic = lexicographic
        self.seed = seed
        self.scale = scale
        check_queries(
            rows.canonical,
            self.X,
            docs,
            bounds,
            labels,
            doc_weights,
            pair_bounds,
            winners,
            losers,
            pair_weights,
            n_pairs,
            ways,
            cached,
            cache.shape[0],
            lexicographic,
        )
        if scale is not None and scale.shape[0] != self.X.n_features:
            raise ValueError(
                f"scale has {scale.shape[0]} factors; the rows have {self.X.n_features} features"
            )
        self.allot()

    cdef int allot(self) except -1:
        """Allocate working memory for the largest query."""
        import numpy as np

        cdef int64_t q, n, largest = RC_PANEL, gram = 0, packed = 0, listed = 0
        cdef int64_t depth = self.X.n_features, f
        for q in range(self.bounds.shape[0] - 1):
            n = self.bounds[q + 1] - self.bounds[q]
            n = (n + RC_PANEL - 1) // RC_PANEL * RC_PANEL
            largest = max(largest, n)
            if self.n_pairs[q] <= RC_LISTED:
                listed = max(listed, self.n_pairs[q])
            if self.ways[q] == GRAM:
                gram = max(gram, n)
            elif self.ways[q] == PACKED:
                packed = max(packed, n)
        if self.X.indptr == NULL:
            depth = min(depth, RC_DEPTH) * gram
        self.memory = []
        self.own_gram = self.doubles(max(gram * gram, 1))
        self.v.X = self.X
        self.v.scale = NULL
        if self.scale is not None:
            self.v.scale = &self.scale[0]
            self.v.squared_scale = self.doubles(self.X.n_features)
            self.v.scratch = self.doubles(self.X.n_features)
            for f in range(self.X.n_features):
                self.v.squared_scale[f] = self.scale[f] * self.scale[f]
        self.v.order.lexicographic = self.lexicographic
        self.v.scores = self.doubles(largest)
        self.v.alpha = self.doubles(largest)
        self.v.beta = self.doubles(largest)
        self.v.padded_labels = self.doubles(largest)
        self.v.stamps = <int64_t *> self.doubles(largest)
        self.v.order.names = <int32_t *> self.doubles(largest)
        self.v.order.levels = <rc_level *> self.doubles((largest + 8) * sizeof(rc_level) // 8)
        self.v.order.pairs = <uint32_t *> self.doubles(listed // 2 + 1)
        self.v.gram.panels = self.doubles(depth if gram else 1)
        self.v.packed.width = (self.X.n_features + RC_PANEL - 1) // RC_PANEL * RC_PANEL
        self.v.packed.unfolded = self.doubles(max(packed * self.v.packed.width, 1))
        self.v.packed.weights = self.doubles(self.v.packed.width if packed else 1)
        self.v.batch.numbers = self.doubles(RC_BATCH)
        self.v.batch.steps = self.doubles(RC_BATCH)
        self.v.batch.winners = <int32_t *> self.doubles(RC_BATCH)
        self.v.batch.losers = <int32_t *> self.doubles(RC_BATCH)
        self.ready = np.zeros(max(self.bounds.shape[0] - 1, 1), dtype=np.uint8)
        if self.X.indptr == NULL:
            self.v.row_work = self.X.n_features // 64
        else:
            self.v.row_work = self.X.indptr[self.X.n_rows] // (64 * max(self.X.n_rows, <int64_t> 1))
        return 0

    cdef double *doubles(self, int64_t size) except NULL:
        """Return zeros that begin at a cache line."""
        import numpy as np

        cdef double[::1] array = np.zeros(size + RC_PANEL - 1)
        self.memory.append(array)
        return &array[-(<uintptr_t> &array[0] // 8) % RC_PANEL]

    # -------------------------------------------------------------------- visits

    cdef bint start(self, PairModel model, int64_t q, double eta, double unit) noexcept nogil:
        """Start the visit of a query; return whether its scores are finite."""
        cdef Visit *v = &self.v
        cdef int64_t k
        cdef double sum = 0
        v.query.n = self.bounds[q + 1] - self.bounds[q]
        v.query.padded = (v.query.n + RC_PANEL - 1) // RC_PANEL * RC_PANEL
        v.order.left = self.n_pairs[q]
        v.eta = eta
        v.way = <Way> self.ways[q]
        v.gram.making = NULL
        v.query.docs = &self.docs[self.bounds[q]]
        v.query.labels = &self.labels[self.bounds[q]]
        v.query.doc_weights = NULL
        if self.doc_weights is not None:
            v.query.doc_weights = &self.doc_weights[self.bounds[q]]
        v.query.winners = v.query.losers = NULL
        v.query.pair_weights = NULL
        if self.winners is not None:
            v.query.winners = &self.winners[self.pair_bounds[q]]
            v.query.losers = &self.losers[self.pair_bounds[q]]
            if self.pair_weights is not None:
                v.query.pair_weights = &self.pair_weights[self.pair_bounds[q]]
        v.batch.at = v.batch.filled = v.order.i = v.order.j = v.order.listed = v.mistakes = 0
        v.version = 1
        v.judged = False
        self.waiting += v.query.n * self.v.row_work
        count_by(&model.m, unit)
        if v.way == PACKED:
            rc_unfold_docs(
                self.X, v.query.docs, v.query.n, v.scale, v.packed.width, v.packed.unfolded
            )
            pack_weights(v, &model.m)
            memset(v.beta, 0, v.query.padded * sizeof(double))
        elif v.way != PLAIN:
            rc_score_docs(self.X, v.query.docs, v.query.n, model.m.weights, v.scores)
            for k in range(v.query.n):
                sum += v.scores[k] - v.scores[k]
                v.stamps[k] = 1
        if v.way == GRAM:
            for k in range(v.query.n, v.query.padded):
                v.scores[k] = 0
            memset(v.alpha, 0, v.query.padded * sizeof(double))
            memset(v.beta, 0, v.query.padded * sizeof(double))
            v.gram.visit.scores = v.scores
            self.find_gram(q)
            v.gram.visit.padded = v.query.padded
            v.gram.visit.alpha = v.alpha
            v.gram.visit.beta = v.beta
            v.gram.visit.margin = model.m.margin
            if self.winners is None and self.lexicographic:
                for k in range(v.query.padded):
                    v.padded_labels[k] = v.query.labels[k] if k < v.query.n else INFINITY
        if not self.lexicographic:
            begin_walk(v, self.seed, <uint64_t> model.counts[2])
        v.open = sum == 0
        return v.open

    cdef void find_gram(self, int64_t q) noexcept nogil:
        """Point to the Gram matrix of the query's documents, computed or not."""
        cdef double *G = self.own_gram
        if self.cached[q] >= 0:
            G = &self.cache[self.cached[q]]
        self.v.gram.visit.G = G
        self.v.gram.making = NULL
        if self.cached[q] < 0 or not self.ready[q]:
            self.v.gram.making = G
            self.v.gram.made = 0

    cdef bint has_gram(self, int64_t q, int64_t *budget) noexcept nogil:
        """Continue computing the Gram matrix of the visit; return whether it is complete."""
        if self.v.gram.making == NULL:
            return True
        if not make_gram(&self.v, budget):
            return False
        self.v.gram.making = NULL
        if self.cached[q] >= 0:
            self.ready[q] = True
        return True

    cdef int64_t work(self, int64_t seen, int64_t failed) noexcept nogil:
        """Return the work of this visit that a budget is charged for: pairs and scores."""
        cdef int64_t work = seen + 1 + self.waiting, n_scores = 0
        self.waiting = 0
        if self.v.way == LAZY:  # a pair recomputes at most two scores, a mistake all
            n_scores = min(seen, failed * self.v.query.n)
        elif self.v.way != GRAM:
            n_scores = seen
        return work + n_scores * self.v.row_work

    cdef void look_ahead(self, int64_t q) noexcept nogil:
        """Prefetch the data of the visit of query q, the next one."""
        cdef int64_t first = self.bounds[q], stop = self.bounds[q + 1], padded, size = 8
        cdef int64_t k, row
        cdef rc_ahead *gram = &self.v.gram.visit.gram_ahead
        cdef rc_ahead *rows = &self.v.gram.visit.rows_ahead
        gram.next = gram.stop = rows.next = rows.stop = NULL
        if stop == first:
            return
        if self.ways[q] == GRAM and self.cached[q] >= 0 and self.ready[q]:
            padded = (stop - first + RC_PANEL - 1) // RC_PANEL * RC_PANEL
            gram.next = <const char *> &self.cache[self.cached[q]]
            gram.stop = gram.next + padded * padded * sizeof(double)
        if self.X.indptr == NULL:
            size = 4 if self.X.dtype == RC_FLOAT32 else 8
            size *= self.X.stride
            row = self.docs[first]  # the first row of a query, whose rows are mostly neighbours
            for k in range(first + 1, stop):
                row = min(row, self.docs[k])
            rows.next = <const char *> self.X.data + row * size
            rows.stop = rows.next + (stop - first) * size


def learn(
    PairModel model not None,  # in and out
    PairData data not None,  # in and out: the queries; stores how far a visit has come
    const int64_t[::1] sequence not None,  # the query at each position
    int64_t start,  # the position to continue from
    # each (n_queries,): length of a step, and value of a success
    const double[::1] steps not None,
    const double[::1] units not None,
    object params not None,  # the estimator, with its margin
    # pairs to visit before pausing; 64 multiplications count as one pair
    int64_t budget,
):
    """Visit the queries at positions ``start`` and on.

    Returns the first position whose visit has not ended, and one of ``OUTCOMES``. "full": `grow`
    the model and call again. "candidate": `judge` it, then call again. "overflowed": the scores are
    not finite.
    """
    cdef int64_t n_queries = data.bounds.shape[0] - 1, k, seen, failed
    cdef Outcome outcome = REACHED
    if (
        model.m.n_features != data.X.n_features
        or steps.shape[0] != n_queries
        or units.shape[0] != n_queries
        or not 0 <= start <= sequence.shape[0]
    ):
        raise ValueError("model, queries, steps and sequence are inconsistent")
    for k in range(start, sequence.shape[0]):
        if not 0 <= sequence[k] < n_queries:
            raise ValueError(f"there is no query {sequence[k]}")
    model.begin(params)
    data.v.judge_above, data.v.judge, data.v.most_kept = model.bar(), model.judged, model.limit
    with nogil:
        while start < sequence.shape[0]:
            k = sequence[start]
            if not data.v.open and not data.start(model, k, steps[k], units[k]):
                outcome = OVERFLOWED
                break
            if not data.has_gram(k, &budget):
                outcome = PAUSED
                break
            data.look_ahead(sequence[start + 1] if start + 1 < sequence.shape[0] else k)
            while True:
                seen, failed = model.m.n_pairs, model.m.n_mistakes
                if data.lexicographic and data.v.way == GRAM and data.v.query.winners == NULL:
                    if data.v.order.i == data.v.query.n:
                        break
                    outcome = scan(&data.v, &model.m)
                else:
                    if data.v.batch.at == data.v.batch.filled:
                        if data.v.order.left == 0:
                            break
                        fill(&data.v)
                        if data.v.batch.filled == 0:
                            break
                    outcome = batch(&data.v, &model.m)
                budget -= data.work(model.m.n_pairs - seen, model.m.n_mistakes - failed)
                if outcome == REACHED and budget <= 0:
                    outcome = PAUSED
                if outcome != REACHED:
                    break
            if outcome != REACHED:
                break
            start += 1
            model.counts[2] += 1
            if not close_visit(&data.v, &model.m):
                outcome = OVERFLOWED
                break
    model.end()
    return start, <int> outcome


def judge(
    PairModel model not None,  # in and out
    PairData data not None,  # in and out
    object criterion not None,  # function of weights
):
    """Let a criterion judge the candidate of `learn`, which may become a member."""
    import numpy as np

    cdef double[::1] to
    if model.m.n_features != data.X.n_features:
        raise ValueError(
            f"the model has {model.m.n_features} features and the rows have {data.X.n_features}"
        )
    weights = np.empty(model.m.n_features)
    to = weights
    copy_hypothesis(&data.v, &model.m, &to[0])
    value = float(criterion(weights.copy()))
    if not np.isfinite(value):
        raise ValueError(f"quality must return finite numbers; {criterion!r} returned {value}")
    model.offer(weights, value)
    data.v.judged = True
