/* rankcore_capi.h - train from C. Needs Python.h and an importable rankcore.
 *
 * Call rc_import() once per translation unit, holding the GIL. Every other function may then be
 * called without the GIL. A state belongs to its caller: distinct states may be trained at the
 * same time, one state by one thread at a time.
 */
#ifndef RANKCORE_CAPI_H
#define RANKCORE_CAPI_H

#include <Python.h>

#include "rankcore.h"

/* Version of the table below. Entries are only ever appended, so a table of a later version
 * serves programs compiled against an earlier one. */
#define RC_CAPI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* What an update does with thresholds that the score hits exactly (s == b_r, true rank above r):
 * moves them too, as in the paper (CRAMMER), or leaves them (STRICT). */
enum { RC_TIE_CRAMMER = 0, RC_TIE_STRICT = 1 };

/* PRank in training. The caller owns every array. Start from zeros, with n_features, n_ranks, tie
 * and scale set; to average, provide both sums, else leave both NULL. */
typedef struct rc_prank_state {
    double *weights;     /* n_features */
    int64_t *steps;      /* n_ranks - 1, ascending: thresholds on the integer lattice */
    double *thresholds;  /* n_ranks - 1: scale * steps, kept current by the updates */
    double *weight_sums; /* n_features or NULL: sum over updates of (examples before it) * change */
    int64_t *step_sums;  /* n_ranks - 1 or NULL: the same for steps */
    double scale;        /* threshold_scale squared; 1.0 for the paper's PRank */
    int64_t t;           /* examples seen */
    int64_t rank_loss;   /* sum of |predicted - true rank| over them */
    int64_t mistakes;    /* number of them ranked wrongly */
    int64_t n_features;
    int32_t n_ranks;
    int32_t tie;
} rc_prank_state;

typedef struct rc_capi {
    uint32_t version;
    uint32_t size; /* bytes of this table */
    int32_t (*prank_update)(rc_prank_state *, rc_row, int32_t);
    void (*prank_average)(const rc_prank_state *, double *, double *);
} rc_capi;

static const rc_capi *rc_api = NULL;

/* Loads the table. 0, or -1 with a Python exception set. Needs the GIL. */
static inline int rc_import(void)
{
    PyObject *module = PyImport_ImportModule("rankcore._ext.capi");
    PyObject *capsule = module ? PyObject_GetAttrString(module, "table") : NULL;
    const rc_capi *found =
        capsule ? (const rc_capi *)PyCapsule_GetPointer(capsule, "rankcore._ext.capi.table") : NULL;
    if (found && (found->version < RC_CAPI_VERSION || found->size < sizeof(rc_capi))) {
        PyErr_Format(
            PyExc_ImportError,
            "the installed rankcore offers version %d of its C functions, this program was "
            "compiled against version %d: upgrade rankcore, or compile against the "
            "installed headers",
            (int)found->version, RC_CAPI_VERSION);
        found = NULL;
    }
    /* The module keeps the capsule, and the table is static: neither reference is needed. */
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    rc_api = found;
    return found ? 0 : -1;
}

/* One online step: predicts x's rank, then learns from its true rank (0 .. n_ranks - 1).
 * Returns the rank predicted before the update, or -1 and changes nothing when the projection
 * overflowed. The row's columns must be distinct and inside the state, as for rc_axpy. Writes the
 * state's arrays and counters. O(x.n + n_ranks). */
static inline int32_t rc_prank_update(rc_prank_state *state, rc_row x, int32_t rank)
{
    return rc_api->prank_update(state, x, rank);
}

/* Writes the averages over all t examples of the weights (n_features) and thresholds
 * (n_ranks - 1). Needs both sums in the state. O(n_features + n_ranks). */
static inline void rc_prank_average(const rc_prank_state *state, double *weights,
                                    double *thresholds)
{
    rc_api->prank_average(state, weights, thresholds);
}

/* The state's current hypothesis, to score with; borrows its arrays. O(1). */
static inline rc_prank rc_prank_view(const rc_prank_state *state)
{
    rc_prank model;
    model.weights = state->weights;
    model.thresholds = state->thresholds;
    model.n_features = state->n_features;
    model.n_ranks = state->n_ranks;
    return model;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_CAPI_H */
