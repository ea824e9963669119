/* What the trainers share: arrays that Python lends, and examples made of them. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "rankcore_capi.h"

enum { MOST_ARRAYS = 16 };

/* Arrays borrowed from Python objects until give_back. Start from zeros. */
typedef struct lent {
    Py_buffer views[MOST_ARRAYS];
    int n;
} lent;

/* Rows and their true ranks. */
typedef struct examples {
    rc_rows X;
    const int32_t *ranks;
} examples;

static void give_back(lent *arrays)
{
    while (arrays->n > 0)
        PyBuffer_Release(&arrays->views[--arrays->n]);
}

/* A contiguous array; NULL with an exception set, or if one was set before. */
static const Py_buffer *view_of(lent *arrays, PyObject *object, int writable)
{
    Py_buffer *view = &arrays->views[arrays->n];
    const int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyErr_Occurred() || PyObject_GetBuffer(object, view, flags) < 0)
        return NULL;
    arrays->n++;
    return view;
}

/* The columns and ranks of rows are used as they are, so whoever calls the updates must look: every
 * column in range, those of a row distinct (here: ascending). Ranks are checked by the updates. */
static int fits(const rc_rows *X, int64_t n_stored)
{
    int64_t row, i;
    if (X->n_rows < 0 || X->indptr[0] != 0)
        return 0;
    for (row = 0; row < X->n_rows; row++) {
        const int64_t first = X->indptr[row], stop = X->indptr[row + 1];
        if (stop < first || stop > n_stored)
            return 0;
        for (i = first; i < stop; i++)
            if (X->indices[i] < 0 || X->indices[i] >= X->n_features ||
                (i > first && X->indices[i] <= X->indices[i - 1]))
                return 0;
    }
    return 1;
}

/* Examples from (data, indices, indptr, ranks, n_features): CSR of doubles or floats, or dense with
 * None for indices and indptr. 0, or -1 with an exception set. */
static int lend_examples(lent *arrays, PyObject *tuple, examples *to)
{
    PyObject *data, *indices, *indptr, *ranks;
    const Py_buffer *values, *columns, *offsets, *labels;
    rc_rows *X = &to->X;
    long long n_features;
    int64_t n_stored;
    int good;
    if (!PyArg_ParseTuple(tuple, "OOOOL", &data, &indices, &indptr, &ranks, &n_features) ||
        !(values = view_of(arrays, data, 0)) || !(labels = view_of(arrays, ranks, 0)))
        return -1;
    n_stored = values->len / values->itemsize;
    X->data = values->buf;
    X->n_features = n_features;
    X->dtype = values->itemsize == (Py_ssize_t)sizeof(float) ? RC_FLOAT32 : RC_FLOAT64;
    to->ranks = (const int32_t *)labels->buf;
    good = n_features >= 1;
    if (good && indices == Py_None) {
        X->stride = n_features;
        X->n_rows = n_stored / n_features;
        good = X->n_rows * n_features == n_stored;
    } else if (good) {
        columns = view_of(arrays, indices, 0);
        offsets = view_of(arrays, indptr, 0);
        if (!columns || !offsets)
            return -1;
        X->indices = (const int32_t *)columns->buf;
        X->indptr = (const int64_t *)offsets->buf;
        X->n_rows = offsets->len / (Py_ssize_t)sizeof(int64_t) - 1;
        good = columns->len == n_stored * (Py_ssize_t)sizeof(int32_t) && fits(X, n_stored);
    }
    if (good && labels->len == X->n_rows * (Py_ssize_t)sizeof(int32_t))
        return 0;
    PyErr_SetString(PyExc_ValueError, "not a matrix and its ranks");
    return -1;
}

#endif /* BUFFERS_H */
