"""Margin losses over all pairs of queries, without enumeration: O(n log n) per query.

Let d be the score of the better document of a pair minus that of the worse one. Losses and
derivatives are computed from the sums of (m - d) and (m - d)^2 over the pairs with d < m, for one
or two margins m. One pass down the scores of a query gives them for the winners, one up for the
losers (Joachims 2006; Lee and Lin 2014). Listed pairs are summed one by one.

The rows of a query are scored, scanned and summed before the next query, while they are in the
cache: an evaluation reads the matrix once.
"""

from cython cimport final
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._graded_pairs cimport Graded, curve_graded, curve_graded_rows, sum_graded
from rankcore._ext._listed_pairs cimport Listed, curve_listed, sum_listed
from rankcore._ext._query_room cimport Room, allocate
from rankcore.core cimport RC_FLOAT32, rc_row, rc_rows, rc_rows_get

cdef extern from "_stream.h" nogil:
    void rc_stream_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, const double *w, double *scores
    )
    void rc_add_docs(
        const rc_rows *X, const int64_t *docs, const double *by, int64_t n, double *w
    )

cdef enum:
    MOST_MARGINS = 2


@final
cdef class PairLoss:
    """The pairs of queries, and the order of the documents in the last evaluation."""

    cdef const int64_t[::1] docs, bounds, n_levels, pair_bounds
    cdef const uint32_t[::1] levels
    cdef const double[::1] weights, steps, pair_weights
    cdef const int32_t[::1] winners, losers
    cdef uint32_t[::1] order
    cdef int64_t most_rows

    def __init__(
        self,
        const int64_t[::1] docs not None,  # (n_docs,): rows, query by query
        const int64_t[::1] bounds not None,  # (n_queries + 1,)
        # (n_docs,): from 0 on in each query: a document is better than those of lower level. Not
        # read if pairs are listed.
        const uint32_t[::1] levels not None,
        const int64_t[::1] n_levels not None,  # (n_queries,)
        # (n_docs,), or None: a pair weighs the product of its documents' weights
        const double[::1] weights,
        const double[::1] steps not None,  # (n_queries,): each multiplies the loss of its query
        # or None: pairs that are listed: of query q from ``pair_bounds[q]`` on, as places among its
        # documents
        const int64_t[::1] pair_bounds,
        const int32_t[::1] winners,
        const int32_t[::1] losers,
        const double[::1] pair_weights,
        # (n_docs,): places of each query's documents in some order; kept up to date here
        uint32_t[::1] order not None,
    ):
        cdef int64_t i, n, q, n_docs = docs.shape[0], n_queries = bounds.shape[0] - 1
        cdef bint listed = pair_bounds is not None
        if (
            n_queries < 0
            or levels.shape[0] != n_docs
            or order.shape[0] != n_docs
            or n_levels.shape[0] != n_queries
            or steps.shape[0] != n_queries
            or (weights is not None and weights.shape[0] != n_docs)
            or bounds[0] != 0
            or bounds[n_queries] != n_docs
        ):
            raise ValueError("the arrays of the pairs are inconsistent")
        if listed and (
            winners is None
            or losers is None
            or pair_bounds.shape[0] != n_queries + 1
            or pair_bounds[0] != 0
            or pair_bounds[n_queries] != winners.shape[0]
            or winners.shape[0] != losers.shape[0]
            or (pair_weights is not None and pair_weights.shape[0] != winners.shape[0])
        ):
            raise ValueError("the arrays of the listed pairs are inconsistent")
        self.most_rows = 0
        for i in range(n_docs):
            if docs[i] < 0:
                raise ValueError("row numbers must be >= 0")
            self.most_rows = max(self.most_rows, docs[i] + 1)
        for q in range(n_queries):
            n = bounds[q + 1] - bounds[q]
            if not 0 <= bounds[q] <= bounds[q + 1] <= n_docs or n >= <int64_t> 1 << 31:
                raise ValueError("bounds must ascend, by less than 2**31 documents a query")
            if n_levels[q] < 1:
                raise ValueError("each query must have a level")
            for i in range(bounds[q], bounds[q + 1]):
                if not (levels[i] < n_levels[q] and order[i] < n):
                    raise ValueError("a level or a place is out of range")
            if not listed:
                continue
            if not 0 <= pair_bounds[q] <= pair_bounds[q + 1] <= winners.shape[0]:
                raise ValueError("the bounds of the pairs must ascend")
            for i in range(pair_bounds[q], pair_bounds[q + 1]):
                if not (0 <= winners[i] < n and 0 <= losers[i] < n):
                    raise ValueError("a pair is out of range")
        self.docs, self.bounds, self.levels, self.n_levels = docs, bounds, levels, n_levels
        self.weights, self.steps, self.order = weights, steps, order
        self.pair_bounds, self.winners, self.losers = pair_bounds, winners, losers
        self.pair_weights = pair_weights


cdef bint _allocate(
    Room *room, PairLoss pairs, int64_t first, int64_t last, int64_t width
) noexcept nogil:
    """Allocate memory for the queries from `first` to `last`."""
    cdef int64_t q, n = 1, n_levels = 1
    for q in range(first, last):
        n = max(n, pairs.bounds[q + 1] - pairs.bounds[q])
        n_levels = max(n_levels, pairs.n_levels[q])
    return allocate(room, n, n_levels, width)


cdef Graded _graded(PairLoss pairs, int64_t q) noexcept nogil:
    """Return the pairs of a query by its levels."""
    cdef Graded query
    cdef int64_t start = pairs.bounds[q]
    query.levels = &pairs.levels[start]
    query.weights = NULL
    if pairs.weights is not None:
        query.weights = &pairs.weights[start]
    query.order = &pairs.order[start]
    query.n = pairs.bounds[q + 1] - start
    query.n_levels = pairs.n_levels[q]
    query.step = pairs.steps[q]
    return query


cdef Listed _listed(PairLoss pairs, int64_t q) noexcept nogil:
    """Return the listed pairs of a query."""
    cdef Listed query
    cdef int64_t p = pairs.pair_bounds[q]
    query.n = pairs.pair_bounds[q + 1] - p
    query.step = pairs.steps[q]
    query.winners = query.losers = NULL
    query.weights = NULL
    if query.n:
        query.winners, query.losers = &pairs.winners[p], &pairs.losers[p]
        if pairs.pair_weights is not None:
            query.weights = &pairs.pair_weights[p]
    return query


# ---------------------------------------------------------------- evaluation


cdef int64_t _check(
    PairLoss pairs, object rows, const double[::1] weights, const double[::1] scores,
    const double[::1] margins, const double[::1] factors, int64_t first, int64_t last,
) except -1:
    cdef int64_t n_docs = pairs.docs.shape[0]
    cdef const rc_rows *X
    if not 0 <= first <= last < pairs.bounds.shape[0]:
        raise ValueError("first and last must be numbers of queries")
    if scores.shape[0] != n_docs:
        raise ValueError("scores and documents differ in number")
    if not 1 <= margins.shape[0] <= MOST_MARGINS or factors.shape[0] != margins.shape[0]:
        raise ValueError("there must be one or two margins, and as many factors")
    if rows is not None:
        X = checked_rows(rows)
        if weights is None or weights.shape[0] != X.n_features or pairs.most_rows > X.n_rows:
            raise ValueError("rows, weights and documents are inconsistent")
    return 0


def evaluate(
    PairLoss pairs not None,
    object rows,  # None: ``scores`` are given
    const double[::1] weights,  # (n_features,), or None
    double[::1] scores not None,  # (n_docs,): written if there are rows
    const double[::1] margins not None,  # each (n_margins,)
    const double[::1] factors not None,
    double[::1] slopes not None,  # (n_docs,): derivatives of the loss by the scores
    double[::1] curvatures not None,  # (n_docs,): diagonal of its second derivatives
    # (n_queries, n_margins, 2): sums of (m - d) and (m - d)^2 over the pairs with d < m, without
    # the factors
    double[:, :, ::1] sums not None,
    double[::1] gradient,  # (n_features,), or None: ``slopes`` times rows are added to it
    int64_t first,
    int64_t last,
):
    """Sum the loss and its derivatives over the queries from ``first`` up to ``last``.

    The loss is the sum over margins m of factor * (m - d)^2, over pairs with d < m. The GIL is
    released.
    """
    cdef const rc_rows *X = NULL
    cdef Room room
    cdef Graded graded
    cdef Listed pairs_listed
    cdef int64_t q, start, n, n_docs = scores.shape[0]
    cdef bint listed = pairs.pair_bounds is not None, roomy = True
    _check(pairs, rows, weights, scores, margins, factors, first, last)
    if (
        slopes.shape[0] != n_docs
        or curvatures.shape[0] != n_docs
        or sums.shape[0] != pairs.steps.shape[0]
        or sums.shape[1] != margins.shape[0]
        or sums.shape[2] != 2
    ):
        raise ValueError("an array to be written has the wrong shape")
    if rows is not None:
        X = checked_rows(rows)
        if gradient is not None and gradient.shape[0] != X.n_features:
            raise ValueError("the gradient must have one number for each feature")
    with nogil:
        roomy = _allocate(&room, pairs, first, last, 1)
        for q in range(first, last if roomy else first):
            start = pairs.bounds[q]
            n = pairs.bounds[q + 1] - start
            if n == 0:
                sums[q, :, :] = 0.0
                continue
            if X != NULL:
                rc_stream_docs(X, &pairs.docs[start], n, &weights[0], &scores[start])
            if listed:
                memset(&slopes[start], 0, n * sizeof(double))
                memset(&curvatures[start], 0, n * sizeof(double))
                memset(&sums[q, 0, 0], 0, 2 * margins.shape[0] * sizeof(double))
                pairs_listed = _listed(pairs, q)
                sum_listed(
                    &pairs_listed, &scores[start], &margins[0], &factors[0], margins.shape[0],
                    &slopes[start], &curvatures[start], &sums[q, 0, 0],
                )
            else:
                graded = _graded(pairs, q)
                sum_graded(
                    &room, &graded, &scores[start], &margins[0], &factors[0], margins.shape[0],
                    &slopes[start], &curvatures[start], &sums[q, 0, 0],
                )
            if X != NULL and gradient is not None:
                rc_add_docs(X, &pairs.docs[start], &slopes[start], n, &gradient[0])
        free(room.block)
    if not roomy:
        raise MemoryError("not enough memory for the largest query")


# ---------------------------------------------------------------- second derivatives


def curve(
    PairLoss pairs not None,  # pairs, scores, margins, factors, curvatures: as `evaluate` left them
    object rows,  # None: ``z`` is given
    const double[::1] weights,  # (n_features,), or None: ``z`` is rows times these
    const double[::1] scores not None,
    const double[::1] margins not None,
    const double[::1] factors not None,
    const double[::1] curvatures not None,
    # (n_docs,): if there are rows it is written, less the value of the first row of each query
    double[::1] z not None,
    double[::1] out not None,  # (n_docs,): second derivatives times ``z``
    double[::1] product,  # (n_features,), or None: ``out`` times rows is added to it
    int64_t first,
    int64_t last,
):
    """Multiply by the second derivatives of the loss by the scores. The GIL is released."""
    cdef const rc_rows *X = NULL
    cdef Room room
    cdef Graded graded
    cdef Listed pairs_listed
    cdef double origin
    cdef int64_t q, k, start, n, n_docs = scores.shape[0]
    cdef bint listed = pairs.pair_bounds is not None, roomy = True
    _check(pairs, rows, weights, scores, margins, factors, first, last)
    if curvatures.shape[0] != n_docs or z.shape[0] != n_docs or out.shape[0] != n_docs:
        raise ValueError("the arrays must have one number for each document")
    if rows is not None:
        X = checked_rows(rows)
        if product is not None and product.shape[0] != X.n_features:
            raise ValueError("the product must have one number for each feature")
    with nogil:
        roomy = _allocate(&room, pairs, first, last, 1)
        for q in range(first, last if roomy else first):
            start = pairs.bounds[q]
            n = pairs.bounds[q + 1] - start
            if n == 0:
                continue
            if X != NULL:
                rc_stream_docs(X, &pairs.docs[start], n, &weights[0], &z[start])
                # This changes no difference; columns far from 0 would take digits of the products.
                origin = z[start]
                for k in range(start, start + n):
                    z[k] -= origin
            if listed:
                memset(&out[start], 0, n * sizeof(double))
                pairs_listed = _listed(pairs, q)
                curve_listed(
                    &pairs_listed, &scores[start], &z[start], 1, &margins[0], &factors[0],
                    margins.shape[0], &out[start],
                )
            else:
                graded = _graded(pairs, q)
                curve_graded(
                    &room, &graded, &scores[start], &z[start], &margins[0], &factors[0],
                    margins.shape[0], &curvatures[start], &out[start],
                )
            if X != NULL and product is not None:
                rc_add_docs(X, &pairs.docs[start], &out[start], n, &product[0])
        free(room.block)
    if not roomy:
        raise MemoryError("not enough memory for the largest query")


cdef void _unfold(const rc_rows *X, const int64_t *docs, int64_t n, double *dense) noexcept nogil:
    cdef int64_t k, f, to
    cdef rc_row x
    for k in range(n):
        x = rc_rows_get(X, docs[k])
        if x.indices != NULL:
            memset(dense + k * X.n_features, 0, X.n_features * sizeof(double))
        for f in range(x.n):
            to = k * X.n_features + (f if x.indices == NULL else x.indices[f])
            if x.dtype == RC_FLOAT32:
                dense[to] = (<const float *> x.data)[f]
            else:
                dense[to] = (<const double *> x.data)[f]


def curve_rows(
    PairLoss pairs not None,  # as for `curve`
    object rows not None,
    const double[::1] scores not None,
    const double[::1] margins not None,
    const double[::1] factors not None,
    const double[::1] curvatures not None,
    int64_t q,  # the query
    # each (n, n_features): the rows of its n documents less the first, which changes no difference,
    # so that columns far from 0 lose no digits; and the second derivatives times these
    double[:, ::1] dense not None,
    double[:, ::1] curved not None,
):
    """Multiply all columns of a query's rows by the second derivatives. The GIL is released."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef Room room
    cdef Graded graded
    cdef Listed pairs_listed
    cdef int64_t i, j, start, n, width = X.n_features
    cdef bint roomy = True
    _check(pairs, None, None, scores, margins, factors, q, q + 1)
    start = pairs.bounds[q]
    n = pairs.bounds[q + 1] - start
    if (
        curvatures.shape[0] != scores.shape[0]
        or pairs.most_rows > X.n_rows
        or dense.shape[0] != n
        or curved.shape[0] != n
        or dense.shape[1] != width
        or curved.shape[1] != width
    ):
        raise ValueError("the arrays are inconsistent")
    if n == 0 or width == 0:
        return
    with nogil:
        _unfold(X, &pairs.docs[start], n, &dense[0, 0])
        for i in range(1, n):
            for j in range(width):
                dense[i, j] -= dense[0, j]
        memset(&dense[0, 0], 0, width * sizeof(double))
        if pairs.pair_bounds is not None:
            memset(&curved[0, 0], 0, n * width * sizeof(double))
            pairs_listed = _listed(pairs, q)
            curve_listed(
                &pairs_listed, &scores[start], &dense[0, 0], width, &margins[0], &factors[0],
                margins.shape[0], &curved[0, 0],
            )
        else:
            roomy = _allocate(&room, pairs, q, q + 1, width)
            if roomy:
                graded = _graded(pairs, q)
                curve_graded_rows(
                    &room, &graded, &scores[start], &dense[0, 0], width, &margins[0], &factors[0],
                    margins.shape[0], &curvatures[start], &curved[0, 0],
                )
                free(room.block)
    if not roomy:
        raise MemoryError("not enough memory for the largest query")
