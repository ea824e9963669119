/* rankcore_forms.h - scoring forms of models: the struct of an open model, and validation of its
 * arrays. Part of rankcore_model.h. Each array is read once: O(bytes of the file). */
#ifndef RANKCORE_FORMS_H
#define RANKCORE_FORMS_H

#include <stdarg.h>
#include <stdio.h>

#include "rankcore.h"
#include "rankcore_calibration.h"
#include "rankcore_ordinal.h"
#include "rankcore_rows.h"
#include "rankcore_tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes: RC_MODEL_OK, or the reason of a failure. rc_model.error has the message. */
enum {
    RC_MODEL_OK = 0,
    RC_MODEL_NO_FILE = 1,     /* the file does not exist or cannot be read */
    RC_MODEL_DAMAGED = 2,     /* it is not a model file, or damaged */
    RC_MODEL_NEWER = 3,       /* it was written by a newer version */
    RC_MODEL_UNSUPPORTED = 4, /* this model does not support the request */
    RC_MODEL_ROWS = 5,        /* the rows do not match this model */
    RC_MODEL_MEMORY = 6       /* out of memory */
};

/* Scoring forms of docs/model_file.md. */
enum {
    RC_MODEL_NONE = 0,
    RC_MODEL_LINEAR = 1,
    RC_MODEL_THRESHOLDS = 2,
    RC_MODEL_ROUNDED = 3,
    RC_MODEL_TASKS = 4,
    RC_MODEL_CLASSES = 5,
    RC_MODEL_VOTES = 6,
    RC_MODEL_STUMPS = 7,
    RC_MODEL_TREES = 8,
    RC_MODEL_KERNEL = 9,
    RC_MODEL_ORDINAL_TREES = 10
};

/* Files up to this size are verified when opened, as in Python: 64 MiB. */
#define RC_MODEL_LARGE 67108864u

/* An open model. Its fields are read-only. */
typedef struct rc_model {
    int32_t form;
    int32_t n_ranks; /* 0 for a model that has only scores */
    int64_t n_features;
    rc_model_text learner; /* as "PRank" */
    rc_model_text reason;  /* why rows have no score, if form is RC_MODEL_NONE */
    rc_linear linear;      /* RC_MODEL_LINEAR, RC_MODEL_ROUNDED */
    rc_prank prank;        /* RC_MODEL_THRESHOLDS */
    rc_cusum tasks;        /* RC_MODEL_TASKS; its thresholds and tie also of a kernel's tasks */
    rc_stumps stumps;
    rc_trees trees;
    rc_kernel kernel;
    rc_rows support;     /* RC_MODEL_KERNEL: support vectors */
    const double *norms; /* their squared lengths */
    const double *means; /* with which rows are standardized, see rc_standardize; or NULL */
    const double *factors;
    const int64_t *sizes; /* of the list of each output */
    const int32_t *slots; /* support vectors of the lists, ascending */
    int64_t longest;      /* between two lists */
    int32_t n_outputs; /* RC_MODEL_KERNEL; RC_MODEL_ORDINAL_TREES: scores, of equally many trees */
    rc_tasks ranks;    /* RC_MODEL_ORDINAL_TREES */
    const double *weights; /* RC_MODEL_CLASSES (n_features, n_ranks), RC_MODEL_VOTES (tiles) */
    const double *others;  /* RC_MODEL_CLASSES: intercepts; RC_MODEL_VOTES: thresholds */
    const int64_t *votes;  /* RC_MODEL_VOTES */
    int64_t n_members;
    int64_t width;              /* of a tile */
    int32_t counts;             /* tasks: decision "count" */
    int32_t rule;               /* kernel: RC_MODEL_LINEAR, RC_MODEL_THRESHOLDS or RC_MODEL_TASKS */
    int32_t output;             /* votes: 0 round or mean, 1 median, 2 plurality */
    int32_t calibrated;         /* 0, or 1 if ranks follow from probabilities of the score */
    rc_calibration calibration; /* if it is calibrated; RC_MODEL_ORDINAL_TREES: its costs alone */
    int32_t scales; /* 0, or how values are scaled first: 1 standard, 2 max_abs, 3 min_max */
    int32_t clips;  /* whether they are then held within low .. high */
    double low, high;
    const double *center;       /* NULL: nothing is subtracted */
    const double *scale;        /* NULL: no division; for min_max a factor */
    const double *shift;        /* for min_max: then added */
    rc_model_array classes;     /* of numbers, or the UTF-8 of text */
    const int64_t *class_ends;  /* for text: end of each label */
    rc_model_text names;        /* of features, one after the other */
    const int64_t *name_ends;   /* NULL: features have no names */
    const unsigned char *bytes; /* the file */
    size_t size;
    unsigned char *swapped; /* on big-endian machines: its numbers in native byte order */
    int32_t owned;          /* whether rc_model_close releases the bytes: 1 mapped, 2 allocated */
    char error[160];        /* of the last failed call */
} rc_model;

/* ------------------------------------------------------------------------ errors */

static inline int32_t rc_model_fail_(rc_model *model, int32_t code, const char *format, ...)
{
    va_list parts;
    va_start(parts, format);
    vsnprintf(model->error, sizeof model->error, format, parts);
    va_end(parts);
    model->form = RC_MODEL_NONE;
    return code;
}

/* ------------------------------------------------------------------------ checks of arrays */

static inline int32_t rc_model_has_(rc_model_array array, int64_t a, int64_t b, int64_t c)
{
    return array.data && array.shape[0] == a && (array.n_axes < 2 || array.shape[1] == b) &&
           (array.n_axes < 3 || array.shape[2] == c);
}

/* Returns the doubles of an array of shape (a) or, if b is not 0, (a, b); NULL for another shape.
 */
static inline const double *rc_model_doubles_(const rc_model_file_ *file, const char *key,
                                              int64_t a, int64_t b)
{
    const rc_model_array array = rc_model_part_(file, key, RC_MODEL_F64, b ? 2 : 1);
    return rc_model_has_(array, a, b, 0) ? (const double *)array.data : NULL;
}

static inline int32_t rc_model_finite_(const double *values, int64_t n)
{
    int64_t i;
    double sum = 0.0; /* x - x is 0, or NaN if x is not finite */
    for (i = 0; i < n; i++)
        sum += values[i] - values[i];
    return sum == 0.0;
}

/* ------------------------------------------------------------------------ forms */

/* Each reads the arrays of one form; 0 if they are inconsistent. */

static inline int32_t rc_model_read_linear_(rc_model *model, const rc_model_file_ *file)
{
    model->linear.weights = rc_model_doubles_(file, "scoring.weights", model->n_features, 0);
    model->linear.n_features = model->n_features;
    if (model->form == RC_MODEL_ROUNDED) {
        const double *intercept = rc_model_doubles_(file, "scoring.intercept", 1, 0);
        if (!intercept || model->n_ranks < 2)
            return 0;
        model->linear.intercept = *intercept;
    }
    return model->linear.weights != NULL;
}

static inline int32_t rc_model_read_cuts_(rc_model *model, const rc_model_file_ *file,
                                          const double **thresholds)
{
    *thresholds = rc_model_doubles_(file, "scoring.thresholds", model->n_ranks - 1, 0);
    return model->n_ranks >= 2 && *thresholds;
}

static inline int32_t rc_model_read_rule_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_text tie = rc_model_fact_(file, "scoring.tie");
    const rc_model_text decision = rc_model_fact_(file, "scoring.decision");
    model->tasks.tie = rc_model_is_(tie, "low") ? RC_TIE_LOW : RC_TIE_HIGH;
    model->tasks.n_ranks = model->n_ranks;
    model->tasks.n_features = model->n_features;
    model->counts = rc_model_is_(decision, "count");
    return (rc_model_is_(tie, "low") || rc_model_is_(tie, "high")) &&
           (model->counts || rc_model_is_(decision, "cusum"));
}

static inline int32_t rc_model_read_votes_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array weights = rc_model_part_(file, "scoring.weights", RC_MODEL_F64, 3);
    const rc_model_array cuts = rc_model_part_(file, "scoring.thresholds", RC_MODEL_F64, 3);
    const rc_model_array votes = rc_model_part_(file, "scoring.votes", RC_MODEL_I64, 1);
    const rc_model_text output = rc_model_fact_(file, "scoring.output");
    const int64_t n_tiles = weights.shape[0];
    int64_t j;
    model->weights = (const double *)weights.data;
    model->others = (const double *)cuts.data;
    model->votes = (const int64_t *)votes.data;
    model->n_members = votes.size;
    model->width = weights.shape[2];
    model->output = rc_model_is_(output, "plurality") ? 2 : rc_model_is_(output, "median");
    if (model->n_ranks < 2 || !votes.data || votes.size < 1 || model->width < 1 ||
        !rc_model_has_(weights, n_tiles, model->n_features, model->width) ||
        !rc_model_has_(cuts, n_tiles, model->n_ranks - 1, model->width) ||
        (votes.size - 1) / model->width >= n_tiles)
        return 0;
    for (j = 0; j < votes.size; j++) /* their sum times a rank must not overflow */
        if (model->votes[j] < 0 || model->votes[j] > INT64_MAX / 8 / votes.size / model->n_ranks)
            return 0;
    return 1;
}

static inline int32_t rc_model_read_stumps_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array offsets = rc_model_part_(file, "scoring.offsets", RC_MODEL_I64, 1);
    const rc_model_array thresholds = rc_model_part_(file, "scoring.thresholds", RC_MODEL_F64, 1);
    const double *base = rc_model_doubles_(file, "scoring.base", 1, 0);
    const int64_t d = model->n_features;
    rc_stumps *stumps = &model->stumps;
    stumps->offsets = (const int64_t *)offsets.data;
    stumps->thresholds = (const double *)thresholds.data;
    stumps->values = rc_model_doubles_(file, "scoring.values", thresholds.size + d, 0);
    stumps->missing = rc_model_doubles_(file, "scoring.missing", d, 0);
    stumps->at_zero = rc_model_doubles_(file, "scoring.at_zero", d, 0);
    stumps->base = base ? *base : 0.0;
    stumps->n_features = d;
    return base && stumps->thresholds && stumps->values && stumps->missing && stumps->at_zero &&
           rc_model_has_(offsets, d + 1, 0, 0) &&
           rc_model_offsets_(stumps->offsets, d, thresholds.size);
}

/* Checks that each node except the root comes after its parent, so that walks end. */
static inline int32_t rc_model_check_trees_(const rc_trees *trees, int64_t n)
{
    int64_t t, i, bad = 0;
    for (i = 0; i < n; i++)
        bad |= trees->features[i] < 0 || trees->features[i] >= trees->n_features ||
               trees->missing[i] > 1;
    for (t = 0; t < trees->n_trees; t++) {
        const int64_t first = trees->offsets[t], size = trees->offsets[t + 1] - first;
        for (i = 0; i < 2 * size; i++) {
            const int64_t child = trees->children[2 * first + i];
            bad |= child >= 0 ? child <= i / 2 || child >= size : -1 - child > size;
        }
    }
    return !bad;
}

static inline int32_t rc_model_read_trees_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array offsets = rc_model_part_(file, "scoring.offsets", RC_MODEL_I64, 1);
    const rc_model_array features = rc_model_part_(file, "scoring.features", RC_MODEL_I32, 1);
    const rc_model_array children = rc_model_part_(file, "scoring.children", RC_MODEL_I32, 2);
    const rc_model_array sides = rc_model_part_(file, "scoring.sides", RC_MODEL_U8, 1);
    const rc_model_array sets = rc_model_part_(file, "scoring.sets", RC_MODEL_I64, 1);
    const rc_model_array words = rc_model_part_(file, "scoring.words", RC_MODEL_U32, 1);
    const int64_t zero_missing = rc_model_integer_(rc_model_fact_(file, "scoring.zero_missing"));
    const int64_t n = features.size, n_trees = offsets.size - 1;
    rc_trees *trees = &model->trees;
    trees->thresholds = rc_model_doubles_(file, "scoring.thresholds", n, 0);
    trees->values = rc_model_doubles_(file, "scoring.values", n + n_trees, 0);
    if (!offsets.data || n_trees < 0 || !features.data || !rc_model_has_(children, n, 2, 0) ||
        !rc_model_has_(sides, n, 0, 0) || !trees->thresholds || !trees->values || !sets.data ||
        !words.data || zero_missing < 0 || zero_missing > 1 ||
        !rc_model_offsets_((const int64_t *)offsets.data, n_trees, n))
        return 0;
    trees->offsets = (const int64_t *)offsets.data;
    trees->features = (const int32_t *)features.data;
    trees->children = (const int32_t *)children.data;
    trees->missing = (const uint8_t *)sides.data;
    trees->n_trees = n_trees;
    trees->n_features = model->n_features;
    trees->zero_missing = (int32_t)zero_missing;
    trees->sets = sets.size ? (const int64_t *)sets.data : NULL;
    trees->words = (const uint32_t *)words.data;
    if (sets.size && (sets.size != n + 1 || !rc_model_offsets_(trees->sets, n, words.size)))
        return 0;
    return rc_model_check_trees_(trees, n);
}

/* Checks that the list of each output ascends within the support vectors. */
static inline int32_t rc_model_check_lists_(const rc_model *model)
{
    int64_t j, e;
    for (j = 0; j < model->n_outputs; j++) {
        const int32_t *slots = model->slots + j * model->longest;
        if (model->sizes[j] < 0 || model->sizes[j] > model->longest)
            return 0;
        for (e = 0; e < model->sizes[j]; e++)
            if (slots[e] >= model->support.n_rows || slots[e] <= (e ? slots[e - 1] : -1))
                return 0;
    }
    return 1;
}

static inline int32_t rc_model_read_support_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array norms = rc_model_part_(file, "scoring.norms", RC_MODEL_F64, 1);
    const int32_t sparse = rc_model_fact_(file, "scoring.indptr").first != NULL;
    const char *key = sparse ? "scoring.values" : "scoring.vectors";
    rc_rows *support = &model->support;
    int64_t i;
    rc_model_array vectors = rc_model_part_(file, key, RC_MODEL_F64, sparse ? 1 : 2);
    support->dtype = RC_FLOAT64;
    if (!vectors.data) {
        vectors = rc_model_part_(file, key, RC_MODEL_F32, sparse ? 1 : 2);
        support->dtype = RC_FLOAT32;
    }
    if (!vectors.data || !norms.data)
        return 0;
    model->norms = (const double *)norms.data;
    support->data = vectors.data;
    support->n_rows = norms.size;
    support->n_features = support->stride = model->n_features;
    if (sparse) {
        const rc_model_array indices = rc_model_part_(file, "scoring.indices", RC_MODEL_I32, 1);
        const rc_model_array indptr = rc_model_part_(file, "scoring.indptr", RC_MODEL_I64, 1);
        if (!rc_model_has_(indices, vectors.size, 0, 0) ||
            !rc_model_has_(indptr, norms.size + 1, 0, 0) ||
            !rc_model_offsets_((const int64_t *)indptr.data, norms.size, vectors.size))
            return 0;
        support->indices = (const int32_t *)indices.data;
        support->indptr = (const int64_t *)indptr.data;
        for (i = 0; i < support->n_rows; i++)
            if (!rc_rows_ascend_(support, i))
                return 0;
        return 1;
    }
    return rc_model_has_(vectors, norms.size, model->n_features, 0);
}

/* Reads the moments with which the model standardizes rows, if it does. */
static inline int32_t rc_model_read_moments_(rc_model *model, const rc_model_file_ *file)
{
    const int64_t d = model->n_features;
    int64_t f;
    const int32_t standardizes = rc_model_fact_(file, "scoring.means").first != NULL;
    if (standardizes != (rc_model_fact_(file, "scoring.factors").first != NULL))
        return 0;
    if (!standardizes)
        return 1;
    model->means = rc_model_doubles_(file, "scoring.means", d, 0);
    model->factors = rc_model_doubles_(file, "scoring.factors", d, 0);
    if (!model->means || !model->factors || model->support.indices)
        return 0;
    for (f = 0; f < d; f++)
        if (!(model->factors[f] > 0.0))
            return 0;
    return 1;
}

static inline int32_t rc_model_read_kernel_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array coefs = rc_model_part_(file, "scoring.coefs", RC_MODEL_F64, 2);
    const rc_model_array slots = rc_model_part_(file, "scoring.slots", RC_MODEL_I32, 2);
    const rc_model_array sizes = rc_model_part_(file, "scoring.sizes", RC_MODEL_I64, 1);
    const double *constants = rc_model_doubles_(file, "scoring.constants", 2, 0);
    const rc_model_text kind = rc_model_fact_(file, "scoring.kernel");
    const rc_model_text rule = rc_model_fact_(file, "scoring.rule");
    const int64_t degree = rc_model_integer_(rc_model_fact_(file, "scoring.degree"));
    const int64_t m = coefs.shape[0];
    if (!rc_model_read_support_(model, file) || !rc_model_read_moments_(model, file) ||
        !coefs.data || m < 1 || m >= INT32_MAX || !rc_model_has_(slots, m, coefs.shape[1], 0) ||
        !rc_model_has_(sizes, m, 0, 0) || !constants || degree < 1 || degree > INT32_MAX)
        return 0;
    model->weights = (const double *)coefs.data;
    model->slots = (const int32_t *)slots.data;
    model->sizes = (const int64_t *)sizes.data;
    model->longest = coefs.shape[1];
    model->n_outputs = (int32_t)m;
    if (!rc_model_check_lists_(model))
        return 0;
    model->kernel.gamma = constants[0];
    model->kernel.coef0 = constants[1];
    model->kernel.degree = (int32_t)degree;
    model->kernel.kind = rc_model_is_(kind, "rbf")    ? RC_KERNEL_RBF
                         : rc_model_is_(kind, "poly") ? RC_KERNEL_POLY
                                                      : RC_KERNEL_LINEAR;
    if (model->kernel.kind == RC_KERNEL_LINEAR && !rc_model_is_(kind, "linear"))
        return 0;
    model->rule = RC_MODEL_LINEAR;
    if (rc_model_is_(rule, "score"))
        return m == 1;
    if (!rc_model_read_cuts_(model, file, &model->tasks.thresholds))
        return 0;
    model->rule = RC_MODEL_THRESHOLDS;
    if (rc_model_is_(rule, "thresholds"))
        return m == 1;
    model->rule = RC_MODEL_TASKS;
    return rc_model_is_(rule, "tasks") && m == model->n_ranks - 1 &&
           rc_model_read_rule_(model, file);
}

/* Reads the trees of each score, which differ in their values only, and the biases of the tasks. */
static inline int32_t rc_model_read_ordinal_trees_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_text tasks = rc_model_fact_(file, "scoring.tasks");
    const rc_model_text link = rc_model_fact_(file, "scoring.link");
    const int32_t shared = rc_model_is_(tasks, "shared"), k = model->n_ranks;
    const int32_t cumulative = rc_model_is_(link, "cumulative");
    const double *biases = rc_model_doubles_(file, "scoring.biases", k - 1, 0);
    int32_t j;
    model->n_outputs = shared ? 1 : k - 1;
    model->ranks.biases = biases;
    model->ranks.n_ranks = k;
    model->ranks.shared = shared;
    model->ranks.cumulative = cumulative;
    model->calibration.n_ranks = k;
    model->calibration.costs = rc_model_doubles_(file, "scoring.costs", k, k);
    if (k < 2 || !biases || !model->calibration.costs ||
        !(shared || rc_model_is_(tasks, "vector")) ||
        !(cumulative ? shared : rc_model_is_(link, "adjacent")) ||
        !rc_model_read_trees_(model, file))
        return 0;
    for (j = 1; cumulative && j < k - 1; j++)
        if (!(biases[j - 1] <= biases[j]))
            return 0;
    return rc_trees_alike_(&model->trees, model->n_outputs);
}

static inline int32_t rc_model_read_form_(rc_model *model, const rc_model_file_ *file)
{
    static const char names[][14] = {"none",  "linear",  "thresholds",   "rounded",
                                     "tasks", "classes", "votes",        "stumps",
                                     "trees", "kernel",  "ordinal_trees"};
    rc_model_text form = rc_model_fact_(file, "scoring");
    const int64_t d = model->n_features;
    model->calibrated = rc_model_is_(form, "calibrated");
    if (model->calibrated)
        form = rc_model_fact_(file, "scoring.of");
    for (model->form = RC_MODEL_ORDINAL_TREES; model->form > 0; model->form--)
        if (rc_model_is_(form, names[model->form]))
            break;
    switch (model->form) {
    case RC_MODEL_LINEAR:
    case RC_MODEL_ROUNDED:
        return rc_model_read_linear_(model, file);
    case RC_MODEL_THRESHOLDS:
        model->prank.n_features = d;
        model->prank.n_ranks = model->n_ranks;
        model->prank.weights = rc_model_doubles_(file, "scoring.weights", d, 0);
        return model->prank.weights && rc_model_read_cuts_(model, file, &model->prank.thresholds);
    case RC_MODEL_TASKS:
        if (!rc_model_read_cuts_(model, file, &model->tasks.thresholds))
            return 0;
        model->tasks.weights = rc_model_doubles_(file, "scoring.weights", d, model->n_ranks - 1);
        return model->tasks.weights && rc_model_read_rule_(model, file);
    case RC_MODEL_CLASSES:
        if (model->n_ranks < 2)
            return 0;
        model->weights = rc_model_doubles_(file, "scoring.weights", d, model->n_ranks);
        model->others = rc_model_doubles_(file, "scoring.intercepts", model->n_ranks, 0);
        return model->weights && model->others;
    case RC_MODEL_VOTES:
        return rc_model_read_votes_(model, file);
    case RC_MODEL_STUMPS:
        return rc_model_read_stumps_(model, file);
    case RC_MODEL_TREES:
        return rc_model_read_trees_(model, file);
    case RC_MODEL_KERNEL:
        return rc_model_read_kernel_(model, file);
    case RC_MODEL_ORDINAL_TREES:
        return !model->calibrated && rc_model_read_ordinal_trees_(model, file);
    default:
        model->reason = rc_model_fact_(file, "scoring.reason");
        return rc_model_is_(form, "none");
    }
}

/* Reads the curves of a model after its form; returns 1 if it has none. */
static inline int32_t rc_model_read_calibration_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_array curves = rc_model_part_(file, "scoring.curves", RC_MODEL_F64, 2);
    const rc_model_array knots = rc_model_part_(file, "scoring.knots", RC_MODEL_F64, 1);
    const double *moments = rc_model_doubles_(file, "scoring.moments", 3, 0);
    const int64_t n_knots = knots.data ? knots.size : 0, k = model->n_ranks;
    rc_calibration *c = &model->calibration;
    int64_t j;
    if (!model->calibrated)
        return 1;
    if (model->form == RC_MODEL_NONE || model->form == RC_MODEL_CLASSES || k < 2 ||
        !rc_model_has_(curves, n_knots ? n_knots : 1, k - 1, 0) || !moments)
        return 0;
    c->n_ranks = model->n_ranks;
    c->n_knots = n_knots;
    c->curves = (const double *)curves.data;
    c->knots = (const double *)knots.data;
    c->slope = moments[0];
    c->center = moments[1];
    c->scale = moments[2];
    c->costs = rc_model_doubles_(file, "scoring.costs", k, k);
    for (j = 1; j < n_knots; j++)
        if (!(c->knots[j - 1] < c->knots[j]))
            return 0;
    return c->scale > 0.0 && c->costs;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_FORMS_H */
