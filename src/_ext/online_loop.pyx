"""One pass of any online learner over checked rows: the loop shared by all learners."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._candidates cimport Candidates, follow_row, foresee
from rankcore._ext._checked cimport checked_rows
from rankcore._ext._moments cimport (
    rc_moments_add_rows, rc_n_nonzero, rc_standardize_rows, rc_standardized
)
from rankcore._ext.online_model cimport ROWS_AHEAD, Learner, OnlineModel, Standard
from rankcore.core cimport RC_FLOAT64, rc_row, rc_rows, rc_rows_get

cdef extern from "_ahead.h" nogil:
    void rc_fetch_next(const rc_rows *X, const int32_t *order, int64_t i, int64_t stop)

cdef extern from "_beyond.h" nogil:
    bint rc_any_beyond(const rc_row *x, double limit)


# Units are recomputed from the moments at each of the first rows, then whenever the number of rows
# is a power of two, and when a value lies farther from 0 than ``FAR``: only rows and counts decide.
cdef int64_t FIRST_ROWS = 16
cdef double FAR = 16.0
# Rows with larger values are not learned, as their squares overflow.
cdef double LARGEST = 1e150


cdef bint _add_together(
    Standard *s, const rc_rows *X, int64_t row, int64_t stop, const double *weights
) noexcept nogil:
    """Add several dense rows to the moments and standardise them, unless units are due meanwhile.

    They are standardised before they are added, so that the next rows change no units.
    """
    cdef int64_t rows = <int64_t> s.moments.totals[0], k, n = s.units.n_features
    cdef rc_row all_rows
    if not s.active or X.indptr != NULL or row + ROWS_AHEAD > stop:
        return False
    if rows < FIRST_ROWS or rows % ROWS_AHEAD or (rows + ROWS_AHEAD) & (rows + ROWS_AHEAD - 1) == 0:
        return False
    for k in range(ROWS_AHEAD):
        if weights != NULL and not weights[row + k] > 0:
            return False
    rc_standardize_rows(&s.units, X, row, row + ROWS_AHEAD, s.rows)
    all_rows.data = s.rows
    all_rows.indices = NULL
    all_rows.n = ROWS_AHEAD * n
    all_rows.dtype = RC_FLOAT64
    if rc_any_beyond(&all_rows, FAR):
        return False
    rc_moments_add_rows(&s.moments, X, weights, row, row + ROWS_AHEAD)
    s.ahead = s.ready = ROWS_AHEAD
    return True


cdef bint _add(
    Standard *s,
    const rc_rows *X, int64_t row, const double *weights,
    bint renews,  # whether units may be renewed
    bint huge,
) noexcept nogil:
    """Find whether a row makes units due, and add it to the moments; return whether it is added.

    It is not if it is too large, or if units that may not be renewed are due.
    """
    cdef double *totals = s.moments.totals
    cdef rc_row x = rc_rows_get(X, row)
    cdef bint counts = weights == NULL or weights[row] > 0
    cdef int64_t rows = <int64_t> totals[0] + counts
    cdef double values = totals[2]  # that are not 0
    if huge and rc_any_beyond(&x, LARGEST):
        return False
    s.due = rows <= FIRST_ROWS or rows & (rows - 1) == 0
    if not s.due and s.active:
        x = rc_standardized(&s.units, x, s.rows + (ROWS_AHEAD - 1) * s.units.n_features)
        s.due = rc_any_beyond(&x, FAR)
    elif not s.due:
        if counts:
            values += rc_n_nonzero(x)
        s.due = values * 8 > rows * s.moments.n_features and rc_any_beyond(&x, FAR)
    if s.due and not renews:
        s.due = False
        return False
    s.ready = s.active and not s.due
    rc_moments_add_rows(&s.moments, X, weights, row, row + 1)
    s.ahead = 1
    return True


cdef int64_t _learn(
    Learner *learner,
    Candidates *candidates,
    Standard *standard,
    bint follow,  # whether the moments follow the rows
    bint renews,  # whether units may be renewed; else end before a row that may require it
    bint huge,  # whether there are values beyond `LARGEST`
    const rc_rows *X,
    const int32_t *ranks,
    const int32_t *order,  # NULL for the rows as they come
    const double *weights,  # NULL for weights of 1
    int64_t start, int64_t stop,
    const int64_t *marks, int64_t n_marks, int64_t *losses,
) noexcept nogil:
    """Learn positions start .. stop - 1, as `learn`; return the first one not learned."""
    cdef int64_t i = start, mark = 0, row, predicted
    cdef rc_row x
    while mark < n_marks and marks[mark] <= learner.seen.t:
        mark += 1
    while i < stop:
        row = i
        if order != NULL:
            rc_fetch_next(X, order, i, stop)
            row = order[i]
            if not 0 <= row < X.n_rows:
                break
        if follow and standard.ahead == 0:
            if huge or order != NULL or not _add_together(standard, X, row, stop, weights):
                if not _add(standard, X, row, weights, renews, huge) or standard.due:
                    break
        x = rc_rows_get(X, row)
        if standard.ready:
            x.data = standard.rows + (ROWS_AHEAD - standard.ready) * X.n_features
            x.indices = NULL
            x.n = X.n_features
            x.dtype = RC_FLOAT64
        elif standard.active and not standard.done:
            x = rc_standardized(&standard.units, x, standard.rows)
        if candidates.active:
            foresee(candidates, x)
        if weights == NULL:
            predicted = learner.update(learner.state, x, ranks[row])
        else:
            predicted = learner.weighted(learner.state, x, ranks[row], weights[row])
        if predicted < 0:
            break
        if candidates.active:
            follow_row(candidates, x, ranks[row])
        if follow:
            standard.ahead -= 1
            standard.ready = min(standard.ready, standard.ahead)
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
    bint follow=True,  # whether moments follow the rows, if those of the model do
):
    """Learn from the examples at positions start .. stop - 1.

    Returns ``stop``, or the position of the first example that could not be learned: its score
    overflowed, its row or rank does not exist, or the model must be enlarged first.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_marks = marks.shape[0], reached
    if weights is not None and model.learner.weighted == NULL:
        raise ValueError("this learner does not support weights")
    if (
        not rows.canonical
        or model.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or (weights is not None and weights.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
        or losses.shape[0] != n_marks
    ):
        raise ValueError("rows, ranks, order, range and model are inconsistent")
    cdef bint huge = rows.largest > LARGEST
    reached = start
    while True:
        if follow and model.standard.due:
            _renew_units(model, params)
        model.begin(params)
        with nogil:
            reached = _learn(
                &model.learner, &model.candidates, &model.standard,
                follow and model.standard.follows, True, huge, X,
                &ranks[0] if ranks.shape[0] else NULL,
                &order[0] if order is not None and order.shape[0] else NULL,
                &weights[0] if weights is not None and weights.shape[0] else NULL,
                reached, stop,
                &marks[0] if n_marks else NULL, n_marks, &losses[0] if n_marks else NULL,
            )
        model.end()
        if not (follow and model.standard.due):
            return reached


cdef int _renew_units(OnlineModel model, object params) except -1:
    """Let the learner compute the units again, from the moments."""
    model.standard.due = False
    params._renew_units(model)
    return 0


def follow_rows(
    OnlineModel model not None,  # in and out
    object params not None,  # as for `learn`, as are the next four
    object rows not None,
    const int32_t[::1] order,
    const double[::1] weights,
    int64_t start,
    int64_t stop,
):
    """Add rows to the moments before they are learned; renew the units if they are due.

    Returns ``stop``, or the first position from which rows are to be learned in other units: the
    rows before it must be learned first. They are renewed when it is the ``start``. Returns -1 if
    the row at ``start`` has values that are too large.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef Standard *s = &model.standard
    cdef const double *first = NULL
    cdef int64_t i = start, row
    cdef bint huge = rows.largest > LARGEST
    if weights is not None and weights.shape[0]:
        first = &weights[0]
    if (
        model.n_features != X.n_features
        or (weights is not None and weights.shape[0] != X.n_rows)
        or not 0 <= start <= stop <= (X.n_rows if order is None else order.shape[0])
    ):
        raise ValueError("rows, order, weights, range and model are inconsistent")
    while i < stop and s.follows:
        if s.ahead == 0:
            row = i if order is None else order[i]
            if not 0 <= row < X.n_rows:
                raise ValueError(f"order has no row {row}")
            if huge or order is not None or not _add_together(s, X, row, stop, first):
                if not _add(s, X, row, first, True, huge):
                    return i if i > start else -1
        if s.due:
            if i > start:
                return i
            _renew_units(model, params)
        i += s.ahead
        s.ahead = s.ready = 0
    return stop


def learn_few(
    OnlineModel model not None,  # in and out
    object params not None,  # as for `learn`
    object rows not None,
    const int32_t[::1] ranks not None,
    # ascending example counts, of those to come, at which to record the total loss
    const int64_t[::1] marks not None,
    list record not None,  # in and out: examples, total rank loss and mistakes of the pass
    list curve not None,  # in and out: examples seen and total rank loss at all marks reached
):
    """Learn the rows in order; return the number learned, or -1.

    It ends early before a row that overflows, or after which units may be due, and returns -1 if
    an array of the model is no longer finite. Python handles signals between bytecodes, so that
    none comes between the rows that are learned and their counts.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t n_marks = marks.shape[0], i, reached
    if (
        not rows.canonical
        or model.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or len(record) != 3
    ):
        raise ValueError("rows, ranks, record and model are inconsistent")
    cdef int64_t *losses = <int64_t *> malloc((n_marks + 1) * sizeof(int64_t))
    if losses == NULL:
        raise MemoryError
    cdef bint huge = rows.largest > LARGEST
    cdef int64_t t = model.counts[0], rank_loss = model.counts[1], mistakes = model.counts[2]
    try:
        model.begin(params)
        with nogil:
            reached = _learn(
                &model.learner, &model.candidates, &model.standard, model.standard.follows,
                False, huge, X,
                &ranks[0] if X.n_rows else NULL, NULL, NULL, 0, X.n_rows,
                &marks[0] if n_marks else NULL, n_marks, losses,
            )
        for i in range(n_marks):
            if marks[i] <= model.learner.seen.t:
                curve.append((marks[i], losses[i]))
    finally:
        free(losses)
    record[0] += model.learner.seen.t - t
    record[1] += model.learner.seen.rank_loss - rank_loss
    record[2] += model.learner.seen.mistakes - mistakes
    model.end()
    if reached < X.n_rows:
        return reached
    cdef const int32_t *columns = NULL
    cdef int64_t n_columns = X.n_features
    if X.indptr != NULL and X.indptr[X.n_rows] < X.n_features:
        columns = X.indices
        n_columns = X.indptr[X.n_rows]
    return reached if model.finite(columns, n_columns) else -1
