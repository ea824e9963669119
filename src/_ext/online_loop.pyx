"""One pass of any online learner over checked rows: the loop shared by all learners."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._checked cimport checked_rows
from rankcore._ext.online_model cimport Learner, OnlineModel
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
    OnlineModel model not None,  # in and out
    object params not None,  # parameters of the rule, as attributes: the estimator
    object rows not None,  # canonical
    const int32_t[::1] ranks not None,  # (n_rows,): true ranks, 0 to n_ranks - 1
    # or None: row at each position, of any number of positions; None for the rows as they come
    const int32_t[::1] order,
    const double[::1] weights,  # (n_rows,), or None: weight of each row; None for weights of 1
    int64_t start,  # range of positions
    int64_t stop,
    const int64_t[::1] marks not None,  # ascending example counts at which to record the total loss
    # out, same length: total rank loss after ``marks[i]`` examples, for the marks reached
    int64_t[::1] losses not None,
):
    """Learn from the examples at positions start .. stop - 1.

    Returns ``stop``, or the position of the first example that could not be learned: its score
    overflowed, its row or rank does not exist, or the model must be enlarged first.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_marks = marks.shape[0], reached
    if weights is not None and model.learner.weighted == NULL:
        raise ValueError("this learner takes no weights")
    if (
        not rows.canonical
        or model.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or (weights is not None and weights.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
        or losses.shape[0] != n_marks
    ):
        raise ValueError("rows, ranks, order, range and model do not fit together")
    model.begin(params)
    with nogil:
        reached = _learn(
            &model.learner, X, &ranks[0] if ranks.shape[0] else NULL,
            &order[0] if order is not None and order.shape[0] else NULL,
            &weights[0] if weights is not None and weights.shape[0] else NULL,
            start, stop, &marks[0] if n_marks else NULL, n_marks, &losses[0] if n_marks else NULL,
        )
    model.end()
    return reached


def learn_few(
    OnlineModel model not None,  # in and out
    object params not None,  # as of `learn`
    object rows not None,
    const int32_t[::1] ranks not None,
    # ascending example counts, of those to come, at which to record the total loss
    const int64_t[::1] marks not None,
    list record not None,  # in and out: examples, total rank loss and mistakes of the pass
    list curve not None,  # in and out: examples seen and total rank loss at all marks reached
):
    """Learn the rows in order; return the number learned, as `learn`, or -1.

    It is -1 if an array of the model is no longer finite. Python handles signals between bytecodes,
    so that none comes between the rows that are learned and their counts.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_marks = marks.shape[0], i, reached
    if (
        not rows.canonical
        or model.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or len(record) != 3
    ):
        raise ValueError("rows, ranks, record and model do not fit together")
    cdef int64_t *losses = <int64_t *> malloc((n_marks + 1) * sizeof(int64_t))
    if losses == NULL:
        raise MemoryError
    try:
        model.begin(params)
        with nogil:
            reached = _learn(
                &model.learner, X, &ranks[0] if X.n_rows else NULL, NULL, NULL, 0, X.n_rows,
                &marks[0] if n_marks else NULL, n_marks, losses,
            )
        for i in range(n_marks):
            if marks[i] <= model.learner.seen.t:
                curve.append((marks[i], losses[i]))
    finally:
        free(losses)
    record[0] += model.learner.seen.t - model.counts[0]
    record[1] += model.learner.seen.rank_loss - model.counts[1]
    record[2] += model.learner.seen.mistakes - model.counts[2]
    model.end()
    if reached < X.n_rows:
        return reached
    cdef const int32_t *columns = NULL
    cdef int64_t n_columns = X.n_features
    if X.indptr != NULL and X.indptr[X.n_rows] < X.n_features:
        columns = X.indices
        n_columns = X.indptr[X.n_rows]
    return reached if model.finite(columns, n_columns) else -1
