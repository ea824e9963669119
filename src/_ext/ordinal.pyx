"""Online ordinal learners: their updates, and the states they work on.

Each learner has an update function, also for C programs, and a model, which declares and owns its
arrays and passes the function to ``online_loop.learn``.

PRank (Crammer and Singer, "Pranking with Ranking", NIPS 2001, figure 2): one direction w and
ordered thresholds b. The rank of x is the number of thresholds that w.x reaches; a mistake moves
every threshold on the wrong side of w.x by one step, and w by their sum times x. The thresholds are
integers because the proof that they stay ordered requires that b_r < b_{r+1} implies b_r + 1 <=
b_{r+1}, which only holds on a lattice. The state therefore stores integer ``steps``; the thresholds
compared with the score are ``scale * steps``, a monotone product, so that their order is kept
despite rounding for every scale.

CuSum Rank: a weight vector and a threshold for each task "rank above j"; the score of a rank is
the sum of the task scores up to it. A mistake moves the tasks between the true rank and its rival.

Widrow-Hoff: least squares on the ranks 1 .. k, rounded. Multiclass perceptron: a weight vector for
each rank, without regard to their order.

Averages are lazy. Summing all weights after each example would cost n_features. Instead each
update adds (examples before it) * change to a second array; the average over t examples is then
weights - sums / t (Collins 2002; Daume 2006). With weights of examples that grow by a factor, the
average forgets, at the same cost: see ``_forgetting.pxd``.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_New
from cython cimport final
from libc.math cimport INFINITY, floor, pow
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._candidates cimport decide_t
from rankcore._ext._cusum cimport cusum_rival, cusum_step, follow_cusum
from rankcore._ext._forgetting cimport fade, forget, weight_before
from rankcore._ext._prank cimport count, update_lazy_sum, prank_step
from rankcore._ext.online_model cimport OnlineModel, update_t, weighted_t
from rankcore.core cimport (
    RC_TIE_CRAMMER,
    RC_TIE_HIGH,
    RC_TIE_LOW,
    RC_TIE_STRICT,
    RC_UPDATE_PERCEPTRON,
    rc_axpy,
    rc_axpys,
    rc_best,
    rc_cusum,
    rc_cusum_rank,
    rc_cusum_state,
    rc_dot,
    rc_dots,
    rc_lms_state,
    rc_mcp_state,
    rc_norm2,
    rc_prank_state,
    rc_rank,
    rc_row,
    rc_rows,
    rc_rows_get,
)

from rankcore._ext.online_model import MARGIN, OFFSET, SCALE, Array, check_steps


cdef int32_t prank_update(rc_prank_state *m, rc_row x, int32_t rank) noexcept nogil:
    return prank_step(m, x, rank, 0.0, 0.0)


cdef int32_t prank_margin_update(
    rc_prank_state *m, rc_row x, int32_t rank, double margin
) noexcept nogil:
    if not 0 <= margin:
        return -1
    return prank_step(m, x, rank, margin, 0.0)


cdef struct MarginState:
    rc_prank_state prank
    double margin
    double offset
    double *offset_sum  # NULL without averages; only units change it, besides fading


cdef int32_t bound_prank_update(MarginState *m, rc_row x, int32_t rank) noexcept nogil:
    cdef double past = m.prank.forgetting.past
    cdef int32_t predicted = prank_step(&m.prank, x, rank, m.margin, m.offset)
    if m.prank.forgetting.past < past:  # all sums were faded
        fade(m.offset_sum, 1)
    return predicted


cdef void prank_average(
    const rc_prank_state *m, double *weights, double *thresholds
) noexcept nogil:
    cdef int64_t i, total
    cdef double past = weight_before(&m.forgetting, m.seen.t) if m.seen.t else 1.0, step
    cdef double highest = -INFINITY
    for i in range(m.n_features):
        weights[i] = m.weights[i] - m.weight_sums[i] / past
    for i in range(m.n_ranks - 1):
        if m.forgetting.gain > 0:
            # Rounding might change the order.
            highest = max(highest, <double> m.steps[i] - m.real_step_sums[i] / past)
            step = highest
        else:
            # One division of exact integers, so that equal averages come out equal.
            total = update_lazy_sum(update_lazy_sum(0, m.seen.t, -m.steps[i]), 1, m.step_sums[i])
            step = <double> total / past
        thresholds[i] = m.scale * step


cdef int32_t cusum_update(rc_cusum_state *m, rc_row x, int32_t rank) noexcept nogil:
    return cusum_weighted(m, x, rank, 1.0)


cdef int32_t cusum_weighted(
    rc_cusum_state *m, rc_row x, int32_t rank, double weight
) noexcept nogil:
    cdef int32_t tasks = m.n_ranks - 1, predicted, rival, r, low, high
    cdef double step, squared, past
    cdef rc_cusum model
    model.weights = m.weights
    model.thresholds = m.thresholds
    model.n_features = m.n_features
    model.n_ranks = m.n_ranks
    model.tie = m.tie
    predicted = rc_cusum_rank(&model, x, m.scores)
    # An overflow of any partial sum is still visible in the last sum.
    if m.scores[tasks] - m.scores[tasks] != 0 or not 0 <= rank < m.n_ranks:
        return -1
    rival = cusum_rival(m, predicted, rank)
    if rival != rank:
        squared = 0.0 if m.update == RC_UPDATE_PERCEPTRON else rc_norm2(x)
        step = cusum_step(m, squared, rank, rival, weight)
        if step - step != 0:
            return -1
        low = rank if rank < rival else rival
        high = rival if rank < rival else rank
        past = weight_before(&m.forgetting, m.seen.t)
        rc_axpys(x, step, m.weights, tasks, low, high)
        if m.weight_sums != NULL:
            rc_axpys(x, past * step, m.weight_sums, tasks, low, high)
        if m.scale != 0:
            step *= m.scale
            for r in range(low, high):
                m.thresholds[r] -= step
                if m.threshold_sums != NULL:
                    m.threshold_sums[r] -= past * step
    forget(&m.forgetting, m.weight_sums, m.n_features * tasks, m.threshold_sums, tasks)
    count(&m.seen, predicted, rank)
    return predicted


cdef int32_t lms_update(rc_lms_state *m, rc_row x, int32_t rank) noexcept nogil:
    return lms_weighted(m, x, rank, 1.0)


cdef int32_t lms_weighted(rc_lms_state *m, rc_row x, int32_t rank, double weight) noexcept nogil:
    cdef double score = rc_dot(x, m.weights) + m.intercept[0], step, past
    cdef int32_t predicted
    if score - score != 0 or not 0 <= rank < m.n_ranks:
        return -1
    predicted = _rounded(score, m.n_ranks)
    step = _lms_rate(m, x, weight) * (rank + 1 - score)
    if step - step != 0:
        return -1
    past = weight_before(&m.forgetting, m.seen.t)
    rc_axpy(x, step, m.weights)
    if m.weight_sums != NULL:
        rc_axpy(x, past * step, m.weight_sums)
    if m.scale != 0:
        step *= m.scale
        m.intercept[0] += step
        if m.intercept_sums != NULL:
            m.intercept_sums[0] += past * step
    forget(&m.forgetting, m.weight_sums, m.n_features, m.intercept_sums, 1)
    count(&m.seen, predicted, rank)
    return predicted


cdef inline double _lms_rate(const rc_lms_state *m, rc_row x, double weight) noexcept nogil:
    """Return the rate of a weighted step, which equals ``weight`` steps of weight 1.

    A step multiplies the row's error by 1 - rate * norm, so that n of them multiply it by the n-th
    power. A step that overshoots has no such power; its rate is multiplied by the weight.
    """
    cdef double norm, left
    if not m.normalized and weight == 1.0:
        return m.eta
    norm = rc_norm2(x) + m.scale
    if norm - norm != 0:
        return norm - norm
    if norm == 0.0:  # an empty row without intercept: nothing to move
        return 0.0
    if weight == 1.0:
        return m.eta / norm
    left = 1.0 - (m.eta if m.normalized else m.eta * norm)
    if left >= 0.0:
        return (1.0 - pow(left, weight)) / norm
    return weight * (m.eta / norm if m.normalized else m.eta)


cdef inline int32_t _rounded(double score, int32_t n_ranks) noexcept nogil:
    """Return the rank 0 .. n_ranks - 1 nearest to a score on the scale 1 .. n_ranks, halves up."""
    cdef double nearest = floor(score + 0.5)
    if nearest >= n_ranks:
        return n_ranks - 1
    return <int32_t> nearest - 1 if nearest > 1 else 0


cdef int32_t mcp_update(rc_mcp_state *m, rc_row x, int32_t rank) noexcept nogil:
    return mcp_weighted(m, x, rank, 1.0)


cdef int32_t mcp_weighted(rc_mcp_state *m, rc_row x, int32_t rank, double weight) noexcept nogil:
    cdef int32_t predicted, r, k = m.n_ranks, n_better = 0
    cdef double share, sum = 0
    rc_dots(x, m.weights, k, m.scores)
    for r in range(k):
        m.scores[r] += m.intercepts[r]
        sum += m.scores[r] - m.scores[r]
    if sum != 0 or not 0 <= rank < k:
        return -1
    predicted = rc_best(m.scores, k, RC_TIE_LOW)
    if predicted != rank:
        _mcp_move(m, x, weight, rank)
        for r in range(k):
            n_better += r != rank and m.scores[r] >= m.scores[rank]
        share = -weight / n_better if m.uniform else -weight
        for r in range(k):
            if r == predicted or (m.uniform and r != rank and m.scores[r] >= m.scores[rank]):
                _mcp_move(m, x, share, r)
    forget(&m.forgetting, m.weight_sums, m.n_features * k, m.intercept_sums, k)
    count(&m.seen, predicted, rank)
    return predicted


cdef inline void _mcp_move(rc_mcp_state *m, rc_row x, double step, int32_t r) noexcept nogil:
    """Add a multiple of the row to the weights of a class."""
    cdef double late = weight_before(&m.forgetting, m.seen.t) * step
    rc_axpys(x, step, m.weights, m.n_ranks, r, r + 1)
    if m.weight_sums != NULL:
        rc_axpys(x, late, m.weight_sums, m.n_ranks, r, r + 1)
    if m.scale != 0:
        m.intercepts[r] += m.scale * step
        if m.intercept_sums != NULL:
            m.intercept_sums[r] += m.scale * late


# ------------------------------------------------------------------------------ decisions


cdef int32_t prank_decide(
    MarginState *m, const double *scores, const double *others
) noexcept nogil:
    """Return the rank; ``others`` has the steps and the offset."""
    cdef int32_t r, rank = 0, tasks = m.prank.n_ranks - 1
    cdef double score = scores[0] - others[tasks]
    for r in range(tasks):
        rank += score >= m.prank.scale * others[r]
    return rank


cdef int32_t cusum_decide(
    rc_cusum_state *m, const double *scores, const double *others
) noexcept nogil:
    """Return the rank; ``others`` has the thresholds."""
    cdef int32_t r, rank = 0
    cdef double sum = 0, best = 0
    for r in range(m.n_ranks - 1):
        sum += scores[r] - others[r]
        if sum > best or (sum == best and m.tie == RC_TIE_HIGH):
            best = sum
            rank = r + 1
    return rank


cdef int32_t lms_decide(rc_lms_state *m, const double *scores, const double *others) noexcept nogil:
    """Return the rank; ``others`` has the intercept."""
    return _rounded(scores[0] + others[0], m.n_ranks)


cdef int32_t mcp_decide(rc_mcp_state *m, const double *scores, const double *others) noexcept nogil:
    """Return the rank; ``others`` has the intercepts."""
    cdef int32_t r, rank = 0
    for r in range(1, m.n_ranks):
        if scores[r] + others[r] > scores[rank] + others[rank]:
            rank = r
    return rank


# ------------------------------------------------------------------------------ models


@final
cdef class PRankModel(OnlineModel):
    """PRank, see ``rc_prank_state`` and ``prank_margin_update``."""

    declared = {
        "weights": Array("features", averaged=True),
        "steps": Array("tasks", dtype="int64", averaged=True),
        "thresholds": Array("tasks", derived=True),  # without the offset
        "offset": OFFSET,
        "scale": SCALE,
        "margin": MARGIN,
    }
    folds = (("weights", "offset", 1),)

    cdef MarginState m
    cdef const double *scale
    cdef const double *margin
    cdef const double *offset

    cdef int bind(self) except -1:
        cdef rc_prank_state *m = &self.m.prank
        m.weights = <double *> self.at("weights")
        m.steps = <int64_t *> self.at("steps")
        m.thresholds = <double *> self.at("thresholds")
        m.weight_sums = <double *> self.sums_at("weights")
        m.step_sums = <int64_t *> self.sums_at("steps") if not self.forgets else NULL
        m.real_step_sums = <double *> self.sums_at("steps") if self.forgets else NULL
        m.n_features = self.n_features
        m.n_ranks = self.n_ranks
        self.m.offset_sum = <double *> self.sums_at("offset")
        self.scale = <const double *> self.at("scale")
        self.margin = <const double *> self.at("margin")
        self.offset = <const double *> self.at("offset")
        self.decides_by(<decide_t> prank_decide)
        return self.learns_by(
            <update_t> bound_prank_update, NULL, &self.m, &m.seen, &m.forgetting
        )

    cdef int follow(self, object params) except -1:
        self.m.prank.scale = self.scale[0]
        self.m.margin = self.margin[0]
        self.m.offset = self.offset[0]
        self.m.prank.tie = RC_TIE_STRICT if params.tie == "strict" else RC_TIE_CRAMMER
        return 0

    def derive(self):
        self["thresholds"][...] = self["scale"] * self["steps"]

    def check(self):
        check_steps(self.arrays)

    def compute(self):
        weights, steps, offset = OnlineModel.compute(self)
        return weights, self["scale"] * steps + offset


@final
cdef class CuSumModel(OnlineModel):
    """CuSum Rank, see ``rc_cusum_state``."""

    declared = {
        "weights": Array("features", "tasks", averaged=True),
        "thresholds": Array("tasks", averaged=True),
        "scale": SCALE,
    }
    folds = (("weights", "thresholds", 1),)

    cdef rc_cusum_state m
    cdef const double *scale

    def __dealloc__(self):
        PyMem_Free(self.m.scores)

    cdef int bind(self) except -1:
        cdef rc_cusum_state *m = &self.m
        PyMem_Free(m.scores)
        m.scores = <double *> PyMem_Malloc(2 * self.n_ranks * sizeof(double))
        if m.scores == NULL:
            raise MemoryError
        m.weights = <double *> self.at("weights")
        m.thresholds = <double *> self.at("thresholds")
        m.weight_sums = <double *> self.sums_at("weights")
        m.threshold_sums = <double *> self.sums_at("thresholds")
        m.n_features = self.n_features
        m.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        self.decides_by(<decide_t> cusum_decide)
        return self.learns_by(
            <update_t> cusum_update, <weighted_t> cusum_weighted, m, &m.seen, &m.forgetting
        )

    cdef int follow(self, object params) except -1:
        follow_cusum(&self.m, params, self.scale[0])
        return 0


@final
cdef class WidrowHoffModel(OnlineModel):
    """Widrow-Hoff, see ``rc_lms_state``."""

    declared = {
        "weights": Array("features", averaged=True),
        "intercept": Array(1, averaged=True),
        "scale": SCALE,
    }
    folds = (("weights", "intercept", -1),)

    cdef rc_lms_state m
    cdef const double *scale

    cdef int bind(self) except -1:
        cdef rc_lms_state *m = &self.m
        m.weights = <double *> self.at("weights")
        m.intercept = <double *> self.at("intercept")
        m.weight_sums = <double *> self.sums_at("weights")
        m.intercept_sums = <double *> self.sums_at("intercept")
        m.n_features = self.n_features
        m.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        self.decides_by(<decide_t> lms_decide)
        return self.learns_by(
            <update_t> lms_update, <weighted_t> lms_weighted, m, &m.seen, &m.forgetting
        )

    cdef int follow(self, object params) except -1:
        self.m.scale = self.scale[0]
        self.m.eta = params.eta0
        self.m.normalized = params.step == "normalized"
        return 0


@final
cdef class MulticlassModel(OnlineModel):
    """Multiclass perceptron, see ``rc_mcp_state``."""

    declared = {
        "weights": Array("features", "ranks", averaged=True),
        "intercepts": Array("ranks", averaged=True),
        "scale": SCALE,
    }
    folds = (("weights", "intercepts", -1),)

    cdef rc_mcp_state m
    cdef const double *scale

    def __dealloc__(self):
        PyMem_Free(self.m.scores)

    cdef int bind(self) except -1:
        cdef rc_mcp_state *m = &self.m
        PyMem_Free(m.scores)
        m.scores = <double *> PyMem_Malloc(self.n_ranks * sizeof(double))
        if m.scores == NULL:
            raise MemoryError
        m.weights = <double *> self.at("weights")
        m.intercepts = <double *> self.at("intercepts")
        m.weight_sums = <double *> self.sums_at("weights")
        m.intercept_sums = <double *> self.sums_at("intercepts")
        m.n_features = self.n_features
        m.n_ranks = self.n_ranks
        self.scale = <const double *> self.at("scale")
        self.decides_by(<decide_t> mcp_decide)
        return self.learns_by(
            <update_t> mcp_update, <weighted_t> mcp_weighted, m, &m.seen, &m.forgetting
        )

    cdef int follow(self, object params) except -1:
        self.m.scale = self.scale[0]
        self.m.uniform = params.update == "uniform"
        return 0


# ------------------------------------------------------------------------------ predicting


def threshold_ranks(
    const double[::1] scores not None,  # (n,)
    const double[::1] thresholds not None,  # (n_ranks - 1,): ascending
    int32_t[::1] out not None,  # out, (n,)
):
    """Write the rank of each score: the number of thresholds that it reaches. O(n log n_ranks)."""
    cdef Py_ssize_t i
    cdef int32_t n_ranks = <int32_t> thresholds.shape[0] + 1
    if out.shape[0] != scores.shape[0] or n_ranks < 2:
        raise ValueError("scores, thresholds and out are inconsistent")
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = rc_rank(&thresholds[0], n_ranks, scores[i])


def projected_ranks(
    object rows not None,
    const double[::1] weights not None,  # (n_features,)
    const double[::1] thresholds not None,  # (n_ranks - 1,): ascending
    int32_t[::1] out not None,  # out, (n_rows,)
):
    """Write the rank of each row's projection, see `threshold_ranks`. O(n_values).

    Returns the number of rows, or the first one whose projection overflowed.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, n = X.n_rows
    cdef int32_t n_ranks = <int32_t> thresholds.shape[0] + 1
    cdef double score
    if weights.shape[0] != X.n_features or out.shape[0] != n or n_ranks < 2:
        raise ValueError("rows, weights, thresholds and out are inconsistent")
    with nogil:
        for i in range(n):
            score = rc_dot(rc_rows_get(X, i), &weights[0])
            if score - score != 0:
                n = i
                break
            out[i] = rc_rank(&thresholds[0], n_ranks, score)
    return n


def rounded_ranks(
    const double[::1] scores not None,  # (n,)
    int32_t n_ranks,
    int32_t[::1] out not None,  # out, (n,): ranks 0 .. n_ranks - 1
):
    """Write the rank nearest to each score on the scale 1 .. n_ranks, halves up. O(n)."""
    cdef Py_ssize_t i
    if out.shape[0] != scores.shape[0]:
        raise ValueError("scores and out are inconsistent")
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = _rounded(scores[i], n_ranks)


def cusum_ranks(
    object rows not None,
    const double[::1] weights not None,  # as in ``rc_cusum``
    const double[::1] thresholds not None,
    bint low,  # whether the lowest of equal best ranks wins
    double[:, ::1] scores not None,  # out, (n_rows, n_ranks)
    int32_t[::1] out not None,  # out, (n_rows,)
):
    """Write each row's cumulative scores and its rank. O(n_values * n_ranks)."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, tasks = thresholds.shape[0]
    cdef rc_cusum model
    if (
        tasks < 1
        or weights.shape[0] != X.n_features * tasks
        or scores.shape[0] != X.n_rows
        or scores.shape[1] != tasks + 1
        or out.shape[0] != X.n_rows
    ):
        raise ValueError("rows, weights, thresholds, scores and out are inconsistent")
    model.weights = &weights[0]
    model.thresholds = &thresholds[0]
    model.n_features = X.n_features
    model.n_ranks = <int32_t> tasks + 1
    model.tie = RC_TIE_LOW if low else RC_TIE_HIGH
    with nogil:
        for i in range(X.n_rows):
            out[i] = rc_cusum_rank(&model, rc_rows_get(X, i), &scores[i, 0])


# Functions for the C function table of capi.pyx.
c_functions = {
    "prank_update": PyCapsule_New(<void *> &prank_update, "prank_update", NULL),
    "prank_margin_update": PyCapsule_New(
        <void *> &prank_margin_update, "prank_margin_update", NULL
    ),
    "prank_average": PyCapsule_New(<void *> &prank_average, "prank_average", NULL),
    "cusum_update": PyCapsule_New(<void *> &cusum_update, "cusum_update", NULL),
    "lms_update": PyCapsule_New(<void *> &lms_update, "lms_update", NULL),
    "mcp_update": PyCapsule_New(<void *> &mcp_update, "mcp_update", NULL),
}
