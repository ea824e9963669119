/* A third party's extension: it trains the other learners of rankcore_capi.h in arrays that Python
 * lends, with the GIL released. Within the limited API where Python has one. */
#define PY_SSIZE_T_CLEAN
#include "buffers.h"

/* n items of an array that the state may write; NULL with an exception set. */
static void *items(lent *arrays, PyObject *object, int64_t n, size_t size)
{
    const Py_buffer *view = view_of(arrays, object, 1);
    if (view && (view->itemsize != (Py_ssize_t)size || view->len != n * (Py_ssize_t)size)) {
        PyErr_Format(PyExc_ValueError, "an array has %zd bytes; it needs %lld of %zd each",
                     view->len, (long long)n, (Py_ssize_t)size);
        return NULL;
    }
    return view ? view->buf : NULL;
}

static double *doubles(lent *arrays, PyObject *object, int64_t n)
{
    return (double *)items(arrays, object, n, sizeof(double));
}

/* Sums are needed for averages alone. */
static double *doubles_or_null(lent *arrays, PyObject *object, int64_t n)
{
    return object == Py_None ? NULL : doubles(arrays, object, n);
}

/* What all learners take, and give back but for their arrays. */
typedef struct job {
    lent arrays;
    examples of;
    int n_passes;
    rc_counts *seen;
    rc_forgetting *forgetting;
    int32_t *predictions; /* one for each example met */
} job;

/* From (examples, n_passes, seen, forgetting, predictions). 0, or -1 with an exception set. */
static int open_job(job *it, PyObject *tuple)
{
    PyObject *of, *seen, *forgetting, *predictions;
    if (!PyArg_ParseTuple(tuple, "OiOOO", &of, &it->n_passes, &seen, &forgetting, &predictions) ||
        lend_examples(&it->arrays, of, &it->of) < 0)
        return -1;
    it->seen = (rc_counts *)items(&it->arrays, seen, 3, sizeof(int64_t));
    it->forgetting = (rc_forgetting *)items(&it->arrays, forgetting, 2, sizeof(double));
    it->predictions =
        (int32_t *)items(&it->arrays, predictions, it->n_passes * it->of.X.n_rows, sizeof(int32_t));
    return it->seen && it->forgetting && it->predictions ? 0 : -1;
}

typedef int32_t (*update_function)(void *state, rc_row x, int32_t rank);

static int32_t cusum_update(void *state, rc_row x, int32_t rank)
{
    return rc_cusum_update((rc_cusum_state *)state, x, rank);
}

static int32_t lms_update(void *state, rc_row x, int32_t rank)
{
    return rc_lms_update((rc_lms_state *)state, x, rank);
}

static int32_t mcp_update(void *state, rc_row x, int32_t rank)
{
    return rc_mcp_update((rc_mcp_state *)state, x, rank);
}

/* Passes over the examples: how many were learned, be it all or those before the first that was
 * refused, whose prediction is -1. */
static int64_t learn(const job *it, update_function update, void *state)
{
    const rc_rows *X = &it->of.X;
    const int64_t n = it->n_passes * X->n_rows;
    int64_t i;
    for (i = 0; i < n; i++) {
        const int64_t row = i % X->n_rows;
        it->predictions[i] = update(state, rc_rows_get(X, row), it->of.ranks[row]);
        if (it->predictions[i] < 0)
            break;
    }
    return i;
}

static PyObject *run(const job *it, update_function update, void *state)
{
    int64_t learned;
    Py_BEGIN_ALLOW_THREADS;
    learned = learn(it, update, state);
    Py_END_ALLOW_THREADS;
    return PyLong_FromLongLong(learned);
}

static PyObject *train_cusum(PyObject *module, PyObject *args)
{
    PyObject *what, *weights, *thresholds, *weight_sums, *threshold_sums, *scores, *answer = NULL;
    rc_cusum_state state = {0};
    job it = {0};
    int64_t tasks, n;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOidddiipd", &what, &weights, &thresholds, &weight_sums,
                          &threshold_sums, &scores, &state.n_ranks, &state.C, &state.delta,
                          &state.margin, &state.tie, &state.update, &state.zero_one, &state.scale))
        return NULL;
    if (open_job(&it, what) == 0) {
        tasks = state.n_ranks - 1;
        n = it.of.X.n_features * tasks;
        state.n_features = it.of.X.n_features;
        state.weights = doubles(&it.arrays, weights, n);
        state.thresholds = doubles(&it.arrays, thresholds, tasks);
        state.weight_sums = doubles_or_null(&it.arrays, weight_sums, n);
        state.threshold_sums = doubles_or_null(&it.arrays, threshold_sums, tasks);
        state.scores = doubles(&it.arrays, scores, 2 * state.n_ranks);
        state.seen = *it.seen;
        state.forgetting = *it.forgetting;
        if (!PyErr_Occurred())
            answer = run(&it, cusum_update, &state);
        *it.seen = state.seen;
        *it.forgetting = state.forgetting;
    }
    give_back(&it.arrays);
    return answer;
}

static PyObject *train_lms(PyObject *module, PyObject *args)
{
    PyObject *what, *weights, *intercept, *weight_sums, *intercept_sums, *answer = NULL;
    rc_lms_state state = {0};
    job it = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOiddp", &what, &weights, &intercept, &weight_sums,
                          &intercept_sums, &state.n_ranks, &state.eta, &state.scale,
                          &state.normalized))
        return NULL;
    if (open_job(&it, what) == 0) {
        state.n_features = it.of.X.n_features;
        state.weights = doubles(&it.arrays, weights, state.n_features);
        state.intercept = doubles(&it.arrays, intercept, 1);
        state.weight_sums = doubles_or_null(&it.arrays, weight_sums, state.n_features);
        state.intercept_sums = doubles_or_null(&it.arrays, intercept_sums, 1);
        state.seen = *it.seen;
        state.forgetting = *it.forgetting;
        if (!PyErr_Occurred())
            answer = run(&it, lms_update, &state);
        *it.seen = state.seen;
        *it.forgetting = state.forgetting;
    }
    give_back(&it.arrays);
    return answer;
}

static PyObject *train_mcp(PyObject *module, PyObject *args)
{
    PyObject *what, *weights, *intercepts, *weight_sums, *intercept_sums, *scores, *answer = NULL;
    rc_mcp_state state = {0};
    job it = {0};
    int64_t n;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOipd", &what, &weights, &intercepts, &weight_sums,
                          &intercept_sums, &scores, &state.n_ranks, &state.uniform, &state.scale))
        return NULL;
    if (open_job(&it, what) == 0) {
        n = it.of.X.n_features * state.n_ranks;
        state.n_features = it.of.X.n_features;
        state.weights = doubles(&it.arrays, weights, n);
        state.intercepts = doubles(&it.arrays, intercepts, state.n_ranks);
        state.weight_sums = doubles_or_null(&it.arrays, weight_sums, n);
        state.intercept_sums = doubles_or_null(&it.arrays, intercept_sums, state.n_ranks);
        state.scores = doubles(&it.arrays, scores, state.n_ranks);
        state.seen = *it.seen;
        state.forgetting = *it.forgetting;
        if (!PyErr_Occurred())
            answer = run(&it, mcp_update, &state);
        *it.seen = state.seen;
        *it.forgetting = state.forgetting;
    }
    give_back(&it.arrays);
    return answer;
}

/* Averages over examples of this number or weight, from what was learned and its sums. */
static void average(const double *last, const double *sums, double total, int64_t n, double *means)
{
    int64_t i;
    for (i = 0; i < n; i++)
        means[i] = last[i] - sums[i] / total;
}

static PyObject *average_of(PyObject *module, PyObject *args)
{
    PyObject *last, *sums, *means;
    double *from, *with, *to, total;
    long long n;
    lent arrays = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OOdLO", &last, &sums, &total, &n, &means))
        return NULL;
    from = doubles(&arrays, last, n);
    with = doubles(&arrays, sums, n);
    to = doubles(&arrays, means, n);
    if (!PyErr_Occurred())
        average(from, with, total, n, to);
    give_back(&arrays);
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(n);
}

static PyMethodDef methods[] = {
    {"train_cusum", train_cusum, METH_VARARGS,
     "train_cusum(job, weights, thresholds, weight_sums, threshold_sums, scores, n_ranks, C, "
     "delta, margin, tie, update, zero_one, scale)"},
    {"train_lms", train_lms, METH_VARARGS,
     "train_lms(job, weights, intercept, weight_sums, intercept_sums, n_ranks, eta, scale, "
     "normalized)"},
    {"train_mcp", train_mcp, METH_VARARGS,
     "train_mcp(job, weights, intercepts, weight_sums, intercept_sums, scores, n_ranks, uniform, "
     "scale)"},
    {"average", average_of, METH_VARARGS, "average(last, sums, total, n, means)"},
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
    .m_name = "ordinal_trainer",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_ordinal_trainer(void)
{
    if (rc_import() < 0)
        return NULL;
    return PyModuleDef_Init(&definition);
}
