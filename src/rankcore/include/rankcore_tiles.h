/* Trees with few leaves, scored for tiles of many rows at a time. rankcore_trees.h includes this
 * file.
 *
 * These trees are not walked. Their leaves are bits of a word, from left to right. A node that
 * fires for a row, because the value is above the threshold, removes the leaves of its left child;
 * the first remaining leaf after all nodes is that of the row (QuickScorer: Lucchese et al. 2015).
 * Steps are independent, so that a comparison is one instruction for all rows of a vector. */
#ifndef RANKCORE_TILES_H
#define RANKCORE_TILES_H

#include <float.h>
#include <math.h>

#include "rankcore.h"

#include "rankcore_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a tile, whose values are stored by column: its vectors, and the words of the rows,
 * stay in registers and in the nearest cache. A tile is created for several trees, limited by
 * nodes and columns; it is not worthwhile for fewer rows than RC_TILED_ROWS_. */
enum {
    RC_TILE_ROWS_ = 32,
    RC_TILE_COLUMNS_ = 512,
    RC_TILE_NODES_ = 4096,
    RC_TILE_TREES_ = 1024,
    RC_TILE_VALUES_ = RC_TILE_NODES_ + RC_TILE_TREES_,
    RC_TILE_PLACES_ = 4096,
    RC_TILED_ROWS_ = 128,
    RC_TILED_LEAVES_F32_ = 32,
    RC_TILED_LEAVES_ = 64,
    RC_TILED_SUMS_ = 64
};

#if defined(RC_COMPARES_VECTORS_)
/* A node in single precision, and in double precision. */
typedef struct rc_tile_node_f32_ {
    int32_t column; /* of the tile; ~column for a node that splits categories */
    int32_t keep;   /* remaining leaves if it fires */
    int32_t missing;
    float threshold;
} rc_tile_node_f32_;

typedef struct rc_tile_node_f64_ {
    int64_t column;
    int64_t keep;
    int64_t missing;
    double threshold;
} rc_tile_node_f64_;

/* Some trees in this form, and a tile of the columns that they use. */
typedef struct rc_tiles_ {
    union {
        float f32[RC_TILE_ROWS_ * (RC_TILE_COLUMNS_ + 1)]; /* the last is never read */
        double f64[RC_TILE_ROWS_ * (RC_TILE_COLUMNS_ + 1)];
    } tile;
    union {
        rc_tile_node_f32_ f32[RC_TILE_NODES_];
        rc_tile_node_f64_ f64[RC_TILE_NODES_];
    } nodes;
    double values[RC_TILE_VALUES_]; /* of the leaves from left to right, `width` of each */
    double sums[RC_TILE_ROWS_ * RC_TILED_SUMS_]; /* `width` of each row */
    int64_t ends[RC_TILE_TREES_];                /* nodes up to and including a tree */
    int64_t n_trees;
    int64_t first_node; /* of all trees */
    int32_t n_sums;     /* a leaf has a value for each, see rc_trees_sums_ */
    int32_t width;      /* n_sums, or the multiple of 4 above it if there are several */
    int32_t columns[RC_TILE_COLUMNS_];
    int32_t places[RC_TILE_PLACES_]; /* of columns in the tile, if there are no more */
    int32_t n_columns;
    int32_t mapped; /* whether there are places */
    int32_t single; /* nodes and tile */
} rc_tiles_;

/* Returns the maximum single-precision number not above x. */
static inline float rc_tile_below_(double x)
{
    float found;
    if (x >= (double)FLT_MAX)
        return isinf(x) ? INFINITY : FLT_MAX;
    if (x < -(double)FLT_MAX)
        return -INFINITY;
    found = (float)x;
    return (double)found > x ? nextafterf(found, -INFINITY) : found;
}

/* Writes `width` values of a leaf, from the place of the first one in `values` of the model. */
static inline void rc_tile_leaf_(const rc_tiles_ *tiles, const rc_trees *model, int64_t place,
                                 double *values)
{
    const int64_t each = model->n_trees / tiles->n_sums, apart = model->offsets[each] + each;
    int32_t j;
    for (j = 0; j < tiles->width; j++)
        values[j] = j < tiles->n_sums ? model->values[place + j * apart] : 0.0;
}

/* Writes, for each node of tree t, the remaining leaves if it fires, and to `values` the values
 * of leaves from left to right. 0 if it has too many leaves or is not a tree. O(nodes). */
static inline int32_t rc_tile_tree_(const rc_tiles_ *tiles, const rc_trees *model, int64_t t,
                                    int64_t *keep, double *values)
{
    const int64_t offset = model->offsets[t], n = model->offsets[t + 1] - offset;
    const int32_t *children = n ? model->children + 2 * offset : NULL;
    int32_t count[RC_TILED_LEAVES_], start[RC_TILED_LEAVES_], k;
    int64_t i;
    if (n >= RC_TILED_LEAVES_)
        return 0;
    if (!n)
        rc_tile_leaf_(tiles, model, offset + t, values);
    for (i = n - 1; i >= 0; i--) {
        count[i] = 0;
        start[i] = -1;
        for (k = 0; k < 2; k++)
            count[i] += children[2 * i + k] < 0 ? 1 : count[children[2 * i + k]];
        if (count[i] > n + 1)
            return 0; /* several nodes lead to this one: there are more paths than leaves */
    }
    for (i = 0; i < n; i++) {
        const int32_t first = i ? start[i] : 0;
        int32_t at = first;
        if (first < 0)
            return 0; /* no node leads to this one */
        for (k = 0; k < 2; k++) {
            const int32_t child = children[2 * i + k];
            if (child < 0)
                rc_tile_leaf_(tiles, model, offset + t + ~child, values + tiles->width * at++);
            else {
                start[child] = at;
                at += count[child];
            }
            if (k == 0)
                keep[i] = (int64_t)~(((UINT64_C(1) << (at - first)) - 1) << first);
        }
    }
    return 1;
}

/* Returns the place of a column of the tile. O(log columns). */
static inline int32_t rc_tiles_place_(const rc_tiles_ *tiles, int32_t column)
{
    int32_t low = 0, high = tiles->n_columns;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (tiles->columns[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the place of any column; that of the last column, which is never read, if no tree uses
 * it. O(1), or O(log columns) with very many features. */
static inline int64_t rc_tiles_column_(const rc_tiles_ *tiles, int32_t column)
{
    int32_t place;
    if (tiles->mapped)
        return tiles->places[column];
    place = rc_tiles_place_(tiles, column);
    return place < tiles->n_columns && tiles->columns[place] == column ? place : RC_TILE_COLUMNS_;
}

/* Adds the columns of a tree to those of the tile, which ascend. 0 if there is no space; some
 * may have been added. O(nodes * columns). */
static inline int32_t rc_tiles_columns_(rc_tiles_ *tiles, const rc_trees *model, int64_t t)
{
    int64_t i;
    for (i = model->offsets[t]; i < model->offsets[t + 1]; i++) {
        const int32_t place = rc_tiles_place_(tiles, model->features[i]);
        if (place < tiles->n_columns && tiles->columns[place] == model->features[i])
            continue;
        if (tiles->n_columns == RC_TILE_COLUMNS_)
            return 0;
        memmove(tiles->columns + place + 1, tiles->columns + place,
                (size_t)(tiles->n_columns - place) * sizeof(int32_t));
        tiles->columns[place] = model->features[i];
        tiles->n_columns++;
    }
    return 1;
}

/* Writes the nodes of tree t, once all columns of the tile are known. */
static inline void rc_tiles_nodes_(rc_tiles_ *tiles, const rc_trees *model, int64_t t,
                                   const int64_t *keep)
{
    int64_t i;
    for (i = model->offsets[t]; i < model->offsets[t + 1]; i++) {
        const int64_t at = i - tiles->first_node, kept = keep[i - model->offsets[t]];
        const int32_t place = rc_tiles_place_(tiles, model->features[i]);
        const int32_t column = model->sets && model->sets[i] < model->sets[i + 1] ? ~place : place;
        const int32_t missing = -(int32_t)model->missing[i];
        if (tiles->single) {
            rc_tile_node_f32_ *node = tiles->nodes.f32 + at;
            node->column = column;
            node->keep = (int32_t)(uint32_t)(uint64_t)kept;
            node->missing = missing;
            node->threshold = rc_tile_below_(model->thresholds[i]);
        } else {
            rc_tile_node_f64_ *node = tiles->nodes.f64 + at;
            node->column = column;
            node->keep = kept;
            node->missing = missing;
            node->threshold = model->thresholds[i];
        }
    }
}

/* Returns whether tree t has few leaves, but more than two (a single step is faster to walk). */
static inline int32_t rc_trees_tile_(const rc_trees *model, int64_t t)
{
    const int64_t n = model->offsets[t + 1] - model->offsets[t];
    return n > 1 && n < RC_TILED_LEAVES_;
}

/* Adds as many of the trees first .. last - 1 as there is space for, for rows in single or
 * double precision; returns their number, 0 if the first one has to be walked. O(nodes *
 * columns + n_sums * leaves). */
static inline int64_t rc_tiles_make_(rc_tiles_ *tiles, const rc_trees *model, int32_t n_sums,
                                     int64_t first, int64_t last, int32_t single)
{
    int64_t keep[RC_TILED_LEAVES_], t, stop;
    double *values = tiles->values;
    tiles->first_node = model->offsets[first];
    tiles->n_columns = 0;
    tiles->n_sums = n_sums;
    tiles->width = n_sums > 1 ? (n_sums + 3) / 4 * 4 : 1;
    tiles->single = single && model->offsets[first + 1] - tiles->first_node < RC_TILED_LEAVES_F32_;
    for (stop = first; stop < last && stop - first < RC_TILE_TREES_; stop++) {
        const int64_t n = model->offsets[stop + 1] - model->offsets[stop];
        const int64_t leaves = model->offsets[stop + 1] - tiles->first_node + stop + 1 - first;
        if (!rc_trees_tile_(model, stop) || leaves * tiles->width > RC_TILE_VALUES_ ||
            (tiles->single && n >= RC_TILED_LEAVES_F32_) ||
            model->offsets[stop + 1] - tiles->first_node > RC_TILE_NODES_ ||
            !rc_tiles_columns_(tiles, model, stop))
            break;
    }
    tiles->mapped = model->n_features <= RC_TILE_PLACES_;
    for (t = 0; tiles->mapped && t < model->n_features; t++)
        tiles->places[t] = RC_TILE_COLUMNS_;
    for (t = 0; tiles->mapped && t < tiles->n_columns; t++)
        tiles->places[tiles->columns[t]] = (int32_t)t;
    for (t = first; t < stop && rc_tile_tree_(tiles, model, t, keep, values); t++) {
        rc_tiles_nodes_(tiles, model, t, keep);
        tiles->ends[t - first] = model->offsets[t + 1] - tiles->first_node;
        values += (model->offsets[t + 1] - model->offsets[t] + 1) * tiles->width;
    }
    return tiles->n_trees = t - first;
}

/* Writes the values of rows i .. i + n - 1, column by column; returns whether one is missing. Rows
 * beyond the last repeat it. */
#define RC_TILE_FILL_(NAME, FROM, TO)                                                          \
    RC_INLINE_ int32_t NAME##inline_(const rc_tiles_ *tiles, const rc_rows *X, int64_t i,      \
                                     int64_t n, TO *tile, const int32_t zero_missing,          \
                                     const int32_t sparse)                                     \
    {                                                                                          \
        const int32_t *columns = tiles->columns, n_columns = tiles->n_columns;                 \
        int32_t missing = sparse && zero_missing, j;                                           \
        int64_t k, p;                                                                          \
        for (k = 0; k < RC_TILE_ROWS_; k++) {                                                  \
            const rc_row row = rc_rows_get(X, i + (k < n ? k : n - 1));                        \
            const FROM *values = (const FROM *)row.data;                                       \
            TO *at = tile + k;                                                                 \
            for (j = 0; sparse && j < n_columns; j++)                                          \
                at[j * RC_TILE_ROWS_] = zero_missing ? (TO)NAN : (TO)0;                        \
            for (p = 0; p < (sparse ? row.n : n_columns); p++) {                               \
                const FROM value = values[sparse ? p : columns[p]];                            \
                const int64_t place = sparse ? rc_tiles_column_(tiles, row.indices[p]) : p;    \
                const int32_t zero = zero_missing && value == 0;                               \
                missing |= zero | (value != value);                                            \
                at[place * RC_TILE_ROWS_] = zero ? (TO)NAN : (TO)value;                        \
            }                                                                                  \
        }                                                                                      \
        return missing;                                                                        \
    }                                                                                          \
    static inline int32_t NAME(const rc_tiles_ *tiles, const rc_rows *X, int64_t i, int64_t n, \
                               TO *tile, int32_t zero_missing)                                 \
    {                                                                                          \
        if (X->indices)                                                                        \
            return zero_missing ? NAME##inline_(tiles, X, i, n, tile, 1, 1)                    \
                                : NAME##inline_(tiles, X, i, n, tile, 0, 1);                   \
        return zero_missing ? NAME##inline_(tiles, X, i, n, tile, 1, 0)                        \
                            : NAME##inline_(tiles, X, i, n, tile, 0, 0);                       \
    }

RC_TILE_FILL_(rc_tile_fill_f32_, float, float)
RC_TILE_FILL_(rc_tile_fill_f32_f64_, float, double)
RC_TILE_FILL_(rc_tile_fill_f64_, double, double)
#undef RC_TILE_FILL_

/* Vectors stay in registers only if loops over them are unrolled, which GCC does not do at -O2. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define RC_TILE_UNROLL_ _Pragma("GCC unroll 8")
#else
#define RC_TILE_UNROLL_
#endif
#define RC_TILE_FIRST_F32_(WORD) __builtin_ctz((unsigned int)(WORD))
#define RC_TILE_FIRST_(WORD) __builtin_ctzll((unsigned long long)(WORD))

/* Adds several values of a leaf to the scores of a row. */
RC_INLINE_ void rc_tile_add_leaf_(double *scores, const double *values, int32_t width)
{
    int32_t j;
    for (j = 0; j < width; j += 4) {
        rc_four sum, more;
        RC_LOAD_(sum, scores + j);
        RC_LOAD_(more, values + j);
        sum += more;
        RC_STORE_(scores + j, sum);
    }
}

/* Adds the values of the trees to the scores of a tile, tree by tree. A tree has the nodes
 * ends[t - 1] .. ends[t] - 1 and one value more than these. */
#define RC_TILE_ADD_(NAME, REAL, WORD, TYPE, FIRST)                                                \
    typedef REAL NAME##reals_ __attribute__((vector_size(32)));                                    \
    typedef WORD NAME##words_ __attribute__((vector_size(32)));                                    \
    RC_INLINE_ void NAME##inline_(const rc_tiles_ *tiles, const rc_trees *model, double *scores,   \
                                  const int missing)                                               \
    {                                                                                              \
        enum { AT_ONCE = 32 / sizeof(REAL), VECTORS = RC_TILE_ROWS_ / AT_ONCE };                   \
        const double *values = tiles->values;                                                      \
        const int32_t width = tiles->width;                                                        \
        const NAME##reals_ no_reals = {0};                                                         \
        const NAME##words_ no_words = {0};                                                         \
        int64_t t, i = 0;                                                                          \
        int k;                                                                                     \
        for (t = 0; t < tiles->n_trees; t++) {                                                     \
            NAME##words_ left[VECTORS];                                                            \
            WORD words[RC_TILE_ROWS_];                                                             \
            RC_TILE_UNROLL_ for (k = 0; k < VECTORS; k++) left[k] = no_words - 1;                  \
            for (; i < tiles->ends[t]; i++) {                                                      \
                const rc_tile_node_##TYPE##_ *node = tiles->nodes.TYPE + i;                        \
                const NAME##reals_ threshold = node->threshold - no_reals;                         \
                const NAME##words_ keep = node->keep - no_words;                                   \
                const NAME##words_ both = node->missing - no_words;                                \
                const REAL *x;                                                                     \
                if (node->column < 0) { /* one row after the other */                              \
                    x = tiles->tile.TYPE + ~(int64_t)node->column * RC_TILE_ROWS_;                 \
                    for (k = 0; k < RC_TILE_ROWS_; k++)                                            \
                        words[k] = rc_trees_has(model, tiles->first_node + i, (double)x[k])        \
                                       ? ~node->missing                                            \
                                       : node->missing;                                            \
                    RC_TILE_UNROLL_ for (k = 0; k < VECTORS; k++)                                  \
                    {                                                                              \
                        NAME##words_ fires;                                                        \
                        RC_LOAD_(fires, words + k * AT_ONCE);                                      \
                        left[k] &= keep | ~fires;                                                  \
                    }                                                                              \
                    continue;                                                                      \
                }                                                                                  \
                x = tiles->tile.TYPE + (int64_t)node->column * RC_TILE_ROWS_;                      \
                RC_TILE_UNROLL_ for (k = 0; k < VECTORS; k++)                                      \
                {                                                                                  \
                    NAME##reals_ v;                                                                \
                    NAME##words_ fires;                                                            \
                    RC_LOAD_(v, x + k * AT_ONCE);                                                  \
                    fires = (NAME##words_)(v > threshold);                                         \
                    if (missing)                                                                   \
                        fires |= (NAME##words_)(v != v) & both;                                    \
                    left[k] &= keep | ~fires;                                                      \
                }                                                                                  \
            }                                                                                      \
            RC_TILE_UNROLL_ for (k = 0; k < VECTORS; k++) RC_STORE_(words + k * AT_ONCE, left[k]); \
            if (width == 1)                                                                        \
                for (k = 0; k < RC_TILE_ROWS_; k++)                                                \
                    scores[k] += values[FIRST(words[k])];                                          \
            else                                                                                   \
                for (k = 0; k < RC_TILE_ROWS_; k++)                                                \
                    rc_tile_add_leaf_(scores + k * width, values + FIRST(words[k]) * width,        \
                                      width);                                                      \
            values += (tiles->ends[t] - (t ? tiles->ends[t - 1] : 0) + 1) * width;                 \
        }                                                                                          \
    }                                                                                              \
    RC_CLONES_ static void NAME(const rc_tiles_ *tiles, const rc_trees *model, double *scores,     \
                                int missing)                                                       \
    {                                                                                              \
        if (missing)                                                                               \
            NAME##inline_(tiles, model, scores, 1);                                                \
        else                                                                                       \
            NAME##inline_(tiles, model, scores, 0);                                                \
    }

RC_TILE_ADD_(rc_tile_add_f32_, float, int32_t, f32, RC_TILE_FIRST_F32_)
RC_TILE_ADD_(rc_tile_add_f64_, double, int64_t, f64, RC_TILE_FIRST_)
#undef RC_TILE_ADD_
#undef RC_TILE_FIRST_F32_
#undef RC_TILE_FIRST_
#undef RC_TILE_UNROLL_

/* Adds the values of trees to the scores of rows, tile by tile. O(n_rows * (nodes + trees *
 * n_sums)). */
static inline void rc_tiles_add_(rc_tiles_ *tiles, const rc_trees *model, const rc_rows *X,
                                 double *scores)
{
    const int32_t zero = model->zero_missing != 0, m = tiles->n_sums;
    const int64_t whole = RC_TILE_ROWS_;
    double *sums = tiles->sums;
    int64_t i, k;
    int32_t j;
    memset(sums, 0, sizeof tiles->sums);
    for (i = 0; i < X->n_rows; i += whole) {
        const int64_t left = X->n_rows - i, n = left < whole ? left : whole;
        for (j = 0; j < m; j++)
            for (k = 0; k < n; k++)
                sums[k * tiles->width + j] = scores[j * X->n_rows + i + k];
        if (tiles->single)
            rc_tile_add_f32_(tiles, model, sums,
                             rc_tile_fill_f32_(tiles, X, i, n, tiles->tile.f32, zero));
        else if (X->dtype == RC_FLOAT32)
            rc_tile_add_f64_(tiles, model, sums,
                             rc_tile_fill_f32_f64_(tiles, X, i, n, tiles->tile.f64, zero));
        else
            rc_tile_add_f64_(tiles, model, sums,
                             rc_tile_fill_f64_(tiles, X, i, n, tiles->tile.f64, zero));
        for (j = 0; j < m; j++)
            for (k = 0; k < n; k++)
                scores[j * X->n_rows + i + k] = sums[k * tiles->width + j];
    }
}

/* Adds to the scores of rows the values of some of the trees first .. last - 1 of each of n_sums
 * sums, which rc_trees_alike_ accepts if there are several, if there are enough rows and few
 * sums; returns the number of trees from the first one on, 0 if that has to be walked. Scores of
 * the second sum follow those of the first. The columns of sparse rows must ascend. `room` is
 * sizeof(rc_tiles_) bytes. O(n_rows * (nodes + columns + trees * n_sums)), plus the values of
 * sparse rows. */
static inline int64_t rc_trees_add_tiled_(const rc_trees *model, int32_t n_sums, int64_t first,
                                          int64_t last, const rc_rows *X, double *scores,
                                          rc_tiles_ *room)
{
    int64_t n = 0;
    if (X->n_rows >= RC_TILED_ROWS_ && n_sums <= RC_TILED_SUMS_ &&
        rc_tiles_make_(room, model, n_sums, first, last, X->dtype == RC_FLOAT32)) {
        rc_tiles_add_(room, model, X, scores);
        n = room->n_trees;
    }
    return n;
}
#else
typedef struct rc_tiles_ {
    double none;
} rc_tiles_;

static inline int32_t rc_trees_tile_(const rc_trees *model, int64_t t)
{
    (void)model, (void)t;
    return 0;
}

static inline int64_t rc_trees_add_tiled_(const rc_trees *model, int32_t n_sums, int64_t first,
                                          int64_t last, const rc_rows *X, double *scores,
                                          rc_tiles_ *room)
{
    (void)model, (void)n_sums, (void)first, (void)last, (void)X, (void)scores, (void)room;
    return 0;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_TILES_H */
