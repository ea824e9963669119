/* rankcore_model.h - open a model file written by rankcore.save, and score rows. C99 (and C++11),
 * header only, no Python.
 *
 * Ownership: a model borrows the bytes of its file; rc_model_open_file reads them (maps those of a
 *   file above 64 MB, which must be replaced by renaming), and rc_model_close releases them.
 *   rc_model_open allocates memory only on big-endian machines.
 * Thread safety: an open model is read-only; any number of threads may score with it concurrently.
 *   Close it when no thread uses it.
 * Exactness: the numbers are Python's, to the bit, under the conditions of rankcore.h.
 * Trust: opening and scoring never read beyond the bytes, whatever their values. Rows are not
 *   validated: use rc_model_check_rows for untrusted ones.
 *
 * docs/model_file.md describes the files. Numbers are little-endian: a big-endian machine keeps a
 * copy in native byte order, from rc_model_open to rc_model_close.
 */
#ifndef RANKCORE_MODEL_H
#define RANKCORE_MODEL_H

#include <math.h>

#include "rankcore_open.h"
#include "rankcore_trees.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------ rows */

/* Returns whether a matrix has the form of the model's rows; columns are not checked. O(n_rows). */
static inline int32_t rc_model_fits_(const rc_model *model, const rc_rows *X)
{
    int64_t i;
    int32_t bad = 0;
    if (X->n_rows < 0 || (X->dtype != RC_FLOAT64 && X->dtype != RC_FLOAT32) ||
        X->n_features != model->n_features || !X->indices != !X->indptr)
        return 0;
    if (!X->indptr)
        return X->stride >= X->n_features;
    for (i = 0; i < X->n_rows; i++)
        bad |= X->indptr[i] < 0 || X->indptr[i] > X->indptr[i + 1];
    return !bad;
}

/* Returns whether rows can be scored: with the model's number of columns and, if sparse, with valid
 * ascending offsets and columns. O(stored values). */
static inline int32_t rc_model_check_rows(const rc_model *model, const rc_rows *X)
{
    int64_t i;
    if (!rc_model_fits_(model, X))
        return RC_MODEL_ROWS;
    for (i = 0; X->indptr && i < X->n_rows; i++)
        if (!rc_rows_ascend_(X, i))
            return RC_MODEL_ROWS;
    return RC_MODEL_OK;
}

/* Returns a scaled row, in `room`, rounded as in scikit-learn. */
static inline rc_row rc_model_scaled_(const rc_model *model, rc_row x, void *room)
{
    int64_t i;
    if (x.dtype == RC_FLOAT32) {
        const float *from = (const float *)x.data;
        const float low = (float)model->low, high = (float)model->high;
        float *to = (float *)room;
        for (i = 0; i < x.n; i++) {
            const int64_t f = x.indices ? x.indices[i] : i;
            float v = from[i];
            if (model->center)
                v = v - (float)model->center[f];
            if (model->shift) {
                v = (float)((double)v * model->scale[f]);
                v = (float)((double)v + model->shift[f]);
            } else if (model->scale) {
                v = x.indices            ? (float)((double)v * (1.0 / model->scale[f]))
                    : model->scales == 2 ? (float)((double)v / model->scale[f])
                                         : v / (float)model->scale[f];
            }
            if (model->clips)
                v = v < low ? low : v > high ? high : v;
            to[i] = v;
        }
    } else {
        const double *from = (const double *)x.data;
        double *to = (double *)room;
        for (i = 0; i < x.n; i++) {
            const int64_t f = x.indices ? x.indices[i] : i;
            double v = from[i];
            if (model->center)
                v = v - model->center[f];
            if (model->shift) {
                v = v * model->scale[f];
                v = v + model->shift[f];
            } else if (model->scale) {
                v = x.indices ? v * (1.0 / model->scale[f]) : v / model->scale[f];
            }
            if (model->clips)
                v = v < model->low ? model->low : v > model->high ? model->high : v;
            to[i] = v;
        }
    }
    x.data = room;
    return x;
}

/* ------------------------------------------------------------------------ scoring */

/* Returns rc_dot with every `width`-th weight. */
static inline double rc_model_dot_(rc_row x, const double *w, int64_t width)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i;
    for (i = 0; i < x.n; i++) {
        const int64_t f = x.indices ? x.indices[i] : i;
        const double v = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                               : ((const double *)x.data)[i];
        sums[i < x.n / 4 * 4 ? i % 4 : 0] += v * w[f * width];
    }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* Writes the votes for each rank, tally[0 .. n_ranks - 1]; returns their sum. */
static inline int64_t rc_model_tally_(const rc_model *model, rc_row x, int64_t *tally)
{
    const int64_t width = model->width, k = model->n_ranks - 1, d = model->n_features;
    int64_t j, r, any = 0, total = 0;
    for (j = 0; j < model->n_members; j++)
        any |= model->votes[j];
    for (r = 0; r <= k; r++)
        tally[r] = 0;
    for (j = 0; j < model->n_members; j++) {
        const int64_t tile = j / width, lane = j % width;
        const double score = rc_model_dot_(x, model->weights + tile * d * width + lane, width);
        int64_t rank = 0;
        for (r = 0; r < k; r++)
            rank += score >= model->others[(tile * k + r) * width + lane];
        tally[rank] += any ? model->votes[j] : 1;
        total += any ? model->votes[j] : 1;
    }
    return total;
}

static inline int32_t rc_model_elected_(const rc_model *model, const int64_t *tally, int64_t total)
{
    int64_t sum = 0;
    int32_t r, best = 0;
    if (model->output == 2) {
        for (r = 1; r < model->n_ranks; r++)
            best = tally[r] > tally[best] ? r : best;
        return best;
    }
    for (r = 0; r < model->n_ranks; r++) {
        sum += model->output ? tally[r] : r * tally[r];
        if (model->output && 2 * sum >= total)
            return r;
    }
    return (int32_t)((2 * sum + total) / (2 * total));
}

/* Computes cumulative scores of tasks from their outputs at scores[1 ..]. */
static inline void rc_model_cumulate_(double *scores, const double *thresholds, int32_t n_ranks)
{
    int32_t r;
    scores[0] = 0.0;
    for (r = 1; r < n_ranks; r++)
        scores[r] = scores[r - 1] + (scores[r] - thresholds[r - 1]);
}

/* Writes the outputs of a kernel's lists, outputs[0 .. n_outputs - 1]; the memory after them is
 * scratch.
 * Entry e of a list is added to sum e mod 4, as in Python. */
static inline void rc_model_outputs_(const rc_model *model, rc_row x, double *outputs)
{
    const int64_t m = model->n_outputs;
    const double norm = rc_norm2(x);
    double *sums = outputs + m;
    int64_t *next = (int64_t *)(void *)(sums + 4 * m);
    int64_t s, j;
    for (j = 0; j < m; j++)
        next[j] = 0;
    for (j = 0; j < 4 * m; j++)
        sums[j] = 0.0;
    for (s = 0; s < model->support.n_rows; s++) {
        const double dot = rc_row_dot(x, rc_rows_get(&model->support, s));
        const double value = rc_kernel_value(&model->kernel, dot, norm, model->norms[s]);
        for (j = 0; j < m; j++) {
            const int64_t e = next[j], at = j * model->longest + e;
            if (e < model->sizes[j] && model->slots[at] == s) {
                sums[4 * j + e % 4] += model->weights[at] * value;
                next[j]++;
            }
        }
    }
    for (j = 0; j < m; j++)
        outputs[j] = (sums[4 * j] + sums[4 * j + 2]) + (sums[4 * j + 1] + sums[4 * j + 3]);
}

/* Returns how many doubles the score of one row requires, including its standardized values. */
static inline size_t rc_model_sums_(const rc_model *model)
{
    return (size_t)model->n_ranks + 6 * (size_t)model->n_outputs + 2 +
           (model->means ? (size_t)model->n_features : 0);
}

/* Returns the score of one row, for all forms except stumps and trees; writes *rank if the form has
 * ranks. `room` has rc_model_sums_ doubles. */
static inline double rc_model_linear_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    (void)room;
    (void)rank;
    return rc_dot(x, model->linear.weights);
}

static inline double rc_model_rounded_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    const double score = rc_linear_score(&model->linear, x), nearest = floor(score + 0.5);
    const int32_t k = model->n_ranks;
    (void)room;
    *rank = nearest >= k ? k - 1 : nearest > 1.0 ? (int32_t)nearest - 1 : 0;
    return score;
}

static inline double rc_model_thresholds_(const rc_model *model, rc_row x, double *room,
                                          int32_t *rank)
{
    const double score = rc_prank_score(&model->prank, x);
    (void)room;
    *rank = rc_rank(model->prank.thresholds, model->n_ranks, score);
    return score;
}

static inline double rc_model_classes_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    int32_t r;
    rc_dots(x, model->weights, model->n_ranks, room);
    for (r = 0; r < model->n_ranks; r++)
        room[r] += model->others[r];
    *rank = rc_best(room, model->n_ranks, RC_TIE_LOW);
    return NAN;
}

static inline double rc_model_votes_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    int64_t *tally = (int64_t *)(void *)room, sum = 0;
    const int64_t total = rc_model_tally_(model, x, tally);
    int32_t r;
    for (r = 0; r < model->n_ranks; r++)
        sum += (r + 1) * tally[r];
    *rank = rc_model_elected_(model, tally, total);
    return (double)sum / (double)total;
}

/* Computes score and rank from the outputs of the tasks at room[1 ..]. */
static inline double rc_model_by_tasks_(const rc_model *model, double *room, int32_t *rank)
{
    const double *cuts = model->tasks.thresholds;
    const int32_t k = model->n_ranks;
    int32_t r, reached = 0;
    for (r = 0; model->counts && r < k - 1; r++)
        reached += room[r + 1] - cuts[r] >= 0.0;
    rc_model_cumulate_(room, cuts, k);
    *rank = model->counts ? reached : rc_best(room, k, model->tasks.tie);
    return room[k - 1];
}

static inline double rc_model_tasks_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    rc_dots(x, model->tasks.weights, model->n_ranks - 1, room + 1);
    return rc_model_by_tasks_(model, room, rank);
}

static inline double rc_model_kernel_(const rc_model *model, rc_row x, double *room, int32_t *rank)
{
    if (model->means) {
        double *z = room + rc_model_sums_(model) - model->n_features;
        rc_standardize(x, model->means, model->factors, model->n_features, z);
        x = rc_row_f64(z, NULL, model->n_features);
    }
    rc_model_outputs_(model, x, room + 1);
    if (model->rule == RC_MODEL_TASKS)
        return rc_model_by_tasks_(model, room, rank);
    if (model->rule == RC_MODEL_THRESHOLDS)
        *rank = rc_rank(model->tasks.thresholds, model->n_ranks, room[1]);
    return room[1];
}

/* Returns the score that all tasks share, else NaN. Writes the probabilities to `room`, followed by
 * the scores. */
static inline double rc_model_ordinal_trees_(const rc_model *model, rc_row x, double *room,
                                             int32_t *rank)
{
    const int32_t m = model->n_outputs;
    double *scores = room + model->n_ranks;
    int32_t j;
    for (j = 0; j < m; j++)
        scores[j] = 0.0;
    rc_trees_sums_(&model->trees, m, 0, model->trees.n_trees / m, x, scores);
    rc_tasks_probabilities(&model->ranks, scores, 1, room, NULL, NULL);
    *rank = rc_calibration_rank(&model->calibration, room);
    return model->ranks.shared ? scores[0] : (double)NAN;
}

/* Writes score and rank of one row; either may be NULL. If the model has probabilities, computing a
 * rank writes them to `room`. */
static inline void rc_model_row_(const rc_model *model, rc_row x, double *room, double *score,
                                 int32_t *rank)
{
    double s = 0.0;
    int32_t y = -1;
    switch (model->form) {
    case RC_MODEL_LINEAR:
        s = rc_model_linear_(model, x, room, &y);
        break;
    case RC_MODEL_ROUNDED:
        s = rc_model_rounded_(model, x, room, &y);
        break;
    case RC_MODEL_THRESHOLDS:
        s = rc_model_thresholds_(model, x, room, &y);
        break;
    case RC_MODEL_CLASSES:
        s = rc_model_classes_(model, x, room, &y);
        break;
    case RC_MODEL_VOTES:
        s = rc_model_votes_(model, x, room, &y);
        break;
    case RC_MODEL_STUMPS:
        s = rc_stumps_score(&model->stumps, x);
        break;
    case RC_MODEL_TREES:
        s = rc_trees_score(&model->trees, x);
        break;
    case RC_MODEL_KERNEL:
        s = rc_model_kernel_(model, x, room, &y);
        break;
    case RC_MODEL_TASKS:
        s = rc_model_tasks_(model, x, room, &y);
        break;
    case RC_MODEL_ORDINAL_TREES:
        s = rc_model_ordinal_trees_(model, x, room, &y);
        break;
    default:
        break;
    }
    if (model->calibrated && rank) {
        rc_calibration_probabilities(&model->calibration, s, room);
        y = rc_calibration_rank(&model->calibration, room);
    }
    if (score)
        *score = s;
    if (rank)
        *rank = y;
}

/* Returns the bytes of `room` required by rc_model_answer for n_rows rows; at least 8. O(1). */
static inline size_t rc_model_room_(const rc_model *model, int64_t n_rows)
{
    const size_t one = rc_model_sums_(model) + (model->scales ? (size_t)model->n_features : 0);
    const int32_t tiled = model->form == RC_MODEL_TREES && n_rows >= RC_TILED_ROWS_;
    return tiled && sizeof(rc_tiles_) > 8 * one ? sizeof(rc_tiles_) : 8 * one;
}

/* Returns the bytes of `room` required for any number of rows. O(1). */
static inline size_t rc_model_room(const rc_model *model)
{
    return rc_model_room_(model, INT64_MAX);
}

static inline int32_t rc_model_has_probabilities_(const rc_model *model)
{
    return model->calibrated || model->form == RC_MODEL_ORDINAL_TREES;
}

/* Answers a call. With `check`, an invalid row ends it: each row is checked just before it is
 * scored, when its columns are being loaded anyway. */
static inline int32_t rc_model_answer_(const rc_model *model, const rc_rows *X, double *scores,
                                       int32_t *ranks, double *probabilities, void *room,
                                       int32_t check)
{
    double *sums = (double *)room, *scaled = sums + rc_model_sums_(model);
    const int64_t k = model->n_ranks;
    int64_t i, r;
    if (check && !rc_model_fits_(model, X))
        return RC_MODEL_ROWS;
    if (model->form == RC_MODEL_NONE || (ranks && !k) ||
        (probabilities && !rc_model_has_probabilities_(model)))
        return RC_MODEL_UNSUPPORTED;
    if (X->n_features != model->n_features || (!X->indptr && X->stride < X->n_features))
        return RC_MODEL_ROWS;
    if ((model->center || model->shift) && X->indices)
        return RC_MODEL_UNSUPPORTED; /* implicit zeros would become other values */
    if (model->form == RC_MODEL_TREES && scores && !model->scales && !ranks && !probabilities) {
        for (i = 0; check && X->indptr && i < X->n_rows; i++)
            if (!rc_rows_ascend_(X, i))
                return RC_MODEL_ROWS;
        rc_trees_scores_in_(&model->trees, X, scores,
                            X->n_rows >= RC_TILED_ROWS_ ? (rc_tiles_ *)room : NULL);
        return RC_MODEL_OK;
    }
    for (i = 0; i < X->n_rows; i++) {
        rc_row x;
        int32_t rank;
        if (check && X->indptr && !rc_rows_ascend_(X, i))
            return RC_MODEL_ROWS;
        x = rc_rows_get(X, i);
        if (model->scales)
            x = rc_model_scaled_(model, x, scaled);
        rc_model_row_(model, x, sums, scores ? scores + i : NULL,
                      ranks || probabilities ? &rank : NULL);
        if (ranks)
            ranks[i] = rank;
        for (r = 0; probabilities && r < k; r++)
            probabilities[i * k + r] = sums[r];
    }
    return RC_MODEL_OK;
}

/* Writes scores and ranks of rows, scores[0 .. n_rows - 1] and ranks[0 .. n_rows - 1], either of
 * which may be NULL. `room` is scratch, rc_model_room bytes aligned to 8 bytes, exclusive to this
 * call. Allocates nothing. Rows are not validated: see rc_model_check_rows.
 *
 * A score is that of Python's `project` (ordinal learners) or `predict` (rankers); NaN for the
 * multiclass perceptron, which has none. For OrdinalBoost it is f, or NaN if each task has a
 * score. A rank is 0 .. n_ranks - 1 in the order of `ranks_`. Cost as the functions of
 * rankcore.h for the model's form. */
static inline int32_t rc_model_answer(const rc_model *model, const rc_rows *X, double *scores,
                                      int32_t *ranks, void *room)
{
    return rc_model_answer_(model, X, scores, ranks, NULL, room, 0);
}

/* Writes the probability of each rank, for CalibratedOrdinal and OrdinalBoost, row by row,
 * probabilities[0 .. n_rows * n_ranks - 1]. Otherwise as rc_model_answer. */
static inline int32_t rc_model_probabilities(const rc_model *model, const rc_rows *X,
                                             double *probabilities, void *room)
{
    return rc_model_answer_(model, X, NULL, NULL, probabilities, room, 0);
}

static inline int32_t rc_model_answer_in_arena_(const rc_model *model, const rc_rows *X,
                                                double *scores, int32_t *ranks)
{
    const size_t size = rc_model_room_(model, X->n_rows);
    double some[64]; /* few ranks and no scaler: no allocation */
    void *room = size <= sizeof some ? (void *)some : malloc(size);
    int32_t code = RC_MODEL_MEMORY;
    if (room)
        code = rc_model_answer(model, X, scores, ranks, room);
    if (room != (void *)some)
        free(room);
    return code;
}

/* Writes scores of rows, as rc_model_answer; one allocation, of rc_model_room bytes, unless that is
 * small. */
static inline int32_t rc_model_score(const rc_model *model, const rc_rows *X, double *scores)
{
    return rc_model_answer_in_arena_(model, X, scores, NULL);
}

/* Writes ranks of rows, as rc_model_answer; one allocation, of rc_model_room bytes, unless that is
 * small. */
static inline int32_t rc_model_rank(const rc_model *model, const rc_rows *X, int32_t *ranks)
{
    return rc_model_answer_in_arena_(model, X, NULL, ranks);
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_MODEL_H */
