/* rankcore.h - score rows with a fitted model. C99 (and C++11), header only, no Python.
 *
 * Ownership: every struct here borrows its arrays; no function allocates or frees memory.
 * Thread safety: functions only read through their arguments, except for outputs ("writes");
 *   calls on distinct outputs may run at the same time without locks.
 * Exactness: sums are formed in a fixed order, so a score is bit-identical wherever it is
 *   computed, provided the compiler does not contract a*b + c into one rounding.
 *   GCC and Clang on CPUs with FMA by default need -ffp-contract=off; never use -ffast-math.
 */
#ifndef RANKCORE_H
#define RANKCORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Incremented when something is added. Released structs keep their layout; extensions get new
 * names. */
#define RANKCORE_ABI 1

#ifdef __cplusplus
extern "C" {
#endif

enum { RC_FLOAT64 = 0, RC_FLOAT32 = 1 };

/* One example. Sparse: n stored values data[i] at columns indices[i]. Dense: indices is NULL and
 * data[i] is column i. The columns must exist in the model that scores the row (not checked
 * here: the check would cost as much as the score). */
typedef struct rc_row {
    const void *data; /* double or float, by dtype */
    const int32_t *indices;
    int64_t n;
    int32_t dtype; /* RC_FLOAT64 or RC_FLOAT32 */
} rc_row;

/* Many examples: CSR, or dense rows (indices and indptr NULL). rc_rows_csr and rc_rows_dense fill
 * it.
 */
typedef struct rc_rows {
    const void *data;
    const int32_t *indices;
    const int64_t *indptr; /* n_rows + 1 offsets */
    int64_t stride;        /* dense: values from one row to the next, >= n_features; CSR: unused */
    int64_t n_rows;
    int64_t n_features;
    int32_t dtype;
} rc_rows;

/* A fitted PRank: weights (n_features) and thresholds (n_ranks - 1, ascending). */
typedef struct rc_prank {
    const double *weights;
    const double *thresholds;
    int64_t n_features;
    int32_t n_ranks;
} rc_prank;

/* A fitted linear model: the score is weights . x + intercept. */
typedef struct rc_linear {
    const double *weights;
    double intercept;
    int64_t n_features;
} rc_linear;

/* A fitted CuSum Rank: task j (0 .. n_ranks - 2, "rank above j") has the weights weights[column
 * * (n_ranks - 1) + j] and the threshold thresholds[j]. Thresholds may be in any order. */
typedef struct rc_cusum {
    const double *weights;
    const double *thresholds;
    int64_t n_features;
    int32_t n_ranks;
    int32_t tie; /* RC_TIE_HIGH or RC_TIE_LOW */
} rc_cusum;

/* A fitted sum of threshold stumps, merged: column f adds values[offsets[f] + f + j] to the score
 * of a row whose value there has j of the column's thresholds below it. */
typedef struct rc_stumps {
    const int64_t *offsets;   /* n_features + 1; the thresholds of column f begin at offsets[f] */
    const double *thresholds; /* ascending within a column */
    const double *values;     /* one more per column than thresholds */
    const double *missing;    /* n_features: value of a NaN */
    const double *at_zero;    /* n_features: value of a zero, stored or not */
    double base;              /* the score of a row of zeros */
    int64_t n_features;
} rc_stumps;

/* A fitted sum of regression trees. Tree t has the nodes offsets[t] .. offsets[t + 1] - 1,
 * numbered from 0 within the tree with the root first, and one more leaf than nodes; the values
 * of its leaves start at values[offsets[t] + t]. A tree without nodes is one leaf. */
typedef struct rc_trees {
    const int64_t *offsets;   /* n_trees + 1 */
    const int32_t *features;  /* of a node */
    const int32_t *children;  /* two of a node: where values up to the threshold go, and where those
                               * above it go; a node of the tree, or -1 - leaf */
    const uint8_t *missing;   /* of a node, 0 or 1: which of the two a NaN takes */
    const double *thresholds; /* of a node */
    const double *values;     /* value of each leaf */
    int64_t n_trees;
    int64_t n_features;
    int32_t zero_missing;  /* whether a zero, stored or not, is missing, like a NaN */
    const int64_t *sets;   /* one more than nodes, or NULL: the set of node i of all trees begins at
                            * words[sets[i]]. If it is not empty, the node splits categories, 0, 1,
                            * 2 ..: those in the set take the child that a NaN does not take, and
                            * other values take the child of NaN */
    const uint32_t *words; /* 32 categories each, the first in the lowest bit */
} rc_trees;

/* Rule for ties between best ranks. */
enum { RC_TIE_HIGH = 0, RC_TIE_LOW = 1 };

/* Returns a sparse (indices given) or dense (indices NULL) row of doubles. O(1). */
static inline rc_row rc_row_f64(const double *data, const int32_t *indices, int64_t n)
{
    rc_row x;
    x.data = data;
    x.indices = indices;
    x.n = n;
    x.dtype = RC_FLOAT64;
    return x;
}

/* Returns a sparse (indices given) or dense (indices NULL) row of floats. O(1). */
static inline rc_row rc_row_f32(const float *data, const int32_t *indices, int64_t n)
{
    rc_row x;
    x.data = data;
    x.indices = indices;
    x.n = n;
    x.dtype = RC_FLOAT32;
    return x;
}

/* Returns contiguous dense rows; for a part of the columns, set `stride` to the full width. O(1).
 */
static inline rc_rows rc_rows_dense(const void *data, int32_t dtype, int64_t n_rows,
                                    int64_t n_features)
{
    rc_rows X;
    X.data = data;
    X.indices = NULL;
    X.indptr = NULL;
    X.stride = n_features;
    X.n_rows = n_rows;
    X.n_features = n_features;
    X.dtype = dtype;
    return X;
}

/* Returns CSR rows: row i has the values, at their columns, from indptr[i] to indptr[i + 1]. If no
 * row has values, data and indices may be NULL, as for an empty std::vector. O(1). */
static inline rc_rows rc_rows_csr(const void *data, const int32_t *indices, const int64_t *indptr,
                                  int32_t dtype, int64_t n_rows, int64_t n_features)
{
    rc_rows X = rc_rows_dense(data, dtype, n_rows, n_features);
    static const int32_t none = 0; /* never read */
    X.indices = indices;
    X.indptr = indptr;
    if (!indices && indptr && n_rows >= 0 && indptr[n_rows] == indptr[0])
        X.indices = &none;
    return X;
}

/* Returns row i (0 <= i < n_rows) of a matrix, which borrows from it. O(1). */
static inline rc_row rc_rows_get(const rc_rows *X, int64_t i)
{
    const int64_t first = X->indptr ? X->indptr[i] : i * X->stride;
    const int64_t n = X->indptr ? X->indptr[i + 1] - first : X->n_features;
    const int32_t *indices = X->indices ? X->indices + first : NULL;
    if (X->dtype == RC_FLOAT32)
        return rc_row_f32((const float *)X->data + first, indices, n);
    return rc_row_f64((const double *)X->data + first, indices, n);
}

/* Rows are read in memory order, but rows of a sparse matrix are too short for the hardware
 * prefetcher: prefetching 1 KiB ahead makes an epoch a fifth faster. A prefetch never faults. */
#if defined(__GNUC__) || defined(__clang__)
#define RC_PREFETCH_(address) __builtin_prefetch((const void *)((uintptr_t)(address) + 1024))
#else
#define RC_PREFETCH_(address) ((void)0)
#endif

/* The two loops below are written once for the four kinds of row. Steps of four let the CPU overlap
 * additions and memory accesses; the order of the sums is part of the contract (see Exactness). */
#define RC_DOT_(TYPE, COLUMN)                          \
    do {                                               \
        const TYPE *v = (const TYPE *)x.data;          \
        for (; i + 4 <= x.n; i += 4) {                 \
            RC_PREFETCH_(v + i);                       \
            if (x.indices)                             \
                RC_PREFETCH_(x.indices + i);           \
            s0 += (double)v[i] * w[COLUMN(i)];         \
            s1 += (double)v[i + 1] * w[COLUMN(i + 1)]; \
            s2 += (double)v[i + 2] * w[COLUMN(i + 2)]; \
            s3 += (double)v[i + 3] * w[COLUMN(i + 3)]; \
        }                                              \
        for (; i < x.n; i++)                           \
            s0 += (double)v[i] * w[COLUMN(i)];         \
    } while (0)
#define RC_AXPY_(TYPE, COLUMN)                                         \
    do {                                                               \
        const TYPE *v = (const TYPE *)x.data;                          \
        for (; i + 4 <= x.n; i += 4) {                                 \
            const double w0 = w[COLUMN(i)] + a * (double)v[i];         \
            const double w1 = w[COLUMN(i + 1)] + a * (double)v[i + 1]; \
            const double w2 = w[COLUMN(i + 2)] + a * (double)v[i + 2]; \
            const double w3 = w[COLUMN(i + 3)] + a * (double)v[i + 3]; \
            w[COLUMN(i)] = w0;                                         \
            w[COLUMN(i + 1)] = w1;                                     \
            w[COLUMN(i + 2)] = w2;                                     \
            w[COLUMN(i + 3)] = w3;                                     \
        }                                                              \
        for (; i < x.n; i++)                                           \
            w[COLUMN(i)] += a * (double)v[i];                          \
    } while (0)
#define RC_SPARSE_(i) x.indices[i]
#define RC_DENSE_(i) i

/* Returns the inner product of a row with w, accumulated in double. O(x.n). */
static inline double rc_dot(rc_row x, const double *w)
{
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    int64_t i = 0;
    if (x.indices) {
        if (x.dtype == RC_FLOAT32)
            RC_DOT_(float, RC_SPARSE_);
        else
            RC_DOT_(double, RC_SPARSE_);
    } else {
        if (x.dtype == RC_FLOAT32)
            RC_DOT_(float, RC_DENSE_);
        else
            RC_DOT_(double, RC_DENSE_);
    }
    return (s0 + s2) + (s1 + s3);
}

/* w += a * x; writes w. Columns of one row must be distinct. O(x.n). */
static inline void rc_axpy(rc_row x, double a, double *w)
{
    int64_t i = 0;
    if (x.indices) {
        if (x.dtype == RC_FLOAT32)
            RC_AXPY_(float, RC_SPARSE_);
        else
            RC_AXPY_(double, RC_SPARSE_);
    } else {
        if (x.dtype == RC_FLOAT32)
            RC_AXPY_(float, RC_DENSE_);
        else
            RC_AXPY_(double, RC_DENSE_);
    }
}

/* The same for K <= 4 of k weight vectors, stored by feature: the k weights of a column are
 * contiguous, so that each value of the row accesses one place in memory. */
#define RC_DOTS_(TYPE, COLUMN, K)                                  \
    do {                                                           \
        const TYPE *v = (const TYPE *)x.data;                      \
        for (i = 0; i < x.n; i++) {                                \
            const double *wi = w + (int64_t)COLUMN(i) * k + first; \
            if (i % 8 == 0) {                                      \
                RC_PREFETCH_(v + i);                               \
                if (x.indices)                                     \
                    RC_PREFETCH_(x.indices + i);                   \
            }                                                      \
            for (j = 0; j < (K); j++)                              \
                sums[j] += (double)v[i] * wi[j];                   \
        }                                                          \
    } while (0)
#define RC_DOTS_OF_(K)                           \
    do {                                         \
        if (x.indices) {                         \
            if (x.dtype == RC_FLOAT32)           \
                RC_DOTS_(float, RC_SPARSE_, K);  \
            else                                 \
                RC_DOTS_(double, RC_SPARSE_, K); \
        } else {                                 \
            if (x.dtype == RC_FLOAT32)           \
                RC_DOTS_(float, RC_DENSE_, K);   \
            else                                 \
                RC_DOTS_(double, RC_DENSE_, K);  \
        }                                        \
    } while (0)

/* Writes the inner products of a row with k weight vectors w[column * k + j], out[0 .. k - 1].
 * Four at a time, so that their sums stay in registers. O(x.n * k). */
static inline void rc_dots(rc_row x, const double *w, int32_t k, double *out)
{
    int32_t first;
    for (first = 0; first < k; first += 4) {
        const int32_t width = k - first < 4 ? k - first : 4;
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        int64_t i;
        int32_t j;
        switch (width) {
        case 1:
            RC_DOTS_OF_(1);
            break;
        case 2:
            RC_DOTS_OF_(2);
            break;
        case 3:
            RC_DOTS_OF_(3);
            break;
        default:
            RC_DOTS_OF_(4);
        }
        for (j = 0; j < width; j++)
            out[first + j] = sums[j];
    }
}

/* w_j += a * x for the weight vectors j in first .. stop - 1 of k; writes w.
 * O(x.n * (stop - first)). */
static inline void rc_axpys(rc_row x, double a, double *w, int32_t k, int32_t first, int32_t stop)
{
    int64_t i;
    int32_t j;
    for (i = 0; i < x.n; i++) {
        const int64_t column = x.indices ? x.indices[i] : i;
        const double change = a * (x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                                         : ((const double *)x.data)[i]);
        for (j = first; j < stop; j++)
            w[column * k + j] += change;
    }
}

/* Returns the squared length of a row. O(x.n). */
static inline double rc_norm2(rc_row x)
{
    double sum = 0.0;
    int64_t i;
    for (i = 0; i < x.n; i++) {
        const double value = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                                   : ((const double *)x.data)[i];
        sum += value * value;
    }
    return sum;
}

#undef RC_PREFETCH_
#undef RC_DOTS_
#undef RC_DOTS_OF_
#undef RC_DOT_
#undef RC_AXPY_
#undef RC_SPARSE_
#undef RC_DENSE_

/* Returns the rank 0 .. n_ranks - 1 of a score: the number of thresholds that it reaches (score ==
 * threshold counts). A NaN score has rank 0. O(log n_ranks): few thresholds are counted, as this
 * costs less than a mispredicted branch; many are first narrowed by bisection. */
static inline int32_t rc_rank(const double *thresholds, int32_t n_ranks, double score)
{
    int32_t rank = 0;
    int32_t left = n_ranks - 1;
    int32_t reached = 0;
    int32_t r;
    while (left > 16) {
        const int32_t half = left / 2;
        if (score >= thresholds[rank + half]) {
            rank += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    for (r = 0; r < left; r++)
        reached += score >= thresholds[rank + r];
    return rank + reached;
}

/* Returns the projection of a row on the model's direction, to which its thresholds apply. O(x.n).
 */
static inline double rc_prank_score(const rc_prank *model, rc_row x)
{
    return rc_dot(x, model->weights);
}

/* Returns the predicted rank 0 .. n_ranks - 1 of a row. O(x.n + log n_ranks). */
static inline int32_t rc_prank_rank(const rc_prank *model, rc_row x)
{
    return rc_rank(model->thresholds, model->n_ranks, rc_prank_score(model, x));
}

/* Returns the score of a linear model. O(x.n). */
static inline double rc_linear_score(const rc_linear *model, rc_row x)
{
    return rc_dot(x, model->weights) + model->intercept;
}

/* Returns the contribution of a nonzero value in column f to the score. O(log thresholds of the
 * column). */
static inline double rc_stumps_value(const rc_stumps *model, int64_t f, double x)
{
    const double *thresholds = model->thresholds + model->offsets[f];
    int64_t left = model->offsets[f + 1] - model->offsets[f];
    int64_t below = 0;
    if (x != x)
        return model->missing[f];
    while (left > 0) {
        const int64_t half = left / 2;
        if (thresholds[below + half] < x) {
            below += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    return model->values[model->offsets[f] + f + below];
}

/* Returns the score of a sum of stumps. Only differences from a row of zeros are summed, so that a
 * sparse row and the same dense row have the same score. O(x.n * log thresholds). */
static inline double rc_stumps_score(const rc_stumps *model, rc_row x)
{
    double score = model->base;
    int64_t i;
    for (i = 0; i < x.n; i++) {
        const int64_t f = x.indices ? x.indices[i] : i;
        const double value = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                                   : ((const double *)x.data)[i];
        if (value != 0.0 && model->offsets[f] < model->offsets[f + 1])
            score += rc_stumps_value(model, f, value) - model->at_zero[f];
    }
    return score;
}

/* Returns the value of a row in a column; 0 if it is sparse and has no entry there. O(log x.n) if
 * sparse. */
static inline double rc_row_value(rc_row x, int64_t column)
{
    int64_t at = column;
    if (x.indices) {
        int64_t left = x.n;
        at = 0;
        while (left > 0) {
            const int64_t half = left / 2;
            if (x.indices[at + half] < column) {
                at += half + 1;
                left -= half + 1;
            } else {
                left = half;
            }
        }
        if (at == x.n || x.indices[at] != column)
            return 0.0;
    }
    return x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[at]
                                 : ((const double *)x.data)[at];
}

/* Returns whether a value is in the set of a node, numbered over all trees; sets must not be NULL.
 * O(1).
 */
static inline int32_t rc_trees_has(const rc_trees *model, int64_t node, double value)
{
    const int64_t first = model->sets[node], n = model->sets[node + 1] - first;
    int64_t category;
    if (!(value >= 0.0 && value < 32.0 * (double)n))
        return 0;
    category = (int64_t)value;
    return (double)category == value &&
           (model->words[first + category / 32] >> (category % 32) & 1u);
}

/* Returns the leaf of a row in tree t (0 <= t < n_trees), from 0. The columns of a sparse row must
 * ascend. O(depth), times O(log x.n) if it is sparse. */
static inline int32_t rc_trees_leaf(const rc_trees *model, int64_t t, rc_row x)
{
    const int64_t first = model->offsets[t];
    int32_t at = model->offsets[t + 1] > first ? 0 : -1;
    while (at >= 0) {
        const double value = rc_row_value(x, model->features[first + at]);
        const int32_t is_missing = value != value || (model->zero_missing && value == 0.0);
        int32_t above =
            is_missing ? model->missing[first + at] : value > model->thresholds[first + at];
        if (model->sets && model->sets[first + at] < model->sets[first + at + 1] && !is_missing)
            above = model->missing[first + at] ^ rc_trees_has(model, first + at, value);
        at = model->children[2 * (first + at) + above];
    }
    return -1 - at;
}

/* Number of rows that descend a tree, or of trees that a row descends, in parallel, as each step
 * depends on the previous one. And number of rows that are scored by all trees before the next
 * rows, so that they stay in the cache. */
#define RC_WALKS_ 8
#define RC_WALKED_ROWS_ 64

#if defined(__GNUC__)
#define RC_WITH_CONSTANTS_ static inline __attribute__((always_inline))
#else
#define RC_WITH_CONSTANTS_ static inline
#endif

/* Makes a step of a dense row down tree t; returns the next node, or -1 - leaf. There are no
 * branches except for categories, as the path of a row is unpredictable. A walk that has reached a
 * leaf stays there. */
RC_WITH_CONSTANTS_ int32_t rc_trees_step_(const rc_trees *model, int64_t first,
                                          const int32_t *features, const int32_t *children,
                                          const uint8_t *missing, const double *thresholds,
                                          const void *x, int32_t here, const int single,
                                          const int zero, const int sets)
{
    const int32_t node = here < 0 ? 0 : here, f = features[node];
    const double value = single ? (double)((const float *)x)[f] : ((const double *)x)[f];
    const int32_t none = (value != value) | (zero && value == 0.0);
    const int32_t over = (value > thresholds[node]) & !(zero && none);
    int32_t above = (none & missing[node]) | over, next;
    if (sets && model->sets[first + node] < model->sets[first + node + 1])
        above = none ? missing[node] : missing[node] ^ rc_trees_has(model, first + node, value);
    next = children[2 * node + above];
    return here < 0 ? here : next;
}

/* Repeats STEP(lane) for all lanes until every walk has reached a leaf. Unrolled, for compilers
 * that do not unroll the loop at -O2. */
#define RC_WALK_(STEP, AT) \
    do {                   \
        STEP(0);           \
        STEP(1);           \
        STEP(2);           \
        STEP(3);           \
        STEP(4);           \
        STEP(5);           \
        STEP(6);           \
        STEP(7);           \
    } while (((AT)[0] & (AT)[1] & (AT)[2] & (AT)[3] & (AT)[4] & (AT)[5] & (AT)[6] & (AT)[7]) >= 0)

/* Writes the places in `values` of the leaves of a dense row in the trees t .. t + RC_WALKS_ - 1;
 * returns 0 if one of them has no node. */
RC_WITH_CONSTANTS_ int32_t rc_trees_abreast_(const rc_trees *model, int64_t t, const void *x,
                                             int64_t *places, const int single, const int zero,
                                             const int sets)
{
    const int64_t *first = model->offsets + t;
    int32_t at[RC_WALKS_] = {0}, lane;
    for (lane = 0; lane < RC_WALKS_; lane++)
        if (first[lane] == first[lane + 1])
            return 0;
#define RC_TREE_STEP_(LANE)                                                                    \
    at[LANE] = rc_trees_step_(model, first[LANE], model->features + first[LANE],               \
                              model->children + 2 * first[LANE], model->missing + first[LANE], \
                              model->thresholds + first[LANE], x, at[LANE], single, zero, sets)
    RC_WALK_(RC_TREE_STEP_, at);
#undef RC_TREE_STEP_
    for (lane = 0; lane < RC_WALKS_; lane++)
        places[lane] = first[lane] + t + lane - 1 - at[lane];
    return 1;
}

/* Writes the places in `values` of the leaves of a row in some of the trees t .. last - 1; returns
 * the number of trees, 1 or RC_WALKS_. */
static inline int64_t rc_trees_places_(const rc_trees *model, int64_t t, int64_t last, rc_row x,
                                       int64_t *places)
{
    const int single = x.dtype == RC_FLOAT32, zero = model->zero_missing != 0;
    if (!x.indices && t + RC_WALKS_ <= last &&
        (model->sets ? rc_trees_abreast_(model, t, x.data, places, single, zero, 1)
         : zero      ? rc_trees_abreast_(model, t, x.data, places, single, 1, 0)
                     : rc_trees_abreast_(model, t, x.data, places, single, 0, 0)))
        return RC_WALKS_;
    places[0] = model->offsets[t] + t + rc_trees_leaf(model, t, x);
    return 1;
}

/* Returns the sum of the values of the trees first .. last - 1 for a row, added in order. A dense
 * row descends eight trees at a time. Cost as rc_trees_leaf, for each tree. */
static inline double rc_trees_sum(const rc_trees *model, int64_t first, int64_t last, rc_row x)
{
    int64_t places[RC_WALKS_], t, n, i;
    double score = 0.0;
    for (t = first; t < last; t += n) {
        n = rc_trees_places_(model, t, last, x, places);
        for (i = 0; i < n; i++)
            score += model->values[places[i]];
    }
    return score;
}

/* Returns whether the trees are those of n_sums sums, one sum after the other, whose first trees
 * differ in their values only, as do the second ones, and so on. O(nodes). */
static inline int32_t rc_trees_alike_(const rc_trees *model, int32_t n_sums)
{
    const int64_t n = model->n_trees / n_sums, nodes = model->offsets[n];
    const int64_t *sets = model->sets, words = sets ? sets[nodes] : 0;
    int64_t j, i;
    if (n * n_sums != model->n_trees)
        return 0;
    for (j = 1; j < n_sums; j++) {
        const int64_t first = j * nodes, word = j * words;
        for (i = 0; i <= n; i++)
            if (model->offsets[j * n + i] != first + model->offsets[i])
                return 0;
        for (i = 0; sets && i <= nodes; i++)
            if (sets[first + i] != word + sets[i])
                return 0;
#define RC_SAME_(ARRAY, FROM, N) \
    ((N) < 1 || !memcmp((ARRAY) + (FROM), ARRAY, (size_t)(N) * sizeof *(ARRAY)))
        if (!RC_SAME_(model->features, first, nodes) ||
            !RC_SAME_(model->children, 2 * first, 2 * nodes) ||
            !RC_SAME_(model->missing, first, nodes) || !RC_SAME_(model->thresholds, first, nodes) ||
            !RC_SAME_(model->words, word, words))
            return 0;
#undef RC_SAME_
    }
    return 1;
}

/* For sums that rc_trees_alike_ accepts: adds the values of their trees first .. last - 1 to
 * scores[0 .. n_sums - 1], each in the order of rc_trees_sum. Cost as rc_trees_sum for one of
 * them, and O(n_sums * (last - first)). */
static inline void rc_trees_sums_(const rc_trees *model, int32_t n_sums, int64_t first,
                                  int64_t last, rc_row x, double *scores)
{
    const int64_t each = model->n_trees / n_sums, apart = model->offsets[each] + each;
    int64_t places[RC_WALKS_], t, n, i;
    int32_t j;
    for (t = first; t < last; t += n) {
        n = rc_trees_places_(model, t, last, x, places);
        for (j = 0; j < n_sums; j++) {
            const double *values = model->values + j * apart;
            double score = scores[j];
            for (i = 0; i < n; i++)
                score += values[places[i]];
            scores[j] = score;
        }
    }
}

/* Returns the score of a sum of trees: their values, added in order. Cost as rc_trees_leaf, for
 * each tree. */
static inline double rc_trees_score(const rc_trees *model, rc_row x)
{
    return rc_trees_sum(model, 0, model->n_trees, x);
}

/* Adds the values of tree t to the scores of RC_WALKS_ dense rows that are `apart` bytes apart. */
RC_WITH_CONSTANTS_ void rc_trees_walk_(const rc_trees *model, int64_t t, const char *x,
                                       int64_t apart, double *scores, const int single,
                                       const int zero, const int sets)
{
    const int64_t first = model->offsets[t];
    const double *values = model->values + first + t;
    const int32_t *features, *children;
    const uint8_t *missing;
    const double *thresholds;
    int32_t at[RC_WALKS_] = {0}, lane;
    if (model->offsets[t + 1] == first) { /* arrays of nodes may be NULL */
        for (lane = 0; lane < RC_WALKS_; lane++)
            scores[lane] += values[0];
        return;
    }
    features = model->features + first;
    children = model->children + 2 * first;
    missing = model->missing + first;
    thresholds = model->thresholds + first;
#define RC_ROW_STEP_(LANE)                                                           \
    at[LANE] = rc_trees_step_(model, first, features, children, missing, thresholds, \
                              x + (LANE) * apart, at[LANE], single, zero, sets)
    RC_WALK_(RC_ROW_STEP_, at);
#undef RC_ROW_STEP_
    for (lane = 0; lane < RC_WALKS_; lane++)
        scores[lane] += values[-1 - at[lane]];
}

/* Adds the values of the trees first .. last - 1 to the scores of rows X, tree by tree. Dense
 * rows descend a tree eight at a time. Cost as rc_trees_leaf, for each tree and row. */
static inline void rc_trees_add(const rc_trees *model, int64_t first, int64_t last,
                                const rc_rows *X, double *scores)
{
    const int single = X->dtype == RC_FLOAT32, zero = model->zero_missing != 0;
    const int form = 4 * (model->sets != NULL) + 2 * single + zero;
    const int64_t apart = X->stride * (single ? 4 : 8);
    int64_t start = 0, stop, i, t;
    while (!X->indices && !X->indptr && start + RC_WALKS_ <= X->n_rows) {
        stop = X->n_rows - start < RC_WALKED_ROWS_ ? X->n_rows : start + RC_WALKED_ROWS_;
        stop -= (stop - start) % RC_WALKS_;
#define RC_FORM_(FORM)                                                                            \
    case FORM:                                                                                    \
        rc_trees_walk_(model, t, x, apart, scores + i, (FORM) >> 1 & 1, (FORM) & 1, (FORM) >> 2); \
        break
        for (t = first; t < last; t++)
            for (i = start; i < stop; i += RC_WALKS_) {
                const char *x = (const char *)X->data + i * apart;
                switch (form) {
                    RC_FORM_(0);
                    RC_FORM_(1);
                    RC_FORM_(2);
                    RC_FORM_(3);
                    RC_FORM_(4);
                    RC_FORM_(5);
                    RC_FORM_(6);
                    RC_FORM_(7);
                }
            }
#undef RC_FORM_
        start = stop;
    }
    for (; start < X->n_rows; start++) {
        const rc_row x = rc_rows_get(X, start);
        for (t = first; t < last; t++)
            scores[start] += model->values[model->offsets[t] + t + rc_trees_leaf(model, t, x)];
    }
}

/* Writes the scores of rows X by a sum of trees, scores[0 .. n_rows - 1], bit-identical to
 * rc_trees_score. Cost as rc_trees_add, for all trees. */
static inline void rc_trees_scores(const rc_trees *model, const rc_rows *X, double *scores)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        scores[i] = 0.0;
    rc_trees_add(model, 0, model->n_trees, X, scores);
}

#undef RC_WALKS_
#undef RC_WALKED_ROWS_
#undef RC_WITH_CONSTANTS_

/* Writes the cumulative scores of the n_ranks ranks, scores[0 .. n_ranks - 1], the first 0.
 * O(x.n * n_ranks). */
static inline void rc_cusum_scores(const rc_cusum *model, rc_row x, double *scores)
{
    int32_t r;
    rc_dots(x, model->weights, model->n_ranks - 1, scores + 1);
    scores[0] = 0.0;
    for (r = 1; r < model->n_ranks; r++)
        scores[r] = scores[r - 1] + (scores[r] - model->thresholds[r - 1]);
}

/* Returns the index of the maximum of n scores; the last (RC_TIE_HIGH) or first (RC_TIE_LOW) of
 * ties. O(n). */
static inline int32_t rc_best(const double *scores, int32_t n, int32_t tie)
{
    int32_t best = 0;
    int32_t r;
    for (r = 1; r < n; r++)
        if (scores[r] > scores[best] || (scores[r] == scores[best] && tie == RC_TIE_HIGH))
            best = r;
    return best;
}

/* Returns the predicted rank 0 .. n_ranks - 1 of a row; also writes its scores[0 .. n_ranks - 1].
 * O(x.n * n_ranks). */
static inline int32_t rc_cusum_rank(const rc_cusum *model, rc_row x, double *scores)
{
    rc_cusum_scores(model, x, scores);
    return rc_best(scores, model->n_ranks, model->tie);
}

/* ------------------------------------------------------------------------ kernels */

enum { RC_KERNEL_LINEAR = 0, RC_KERNEL_POLY = 1, RC_KERNEL_RBF = 2 };

/* A kernel of two rows x and z: x . z; (gamma x . z + coef0) ** degree with degree >= 1; or
 * exp(-gamma |x - z|**2) with gamma >= 0. */
typedef struct rc_kernel {
    double gamma;
    double coef0;
    int32_t kind; /* RC_KERNEL_LINEAR, RC_KERNEL_POLY or RC_KERNEL_RBF */
    int32_t degree;
} rc_kernel;

/* A fitted learner in dual form: output j of a row x is the sum over the support vectors z_s of
 * coefs[j * n_support + s] * K(x, z_s). */
typedef struct rc_kernel_model {
    rc_kernel kernel;
    rc_rows support;          /* n_rows support vectors, dense or CSR */
    const double *norms;      /* their squared lengths */
    const double *coefs;      /* n_outputs * n_rows */
    const double *thresholds; /* n_ranks - 1 */
    int32_t n_outputs;        /* 1 (kernel PRank, the mean of kernel OAP), or n_ranks - 1 (CuSum) */
    int32_t n_ranks;
    int32_t tie; /* CuSum: RC_TIE_HIGH or RC_TIE_LOW */
} rc_kernel_model;

/* exp(x) = 2**n exp(r) with |r| <= ln(2) / 2, whose Taylor sum up to r**13 is exact to the last
 * bits. The order of operations is the same for all compilers and register widths, unlike in
 * libm. */
#define RC_EXP_LEAST_ (-708.0)
#define RC_EXP_LOG2E_ 1.4426950408889634
#define RC_EXP_MAGIC_ 6755399441055744.0 /* 1.5 * 2**52: adding it rounds to an integer */
#define RC_EXP_LN2_HIGH_ 0.693147180369123816490
#define RC_EXP_LN2_LOW_ 1.90821492927058770002e-10
#define RC_EXP_SUM_(p, r)                            \
    do {                                             \
        (p) = (r) * (1.0 / 6227020800.0);            \
        (p) = (r) * ((p) + 1.0 / 479001600.0);       \
        (p) = (r) * ((p) + 1.0 / 39916800.0);        \
        (p) = (r) * ((p) + 1.0 / 3628800.0);         \
        (p) = (r) * ((p) + 1.0 / 362880.0);          \
        (p) = (r) * ((p) + 1.0 / 40320.0);           \
        (p) = (r) * ((p) + 1.0 / 5040.0);            \
        (p) = (r) * ((p) + 1.0 / 720.0);             \
        (p) = (r) * ((p) + 1.0 / 120.0);             \
        (p) = (r) * ((p) + 1.0 / 24.0);              \
        (p) = (r) * ((p) + 1.0 / 6.0);               \
        (p) = 1.0 + ((r) + (r) * (r) * ((p) + 0.5)); \
    } while (0)

/* Returns the exponential of x <= 0 to 1 unit in the last place, 0 below -708. O(1). */
static inline double rc_kernel_exp(double x)
{
    const double t = x * RC_EXP_LOG2E_ + RC_EXP_MAGIC_;
    const double n = t - RC_EXP_MAGIC_;
    const double r = (x - n * RC_EXP_LN2_HIGH_) - n * RC_EXP_LN2_LOW_;
    uint64_t bits, shift;
    double p, result;
    if (x < RC_EXP_LEAST_)
        return 0.0;
    RC_EXP_SUM_(p, r);
    memcpy(&bits, &p, sizeof bits);
    memcpy(&shift, &t, sizeof shift);
    bits += shift << 52;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Returns the kernel of two rows with an inner product and squared lengths. O(log degree). */
static inline double rc_kernel_value(const rc_kernel *kernel, double dot, double norm_x,
                                     double norm_z)
{
    double distance, base, power = 1.0;
    int32_t left;
    if (kernel->kind == RC_KERNEL_RBF) {
        distance = (norm_x + norm_z) - (dot + dot);
        return rc_kernel_exp(-kernel->gamma * (distance < 0.0 ? 0.0 : distance));
    }
    if (kernel->kind == RC_KERNEL_LINEAR)
        return dot;
    base = kernel->gamma * dot + kernel->coef0;
    for (left = kernel->degree; left; left >>= 1) {
        if (left & 1)
            power *= base;
        base *= base;
    }
    return power;
}

/* Writes the standardized values of a row, (value - mean) * factor of each column, also of the
 * zeros that a sparse row does not store, z[0 .. n_features - 1]. O(n_features + x.n). */
static inline void rc_standardize(rc_row x, const double *means, const double *factors,
                                  int64_t n_features, double *z)
{
    int64_t i, f;
    for (f = 0; x.indices && f < n_features; f++)
        z[f] = (0.0 - means[f]) * factors[f];
    for (i = 0; i < x.n; i++) {
        const double value = x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                                   : ((const double *)x.data)[i];
        f = x.indices ? x.indices[i] : i;
        z[f] = (value - means[f]) * factors[f];
    }
}

/* Returns the inner product of two rows, each dense or sparse with ascending columns. O(x.n + z.n).
 */
static inline double rc_row_dot(rc_row x, rc_row z)
{
    double sum = 0.0;
    int64_t i = 0, j = 0;
    while (i < x.n && j < z.n) {
        const int64_t a = x.indices ? x.indices[i] : i;
        const int64_t b = z.indices ? z.indices[j] : j;
        if (a == b)
            sum += (x.dtype == RC_FLOAT32 ? (double)((const float *)x.data)[i]
                                          : ((const double *)x.data)[i]) *
                   (z.dtype == RC_FLOAT32 ? (double)((const float *)z.data)[j]
                                          : ((const double *)z.data)[j]);
        i += a <= b;
        j += b <= a;
    }
    return sum;
}

/* Writes the outputs of a row, outputs[0 .. n_outputs - 1].
 * O(n_support * (x.n + non-zeros of a support vector + n_outputs)). */
static inline void rc_kernel_outputs(const rc_kernel_model *model, rc_row x, double *outputs)
{
    const double norm = rc_norm2(x);
    int64_t s;
    int32_t j;
    for (j = 0; j < model->n_outputs; j++)
        outputs[j] = 0.0;
    for (s = 0; s < model->support.n_rows; s++) {
        const double dot = rc_row_dot(x, rc_rows_get(&model->support, s));
        const double value = rc_kernel_value(&model->kernel, dot, norm, model->norms[s]);
        for (j = 0; j < model->n_outputs; j++)
            outputs[j] += model->coefs[j * model->support.n_rows + s] * value;
    }
}

/* Returns the predicted rank 0 .. n_ranks - 1 of a row by a kernel PRank or the mean of a kernel
 * OAP; writes outputs[0], the projection. Cost as rc_kernel_outputs. */
static inline int32_t rc_kernel_prank_rank(const rc_kernel_model *model, rc_row x, double *outputs)
{
    rc_kernel_outputs(model, x, outputs);
    return rc_rank(model->thresholds, model->n_ranks, outputs[0]);
}

/* Returns the predicted rank 0 .. n_ranks - 1 of a row by a kernel CuSum; writes its scores[0 ..
 * n_ranks - 1]. Cost as rc_kernel_outputs. */
static inline int32_t rc_kernel_cusum_rank(const rc_kernel_model *model, rc_row x, double *scores)
{
    int32_t r;
    rc_kernel_outputs(model, x, scores + 1);
    scores[0] = 0.0;
    for (r = 1; r < model->n_ranks; r++)
        scores[r] = scores[r - 1] + (scores[r] - model->thresholds[r - 1]);
    return rc_best(scores, model->n_ranks, model->tie);
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_H */
