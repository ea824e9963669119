/* A third party's extension: it trains PRank through rankcore_capi.h, in a loop of its own over
 * memory of its own, with the GIL released. Within the limited API where Python has one. */
#define PY_SSIZE_T_CLEAN
#include "buffers.h"

#include <stdlib.h>

/* Zeroed arrays for a new state. 0, or -1 without memory; close_state frees them either way. */
static int open_state(rc_prank_state *state, int64_t n_features, int32_t n_ranks, int average,
                      double gain)
{
    const size_t d = (size_t)n_features, k = (size_t)n_ranks - 1;
    state->n_features = n_features;
    state->n_ranks = n_ranks;
    state->weights = (double *)calloc(d, sizeof(double));
    state->steps = (int64_t *)calloc(k, sizeof(int64_t));
    state->thresholds = (double *)calloc(k, sizeof(double));
    state->forgetting.gain = gain;
    if (average) {
        state->weight_sums = (double *)calloc(d, sizeof(double));
        if (gain > 0)
            state->real_step_sums = (double *)calloc(k, sizeof(double));
        else
            state->step_sums = (int64_t *)calloc(k, sizeof(int64_t));
        if (!state->weight_sums || (!state->step_sums && !state->real_step_sums))
            return -1;
    }
    return state->weights && state->steps && state->thresholds ? 0 : -1;
}

static void close_state(rc_prank_state *state)
{
    free(state->weights);
    free(state->steps);
    free(state->thresholds);
    free(state->weight_sums);
    free(state->step_sums);
    free(state->real_step_sums);
}

/* Passes over the rows. n_rows, or the row that could not be learned, which ends training. */
static int64_t learn(rc_prank_state *state, const rc_rows *X, const int32_t *ranks, int n_passes)
{
    int64_t i;
    int pass;
    for (pass = 0; pass < n_passes; pass++)
        for (i = 0; i < X->n_rows; i++)
            if (rc_prank_update(state, rc_rows_get(X, i), ranks[i]) < 0)
                return i;
    return X->n_rows;
}

static PyObject *result(const rc_prank_state *state, int64_t reached, const double *mean_weights,
                        const double *mean_thresholds)
{
    const Py_ssize_t of_weights = (Py_ssize_t)sizeof(double) * (Py_ssize_t)state->n_features;
    const Py_ssize_t of_thresholds = (Py_ssize_t)sizeof(double) * (state->n_ranks - 1);
    /* A NULL buffer becomes None. */
    return Py_BuildValue(
        "{s:y#,s:y#,s:y#,s:y#,s:y#,s:L,s:L,s:L,s:L}", "weights", (const char *)state->weights,
        of_weights, "thresholds", (const char *)state->thresholds, of_thresholds, "steps",
        (const char *)state->steps, of_thresholds, "mean_weights", (const char *)mean_weights,
        of_weights, "mean_thresholds", (const char *)mean_thresholds, of_thresholds, "t",
        (long long)state->seen.t, "rank_loss", (long long)state->seen.rank_loss, "mistakes",
        (long long)state->seen.mistakes, "reached", (long long)reached);
}

static PyObject *train_on(const examples *of, int n_ranks, double threshold_scale, int strict,
                          int average, int n_passes, double gain)
{
    const int64_t n_features = of->X.n_features;
    rc_prank_state state = {0};
    double *mean_weights = NULL, *mean_thresholds = NULL;
    PyObject *answer = NULL;
    int64_t reached = 0;

    if (average) {
        mean_weights = (double *)calloc((size_t)n_features, sizeof(double));
        mean_thresholds = (double *)calloc((size_t)n_ranks, sizeof(double));
    }
    state.scale = threshold_scale * threshold_scale;
    state.tie = strict ? RC_TIE_STRICT : RC_TIE_CRAMMER;
    if (open_state(&state, n_features, n_ranks, average, gain) < 0 ||
        (average && (!mean_weights || !mean_thresholds))) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS;
        reached = learn(&state, &of->X, of->ranks, n_passes);
        if (average)
            rc_prank_average(&state, mean_weights, mean_thresholds);
        Py_END_ALLOW_THREADS;
        answer = result(&state, reached, mean_weights, mean_thresholds);
    }
    close_state(&state);
    free(mean_weights);
    free(mean_thresholds);
    return answer;
}

static PyObject *train(PyObject *module, PyObject *args)
{
    lent arrays = {0};
    examples of = {0};
    PyObject *tuple, *answer = NULL;
    int n_ranks, strict, average, n_passes;
    double threshold_scale, gain;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oidppid", &tuple, &n_ranks, &threshold_scale, &strict, &average,
                          &n_passes, &gain))
        return NULL;
    if (n_ranks < 2)
        PyErr_SetString(PyExc_ValueError, "there must be two ranks or more");
    else if (lend_examples(&arrays, tuple, &of) == 0)
        answer = train_on(&of, n_ranks, threshold_scale, strict, average, n_passes, gain);
    give_back(&arrays);
    return answer;
}

static PyMethodDef methods[] = {
    {"train", train, METH_VARARGS,
     "train(examples, n_ranks, threshold_scale, strict, average, n_passes, gain)"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "prank_trainer",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_prank_trainer(void)
{
    if (rc_import() < 0)
        return NULL;
    return PyModuleDef_Init(&definition);
}
