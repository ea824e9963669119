"""One pass of any online learner over checked rows: the loop shared by all learners."""

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS,
    PyBUF_FORMAT,
    PyBUF_WRITABLE,
    PyBuffer_Release,
    PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals
from cython cimport final
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._learner cimport Learner, learner_of
from rankcore.core cimport rc_counts, rc_rows, rc_rows_get

cdef extern from "_ahead.h" nogil:
    void rc_fetch_next(const rc_rows *X, const int32_t *order, int64_t i, int64_t stop)


# Arrays of a state that `learn_whole` learns.
cdef enum:
    MOST_ARRAYS = 8


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


cdef struct Part:
    double *values
    int64_t width  # values of each column, or all of an array without columns
    int64_t n_columns  # 1 without columns
    bint by_column
    bint real  # or integers, of the same size


@final
cdef class Undo:
    """Backup of the parts of a state's arrays that learning some rows may change.

    All arrays have items of 8 bytes, so that all are copied as doubles.
    """

    cdef Py_buffer views[MOST_ARRAYS]
    cdef Part parts[MOST_ARRAYS]
    cdef int n_parts
    cdef const int32_t *columns  # NULL for all columns
    cdef int64_t n_columns
    cdef int64_t size  # of the copies
    cdef double *room

    def __dealloc__(self):
        cdef int i
        for i in range(self.n_parts):
            PyBuffer_Release(&self.views[i])
        free(self.room)

    cdef int add(self, object array, int64_t n_features, bint by_feature) except -1:
        """Register an array; the first axis of a by-feature array is that of the columns."""
        cdef Py_buffer *view = &self.views[self.n_parts]
        cdef Part *part = &self.parts[self.n_parts]
        if self.n_parts == MOST_ARRAYS:
            raise ValueError(f"a state has at most {MOST_ARRAYS} arrays")
        PyObject_GetBuffer(array, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        self.n_parts += 1
        if view.itemsize != 8 or (by_feature and view.shape[0] != n_features):
            raise ValueError("the arrays of a state do not fit together")
        part.values = <double *> view.buf
        part.by_column = by_feature and self.columns != NULL
        part.width = view.len // 8 // (n_features if part.by_column else 1)
        part.n_columns = self.n_columns if part.by_column else 1
        part.real = view.format[0] == b"d"
        self.size += part.width * part.n_columns
        return 0

    cdef int keep(self) except -1:
        """Copy the registered values."""
        self.room = <double *> malloc((self.size + 1) * sizeof(double))
        if self.room == NULL:
            raise MemoryError
        self.copy(False)
        return 0

    cdef void copy(self, bint back) noexcept nogil:
        """Copy the state, or restore the copy."""
        cdef int i
        cdef int64_t k, at
        cdef double *kept = self.room
        cdef Part part
        for i in range(self.n_parts):
            part = self.parts[i]
            for k in range(part.n_columns):
                at = self.columns[k] * part.width if part.by_column else 0
                if back:
                    memcpy(part.values + at, kept, part.width * sizeof(double))
                else:
                    memcpy(kept, part.values + at, part.width * sizeof(double))
                kept += part.width

    cdef bint is_finite(self) noexcept nogil:
        """Whether all values that may have changed are finite."""
        cdef int i
        cdef int64_t k, j, at
        cdef double sum = 0
        cdef Part part
        for i in range(self.n_parts):
            part = self.parts[i]
            if not part.real:
                continue
            for k in range(part.n_columns):
                at = self.columns[k] * part.width if part.by_column else 0
                for j in range(part.width):
                    sum += part.values[at + j] - part.values[at + j]
        return sum == 0


def learn_whole(
    # in and out: with its version, counts, latest figures of the log and loss curve. All its arrays
    # are by feature, with that axis first, or without one.
    object state not None,
    object bound not None,  # in and out, bound state of a kernel module: the same arrays
    object rows not None,  # as of `learn`
    const int32_t[::1] ranks not None,
    # ascending example counts, of those to come, at which to record the total loss
    const int64_t[::1] marks not None,
):
    """Learn rows in order, all of them or none, in one step.

    Python runs signal handlers between bytecodes, and other threads see an odd version during the
    call, so that no signal is deferred and no intermediate state is visible. Received signals are
    handled at the end; if a handler raises, nothing has changed.

    Returns False, with nothing changed, if a row could not be learned, or an array would not be
    finite.
    """
    cdef Learner *learner = learner_of(bound)
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t[::1] counts = state.counts
    cdef int64_t n_marks = marks.shape[0], n_curve = len(state.curve), i
    cdef int64_t *losses
    cdef list log = state.log, curve = state.curve, record = log[len(log) - 1]
    cdef Undo undo = Undo()
    cdef bint learned
    if (
        not rows.canonical
        or learner.n_features != X.n_features
        or ranks.shape[0] != X.n_rows
        or counts.shape[0] != 3
        or len(record) != 3
    ):
        raise ValueError("rows, ranks and state do not fit together")
    if X.indptr != NULL and X.indptr[X.n_rows] < X.n_features:
        undo.columns, undo.n_columns = X.indices, X.indptr[X.n_rows]
    for array in state.by_feature.values():
        undo.add(array, X.n_features, True)
    for array in state.others.values():
        undo.add(array, X.n_features, False)
    undo.keep()
    losses = <int64_t *> malloc((n_marks + 1) * sizeof(int64_t))
    if losses == NULL:
        raise MemoryError
    cdef rc_counts before
    before.t, before.rank_loss, before.mistakes = counts[0], counts[1], counts[2]
    cdef list figures = list(record)
    learner.seen[0] = before
    state.version += 1
    try:
        with nogil:
            learned = X.n_rows == _learn(
                learner, X, &ranks[0] if X.n_rows else NULL, NULL, NULL, 0, X.n_rows,
                &marks[0] if n_marks else NULL, n_marks, losses,
            ) and undo.is_finite()
            if not learned:
                undo.copy(True)
        if learned:
            counts[0] = learner.seen.t
            counts[1] = learner.seen.rank_loss
            counts[2] = learner.seen.mistakes
            record[0] += learner.seen.t - before.t
            record[1] += learner.seen.rank_loss - before.rank_loss
            record[2] += learner.seen.mistakes - before.mistakes
            for i in range(n_marks):
                curve.append((marks[i], losses[i]))
        PyErr_CheckSignals()
    except BaseException:
        undo.copy(True)
        counts[0], counts[1], counts[2] = before.t, before.rank_loss, before.mistakes
        record[:] = figures
        del curve[n_curve:]
        raise
    finally:
        state.version += 1
        free(losses)
    return learned
