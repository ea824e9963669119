# cython: language_level=3, freethreading_compatible=True
"""A third party's Cython extension: it scores and trains with the C functions of rankcore."""

cimport rankcore.core
from libc.stdint cimport int32_t, int64_t
from rankcore.core cimport (
    RC_TIE_CRAMMER,
    RC_TIE_HIGH,
    RC_TIE_LOW,
    RC_TIE_STRICT,
    RC_UPDATE_PA1,
    rc_cusum,
    rc_cusum_rank,
    rc_cusum_state,
    rc_cusum_update,
    rc_import,
    rc_linear,
    rc_linear_score,
    rc_prank,
    rc_prank_average,
    rc_prank_rank,
    rc_prank_score,
    rc_prank_margin_update,
    rc_prank_state,
    rc_prank_update,
    rc_prank_view,
    rc_row_f32,
    rc_row_f64,
    rc_rows,
    rc_rows_csr,
    rc_rows_get,
)

# Scoring needs no import; training does, once in each module.
rc_import()


def rank_csr(
    const double[::1] data not None,
    const int32_t[::1] indices not None,
    const int64_t[::1] indptr not None,
    const double[::1] weights not None,
    const double[::1] thresholds not None,
    double[::1] scores not None,
    int32_t[::1] ranks not None,
):
    """Write the score and the rank of each row of a CSR matrix, whose columns fit the weights."""
    cdef rc_prank model
    cdef rc_rows X
    cdef int64_t i
    if len(indptr) != len(scores) + 1 or len(ranks) != len(scores) or len(thresholds) < 1:
        raise ValueError("the arrays do not fit together")
    if len(data) != len(indices) or len(data) != indptr[len(scores)] or len(data) < 1:
        raise ValueError("not a CSR matrix")
    model.weights = &weights[0]
    model.thresholds = &thresholds[0]
    model.n_features = len(weights)
    model.n_ranks = <int32_t> len(thresholds) + 1
    X = rc_rows_csr(
        &data[0], &indices[0], &indptr[0], rankcore.core.RC_FLOAT64, len(scores), len(weights)
    )
    with nogil:
        for i in range(X.n_rows):
            scores[i] = rc_prank_score(&model, rc_rows_get(&X, i))
            ranks[i] = rc_prank_rank(&model, rc_rows_get(&X, i))


def dots(const double[:, ::1] X not None, const double[::1] weights not None):
    """Inner products of dense float64 rows, one at a time."""
    if X.shape[1] != len(weights):
        raise ValueError("X and weights do not fit together")
    return [
        rankcore.core.rc_dot(rc_row_f64(&X[i, 0], NULL, X.shape[1]), &weights[0])
        for i in range(X.shape[0])
    ]


def linear_scores(
    const double[:, ::1] X not None, const double[::1] weights not None, double intercept
):
    """Scores of dense float64 rows by a linear model."""
    cdef rc_linear model
    if X.shape[1] != len(weights):
        raise ValueError("X and weights do not fit together")
    model.weights = &weights[0]
    model.intercept = intercept
    model.n_features = len(weights)
    return [
        rc_linear_score(&model, rc_row_f64(&X[i, 0], NULL, X.shape[1]))
        for i in range(X.shape[0])
    ]


def train_dense(
    const float[:, ::1] X not None,
    const int32_t[::1] ranks not None,
    double threshold_scale,
    double margin,
    bint strict,
    double[::1] weights not None,
    int64_t[::1] steps not None,
    double[::1] thresholds not None,
    double[::1] weight_sums not None,
    int64_t[::1] step_sums not None,
    double[::1] mean_weights not None,
    double[::1] mean_thresholds not None,
):
    """Train on dense float32 rows, in arrays of zeros; write the averages; return the counters.

    The list of predictions made before each update comes last.
    """
    cdef rc_prank_state state
    cdef rc_prank current
    cdef int32_t n_ranks = <int32_t> len(steps) + 1
    cdef int64_t i
    cdef list predictions = []
    if not X.shape[1] == len(weights) == len(weight_sums) == len(mean_weights) > 0:
        raise ValueError("X and the weights do not fit together")
    if not len(steps) == len(thresholds) == len(step_sums) == len(mean_thresholds) > 0:
        raise ValueError("the thresholds do not fit together")
    if X.shape[0] != len(ranks):
        raise ValueError("X and ranks do not fit together")
    state.weights = &weights[0]
    state.steps = &steps[0]
    state.thresholds = &thresholds[0]
    state.weight_sums = &weight_sums[0]
    state.step_sums = &step_sums[0]
    state.scale = threshold_scale * threshold_scale
    state.seen.t = state.seen.rank_loss = state.seen.mistakes = 0
    state.n_features = len(weights)
    state.n_ranks = n_ranks
    state.tie = RC_TIE_STRICT if strict else RC_TIE_CRAMMER
    for i in range(X.shape[0]):
        x = rc_row_f32(&X[i, 0], NULL, X.shape[1])
        current = rc_prank_view(&state)
        before = rc_prank_rank(&current, x)
        with nogil:
            if margin:
                predicted = rc_prank_margin_update(&state, x, ranks[i], margin)
            else:
                predicted = rc_prank_update(&state, x, ranks[i])
        if predicted < 0:
            raise ValueError(f"row {i} could not be learned")
        if predicted != before:
            raise ArithmeticError(f"row {i}: predicted {before}, the update says {predicted}")
        predictions.append(predicted)
    rc_prank_average(&state, &mean_weights[0], &mean_thresholds[0])
    return state.seen.t, state.seen.rank_loss, state.seen.mistakes, predictions


def train_cusum(
    const float[:, ::1] X not None,
    const int32_t[::1] ranks not None,
    double C,
    bint low,
    double[:, ::1] weights not None,
    double[::1] thresholds not None,
    double[::1] scratch not None,
):
    """Train CuSum Rank (PA-I) on dense float32 rows, in arrays of zeros; return the counters.

    The list of predictions made before each update comes last.
    """
    cdef rc_cusum_state state
    cdef rc_cusum current
    cdef int32_t tasks = <int32_t> len(thresholds)
    cdef int64_t i
    cdef list predictions = []
    if not X.shape[1] == weights.shape[0] > 0 or not weights.shape[1] == tasks > 0:
        raise ValueError("X, weights and thresholds do not fit together")
    if X.shape[0] != len(ranks) or len(scratch) != 2 * (tasks + 1):
        raise ValueError("X, ranks and scratch do not fit together")
    current.weights = state.weights = &weights[0, 0]
    current.thresholds = state.thresholds = &thresholds[0]
    current.n_features = state.n_features = X.shape[1]
    current.n_ranks = state.n_ranks = tasks + 1
    current.tie = state.tie = RC_TIE_LOW if low else RC_TIE_HIGH
    state.weight_sums = state.threshold_sums = NULL  # no averages
    state.scores = &scratch[0]
    state.update = RC_UPDATE_PA1
    state.C = C
    state.delta = 1.0
    state.margin = 0.0
    state.zero_one = False
    state.scale = 1.0
    state.seen.t = state.seen.rank_loss = state.seen.mistakes = 0
    for i in range(X.shape[0]):
        x = rc_row_f32(&X[i, 0], NULL, X.shape[1])
        before = rc_cusum_rank(&current, x, &scratch[0])
        with nogil:
            predicted = rc_cusum_update(&state, x, ranks[i])
        if predicted < 0:
            raise ValueError(f"row {i} could not be learned")
        if predicted != before:
            raise ArithmeticError(f"row {i}: predicted {before}, the update says {predicted}")
        predictions.append(predicted)
    return state.seen.t, state.seen.rank_loss, state.seen.mistakes, predictions
