"""Online ordinal learners.

PRank (Crammer and Singer, "Pranking with Ranking", NIPS 2001, figure 2): one direction w and
ordered thresholds b. The rank of x is the number of thresholds that w.x reaches; a mistake moves
every threshold on the wrong side of w.x by one step, and w by their sum times x.

Why the thresholds are integers. The proof that they stay ordered needs b_r < b_{r+1} to imply
b_r + 1 <= b_{r+1}, which only holds on a lattice. The state therefore stores integer ``steps``;
the thresholds compared with the score are ``scale * steps``, a monotone product, so their order
survives rounding for every scale.

Why the average is lazy. Summing w after each example costs n_features. Instead each update adds
(examples before it) * change to a second vector; the average over t examples is then
w - sums / t (Collins 2002; Daume 2006).
"""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._checked cimport checked_rows
from rankcore.core cimport (
    RC_TIE_CRAMMER,
    RC_TIE_STRICT,
    rc_axpy,
    rc_dot,
    rc_prank_state,
    rc_rank,
    rc_row,
    rc_rows,
    rc_rows_get,
)


cdef int32_t prank_update(rc_prank_state *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double score = rc_dot(x, m.weights), b
    cdef int32_t predicted, r, step, change = 0, ties_err = m.tie == RC_TIE_CRAMMER
    if score - score != 0:
        return -1
    predicted = rc_rank(m.thresholds, m.n_ranks, score)
    if predicted != rank:
        # Arithmetic, not branches: which threshold errs is as unpredictable as the label.
        for r in range(m.n_ranks - 1):
            b = m.thresholds[r]
            step = ((r < rank) & ((score < b) | (ties_err & (score == b)))) - (
                (r >= rank) & (score >= b)
            )
            change += step
            m.steps[r] -= step
            m.thresholds[r] = m.scale * <double> m.steps[r]
            if m.step_sums != NULL:
                m.step_sums[r] -= m.t * step
        if change:
            rc_axpy(x, change, m.weights)
            if m.weight_sums != NULL:
                rc_axpy(x, <double> m.t * change, m.weight_sums)
        m.mistakes += 1
        m.rank_loss += predicted - rank if predicted > rank else rank - predicted
    m.t += 1
    return predicted


cdef void prank_average(
    const rc_prank_state *m, double *weights, double *thresholds
) noexcept nogil:
    cdef int64_t i
    cdef double t = <double> (m.t if m.t else 1)
    for i in range(m.n_features):
        weights[i] = m.weights[i] - m.weight_sums[i] / t
    # One division of exact integers, so that equal averages come out equal and order survives.
    for i in range(m.n_ranks - 1):
        thresholds[i] = m.scale * (<double> (m.steps[i] * m.t - m.step_sums[i]) / t)


cdef int _fill_state(
    rc_prank_state *m, double[::1] weights, int64_t[::1] steps, double[::1] thresholds,
    double[::1] weight_sums, int64_t[::1] step_sums, int64_t[::1] counts, double scale, bint strict,
) except -1:
    cdef Py_ssize_t n_thresholds = steps.shape[0]
    if (
        n_thresholds < 1
        or thresholds.shape[0] != n_thresholds
        or counts.shape[0] != 3
        or (weight_sums is None) != (step_sums is None)
        or (weight_sums is not None and weight_sums.shape[0] != weights.shape[0])
        or (step_sums is not None and step_sums.shape[0] != n_thresholds)
    ):
        raise ValueError("the arrays of a PRank state do not fit together")
    m.n_features = weights.shape[0]
    m.n_ranks = <int32_t> n_thresholds + 1
    m.weights = &weights[0] if weights.shape[0] else NULL
    m.steps = &steps[0]
    m.thresholds = &thresholds[0]
    m.weight_sums = NULL
    m.step_sums = NULL
    if weight_sums is not None:
        m.weight_sums = &weight_sums[0] if weight_sums.shape[0] else NULL
        m.step_sums = &step_sums[0]
    m.scale = scale
    m.tie = RC_TIE_STRICT if strict else RC_TIE_CRAMMER
    m.t = counts[0]
    m.rank_loss = counts[1]
    m.mistakes = counts[2]
    return 0


def prank_learn(
    object rows not None,
    const int32_t[::1] ranks not None,
    const int32_t[::1] order,
    int64_t start,
    int64_t stop,
    double[::1] weights not None,
    int64_t[::1] steps not None,
    double[::1] thresholds not None,
    double[::1] weight_sums,
    int64_t[::1] step_sums,
    int64_t[::1] counts not None,
    double scale,
    bint strict,
    const int64_t[::1] marks not None,
    int64_t[::1] losses not None,
):
    """One online pass of PRank over the examples at positions start .. stop - 1.

    Parameters
    ----------
    rows : Rows
        In. Canonical.
    ranks : int32 array, shape (n_rows,)
        In. True ranks, 0 to n_ranks - 1.
    order : int32 array, shape (n_rows,), or None
        In. Row at each position; None for the rows as they come.
    start, stop : int
        In. 0 <= start <= stop <= n_rows.
    weights, steps, thresholds, weight_sums, step_sums : arrays
        In and out. The state (see ``rc_prank_state``); both sums None unless averaging.
    counts : int64 array, shape (3,)
        In and out. Examples seen, their total rank loss, mistakes.
    scale : float
        In. Distance of neighbouring lattice thresholds.
    strict : bool
        In. Whether a threshold that the score hits exactly stays.
    marks : int64 array
        In. Ascending example counts at which to record the total loss.
    losses : int64 array, same length
        Out. Total rank loss after ``marks[i]`` examples, for the marks reached.

    Returns
    -------
    int
        ``stop``, or the position whose projection overflowed (its example was not learned).
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_prank_state m
    cdef Py_ssize_t n_marks = marks.shape[0], mark = 0
    cdef int64_t i = start, row
    _fill_state(
        &m, weights, steps, thresholds, weight_sums, step_sums, counts, scale, strict
    )
    if (
        not rows.canonical
        or m.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or (order is not None and order.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= X.n_rows
        or losses.shape[0] != n_marks
    ):
        raise ValueError("rows, ranks, order, range and state do not fit together")
    with nogil:
        while mark < n_marks and marks[mark] <= m.t:
            mark += 1
        while i < stop:
            row = i
            if order is not None:
                row = order[i]
                if not 0 <= row < X.n_rows:
                    break
            if prank_update(&m, rc_rows_get(X, row), ranks[row]) < 0:
                break
            i += 1
            if mark < n_marks and m.t == marks[mark]:
                losses[mark] = m.rank_loss
                mark += 1
    counts[0] = m.t
    counts[1] = m.rank_loss
    counts[2] = m.mistakes
    return i


def prank_mean(
    const double[::1] weights not None,
    const int64_t[::1] steps not None,
    const double[::1] weight_sums not None,
    const int64_t[::1] step_sums not None,
    int64_t t,
    double scale,
    double[::1] mean_weights not None,
    double[::1] mean_thresholds not None,
):
    """Write the averages over the t examples seen. O(n_features + n_ranks).

    Parameters
    ----------
    weights, steps, weight_sums, step_sums : arrays
        In. The state (see ``rc_prank_state``).
    t : int
        In. Examples seen.
    scale : float
        In. Distance of neighbouring lattice thresholds.
    mean_weights, mean_thresholds : float64 arrays, shapes of weights and steps
        Out.
    """
    cdef rc_prank_state m
    cdef Py_ssize_t n_thresholds = steps.shape[0]
    if (
        weight_sums.shape[0] != weights.shape[0]
        or mean_weights.shape[0] != weights.shape[0]
        or step_sums.shape[0] != n_thresholds
        or mean_thresholds.shape[0] != n_thresholds
        or n_thresholds < 1
    ):
        raise ValueError("the arrays of a PRank state do not fit together")
    # The state struct is shared with the updates, which write; averaging only reads.
    m.n_features = weights.shape[0]
    m.n_ranks = <int32_t> n_thresholds + 1
    m.weights = <double *> &weights[0] if weights.shape[0] else NULL
    m.steps = <int64_t *> &steps[0]
    m.weight_sums = <double *> &weight_sums[0] if weights.shape[0] else NULL
    m.step_sums = <int64_t *> &step_sums[0]
    m.t = t
    m.scale = scale
    with nogil:
        prank_average(
            &m, &mean_weights[0] if mean_weights.shape[0] else NULL, &mean_thresholds[0]
        )


def threshold_ranks(
    const double[::1] scores not None,
    const double[::1] thresholds not None,
    int32_t[::1] out not None,
):
    """Write each score's rank: how many thresholds it reaches. O(n log n_ranks).

    Parameters
    ----------
    scores : float64 array, shape (n,)
        In.
    thresholds : float64 array, shape (n_ranks - 1,)
        In. Ascending.
    out : int32 array, shape (n,)
        Out.
    """
    cdef Py_ssize_t i
    cdef int32_t n_ranks = <int32_t> thresholds.shape[0] + 1
    if out.shape[0] != scores.shape[0] or n_ranks < 2:
        raise ValueError("scores, thresholds and out do not fit together")
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = rc_rank(&thresholds[0], n_ranks, scores[i])


# What capi.pyx puts into the C function table.
c_functions = {
    "prank_update": PyCapsule_New(<void *> &prank_update, "prank_update", NULL),
    "prank_average": PyCapsule_New(<void *> &prank_average, "prank_average", NULL),
}
