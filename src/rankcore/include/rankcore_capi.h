/* rankcore_capi.h - train from C. Requires Python.h and an importable rankcore.
 *
 * Call rc_import() once per translation unit, holding the GIL. Every other function may then be
 * called without the GIL. The caller owns a state: distinct states may be trained at the
 * same time, one state by one thread at a time.
 */
#ifndef RANKCORE_CAPI_H
#define RANKCORE_CAPI_H

#include <Python.h>

#include "rankcore.h"

/* Version of the table below. Entries are only appended, so that a table of a later version
 * supports programs compiled against an earlier one. */
#define RC_CAPI_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

/* Treatment of thresholds that equal the score in an update (s == b_r, true rank above r): they
 * move too, as in the paper (CRAMMER), or not (STRICT). */
enum { RC_TIE_CRAMMER = 0, RC_TIE_STRICT = 1 };

/* Counts of an online learner. Start from zeros; the updates count. */
typedef struct rc_counts {
    int64_t t;         /* examples seen */
    int64_t rank_loss; /* sum of |predicted - true rank| over them */
    int64_t mistakes;  /* number of them ranked wrongly */
} rc_counts;

/* Weights of examples in averages. Zeros weigh all examples alike. To forget, set gain to
 * exp2(1 / half_life) - 1, half_life >= 1: each example weighs 1 + gain times as much as the one
 * before it, and half as much as the one half_life examples later. Sums are then of (weight of the
 * examples before an update) * change, and an average is parameter - sum / past. */
typedef struct rc_forgetting {
    double gain;
    double past; /* weight of the examples so far, updated; 0 without gain */
} rc_forgetting;

/* PRank in training. The caller owns every array. Start from zeros, with n_features, n_ranks, tie
 * and scale set; to average, provide both sums, else leave all NULL. */
typedef struct rc_prank_state {
    double *weights;     /* n_features */
    int64_t *steps;      /* n_ranks - 1, ascending: thresholds on the integer lattice */
    double *thresholds;  /* n_ranks - 1: scale * steps, updated with steps */
    double *weight_sums; /* n_features or NULL: sum over updates of (examples before it) * change */
    int64_t *step_sums;  /* n_ranks - 1 or NULL: the same for steps, if forgetting is zeros */
    double *real_step_sums; /* n_ranks - 1 or NULL: the same for steps, if it is not */
    double scale;           /* threshold_scale squared; 1.0 for the paper's PRank */
    rc_forgetting forgetting;
    int64_t n_features;
    int32_t n_ranks;
    int32_t tie;
    rc_counts seen;
} rc_prank_state;

/* Step size of a CuSum update: 1, or passive-aggressive (Crammer et al. 2006). */
enum { RC_UPDATE_PERCEPTRON = 0, RC_UPDATE_PA = 1, RC_UPDATE_PA1 = 2, RC_UPDATE_PA2 = 3 };

/* CuSum Rank in training. The caller owns every array. Start from zeros, with everything from C on
 * set but seen; to average, provide both sums, else leave both NULL. */
typedef struct rc_cusum_state {
    double *weights;        /* n_features * (n_ranks - 1), see rc_cusum */
    double *thresholds;     /* n_ranks - 1; they stay 0 if scale is 0 */
    double *weight_sums;    /* as weights, or NULL */
    double *threshold_sums; /* as thresholds, or NULL */
    double *scores;         /* 2 * n_ranks, scratch */
    double C;               /* aggressiveness of PA1 and PA2 */
    double delta;           /* loss of one rank (PA) */
    double margin;          /* margin of a rank's score, per rank of distance; 0 for none */
    double scale; /* intercept_scaling squared: 1.0 for the paper's thresholds, 0 for none */
    rc_forgetting forgetting;
    int64_t n_features;
    int32_t n_ranks;
    int32_t tie;      /* RC_TIE_HIGH or RC_TIE_LOW */
    int32_t update;   /* RC_UPDATE_... */
    int32_t zero_one; /* PA's loss: 0 for delta * distance in ranks, 1 for delta */
    rc_counts seen;
} rc_cusum_state;

/* Widrow-Hoff in training: online least squares on the ranks 1 .. n_ranks. The caller owns every
 * array; to average, provide both sums, else leave both NULL. */
typedef struct rc_lms_state {
    double *weights;        /* n_features */
    double *intercept;      /* one number; it stays 0 if scale is 0 */
    double *weight_sums;    /* as weights, or NULL */
    double *intercept_sums; /* as intercept, or NULL */
    double eta;             /* step size */
    double scale;           /* intercept_scaling squared: 1.0 for the usual intercept, 0 for none */
    rc_forgetting forgetting;
    int64_t n_features;
    int32_t n_ranks;
    int32_t normalized; /* 1: eta is divided by the squared length of the row and scale */
    rc_counts seen;
} rc_lms_state;

/* Multiclass perceptron in training. The caller owns every array; sums as in PRank. */
typedef struct rc_mcp_state {
    double *weights;        /* n_features * n_ranks, class r of a column at column * n_ranks + r */
    double *intercepts;     /* n_ranks; they stay 0 if scale is 0 */
    double *weight_sums;    /* as weights, or NULL */
    double *intercept_sums; /* as intercepts, or NULL */
    double *scores;         /* n_ranks, scratch */
    double scale;           /* intercept_scaling squared: 1.0 for usual intercepts, 0 for none */
    rc_forgetting forgetting;
    int64_t n_features;
    int32_t n_ranks;
    int32_t uniform; /* 0: the best wrong class loses a row on a mistake, 1: all that beat the true
                        one */
    rc_counts seen;
} rc_mcp_state;

/* A pairwise perceptron in training: the current weights, their average, and the past hypotheses
 * with the most successes. A hypothesis lasts from one mistake to the next; each pair that it
 * ranks correctly is a success and counts `unit`. The caller owns every array. Start from zeros,
 * with everything above `kept` set. */
typedef struct rc_pair_state {
    double *weights; /* n_features: the current hypothesis */
    double
        *weight_sums;  /* n_features or NULL: sum over updates of (successes before it) * change */
    double *members;   /* capacity * n_features: past hypotheses; NULL if capacity is 0 */
    double *successes; /* capacity: successes of each of them */
    int64_t *born;     /* capacity: number of each hypothesis, from 0 */
    int64_t capacity;
    int64_t n_features;
    double margin; /* a pair whose scores differ by this or less is a mistake; 0 for none */
    rc_forgetting forgetting; /* with a half-life in mistakes, which end a hypothesis */
    int64_t kept;             /* number of members */
    double streak;            /* successes of the current hypothesis at earlier units ... */
    double total;             /* ... and of all so far */
    double unit;              /* value of a success at present ... */
    int64_t run;              /* ... and number of these of the current hypothesis */
    int64_t right;            /* ... and of all */
    int64_t n_pairs;          /* pairs seen */
    int64_t n_mistakes;       /* of them misranked; also the number of past hypotheses */
} rc_pair_state;

typedef struct rc_capi {
    uint32_t version;
    uint32_t size; /* bytes of this table */
    int32_t (*prank_update)(rc_prank_state *, rc_row, int32_t);
    void (*prank_average)(const rc_prank_state *, double *, double *);
    int32_t (*cusum_update)(rc_cusum_state *, rc_row, int32_t);
    int32_t (*lms_update)(rc_lms_state *, rc_row, int32_t);
    int32_t (*mcp_update)(rc_mcp_state *, rc_row, int32_t);
    /* version 2 */
    int32_t (*pair_update)(rc_pair_state *, rc_row, rc_row, double, double);
    int32_t (*pair_average)(const rc_pair_state *, double *);
    int32_t (*pair_committee)(const rc_pair_state *, double *);
    /* version 3 */
    int32_t (*prank_margin_update)(rc_prank_state *, rc_row, int32_t, double);
} rc_capi;

static const rc_capi *rc_api = NULL;

/* Loads the table; returns 0, or -1 with a Python exception set. Requires the GIL. */
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
    /* The module keeps the capsule, and the table is static: no reference is needed. */
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    rc_api = found;
    return found ? 0 : -1;
}

/* One online step: predicts x's rank, then learns from its true rank (0 .. n_ranks - 1). Returns
 * the rank predicted before the update, or -1, with nothing changed, if the score overflowed or
 * the true rank is invalid. The row's columns must be distinct and exist in the state, as for
 * rc_axpy. Rows are learned as they are, as with standardize=False in Python. Writes the state's
 * arrays and counters. O(x.n + n_ranks). */
static inline int32_t rc_prank_update(rc_prank_state *state, rc_row x, int32_t rank)
{
    return rc_api->prank_update(state, x, rank);
}

/* The same step with a margin, which must be at least 0, else -1: a threshold also moves if the
 * score is on its right side by less than this. Pass the same margin at every step. */
static inline int32_t rc_prank_margin_update(rc_prank_state *state, rc_row x, int32_t rank,
                                             double margin)
{
    return rc_api->prank_margin_update(state, x, rank, margin);
}

/* Writes the averages over all t examples of the weights (n_features) and thresholds (n_ranks -
 * 1), weighted by `forgetting`. Requires both sums in the state. O(n_features + n_ranks). */
static inline void rc_prank_average(const rc_prank_state *state, double *weights,
                                    double *thresholds)
{
    rc_api->prank_average(state, weights, thresholds);
}

/* The same step of the other learners. O(x.n * n_ranks); Widrow-Hoff O(x.n). */
static inline int32_t rc_cusum_update(rc_cusum_state *state, rc_row x, int32_t rank)
{
    return rc_api->cusum_update(state, x, rank);
}

static inline int32_t rc_lms_update(rc_lms_state *state, rc_row x, int32_t rank)
{
    return rc_api->lms_update(state, x, rank);
}

static inline int32_t rc_mcp_update(rc_mcp_state *state, rc_row x, int32_t rank)
{
    return rc_api->mcp_update(state, x, rank);
}

/* One online step of a pairwise perceptron: `winner` should score above `loser`. On a mistake
 * the current hypothesis becomes a member (in a free slot, or replacing the one with the fewest
 * successes if it has more), and the weights move by step * (winner - loser); otherwise the
 * successes of the hypothesis grow by `unit`. Returns 1 for a mistake, 0 for none, and -1, with
 * nothing changed, if a score overflowed. Both rows must have distinct columns that exist in the
 * state. O(winner.n + loser.n), and O(n_features + capacity) if a hypothesis is kept. */
static inline int32_t rc_pair_update(rc_pair_state *state, rc_row winner, rc_row loser, double step,
                                     double unit)
{
    return rc_api->pair_update(state, winner, loser, step, unit);
}

/* Writes the weights (n_features) of an rc_linear without intercept: the mean of all hypotheses,
 * weighted by successes (requires weight_sums), or the same for the committee, the best
 * `capacity` of the members and the current hypothesis (requires members). Returns 0, or -1
 * without these arrays, with nothing written. O(n_features), O(n_features * capacity). */
static inline int32_t rc_pair_average(const rc_pair_state *state, double *weights)
{
    return rc_api->pair_average(state, weights);
}

static inline int32_t rc_pair_committee(const rc_pair_state *state, double *weights)
{
    return rc_api->pair_committee(state, weights);
}

/* Returns the state's current hypothesis to score with; it borrows the arrays. O(1). */
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
