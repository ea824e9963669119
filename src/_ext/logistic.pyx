"""Ordinal logistic regression with all thresholds, by stochastic steps.

A row x has the score s = w.x. Each threshold b_r is a binary task, "rank above r", with the
logistic loss log(1 + exp(-z_r (s - b_r))), z_r = 1 if the rank is above r, else -1; the loss of the
row is their sum (Rennie and Srebro 2005). With the error e_r of task r, 1 or 0 minus the
probability 1 / (1 + exp(b_r - s)), a step adds rate * sum(e) * x to w and subtracts rate * e_r from
b_r. The rate is ``eta0 / sqrt(n_tasks)`` divided by the mean of |x|^2 + 1 over the first rows,
so that a step neither overshoots on long rows nor crawls on short ones; it is constant, or
decreases with the fourth root of the number of rows. The average of all iterates predicts; its sums
are lazy, as in ``ordinal.pyx``. A row costs O(values + n_ranks).

Thresholds between which no rank has had a row yet, and those beyond the lowest and highest rank
seen, are copies of their neighbour: they count once, so that declared ranks without rows change
nothing for the others. With the first row of a lower or higher rank, the thresholds beyond are
moved away from the others, further the more rows came before.

Thresholds of iterates may cross, as single tasks are learned independently; the sorted ones
predict. At the minimum of the loss they ascend.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cython cimport final
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t

from rankcore._ext._candidates cimport decide_t
from rankcore._ext._forgetting cimport forget, weight_before
from rankcore._ext._prank cimport count
from rankcore._ext.online_model cimport OnlineModel, update_t, weighted_t
from rankcore.core cimport rc_axpy, rc_counts, rc_dot, rc_forgetting, rc_norm2, rc_row

import numpy as np

from rankcore._ext.online_model import Array, are_counts


cdef extern from "rankcore_calibration.h" nogil:
    double rc_logistic_(double x)  # 1 / (1 + exp(-x)), the same bits on every platform


# Rows whose mean squared length determines the rate.
cdef int64_t MEASURED = 64
# Row at which decreasing steps are as long as constant ones; its fourth root is an integer.
cdef double CROSSED = 256.0
cdef double LN2 = 0.6931471805599453


cdef struct LogisticState:
    double *weights  # (n_features,)
    double *thresholds  # (n_ranks - 1,), in the order of the tasks
    double *weight_sums  # lazy sums of both, NULL without averaging
    double *threshold_sums
    double *squared_length  # (2,): rows measured, and the mean of |x|^2 + 1 over them
    int64_t *ranks  # (n_ranks,): rows of each rank
    double *extremes  # (2,): lowest and highest score of a row
    double *errors  # (n_ranks - 1,), scratch
    double eta0
    bint decreasing
    int64_t n_features
    int32_t n_ranks
    rc_forgetting forgetting
    rc_counts seen


cdef inline void meet(LogisticState *m, int32_t rank) noexcept nogil:
    """Move the thresholds of a new lowest or highest rank away from the others."""
    cdef int32_t r, low = 0, high = m.n_ranks - 1
    cdef double apart = 0
    cdef int64_t rows = m.seen.t
    while low <= high and not m.ranks[low]:
        low += 1
    while high > low and not m.ranks[high]:
        high -= 1
    if low > high or low <= rank <= high:
        return
    while rows:  # about the logarithm of the rows before, the same bits on every platform
        apart += LN2
        rows >>= 1
    if rank < low:
        apart = -apart
    for r in range(m.n_ranks - 1):  # with one rank so far, all thresholds are equal
        if low == high or (r >= high if rank > high else r < low):
            m.thresholds[r] += apart


cdef inline int32_t compare(
    LogisticState *m, double score, int32_t rank, double *sum, int32_t *n_tasks
) noexcept nogil:
    """Write the errors of all tasks, their sum and number without copies; return the rank."""
    cdef int32_t r, first = -1, last = m.n_ranks - 1, reached = 0, predicted = 0
    cdef double error = 0
    while last and not m.ranks[last]:
        last -= 1
    sum[0] = 0
    n_tasks[0] = 0
    for r in range(m.n_ranks - 1):
        if m.ranks[r] and r < last:
            error = (r < rank) - rc_logistic_(score - m.thresholds[r])
            sum[0] += error
            n_tasks[0] += 1
            reached += score >= m.thresholds[r]
            if first < 0:
                first = r
        m.errors[r] = error
    for r in range(first):
        m.errors[r] = m.errors[first]
    for r in range(m.n_ranks):
        if m.ranks[r]:
            predicted = r
            if not reached:
                break
            reached -= 1
    return predicted


cdef int32_t logistic_update(LogisticState *m, rc_row x, int32_t rank) noexcept nogil:
    return logistic_weighted(m, x, rank, 1.0)


cdef int32_t logistic_weighted(
    LogisticState *m, rc_row x, int32_t rank, double weight
) noexcept nogil:
    """Predict, learn and count; return the prediction, or -1, unchanged, for too long a row."""
    cdef double score = rc_dot(x, m.weights), squared = 0, rate, step, sum
    cdef double past = weight_before(&m.forgetting, m.seen.t)
    cdef int32_t r, predicted, n_tasks
    if m.squared_length[0] < MEASURED:
        squared = rc_norm2(x) + 1
    if score + squared - (score + squared) != 0 or not 0 <= rank < m.n_ranks:
        return -1
    if m.squared_length[0] < MEASURED:
        m.squared_length[0] += 1
        m.squared_length[1] += (squared - m.squared_length[1]) / m.squared_length[0]
    m.extremes[0] = min(m.extremes[0], score)
    m.extremes[1] = max(m.extremes[1], score)
    if not m.ranks[rank]:
        meet(m, rank)
    m.ranks[rank] += 1
    predicted = compare(m, score, rank, &sum, &n_tasks)
    if n_tasks:
        rate = weight * m.eta0 / (m.squared_length[1] * sqrt(<double> n_tasks))
        if m.decreasing:  # roots and quotients are the same bits on every platform
            rate *= sqrt(sqrt(CROSSED / <double> (m.seen.t + 1)))
        for r in range(m.n_ranks - 1):
            step = rate * m.errors[r]
            m.thresholds[r] -= step
            if m.threshold_sums != NULL:
                m.threshold_sums[r] -= past * step
        step = rate * sum
        rc_axpy(x, step, m.weights)
        if m.weight_sums != NULL:
            rc_axpy(x, past * step, m.weight_sums)
    forget(&m.forgetting, m.weight_sums, m.n_features, m.threshold_sums, m.n_ranks - 1)
    count(&m.seen, predicted, rank)
    return predicted


cdef int32_t logistic_decide(
    LogisticState *m, const double *scores, const double *others
) noexcept nogil:
    """Return the rank; ``others`` has the thresholds, of which those of seen ranks count."""
    cdef int32_t r, last = m.n_ranks - 1, reached = 0
    while last and not m.ranks[last]:
        last -= 1
    for r in range(last):
        reached += (m.ranks[r] > 0) & (scores[0] >= others[r])
    for r in range(last):
        if m.ranks[r]:
            if not reached:
                return r
            reached -= 1
    return last


@final
cdef class LogisticModel(OnlineModel):
    """Weights and thresholds of ordinal logistic regression."""

    declared = {
        "weights": Array("features", averaged=True),
        "thresholds": Array("tasks", averaged=True),
        "squared_length": Array(2),
        "ranks": Array("ranks", dtype="int64", added=True),
        "extremes": Array(2),
    }
    folds = (("weights", "thresholds", 1), ("weights", "extremes", 1))

    cdef LogisticState m

    def __dealloc__(self):
        PyMem_Free(self.m.errors)

    cdef int bind(self) except -1:
        cdef LogisticState *m = &self.m
        PyMem_Free(m.errors)
        m.errors = <double *> PyMem_Malloc(self.n_ranks * sizeof(double))
        if m.errors == NULL:
            raise MemoryError
        m.weights = <double *> self.at("weights")
        m.thresholds = <double *> self.at("thresholds")
        m.weight_sums = <double *> self.sums_at("weights")
        m.threshold_sums = <double *> self.sums_at("thresholds")
        m.squared_length = <double *> self.at("squared_length")
        m.ranks = <int64_t *> self.at("ranks")
        m.extremes = <double *> self.at("extremes")
        m.n_features = self.n_features
        m.n_ranks = self.n_ranks
        self.decides_by(<decide_t> logistic_decide)
        return self.learns_by(
            <update_t> logistic_update, <weighted_t> logistic_weighted, m, &m.seen, &m.forgetting
        )

    cdef int follow(self, object params) except -1:
        self.m.eta0 = params.eta0
        self.m.decreasing = params.step == "decreasing"
        return 0

    def restart(self):
        OnlineModel.restart(self)
        self["squared_length"][...] = 0  # of rows in other units

    def check(self):
        rows, mean = self["squared_length"]
        if not (0 <= rows <= MEASURED and rows == int(rows) and (mean >= 1 or rows == mean == 0)):
            raise ValueError(
                f"the array squared_length must have a number of rows up to {MEASURED}, and the "
                f"mean of their squared lengths plus 1; got {rows} and {mean}"
            )
        if not are_counts(self["ranks"]) or self["ranks"].sum() != self.t:
            raise ValueError(f"ranks must have >= 0 rows each, and {self.t} in all")
        low, high = self["extremes"]
        if not low <= 0 <= high:
            raise ValueError(
                f"the lowest score must be <= 0 and the highest >= 0; got {low} and {high}"
            )

    def wider(self, n_features, below=0, above=0):
        """Return a model with more features and ranks; new thresholds are copies of the outer."""
        arrays = self._with_features(n_features)
        for name, array in arrays.items():
            if {"tasks", "ranks"} & {*self.forms[name].axes}:
                mode = "edge" if "tasks" in self.forms[name].axes else "constant"
                arrays[name] = np.pad(array, [(below, above)] + [(0, 0)] * (array.ndim - 1), mode)
        n_ranks = self.n_ranks + below + above
        return type(self)(n_features, n_ranks, self.settings, arrays)

    def merge_counts(self, models, base):
        every = np.array([model["extremes"] for model in models])
        self["extremes"][...] = every.T[0].min(), every.T[1].max()
        rows, mean = base["squared_length"]
        total = rows * mean
        for more, length in (model["squared_length"] for model in models):
            total += more * length - base["squared_length"].prod()
            rows += more - base["squared_length"][0]
        self["squared_length"][...] = min(rows, MEASURED), total / rows if rows else 0.0

    def mixed(self, models, shares, base):
        result = OnlineModel.mixed(self, models, shares, base)
        shares = np.asarray(shares, dtype=np.float64)
        counts = [model["ranks"] for model in models]
        for r in range(self.n_ranks - 1):
            # Elsewhere the threshold is a copy of one between other ranks.
            own = np.array([n[r] > 0 and n[r + 1 :].any() for n in counts])
            if own.all() or not own.any():
                continue
            part = shares * own if (shares * own).any() else own.astype(np.float64)
            part /= part.sum()
            last = sum(share * model["thresholds"][r] for share, model in zip(part, models))
            result["thresholds"][r] = last
            if self.averages:
                means = [model.mean("thresholds")[r] for model in models]
                mean = sum(share * value for share, value in zip(part, means))
                result["thresholds_sums"][r] = result.times() * (last - mean)
        return result

    def compute(self):
        """Return weights, ranks with rows, sorted thresholds between these, extreme scores."""
        means = {name: self.mean(name) for name in ("weights", "thresholds")}
        weights, thresholds, extremes = self.folded(
            means | {"extremes": self["extremes"]}
        ).values()
        occurring = np.flatnonzero(self["ranks"])
        between = np.sort(thresholds[occurring[: len(occurring) - 1]])
        return weights, occurring, between, extremes
