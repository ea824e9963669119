"""One pass of any online learner over checked rows: the loop shared by all learners."""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._learner cimport Learner, learner_of
from rankcore.core cimport rc_rows, rc_rows_get

cdef extern from "_ahead.h" nogil:
    void rc_fetch_next(const rc_rows *X, const int32_t *order, int64_t i, int64_t stop)


cdef int64_t _learn(
    Learner *learner,
    const rc_rows *X,
    const int32_t *ranks,
    const int32_t *order,  # NULL for the rows as they come
    const double *weights,  # NULL for weights of 1
    int64_t start, int64_t stop,
    const int64_t *marks, int64_t n_marks, int64_t *losses,
) noexcept nogil:
    """Learn positions start .. stop - 1, as `learn`; return the first one not learned."""
    cdef int64_t i = start, mark = 0, row, predicted
    while mark < n_marks and marks[mark] <= learner.seen.t:
        mark += 1
    while i < stop:
        row = i
        if order != NULL:
            rc_fetch_next(X, order, i, stop)
            row = order[i]
            if not 0 <= row < X.n_rows:
                break
        if weights == NULL:
            predicted = learner.update(learner.state, rc_rows_get(X, row), ranks[row])
        else:
            predicted = learner.weighted(
                learner.state, rc_rows_get(X, row), ranks[row], weights[row]
            )
        if predicted < 0:
            break
        i += 1
        if mark < n_marks and learner.seen.t == marks[mark]:
            losses[mark] = learner.seen.rank_loss
            mark += 1
    return i


def learn(
    object bound not None,  # in and out, bound state of a kernel module: the learner
    object rows not None,  # canonical
    const int32_t[::1] ranks not None,  # (n_rows,): true ranks, 0 to n_ranks - 1
    # or None: row at each position, of any number of positions; None for the rows as they come
    const int32_t[::1] order,
    const double[::1] weights,  # (n_rows,), or None: weight of each row; None for weights of 1
    int64_t start,  # range of positions
    int64_t stop,
    # in and out, (3,): examples seen, their total rank loss, mistakes
    int64_t[::1] counts not None,
    const int64_t[::1] marks not None,  # ascending example counts at which to record the total loss
    # out, same length: total rank loss after ``marks[i]`` examples, for the marks reached
    int64_t[::1] losses not None,
):
    """Learn from the examples at positions start .. stop - 1.

    Returns ``stop``, or the position of the first example that could not be learned: its score
    overflowed, its row or rank does not exist, or the learner must be enlarged first.
    """
    cdef Learner *learner = learner_of(bound)
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_marks = marks.shape[0], reached
    if weights is not None and learner.weighted == NULL:
        raise ValueError("this learner takes no weights")
    if (
        not rows.canonical
        or learner.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or (weights is not None and weights.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
        or losses.shape[0] != n_marks
        or counts.shape[0] != 3
    ):
        raise ValueError("rows, ranks, order, range and state do not fit together")
    learner.seen.t = counts[0]
    learner.seen.rank_loss = counts[1]
    learner.seen.mistakes = counts[2]
    with nogil:
        reached = _learn(
            learner, X, &ranks[0] if ranks.shape[0] else NULL,
            &order[0] if order is not None and order.shape[0] else NULL,
            &weights[0] if weights is not None and weights.shape[0] else NULL,
            start, stop, &marks[0] if n_marks else NULL, n_marks, &losses[0] if n_marks else NULL,
        )
    counts[0] = learner.seen.t
    counts[1] = learner.seen.rank_loss
    counts[2] = learner.seen.mistakes
    return reached


def learn_few(
    # in and out: its counts, the latest statistics of its log, and its loss curve
    object state not None,
    object bound not None,  # in and out, bound state of a kernel module: the arrays of the state
    object rows not None,  # as of `learn`
    const int32_t[::1] ranks not None,
    # ascending example counts, of those to come, at which to record the total loss
    const int64_t[::1] marks not None,
):
    """Learn the rows in order; return the number learned, as `learn`, or -1.

    It is -1 if an array of the state is no longer finite. Python handles signals between bytecodes,
    so that none comes between the rows that are learned and their counts.
    """
    cdef Learner *learner = learner_of(bound)
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t[::1] counts = state.counts
    cdef int64_t n_marks = marks.shape[0], i, reached
    cdef list curve = state.curve, record = state.log[len(state.log) - 1]
    if (
        not rows.canonical
        or learner.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or counts.shape[0] != 3
        or len(record) != 3
    ):
        raise ValueError("rows, ranks and state do not fit together")
    cdef int64_t *losses = <int64_t *> malloc((n_marks + 1) * sizeof(int64_t))
    if losses == NULL:
        raise MemoryError
    learner.seen.t = counts[0]
    learner.seen.rank_loss = counts[1]
    learner.seen.mistakes = counts[2]
    with nogil:
        reached = _learn(
            learner, X, &ranks[0] if X.n_rows else NULL, NULL, NULL, 0, X.n_rows,
            &marks[0] if n_marks else NULL, n_marks, losses,
        )
    record[0] += learner.seen.t - counts[0]
    record[1] += learner.seen.rank_loss - counts[1]
    record[2] += learner.seen.mistakes - counts[2]
    counts[0] = learner.seen.t
    counts[1] = learner.seen.rank_loss
    counts[2] = learner.seen.mistakes
    for i in range(n_marks):
        if marks[i] <= counts[0]:
            curve.append((marks[i], losses[i]))
    free(losses)
    if reached < X.n_rows:
        return reached
    cdef const int32_t *columns = NULL
    cdef int64_t n_columns = X.n_features
    if X.indptr != NULL and X.indptr[X.n_rows] < X.n_features:
        columns = X.indices
        n_columns = X.indptr[X.n_rows]
    for array in state.by_feature.values():
        if not is_finite(array, columns, n_columns, X.n_features):
            return -1
    for array in state.others.values():
        if not is_finite(array, NULL, 1, 1):
            return -1
    return reached


cdef bint is_finite(object array, const int32_t *columns, int64_t n, int64_t n_features) except -1:
    """Return whether some columns of an array, its first axis, are finite; of integers, 1."""
    cdef Py_buffer view
    cdef int64_t width, k, i
    cdef const double *at
    cdef double sum = 0  # NaN if a value is infinite or NaN
    PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)
    if view.format[0] == b"d":
        width = view.len // 8 // n_features
        for k in range(n):
            at = <const double *> view.buf + (k if columns == NULL else columns[k]) * width
            for i in range(width):
                sum += at[i] - at[i]
    PyBuffer_Release(&view)
    return sum == 0
