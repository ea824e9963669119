/* Many rows at a time through trees of few leaves, without walking. Private.
 *
 * The leaves of a tree are bits of a word, from left to right. A node that a row fires, because its
 * value is above the threshold, strikes out the leaves of its left child; of the leaves that are
 * left once all nodes have been tried, the first is the row's (QuickScorer: Lucchese et al. 2015).
 * No step waits for another, so that a comparison is one instruction for all rows of a vector. */
#ifndef RANKCORE_TREE_MASKS_H
#define RANKCORE_TREE_MASKS_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "rankcore.h"

#include "_vectors.h"

/* Rows of a tile, whose values lie column by column. Its vectors, and the words of the rows, stay
 * in registers and in the nearest cache. */
enum { RC_MASK_ROWS = 32, RC_MASK_LEAVES_F32 = 32, RC_MASK_LEAVES = 64 };

#if defined(__GNUC__)
/* A node as single precision takes it, and as double precision does. */
typedef struct rc_mask_f32 {
    int32_t column; /* of the tile */
    int32_t keep;   /* leaves that are left if it fires */
    int32_t missing;
    float threshold;
} rc_mask_f32;

typedef struct rc_mask_f64 {
    int64_t column;
    int64_t keep;
    int64_t missing;
    double threshold;
} rc_mask_f64;

/* The largest number of single precision that is not above x: no float lies between the two. */
static inline float rc_mask_below(double x)
{
    float found;
    if (x >= (double)FLT_MAX)
        return isinf(x) ? INFINITY : FLT_MAX;
    if (x < -(double)FLT_MAX)
        return -INFINITY;
    found = (float)x;
    return (double)found > x ? nextafterf(found, -INFINITY) : found;
}

/* Writes, for each node of tree t, the leaves that are left if it fires, and to `values` those of
 * the leaves from left to right. 0, or -1 if it has more than RC_MASK_LEAVES leaves or is no tree.
 * O(nodes). */
static inline int rc_mask_tree(const rc_trees *model, int64_t t, int64_t *keep, double *values)
{
    const int64_t offset = model->offsets[t], n = model->offsets[t + 1] - offset;
    const int32_t *children = n ? model->children + 2 * offset : NULL;
    int32_t count[RC_MASK_LEAVES], start[RC_MASK_LEAVES];
    int64_t i;
    int k;
    if (n >= RC_MASK_LEAVES)
        return -1;
    if (!n)
        values[0] = model->values[offset + t];
    for (i = n - 1; i >= 0; i--) {
        count[i] = 0;
        start[i] = -1;
        for (k = 0; k < 2; k++)
            count[i] += children[2 * i + k] < 0 ? 1 : count[children[2 * i + k]];
        if (count[i] > n + 1)
            return -1; /* several nodes lead to one: there are more ways than leaves */
    }
    for (i = 0; i < n; i++) {
        int32_t at = i ? start[i] : 0;
        if (at < 0)
            return -1; /* no node leads to it */
        for (k = 0; k < 2; k++) {
            const int32_t child = children[2 * i + k];
            if (child < 0)
                values[at++] = model->values[offset + t + ~child];
            else {
                start[child] = at;
                at += count[child];
            }
            if (k == 0) {
                const int32_t first = i ? start[i] : 0;
                const uint64_t left = (UINT64_C(1) << (at - first)) - 1;
                keep[i] = (int64_t)~(left << first);
            }
        }
    }
    return 0;
}

/* Values of n rows, column by column, in a tile; whether one is missing. Rows there are none of
 * repeat the last. */
#define RC_MASK_TILE_(NAME, FROM, TO)                                                        \
    static inline int NAME(const FROM *x, int64_t stride, int64_t n, const int32_t *columns, \
                           int64_t n_columns, TO *tile)                                      \
    {                                                                                        \
        int64_t i, j;                                                                        \
        int missing = 0;                                                                     \
        for (i = 0; i < RC_MASK_ROWS; i++) {                                                 \
            const FROM *row = x + (i < n ? i : n - 1) * stride;                              \
            for (j = 0; j < n_columns; j++) {                                                \
                const FROM value = row[columns[j]];                                          \
                missing |= value != value;                                                   \
                tile[j * RC_MASK_ROWS + i] = (TO)value;                                      \
            }                                                                                \
        }                                                                                    \
        return missing;                                                                      \
    }

RC_MASK_TILE_(rc_mask_tile_f32, float, float)
RC_MASK_TILE_(rc_mask_tile_f32_f64, float, double)
RC_MASK_TILE_(rc_mask_tile_f64, double, double)
#undef RC_MASK_TILE_

/* The scores of a tile grow by what n_trees trees give its rows, tree by tree. A tree has the nodes
 * ends[t - 1] .. ends[t] - 1 and one value more than these. */
#define RC_MASK_ADD_(NAME, REAL, WORD, NODE, FIRST)                                      \
    typedef REAL NAME##_reals __attribute__((vector_size(32)));                          \
    typedef WORD NAME##_words __attribute__((vector_size(32)));                          \
    RC_INLINE_ void NAME##_(const NODE *nodes, const int64_t *ends, int64_t n_trees,     \
                            const double *values, const REAL *tile, double *scores,      \
                            const int missing)                                           \
    {                                                                                    \
        enum { AT_ONCE = 32 / sizeof(REAL), VECTORS = RC_MASK_ROWS / AT_ONCE };          \
        int64_t t, i = 0;                                                                \
        int k;                                                                           \
        for (t = 0; t < n_trees; t++) {                                                  \
            NAME##_words left[VECTORS];                                                  \
            WORD words[RC_MASK_ROWS];                                                    \
            for (k = 0; k < VECTORS; k++)                                                \
                left[k] = (NAME##_words){0} - 1;                                         \
            for (; i < ends[t]; i++) {                                                   \
                const REAL *x = tile + (int64_t)nodes[i].column * RC_MASK_ROWS;          \
                const NAME##_reals threshold = nodes[i].threshold - (NAME##_reals){0};   \
                const NAME##_words keep = nodes[i].keep - (NAME##_words){0};             \
                const NAME##_words both = nodes[i].missing - (NAME##_words){0};          \
                for (k = 0; k < VECTORS; k++) {                                          \
                    NAME##_reals v;                                                      \
                    NAME##_words fires;                                                  \
                    RC_LOAD_(v, x + k * AT_ONCE);                                        \
                    fires = (NAME##_words)(v > threshold);                               \
                    if (missing)                                                         \
                        fires |= (NAME##_words)(v != v) & both;                          \
                    left[k] &= keep | ~fires;                                            \
                }                                                                        \
            }                                                                            \
            for (k = 0; k < VECTORS; k++)                                                \
                RC_STORE_(words + k * AT_ONCE, left[k]);                                 \
            for (k = 0; k < RC_MASK_ROWS; k++)                                           \
                scores[k] += values[FIRST(words[k])];                                    \
            values += ends[t] - (t ? ends[t - 1] : 0) + 1;                               \
        }                                                                                \
    }                                                                                    \
    RC_CLONES_ static void NAME(const NODE *nodes, const int64_t *ends, int64_t n_trees, \
                                const double *values, const REAL *tile, double *scores,  \
                                int missing)                                             \
    {                                                                                    \
        if (missing)                                                                     \
            NAME##_(nodes, ends, n_trees, values, tile, scores, 1);                      \
        else                                                                             \
            NAME##_(nodes, ends, n_trees, values, tile, scores, 0);                      \
    }

RC_MASK_ADD_(rc_mask_add_f32, float, int32_t, rc_mask_f32, __builtin_ctz)
RC_MASK_ADD_(rc_mask_add_f64, double, int64_t, rc_mask_f64, __builtin_ctzll)
#undef RC_MASK_ADD_

/* Some of the trees of a model in this form, with a tile for their columns. */
typedef struct rc_masks {
    void *nodes; /* rc_mask_f32 or rc_mask_f64 */
    void *tile;
    double *values;
    int64_t *ends;
    int32_t *columns;
    int64_t n_columns;
    int64_t n_trees;
    int single;  /* nodes and tile */
    char *block; /* of malloc */
} rc_masks;

/* The nodes of tree t, whose leaves are to be struck out as `keep` says. */
static inline void rc_masks_fill_(rc_masks *masks, const rc_trees *model, int64_t first, int64_t t,
                                  const int64_t *keep, int32_t *places)
{
    const int64_t begin = model->offsets[first];
    int64_t i;
    for (i = model->offsets[t]; i < model->offsets[t + 1]; i++) {
        const int32_t feature = model->features[i], missing = -(int32_t)model->missing[i];
        int32_t *place = places + feature;
        if (*place == 0) {
            masks->columns[masks->n_columns++] = feature;
            *place = (int32_t)masks->n_columns;
        }
        if (masks->single) {
            rc_mask_f32 *node = (rc_mask_f32 *)masks->nodes + (i - begin);
            node->column = *place - 1;
            node->keep = (int32_t)(uint32_t)keep[i - model->offsets[t]];
            node->missing = missing;
            node->threshold = rc_mask_below(model->thresholds[i]);
        } else {
            rc_mask_f64 *node = (rc_mask_f64 *)masks->nodes + (i - begin);
            node->column = *place - 1;
            node->keep = keep[i - model->offsets[t]];
            node->missing = missing;
            node->threshold = model->thresholds[i];
        }
    }
}

/* Trees first .. last - 1, for rows of single or double precision. 1 if they are ready, 0 if they
 * have sets of categories, more leaves than bits, or two, to which there is one step. -1 without
 * memory. O(nodes + n_features). */
static inline int rc_masks_make(rc_masks *masks, const rc_trees *model, int64_t first, int64_t last,
                                int single)
{
    const int64_t begin = model->offsets[first], n = model->offsets[last] - begin;
    const int64_t most = n < model->n_features ? n : model->n_features;
    int64_t keep[RC_MASK_LEAVES], t, leaves = 1;
    int32_t *places;
    double *values;
    size_t each;
    memset(masks, 0, sizeof *masks);
    for (t = first; t < last; t++) {
        const int64_t here = model->offsets[t + 1] - model->offsets[t] + 1;
        leaves = here > leaves ? here : leaves;
    }
    if (model->sets || leaves <= 2 || leaves > RC_MASK_LEAVES)
        return 0;
    masks->single = single && leaves <= RC_MASK_LEAVES_F32;
    masks->n_trees = last - first;
    masks->n_columns = 0;
    each = masks->single ? sizeof(float) : sizeof(double);
    masks->block =
        (char *)malloc((size_t)n * (sizeof(rc_mask_f64) + 8) + (size_t)masks->n_trees * 16 +
                       (size_t)most * (RC_MASK_ROWS * each + 4));
    places = (int32_t *)calloc((size_t)model->n_features + 1, sizeof(int32_t));
    if (!masks->block || !places) {
        free(masks->block);
        free(places);
        masks->block = NULL;
        return -1;
    }
    masks->nodes = masks->block;
    masks->values = (double *)(masks->block + (size_t)n * sizeof(rc_mask_f64));
    masks->ends = (int64_t *)(masks->values + n + masks->n_trees);
    masks->tile = masks->ends + masks->n_trees;
    masks->columns = (int32_t *)((char *)masks->tile + (size_t)most * RC_MASK_ROWS * each);
    values = masks->values;
    for (t = first; t < last; t++) {
        if (rc_mask_tree(model, t, keep, values) < 0)
            break;
        rc_masks_fill_(masks, model, first, t, keep, places);
        masks->ends[t - first] = model->offsets[t + 1] - begin;
        values += model->offsets[t + 1] - model->offsets[t] + 1;
    }
    free(places);
    if (t == last)
        return 1;
    free(masks->block);
    masks->block = NULL;
    return 0;
}

/* Adds to the scores of n dense rows, `stride` values from each other. O(n * nodes). */
static inline void rc_masks_add(const rc_masks *masks, const void *x, int single, int64_t stride,
                                int64_t n, double *scores)
{
    int64_t i, k;
    for (i = 0; i < n; i += RC_MASK_ROWS) {
        const int64_t rows = n - i < RC_MASK_ROWS ? n - i : RC_MASK_ROWS;
        const float *floats = (const float *)x + i * stride;
        const double *doubles = (const double *)x + i * stride;
        double sums[RC_MASK_ROWS] = {0};
        int missing;
        for (k = 0; k < rows; k++)
            sums[k] = scores[i + k];
        if (masks->single)
            missing = rc_mask_tile_f32(floats, stride, rows, masks->columns, masks->n_columns,
                                       (float *)masks->tile);
        else if (single)
            missing = rc_mask_tile_f32_f64(floats, stride, rows, masks->columns, masks->n_columns,
                                           (double *)masks->tile);
        else
            missing = rc_mask_tile_f64(doubles, stride, rows, masks->columns, masks->n_columns,
                                       (double *)masks->tile);
        if (masks->single)
            rc_mask_add_f32((const rc_mask_f32 *)masks->nodes, masks->ends, masks->n_trees,
                            masks->values, (const float *)masks->tile, sums, missing);
        else
            rc_mask_add_f64((const rc_mask_f64 *)masks->nodes, masks->ends, masks->n_trees,
                            masks->values, (const double *)masks->tile, sums, missing);
        for (k = 0; k < rows; k++)
            scores[i + k] = sums[k];
    }
}

#else
typedef struct rc_masks {
    char *block;
} rc_masks;

static inline int rc_masks_make(rc_masks *masks, const rc_trees *model, int64_t first, int64_t last,
                                int single)
{
    (void)model, (void)first, (void)last, (void)single;
    masks->block = NULL;
    return 0;
}

static inline void rc_masks_add(const rc_masks *masks, const void *x, int single, int64_t stride,
                                int64_t n, double *scores)
{
    (void)masks, (void)x, (void)single, (void)stride, (void)n, (void)scores;
}
#endif

#endif /* RANKCORE_TREE_MASKS_H */
