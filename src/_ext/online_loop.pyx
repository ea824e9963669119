"""One pass of any online learner over checked rows: the loop that every learner shares."""

from libc.stdint cimport int32_t, int64_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._learner cimport Learner, learner_of
from rankcore.core cimport rc_rows, rc_rows_get

cdef extern from "_ahead.h" nogil:
    void rc_fetch_next(const rc_rows *X, const int32_t *order, int64_t i, int64_t stop)


def learn(
    object bound not None,
    object rows not None,
    const int32_t[::1] ranks not None,
    const int32_t[::1] order,
    const double[::1] weights,
    int64_t start,
    int64_t stop,
    int64_t[::1] counts not None,
    const int64_t[::1] marks not None,
    int64_t[::1] losses not None,
):
    """Learn from the examples at positions start .. stop - 1.

    Parameters
    ----------
    bound : bound state of a kernel module
        In and out. The learner.
    rows : Rows
        In. Canonical.
    ranks : int32 array, shape (n_rows,)
        In. True ranks, 0 to n_ranks - 1.
    order : int32 array, or None
        In. Row at each position, of any number of positions; None for the rows as they come.
    weights : float64 array, shape (n_rows,), or None
        In. Weight of each row; None for weights of 1.
    start, stop : int
        In. Range of positions.
    counts : int64 array, shape (3,)
        In and out. Examples seen, their total rank loss, mistakes.
    marks : int64 array
        In. Ascending example counts at which to record the total loss.
    losses : int64 array, same length
        Out. Total rank loss after ``marks[i]`` examples, for the marks reached.

    Returns
    -------
    int
        ``stop``, or the position of the first example that could not be learned: its score
        overflowed, its row or rank does not exist, or the learner needs room first.
    """
    cdef Learner *learner = learner_of(bound)
    cdef const rc_rows *X = checked_rows(rows)
    cdef Py_ssize_t n_marks = marks.shape[0], mark = 0
    cdef int64_t i = start, row, predicted
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
        while mark < n_marks and marks[mark] <= learner.seen.t:
            mark += 1
        while i < stop:
            row = i
            if order is not None:
                rc_fetch_next(X, &order[0], i, stop)
                row = order[i]
                if not 0 <= row < X.n_rows:
                    break
            if weights is None:
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
    counts[0] = learner.seen.t
    counts[1] = learner.seen.rank_loss
    counts[2] = learner.seen.mistakes
    return i
