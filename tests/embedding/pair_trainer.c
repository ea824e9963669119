/* A third party's extension: it trains a pairwise perceptron through rankcore_capi.h in arrays that
 * Python lends, with the GIL released. Within the limited API where Python has one. */
#define PY_SSIZE_T_CLEAN
#include "buffers.h"

static void *items(lent *arrays, PyObject *object, int64_t n, size_t size)
{
    const Py_buffer *view = object == Py_None ? NULL : view_of(arrays, object, 1);
    if (view && view->len != n * (Py_ssize_t)size) {
        PyErr_Format(PyExc_ValueError, "an array has %zd bytes; it needs %lld of %zd each",
                     view->len, (long long)n, (Py_ssize_t)size);
        return NULL;
    }
    return view ? view->buf : NULL;
}

/* Learns from n pairs of rows: how many were learned, be it all or those before the first that was
 * refused. */
static int64_t learn(rc_pair_state *state, const rc_rows *X, const int64_t *pairs, int64_t n,
                     double step, const double *units, int32_t *answers)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        const rc_row winner = rc_rows_get(X, pairs[2 * i]);
        const rc_row loser = rc_rows_get(X, pairs[2 * i + 1]);
        answers[i] = rc_pair_update(state, winner, loser, step, units[i]);
        if (answers[i] < 0)
            break;
    }
    return i;
}

/* train(examples, pairs, n, step, units, answers, weights, weight_sums, members, successes, born,
 * capacity, margin, average, committee): (learned, kept, n_pairs, n_mistakes, averaged, met). */
static PyObject *train(PyObject *module, PyObject *args)
{
    PyObject *of, *pairs, *units, *answers, *weights, *sums, *members, *successes, *born, *average,
        *committee, *answer = NULL;
    rc_pair_state state = {0};
    examples rows = {0};
    lent arrays = {0};
    double step;
    long long n, capacity;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOLdOOOOOOOLdOO", &of, &pairs, &n, &step, &units, &answers,
                          &weights, &sums, &members, &successes, &born, &capacity, &state.margin,
                          &average, &committee))
        return NULL;
    if (lend_examples(&arrays, of, &rows) == 0) {
        const int64_t d = rows.X.n_features;
        const int64_t *which = (const int64_t *)items(&arrays, pairs, 2 * n, sizeof(int64_t));
        const double *counts = (const double *)items(&arrays, units, n, sizeof(double));
        int32_t *answered = (int32_t *)items(&arrays, answers, n, sizeof(int32_t));
        double *mean = (double *)items(&arrays, average, d, sizeof(double));
        double *joint = (double *)items(&arrays, committee, d, sizeof(double));
        state.n_features = d;
        state.capacity = capacity;
        state.weights = (double *)items(&arrays, weights, d, sizeof(double));
        state.weight_sums = (double *)items(&arrays, sums, d, sizeof(double));
        state.members = (double *)items(&arrays, members, capacity * d, sizeof(double));
        state.successes = (double *)items(&arrays, successes, capacity, sizeof(double));
        state.born = (int64_t *)items(&arrays, born, capacity, sizeof(int64_t));
        if (!PyErr_Occurred()) {
            int64_t learned;
            int32_t averaged, met;
            Py_BEGIN_ALLOW_THREADS;
            learned = learn(&state, &rows.X, which, n, step, counts, answered);
            averaged = rc_pair_average(&state, mean);
            met = rc_pair_committee(&state, joint);
            Py_END_ALLOW_THREADS;
            answer = Py_BuildValue("(LLLLii)", (long long)learned, (long long)state.kept,
                                   (long long)state.n_pairs, (long long)state.n_mistakes,
                                   (int)averaged, (int)met);
        }
    }
    give_back(&arrays);
    return answer;
}

static PyMethodDef methods[] = {
    {"train", train, METH_VARARGS, "train(examples, pairs, n, step, units, answers, ...)"},
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
    .m_name = "pair_trainer",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_pair_trainer(void)
{
    if (rc_import() < 0)
        return NULL;
    return PyModuleDef_Init(&definition);
}
