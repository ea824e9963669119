"""Markov chains over strengths of items and errors of judges, given answers about pairs.

A judge prefers item u, shown with item v, with probability

    p = lapse * (1/2 + x (first - 1/2))
        + (1 - lapse) * sigma(slope * (theta_u - theta_v) + bias * x)

where x is 1 if u was at the first position, -1 if v was, and 0 if neither. An answer that repeats
an earlier one about the same pair is a copy of it with probability ``same`` (shown in the same
order) or ``turned`` (in the other order), and otherwise independent. A sweep visits the strengths
one by one with Metropolis steps of many sizes, then some parameters of each judge, by steps or
jumps.
"""

from libc.math cimport cos, exp, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t


cdef extern from "rankcore_random.h" nogil:
    uint64_t rc_draw(uint64_t *state)


# Kinds of answers: the first about a pair, a repeat in the same order that agrees or differs, and
# the first in the other order that agrees or differs.
cpdef enum:
    FIRST
    SAME_AGREES
    SAME_DIFFERS
    TURNED_AGREES
    TURNED_DIFFERS

# Parameters of a judge, without bounds: logits, but a logarithm of the slope and the bias itself;
# and the sign of the slope.
cpdef enum:
    LAPSE
    FAVOURED
    SLOPE
    BIAS
    SAME
    TURNED
    SIGN
    N_PARAMETERS

cdef enum:
    VISITED = 3  # parameters of a judge in a sweep: a parameter costs as much as half of the items

cdef double TINY = 1e-12


cdef struct Judge:
    double lapse
    double favoured
    double slope
    double bias
    double same
    double turned


cdef struct Answers:
    const int32_t *first  # item u
    const int32_t *second
    const int32_t *position  # 1, -1 or 0
    const int32_t *kind
    const double *degree  # 1 if u was preferred


cdef struct Product:
    double factor
    double log  # of the other factors


cdef inline double _uniform(uint64_t *state) noexcept nogil:
    """Draw from the open interval (0, 1)."""
    return (<double> (rc_draw(state) >> 11) + 0.5) * (1.0 / 9007199254740992.0)


cdef inline double _normal(uint64_t *state) noexcept nogil:
    cdef double radius = sqrt(-2 * log(_uniform(state)))
    return radius * cos(6.283185307179586 * _uniform(state))


cdef inline double _sigma(double x) noexcept nogil:
    return 1.0 / (1.0 + exp(-x))


cdef inline Judge _judge(const double *row) noexcept nogil:
    cdef Judge judge
    judge.lapse = _sigma(row[LAPSE])
    judge.favoured = _sigma(row[FAVOURED])
    judge.slope = row[SIGN] * exp(row[SLOPE])
    judge.bias = row[BIAS]
    judge.same = _sigma(row[SAME])
    judge.turned = _sigma(row[TURNED])
    return judge


cdef inline double _likelihood(
    const Answers *A, int64_t k, const Judge *judge, double apart
) noexcept nogil:
    """Return the likelihood of answer k, once, for a difference of strengths."""
    cdef double x = A.position[k], d = A.degree[k], copied
    cdef double p = judge.lapse * (0.5 + x * (judge.favoured - 0.5))
    p += (1 - judge.lapse) * _sigma(judge.slope * apart + judge.bias * x)
    p = min(max(p, TINY), 1 - TINY)
    if d == 0:
        p = 1 - p
    elif d != 1:
        p = exp(d * log(p) + (1 - d) * log(1 - p))
    if A.kind[k] == FIRST:
        return p
    copied = judge.same if A.kind[k] <= SAME_DIFFERS else judge.turned
    if A.kind[k] == SAME_AGREES or A.kind[k] == TURNED_AGREES:
        return copied + (1 - copied) * p
    return max((1 - copied) * p, TINY)


cdef inline void _multiply(Product *product, double ratio, double weight) noexcept nogil:
    """Multiply by a ratio of likelihoods to the power of a weight; logarithms are rarely needed."""
    if weight != 1:
        product.log += weight * log(ratio)
        return
    product.factor *= ratio
    if not 1e-150 < product.factor < 1e150:
        product.log += log(product.factor)
        product.factor = 1.0


cdef double _log_prior(const double *row, const double *prior) noexcept nogil:
    """Return the log-density of a judge's parameters; ``prior`` has two numbers for each.

    Normal for SLOPE and BIAS (mean, standard deviation), beta for probabilities, with the density
    of their logits; for SIGN the first number is the probability of a positive one.
    """
    cdef double total = 0.0, x
    cdef int column
    for column in range(SIGN):
        if column == SLOPE or column == BIAS:
            x = (row[column] - prior[2 * column]) / prior[2 * column + 1]
            total -= 0.5 * x * x
        else:
            x = _sigma(row[column])
            total += prior[2 * column] * log(x + TINY) + prior[2 * column + 1] * log(1 - x + TINY)
    x = prior[2 * SIGN]
    return total + log((x if row[SIGN] > 0 else 1 - x) + TINY)


cdef double _log_jump(double value, int column, const double *prior) noexcept nogil:
    """Return the log-density with which a jump draws a parameter."""
    cdef double x
    if column == SLOPE or column == BIAS:
        x = (value - prior[2 * column]) / prior[2 * column + 1]
        return -0.5 * x * x
    x = _sigma(value)
    return log(x + TINY) + log(1 - x + TINY)


def run_chain(
    const int32_t[::1] first not None,
    const int32_t[::1] second not None,
    const int32_t[::1] position not None,
    const int32_t[::1] kind not None,
    const double[::1] degree not None,
    const double[::1] weight not None,
    const int64_t[::1] judge_starts not None,
    const int64_t[::1] item_starts not None,
    const int64_t[::1] item_answers not None,
    const double[::1] scores not None,
    const double[:, ::1] priors not None,
    double[::1] theta not None,
    double[:, ::1] parameters not None,
    double[::1] influence not None,
    uint64_t[::1] state not None,
    double[::1] spare not None,
    double[:, ::1] kept_theta not None,
    double[:, :, ::1] kept_parameters not None,
    int64_t thin,
):
    """Run a chain from its state, and keep every ``thin``-th state.

    Answers, at least one, are sorted by judge and listed by item. ``scores`` are prior scores of
    the items, or empty; ``influence`` is their factor. ``spare`` has two numbers for each answer.
    """
    cdef Answers A
    cdef Judge judge
    cdef int64_t n = theta.shape[0], m = first.shape[0], n_judges = parameters.shape[0]
    cdef int64_t i, j, k, r, place, turn, mine, step
    cdef int column
    cdef uint64_t *rng = &state[0]
    cdef double *value = &spare[0]
    cdef double *tried = &spare[m]
    cdef bint scored = scores.shape[0] > 0
    cdef double old, new, mean, change, precision, total
    cdef Product product
    cdef double row[N_PARAMETERS]
    if not (
        m == second.shape[0] == position.shape[0] == kind.shape[0] == degree.shape[0]
        == weight.shape[0] > 0
        and n_judges == priors.shape[0] == judge_starts.shape[0] - 1 > 0
        and judge_starts[n_judges] == m
        and item_starts.shape[0] == n + 1 and item_starts[n] == 2 * m
        and item_answers.shape[0] == 2 * m and spare.shape[0] == 2 * m
        and scores.shape[0] in (0, n) and influence.shape[0] == 1 and state.shape[0] == 1
        and priors.shape[1] == 2 * N_PARAMETERS and parameters.shape[1] == N_PARAMETERS
        and kept_theta.shape[1] == n and kept_parameters.shape[0] == kept_theta.shape[0]
        and kept_parameters.shape[1] == n_judges and kept_parameters.shape[2] == N_PARAMETERS
        and thin > 0
    ):
        raise ValueError("the lengths of the answers, items, judges and draws do not match")
    A.first, A.second, A.position = &first[0], &second[0], &position[0]
    A.kind, A.degree = &kind[0], &degree[0]
    with nogil:
        for j in range(n_judges):
            judge = _judge(&parameters[j, 0])
            for k in range(judge_starts[j], judge_starts[j + 1]):
                value[k] = _likelihood(&A, k, &judge, theta[first[k]] - theta[second[k]])
        judge = _judge(&parameters[0, 0])
        for step in range(kept_theta.shape[0] * thin):
            for i in range(n):
                old = theta[i]
                mean = influence[0] * scores[i] if scored else 0.0
                # From a hundredth of the standard deviation of the prior to twice that.
                new = old + exp(-4.6 + 5.3 * _uniform(rng)) * _normal(rng)
                change = 0.5 * ((old - mean) * (old - mean) - (new - mean) * (new - mean))
                mine = -1
                product.factor, product.log = 1.0, 0.0
                for r in range(item_starts[i], item_starts[i + 1]):
                    k = item_answers[r]
                    if mine < 0 or k >= judge_starts[mine + 1]:
                        mine = max(mine, 0)
                        while k >= judge_starts[mine + 1]:
                            mine += 1
                        judge = _judge(&parameters[mine, 0])
                    if first[k] == i:
                        total = _likelihood(&A, k, &judge, new - theta[second[k]])
                    else:
                        total = _likelihood(&A, k, &judge, theta[first[k]] - new)
                    tried[r - item_starts[i]] = total
                    _multiply(&product, total / value[k], weight[k])
                change += product.log + log(product.factor)
                if change >= 0 or _uniform(rng) < exp(change):
                    theta[i] = new
                    for r in range(item_starts[i], item_starts[i + 1]):
                        value[item_answers[r]] = tried[r - item_starts[i]]
            if scored:
                precision, total = 1.0, 1.0
                for i in range(n):
                    precision += scores[i] * scores[i]
                    total += scores[i] * theta[i]
                influence[0] = total / precision + _normal(rng) / sqrt(precision)
            for j in range(n_judges):
                for turn in range(VISITED):
                    # The lapse and the slope both explain errors: their posterior is correlated.
                    column = <int> (N_PARAMETERS * _uniform(rng))
                    if turn < 2:
                        column = LAPSE if turn == 0 else SLOPE
                    for place in range(N_PARAMETERS):
                        row[place] = parameters[j, place]
                    change = 0.0
                    if column == SIGN:
                        if priors[j, 2 * SIGN] >= 1:
                            continue
                        row[SIGN] = -row[SIGN]
                    elif _uniform(rng) < 0.5:
                        row[column] += exp(-1.6 + 2 * _uniform(rng)) * _normal(rng)
                    else:
                        # A jump, with probabilities drawn from the unit interval.
                        change = _log_jump(row[column], column, &priors[j, 0])
                        if column == SLOPE or column == BIAS:
                            row[column] = priors[j, 2 * column]
                            row[column] += priors[j, 2 * column + 1] * _normal(rng)
                        else:
                            total = _uniform(rng)
                            row[column] = log(total) - log(1 - total)
                        change -= _log_jump(row[column], column, &priors[j, 0])
                    judge = _judge(row)
                    change += _log_prior(row, &priors[j, 0])
                    change -= _log_prior(&parameters[j, 0], &priors[j, 0])
                    product.factor, product.log = 1.0, 0.0
                    for k in range(judge_starts[j], judge_starts[j + 1]):
                        total = theta[first[k]] - theta[second[k]]
                        tried[k] = _likelihood(&A, k, &judge, total)
                        _multiply(&product, tried[k] / value[k], weight[k])
                    change += product.log + log(product.factor)
                    if change >= 0 or _uniform(rng) < exp(change):
                        parameters[j, column] = row[column]
                        for k in range(judge_starts[j], judge_starts[j + 1]):
                            value[k] = tried[k]
            if n_judges > 1:
                # Flipping all signs and all strengths together changes no likelihood.
                change = -2 * influence[0] if scored else 0.0
                for j in range(n_judges):
                    total = log((1 - priors[j, 2 * SIGN] + TINY) / (priors[j, 2 * SIGN] + TINY))
                    change += total if parameters[j, SIGN] > 0 else -total
                if change >= 0 or _uniform(rng) < exp(change):
                    influence[0] = -influence[0] if scored else influence[0]
                    for i in range(n):
                        theta[i] = -theta[i]
                    for j in range(n_judges):
                        parameters[j, SIGN] = -parameters[j, SIGN]
            if (step + 1) % thin == 0:
                place = (step + 1) // thin - 1
                kept_theta[place] = theta
                kept_parameters[place] = parameters
