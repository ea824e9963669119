# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""The update of margin_prank.py on rows in place, dense or sparse, without Python."""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t
from rankcore.core cimport rc_axpy, rc_dot, rc_row, rc_rows, rc_rows_get


cdef struct margin_state:
    double *weights
    int64_t *steps
    double *weight_sums  # NULL without averages, as the next
    int64_t *step_sums
    int64_t t
    int32_t n_ranks
    double margin
    double scale


cdef int32_t margin_update(margin_state *m, rc_row x, int32_t rank) noexcept nogil:
    """Predict, learn, count; the prediction, or -1 if the score overflowed."""
    cdef double score = rc_dot(x, m.weights), threshold
    cdef int32_t r, move, change = 0, predicted = 0
    if score - score != 0:
        return -1
    for r in range(m.n_ranks - 1):
        threshold = m.scale * <double> m.steps[r]
        predicted += score >= threshold
        if r < rank:
            move = score - threshold <= m.margin
        else:
            move = -(threshold - score <= m.margin)
        change += move
        m.steps[r] -= move
        if m.step_sums != NULL:
            m.step_sums[r] -= m.t * move
    if change:
        rc_axpy(x, change, m.weights)
        if m.weight_sums != NULL:
            rc_axpy(x, <double> m.t * change, m.weight_sums)
    m.t += 1
    return predicted


def learn(
    object capsule not None,
    const int32_t[::1] ranks not None,
    const int32_t[::1] order not None,
    double[::1] weights not None,
    int64_t[::1] steps not None,
    double[::1] weight_sums,
    int64_t[::1] step_sums,
    int64_t t,
    double margin,
    double scale,
    int32_t[::1] predicted not None,
):
    """Learn rows in an order; the number learned, less than all if a score overflowed."""
    cdef rc_rows *X = <rc_rows *> PyCapsule_GetPointer(capsule, "rankcore.rows")
    cdef margin_state m
    cdef int64_t i, n = order.shape[0]
    if weights.shape[0] != X.n_features or ranks.shape[0] != X.n_rows or steps.shape[0] < 1:
        raise ValueError("rows, ranks and arrays do not fit together")
    if predicted.shape[0] != n or (weight_sums is None) != (step_sums is None):
        raise ValueError("predicted must be as long as order, and sums must be two or none")
    if weight_sums is not None and (
        weight_sums.shape[0] != weights.shape[0] or step_sums.shape[0] != steps.shape[0]
    ):
        raise ValueError("sums must be as long as their arrays")
    for i in range(n):
        if not 0 <= order[i] < X.n_rows:
            raise ValueError("order must hold numbers of rows")
    m.weights, m.steps = &weights[0], &steps[0]
    m.weight_sums = NULL if weight_sums is None else &weight_sums[0]
    m.step_sums = NULL if step_sums is None else &step_sums[0]
    m.t, m.margin, m.scale = t, margin, scale
    m.n_ranks = <int32_t> steps.shape[0] + 1
    i = 0
    with nogil:
        while i < n:
            predicted[i] = margin_update(&m, rc_rows_get(X, order[i]), ranks[order[i]])
            if predicted[i] < 0:
                break
            i += 1
    return i
