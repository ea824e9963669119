"""Probabilities of ranks from the scores of `rankcore.OrdinalBoost`, and derivatives of its loss.

With a score s_j for each rank j above the lowest, log(p_j / p_{j-1}) = s_j (adjacent), or P(rank >=
j) = 1 / (1 + exp(-s_j)) (cumulative, of a shared score only). ``scores`` has one row f, shared by
all tasks, and s_j = f - b_j, or rows g_1 .. g_{k-1}, and s_j = g_j - b_j; both are sums of trees.

Arrays: ``scores`` (n_scores, n), so that the trees of one score write along a line; probabilities
(n, k), one line per row; gradients (minus first derivatives) and hessians (n,). A row costs O(k),
and O(k^2) where second derivatives of all scores or biases are required. Functions take a range of
rows, which threads divide; sums are in the order of the rows.
"""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "rankcore_ordinal.h" nogil:
    ctypedef struct rc_tasks:
        const double *biases
        int32_t n_ranks
        int32_t shared
        int32_t cumulative

    void rc_tasks_probabilities(
        const rc_tasks *tasks, const double *scores, int64_t apart, double *p, double *above,
        double *below,
    ) noexcept


cdef enum:
    MOST_RANKS = 1024

MAX_RANKS = MOST_RANKS

ctypedef struct Row:
    double p[MOST_RANKS]  # probability of each rank
    double above[MOST_RANKS]  # P(rank >= j)
    double below[MOST_RANKS]  # P(rank < j)


ctypedef struct Form:
    rc_tasks tasks
    int64_t k, m, n
    const double *scores


cdef int _check(
    Form *form, const double[:, ::1] scores, const double[::1] biases, bint shared, bint cumulative
) except -1:
    form.k = biases.shape[0] + 1
    form.m, form.n = scores.shape[0], scores.shape[1]
    form.tasks.shared, form.tasks.cumulative = shared, cumulative
    form.tasks.biases, form.tasks.n_ranks = &biases[0], <int32_t> form.k
    form.scores = &scores[0, 0]
    if (
        not 2 <= form.k <= MOST_RANKS
        or form.m != (1 if shared else form.k - 1)
        or (cumulative and not shared)
        or form.n == 0
    ):
        raise ValueError("the scores do not match the biases")
    return 0


def probabilities(
    const double[:, ::1] scores not None,  # (1, n) if ``shared``, else (k - 1, n)
    const double[::1] biases not None,  # (k - 1,)
    bint shared,
    bint cumulative,
    int64_t start,  # range of rows
    int64_t stop,
    double[:, ::1] out not None,  # out, (n, k): probability of each rank
    const int32_t[::1] ranks=None,  # (n,), or None: the true rank of each row,
    double[::1] own=None,  # out, (n,): and its probability
):
    """Write probabilities of ranks. O(n k)."""
    cdef Form form
    cdef int64_t i
    if scores.shape[1] == 0:
        return
    _check(&form, scores, biases, shared, cumulative)
    if out.shape[0] != form.n or out.shape[1] != form.k or not 0 <= start <= stop <= form.n:
        raise ValueError("the table does not match the scores")
    if ranks is not None:
        _check_table(out, ranks, own, start, stop)
        if own is None:
            raise ValueError("ranks require an array for their probabilities")
    with nogil:
        for i in range(start, stop):
            rc_tasks_probabilities(
                &form.tasks, form.scores + i, form.n, &out[i, 0], NULL, NULL
            )
            if ranks is not None:
                own[i] = out[i, ranks[i]]


def add_values(
    double[:, ::1] scores not None,  # in and out, (m, n)
    const double[:, ::1] values not None,  # (m, n_leaves): the value of each leaf
    const int32_t[::1] leaf_of not None,  # (n,): the leaf of each row
    int64_t start,  # range of rows
    int64_t stop,
):
    """Add the values of leaves to the scores of rows. O(m n)."""
    cdef int64_t i, task, m = scores.shape[0], n = scores.shape[1]
    cdef double *line
    cdef const double *of_leaves
    if values.shape[0] != m or leaf_of.shape[0] != n or not 0 <= start <= stop <= n:
        raise ValueError("the values do not match the scores")
    for i in range(start, stop):
        if not 0 <= leaf_of[i] < values.shape[1]:
            raise ValueError(f"row {i} has the leaf {leaf_of[i]} of {values.shape[1]}")
    with nogil:
        for task in range(m):
            line, of_leaves = &scores[task, 0], &values[task, 0]
            for i in range(start, stop):
                line[i] += of_leaves[leaf_of[i]]


cdef void _add_to_biases(
    const Form *form, const Row *row, int64_t y, double w, double *gradients, double *hessians
) noexcept nogil:
    """Add a row's terms for the biases: minus the gradient, and the Hessian, of its loss."""
    cdef int64_t j, other, d = form.k - 1
    cdef double up, down, p, f, both
    if not form.tasks.cumulative:
        for j in range(1, form.k):
            gradients[j - 1] += w * (row.above[j] - (1.0 if y >= j else 0.0))
            for other in range(j, form.k):
                hessians[(j - 1) * d + other - 1] += w * row.above[other] * row.below[j]
        return
    # Of -log(F_upper - F_lower), where F = P(rank < j) grows with b_j.
    p = max(row.p[y], 1e-300)
    up = row.below[y + 1] * row.above[y + 1] / p if y < d else 0.0
    down = row.below[y] * row.above[y] / p if y > 0 else 0.0
    both = up * down
    if y < d:
        f = 1.0 - 2.0 * row.below[y + 1]
        gradients[y] += w * up
        hessians[y * d + y] += w * max(up * (up - f), 0.0)
    if y > 0:
        f = 1.0 - 2.0 * row.below[y]
        gradients[y - 1] -= w * down
        hessians[(y - 1) * d + y - 1] += w * max(down * (down + f), 0.0)
        if y < d:
            hessians[(y - 1) * d + y] -= w * both


def differentiate(
    const double[:, ::1] scores not None,  # (1, n)
    const double[::1] biases not None,  # (k - 1,)
    bint shared,  # if not, the score is that of the only task
    bint cumulative,
    const int32_t[::1] ranks not None,  # (n,): the true rank of each row
    const double[::1] weights,  # (n,), or None: all are 1
    # out, each (n,): minus the derivative of each row's loss by the score, and the second one
    double[::1] gradients not None,
    double[::1] hessians not None,
    # out, (k - 1,) and (k - 1, k - 1), or None: minus the derivatives of the whole loss by biases,
    # and the upper triangle of the second ones
    double[::1] bias_gradient,
    double[:, ::1] bias_hessian,
):
    """Differentiate the loss, minus the weighted log-likelihood, by one score; return the loss.

    O(n k), and O(n k^2) with those of the biases. Sums are in the order of the rows.
    """
    cdef Form form
    cdef Row row
    cdef int64_t i, j, y
    cdef double w, loss = 0.0, mean, spread, p
    cdef bint fits
    _check(&form, scores, biases, shared, cumulative)
    fits = (
        ranks.shape[0] == gradients.shape[0] == hessians.shape[0] == form.n
        and form.m == 1
        and (weights is None or weights.shape[0] == form.n)
        and (bias_gradient is None) == (bias_hessian is None)
        and (bias_gradient is None or (
            bias_gradient.shape[0] == bias_hessian.shape[0] == form.k - 1
            and bias_hessian.shape[1] == form.k - 1
        ))
    )
    for i in range(form.n if fits else 0):
        fits = fits and 0 <= ranks[i] < form.k
    if not fits:
        raise ValueError("the ranks and derivatives do not match the scores")
    with nogil:
        if bias_gradient is not None:
            for j in range(form.k - 1):
                bias_gradient[j] = 0.0
                for i in range(form.k - 1):
                    bias_hessian[j, i] = 0.0
        for i in range(form.n):
            rc_tasks_probabilities(
                &form.tasks, form.scores + i, form.n, row.p, row.above, row.below
            )
            y = ranks[i]
            w = 1.0 if weights is None else weights[i]
            loss -= w * log(max(row.p[y], 1e-300))
            if form.tasks.cumulative:
                # 1 - F_y - F_{y-1}, with F the distribution: 0 before the first, 1 at the last.
                p = row.above[y + 1] if y < form.k - 1 else 0.0
                gradients[i] = w * (row.below[y] - p)
                mean = p * row.below[y + 1] if y < form.k - 1 else 0.0
                hessians[i] = w * (mean + row.below[y] * row.above[y])
            elif shared:
                mean = 0.0
                for j in range(1, form.k):
                    mean += row.above[j]
                spread = 0.0
                for j in range(form.k):
                    spread += (j - mean) * (j - mean) * row.p[j]
                gradients[i] = w * (y - mean)
                hessians[i] = w * spread
            else:
                p = row.above[1]
                gradients[i] = w * (row.below[1] if y >= 1 else -p)
                hessians[i] = w * p * row.below[1]
            if bias_gradient is not None:
                _add_to_biases(&form, &row, y, w, &bias_gradient[0], &bias_hessian[0, 0])
    return loss


cdef int _check_table(
    const double[:, ::1] table, const int32_t[::1] ranks, const double[::1] weights,
    int64_t start, int64_t stop,
) except -1:
    cdef int64_t i, n = table.shape[0], k = table.shape[1]
    if (
        not 2 <= k <= MOST_RANKS
        or ranks.shape[0] != n
        or (weights is not None and weights.shape[0] != n)
        or not 0 <= start <= stop <= n
    ):
        raise ValueError("the ranks do not match the probabilities")
    for i in range(start, stop):
        if not 0 <= ranks[i] < k:
            raise ValueError(f"row {i} has the rank {ranks[i]} of {k}")
    return 0


def differentiate_along(
    const double[:, ::1] table not None,  # (n, k): probability of each rank
    const int32_t[::1] ranks not None,  # (n,): the true rank of each row
    const double[::1] weights,  # (n,), or None: all are 1
    const double[::1] places not None,  # (k,): what a step along the direction adds to s_1 + .. s_j
    int64_t start,  # range of rows
    int64_t stop,
    # out, each (n,): minus the derivative of the loss along the direction, and the second one
    double[::1] gradients not None,
    double[::1] hessians not None,
):
    """Differentiate the loss of adjacent categories along a direction of the scores. O(n k).

    Its derivatives are the place of the true rank minus the mean place, and the variance of places.
    """
    cdef int64_t i, j, k = table.shape[1]
    cdef double mean, spread, w
    _check_table(table, ranks, weights, start, stop)
    if places.shape[0] != k or not (
        gradients.shape[0] == hessians.shape[0] == table.shape[0]
    ):
        raise ValueError("the places and derivatives do not match the probabilities")
    with nogil:
        for i in range(start, stop):
            w = 1.0 if weights is None else weights[i]
            mean = spread = 0.0
            for j in range(k):
                mean += table[i, j] * places[j]
            for j in range(k):
                spread += table[i, j] * ((places[j] - mean) * (places[j] - mean))
            gradients[i] = w * (places[ranks[i]] - mean)
            hessians[i] = w * spread


def sum_by_leaf(
    const double[:, ::1] table not None,  # table to weights, start, stop: `differentiate_along`
    const int32_t[::1] ranks not None,
    const double[::1] weights,
    const int32_t[::1] leaf_of not None,  # (n,): the leaf of each row
    const uint8_t[::1] of_rows,  # (n,), or None: whether each row counts
    int64_t start,
    int64_t stop,
    double[:, ::1] gradients not None,  # in and out, (n_leaves, k - 1)
    double[:, :, ::1] hessians not None,  # in and out, (n_leaves, k - 1, k - 1): lower triangle
):
    """Add the negative first and the second derivatives by the scores of tasks, leaf by leaf.

    Those of a row are [rank >= j] - P(rank >= j), and P(rank >= j) P(rank < i) for i <= j.
    O(n k^2), in the order of the rows.
    """
    cdef Row row
    cdef int64_t i, j, task, other, k = table.shape[1], d = k - 1
    cdef double w, above
    cdef double *line
    _check_table(table, ranks, weights, start, stop)
    if (
        leaf_of.shape[0] != ranks.shape[0]
        or (of_rows is not None and of_rows.shape[0] != ranks.shape[0])
        or gradients.shape[1] != d
        or not hessians.shape[0] == gradients.shape[0]
        or not hessians.shape[1] == hessians.shape[2] == d
    ):
        raise ValueError("the leaves and sums do not match the probabilities")
    for i in range(start, stop):
        if not 0 <= leaf_of[i] < gradients.shape[0]:
            raise ValueError(f"row {i} has the leaf {leaf_of[i]} of {gradients.shape[0]}")
    with nogil:
        for i in range(start, stop):
            if of_rows is not None and not of_rows[i]:
                continue
            w = 1.0 if weights is None else weights[i]
            above = 0.0
            for j in range(d, 0, -1):
                above += table[i, j]
                row.above[j - 1] = w * above
                # By rounding, the sum of the probabilities may exceed 1.
                row.below[j - 1] = max(1.0 - above, 0.0)
                gradients[leaf_of[i], j - 1] += w * ((1.0 if ranks[i] >= j else 0.0) - above)
            for task in range(d):
                above = row.above[task]
                line = &hessians[leaf_of[i], task, 0]
                for other in range(task + 1):
                    line[other] += above * row.below[other]
